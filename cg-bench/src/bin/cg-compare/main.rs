//! The store beside others: the same workloads on all of them, in rounds, each in a process of its own.
//!
//! `cargo xtask bench compare` builds and starts it. `docs/benchmarks.md` says how the table is to be read.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the figures are for a person")]

mod check;
mod columns;
mod driver;
mod failure;
mod figures;
mod gather;
mod go;
mod limits;
mod measure;
mod meter;
mod place;
mod plan;
mod quiet;
mod report;
mod subject;
mod work;
mod workload;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use failure::Failure;
use plan::Plan;
use report::Report;

/// The store beside others.
#[derive(Debug, Parser)]
#[command(name = "cg-compare", version)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Runs the workloads, prints the table and writes the report.
    Run(Options),
    /// Measures one workload of one subject.
    #[command(hide = true)]
    Measure(measure::Measure),
    /// Measures what the machine needs for the bytes of a column.
    #[command(hide = true)]
    Limits {
        /// The file of the columns.
        columns: PathBuf,
        /// An empty folder.
        scratch: PathBuf,
    },
}

/// What is run.
#[derive(Debug, clap::Args)]
struct Options {
    /// Only workloads whose names contain this.
    only: Option<String>,
    /// Fewer columns and rounds: ends within five minutes on two cores.
    #[arg(long)]
    quick: bool,
    /// Only subjects whose names contain this; may be repeated.
    #[arg(long = "subject")]
    subjects: Vec<String>,
    /// Columns of each store, at least the 121 of an area.
    #[arg(long, value_parser = clap::value_parser!(u32).range(121..=65_536))]
    columns: Option<u32>,
    /// How often everything is repeated.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// How many seconds all waits for a quiet machine may take together [default: 600, with --quick 20].
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
    /// The folder for the report, and for the stores while they are measured.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    /// An earlier `report.json`: says what changed since then beyond the noise of both.
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,
    /// A line about machine or commit that the report repeats; may be repeated.
    #[arg(long)]
    condition: Vec<String>,
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Run(options) => run(options),
        Task::Measure(measure) => measure.run(),
        Task::Limits { columns, scratch } => limits::run(&columns, &scratch),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cg-compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), Failure> {
    let (columns, rounds, enough_ms, patience_s) =
        if options.quick { (256, 3, 40, 20) } else { (1024, 7, 500, 600) };
    // Read before it is overwritten.
    let old = options.compare.as_deref().map(Report::read).transpose()?;
    fs::create_dir_all(&options.out)?;
    let plan = Plan {
        columns: options.columns.map_or(columns, |count| count as usize),
        rounds: options.rounds.unwrap_or(rounds),
        enough: Duration::from_millis(enough_ms),
        patience: Duration::from_secs(options.patience.unwrap_or(patience_s)),
        quick: options.quick,
        only: options.only,
        subjects: options.subjects,
        conditions: options.condition,
        home: options.out.clone(),
    };
    let report = driver::run(&plan)?;
    print!("{}", report::table::text(&report));
    println!("\n{}\n{}", report.columns, report.conditions.join("\n"));
    if let Some(old) = old {
        print!("{}", report::changes::text(&old, &report));
    }
    let [json, page] = ["report.json", "report.html"].map(|name| options.out.join(name));
    report.write(&json)?;
    fs::write(&page, report::html::page(&report))?;
    println!("written to {} and {}", json.display(), page.display());
    let failures = report.failures();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}
