//! `cg registry`: what a world knows by name, and what other packs would make of it.

mod check;
mod list;
mod plan;
mod replace;

use crate::output::{Failure, Outcome, Output};

/// List what the world knows by name, check stored values by their types, try packs on it, and put other packs or blocks in place of stored ones.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Check(check::Args),
    Plan(plan::Args),
    Replace(replace::Args),
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Check(args) => check::run(args, out),
        Command::Plan(args) => plan::run(args, out),
        Command::Replace(args) => replace::run(args, out),
    }
}
