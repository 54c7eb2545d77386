//! The `cg` tool: import, export, inspect, verify and draw worlds.

#![forbid(unsafe_code)]

mod args;
mod cmd;
mod decimal;
mod output;
mod shown;
mod snbt;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let out = output::Output::new(args.format());
    match args.command.run(&out) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            eprintln!("cg: {}", shown::shown(&failure.to_string()));
            failure.into()
        }
    }
}
