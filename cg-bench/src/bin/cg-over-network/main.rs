//! Worlds in PostgreSQL over a network of a stated delay: the figures that the design of such worlds promises, each
//! beside its bound.
//!
//! `cargo xtask bench postgres` builds and starts it, with a test cluster. `docs/scale-out.md` says how the table is to
//! be read.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the figures are for a person")]

mod areas;
mod bench;
mod commits;
mod database;
mod disk;
mod failover;
mod failure;
mod openings;
mod proxy;
mod records;
mod row;
mod sample;
mod ticks;
mod view;

use std::process::ExitCode;

use clap::Parser;

use bench::{Bench, Options};
use database::Database;
use failure::Failure;
use row::Row;

/// Worlds in PostgreSQL over a network of a stated delay.
#[derive(Debug, Parser)]
#[command(name = "cg-over-network", version)]
struct Args {
    /// Only groups of rows whose names hold one of these: areas, commits, openings, ticks, records, view, failover.
    groups: Vec<String>,
    #[command(flatten)]
    options: Options,
}

/// A group of rows, by name.
type Group = (&'static str, fn(&Bench) -> Result<Vec<Row>, Failure>);

/// Failures of nodes come last: they leave the machine busy.
const GROUPS: [Group; 7] = [
    ("areas", areas::run),
    ("commits", commits::run),
    ("openings", openings::run),
    ("ticks", ticks::run),
    ("records", records::run),
    ("view", view::run),
    ("failover", failover::run),
];

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cg-over-network: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<(), Failure> {
    let url = std::env::var("CG_PG_URL")
        .map_err(|_| "set CG_PG_URL to the address of a database, postgres://USER:PASSWORD@HOST/DATABASE")?;
    let Args { groups, options } = args;
    let bench = Bench { database: Database::new(&url)?, options };
    let wanted = |name: &str| groups.is_empty() || groups.iter().any(|part| name.contains(part.as_str()));
    let mut rows = Vec::new();
    for (name, group) in GROUPS.into_iter().filter(|(name, _)| wanted(name)) {
        eprintln!("{name}");
        rows.extend(group(&bench).map_err(|error| format!("{name}: {error}"))?);
    }
    if rows.is_empty() {
        return Err(format!("no group of rows holds {groups:?}").into());
    }
    print!("{}", row::table(&rows));
    println!(
        "\nfdatasync of 4 kB on this disk: {:.1?}",
        disk::fdatasync(&bench.options.disk, bench.times(200))?
    );
    let over = rows.iter().filter(|row| row.is_over()).count();
    println!("{} figures, {over} over their bounds; RTT is the delay", rows.len());
    println!(
        "made in the database, as schemas that nothing removes: cg_{} and what follows",
        database::prefix()
    );
    Ok(())
}
