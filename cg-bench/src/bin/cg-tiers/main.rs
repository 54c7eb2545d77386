//! Worlds at their full size: a million chunks beside ten thousand, an hour of a server, ten minutes of a crowd, and
//! saves that are completely cold.
//!
//! What takes too long for a benchmark that repeats itself. Each prints a table with its reference in the same run.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the figures are for a person")]

mod cold;
mod contents;
mod crowd;
mod failure;
mod hour;
mod scale;
mod side;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Worlds at their full size.
#[derive(Debug, Parser)]
#[command(name = "cg-tiers", version)]
struct Args {
    #[command(subcommand)]
    run: Run,
}

#[derive(Debug, Subcommand)]
enum Run {
    /// Time to open, memory and time per tick of a large world against a small one.
    Scale(scale::Options),
    /// A world that moves its chunks against RocksDB with one key per chunk, on an hour of a server.
    Hour(hour::Options),
    /// Ticks of a server whose players walk into new land, by the clock, beside RocksDB and LevelDB.
    Crowd(crowd::Options),
    /// The bytes of saves whose chunks are all cold, beside one Zstandard stream for each of their regions.
    Cold(cold::Options),
    /// Opens a world, ticks it and prints what that cost.
    #[command(hide = true)]
    Measure(scale::Measure),
}

fn main() -> ExitCode {
    let done = match Args::parse().run {
        Run::Scale(options) => scale::run(&options),
        Run::Hour(options) => hour::run(&options),
        Run::Crowd(options) => crowd::run(&options),
        Run::Cold(options) => cold::run(&options),
        Run::Measure(measure) => scale::measure(&measure),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cg-tiers: {error}");
            ExitCode::FAILURE
        }
    }
}
