//! Everything a contributor or CI runs: set-up, tests, benchmarks, checks.
//!
//! `cargo xtask --help` lists the commands. A plain binary that depends on no crate of the engine, so it compiles in
//! seconds and works on a machine where nothing else does yet.

mod api;
mod bench;
mod cg;
mod ci;
mod clean;
mod context;
mod counted;
mod demo;
mod features;
mod foreign;
mod fuzz;
mod hosts;
mod independent;
mod judge;
mod layers;
mod metadata;
mod miri;
mod msrv;
mod oldest;
mod postgres;
mod powerset;
mod process;
mod program;
mod pure;
mod python;
mod report;
mod setup;
mod spec;
mod symbols;
mod test;
mod toolchain;
mod torture;
mod unused;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::context::Context;
use crate::report::Outcome;

/// What a contributor or CI runs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find or install what the build needs, and compile RocksDB once.
    Setup {
        /// Print the variables as shell lines: `eval "$(cargo xtask setup --env)"` lets plain cargo link the same archive.
        #[arg(long)]
        env: bool,
    },
    /// Set up, then run every test, the doc tests, and check the pure crates without a C or C++ compiler.
    Test(test::Options),
    /// All fast checks: fmt, layers, features, msrv, unused, clippy, test, hosts, spec, docs, api, deny; with `--full` also oldest, foreign, powerset, variants, miri, fuzz smoke, postgres, bench smoke.
    Ci(ci::Options),
    /// Run the benchmarks and print one table, each figure beside its reference.
    Bench(bench::Options),
    /// Make a world from a seed, or import the save at PATH, check it and draw its map.
    Demo {
        /// A save to import.
        path: Option<PathBuf>,
    },
    /// Import and export real saves, and have the exports compared by readers in another language; a step of `test`.
    Exports,
    /// Kill, flip and cut worlds, and see that nothing is lost in silence.
    Torture(torture::Options),
    /// Fuzz the decoders, or replay the committed corpora.
    Fuzz(fuzz::Options),
    /// Build the library for other languages, and build and test the hosts in C, C++ and Go.
    Hosts(hosts::Options),
    /// Run a Python script with the packages that xtask/requirements.txt pins.
    Python {
        /// The script, from the workspace root.
        script: String,
        /// What it is given.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// A test cluster of PostgreSQL: three nodes with quorum replication, and failovers.
    #[command(subcommand)]
    Postgres(postgres::Action),
    /// Remove files of the build.
    Clean {
        /// What older compilers, profiles and dependencies left below target/, and nothing else. For all of it there is `cargo clean`.
        #[arg(long, required = true)]
        stale: bool,
    },
    /// Check that dependencies, modules and words stay in their layer.
    Layers,
    /// Check that a package built alone compiles no crate again that the workspace compiled.
    Features,
    /// Check that no dependency asks for a newer Rust than the workspace promises.
    Msrv,
    /// Check that every dependency that a manifest names is used.
    Unused,
    /// Check that the pure crates compile with the oldest Rust that the workspace promises.
    Oldest,
    /// Check that the pure crates compile for a big-endian target, for a 32-bit one and for Windows, and those without I/O for WebAssembly.
    Foreign,
    /// Run tests of the decoders in Miri, which finds undefined behaviour.
    Miri,
    /// Check that every library with features compiles without warnings with every set of them.
    Powerset,
    /// Run tests with other features: the pure crates where no C or C++ compiler can run, cg-format with the C library, and the tool without PostgreSQL.
    Variants,
    /// Check that the public items of each library are those that docs/api lists.
    Api(api::Options),
    /// Check the tables in docs/format against the decoders, and that every name in docs/seeds.md exists.
    Spec,
    /// Compare the strong symbols, static initialisers and size of two archives or programs, as RocksDB's in units with one built file by file.
    Symbols {
        /// What it should be like.
        reference: PathBuf,
        /// What is checked.
        other: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let context = Context::new()?;
    match command {
        Command::Setup { env } => {
            let environment = setup::prepare(&context)?;
            if env {
                print!("{}", environment.exports());
            } else {
                println!("all is there; for plain cargo: eval \"$(cargo xtask setup --env)\"");
            }
            Ok(())
        }
        Command::Test(options) => test::run(&context, &options),
        Command::Ci(options) => ci::run(&context, &options),
        Command::Hosts(options) => hosts::run(&context, &options),
        Command::Bench(options) => bench::run(&context, &options),
        Command::Demo { path } => demo::run(&context, path.as_deref()),
        Command::Exports => {
            let environment = setup::prepare(&context)?;
            alone(&context, independent::run(&context, &cg::Cg::build(&context, &environment)?)?)
        }
        Command::Torture(options) => torture::run(&context, &options),
        Command::Fuzz(options) => alone(&context, fuzz::run(&context, &options)?),
        Command::Python { script, args } => alone(&context, python::run(&context, &script, &args)?),
        Command::Postgres(action) => postgres::run(&context, &action),
        Command::Clean { stale: _ } => clean::stale(&context),
        Command::Layers => alone(&context, layers::run(&context)?),
        Command::Features => alone(&context, features::run(&context)?),
        Command::Msrv => alone(&context, msrv::run(&context)?),
        Command::Unused => alone(&context, unused::run(&context)?),
        Command::Oldest => alone(&context, oldest::run(&context)?),
        Command::Foreign => alone(&context, foreign::run(&context)?),
        Command::Miri => alone(&context, miri::run(&context)?),
        Command::Powerset => {
            let environment = setup::prepare(&context)?;
            alone(&context, powerset::run(&context, &environment)?)
        }
        Command::Variants => {
            let environment = setup::prepare(&context)?;
            alone(&context, pure::variants(&context, &environment)?)
        }
        Command::Api(options) => {
            let environment = setup::prepare(&context)?;
            alone(&context, api::run(&context, &environment, &options)?)
        }
        Command::Spec => alone(&context, spec::run(&context)?),
        Command::Symbols { reference, other } => symbols::run(&reference, &other),
    }
}

/// The end of a step that is run by itself.
fn alone(context: &Context, outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Missing(reason) if context.is_ci() => anyhow::bail!("skipped in CI: {reason}"),
        Outcome::Optional(reason) | Outcome::Missing(reason) => println!("SKIPPED: {reason}"),
        Outcome::Passed => {}
    }
    Ok(())
}
