//! `cargo xtask torture`: kills, flipped bits and cut logs, each with a control that must fail.

use anyhow::Result;

use crate::context::Context;
use crate::setup;

/// What is done to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Torment {
    /// Kill -9 at random moments, with the expected state in the parent.
    Kill,
    /// Flip bits in every file of a world.
    Flip,
    /// Cut the log at every byte of its last records.
    Cut,
}

/// How much of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this kind; all three when left out.
    #[arg(long)]
    only: Option<Torment>,
    /// How many rounds of each kind.
    #[arg(long)]
    rounds: Option<u64>,
    /// Where the random numbers start; a run prints its own, so that it can be repeated.
    #[arg(long)]
    seed: Option<u64>,
}

/// Sets up, then builds and runs the torturer of cg-store.
pub(crate) fn run(context: &Context, options: &Options) -> Result<()> {
    let environment = setup::prepare(context)?;
    let mut tool =
        context.cargo().args(["run", "--release", "--package", "cg-store", "--bin", "cg-torture", "--"]);
    if let Some(only) = options.only {
        tool = tool.args([
            "--only",
            match only {
                Torment::Kill => "kill",
                Torment::Flip => "flip",
                Torment::Cut => "cut",
            },
        ]);
    }
    for (name, value) in [("--rounds", options.rounds), ("--seed", options.seed)] {
        if let Some(value) = value {
            tool = tool.arg(name).arg(value.to_string());
        }
    }
    environment.apply(tool).run()
}
