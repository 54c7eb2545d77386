//! `cargo xtask torture`: kills, flipped bits, cut logs and promotions that are killed, each with a control that must fail.

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
    /// Cut the log at every byte of its last records, and zero its last sectors.
    Cut,
    /// Kill -9 while an overlay of 100,000 chunks is merged into its base.
    Promote,
    /// The same where the base is a segmented world, and the overlay changes all its segments.
    Segments,
}

/// How much of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this kind; all five when left out.
    #[arg(long)]
    only: Option<Torment>,
    /// How many rounds of each kind: kills, flipped bits, random cuts.
    #[arg(long)]
    rounds: Option<u64>,
    /// Where the random numbers start; a run prints its own, so that it can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// The small size of each kind, as the tests run it: a minute in all.
    #[arg(long)]
    ci: bool,
    /// Torture a broken worker, `split` or `lie`, and see it caught.
    #[arg(long = "break", value_name = "HOW")]
    broken: Option<String>,
    /// Optimise the engine above RocksDB too.
    #[arg(long)]
    release: bool,
}

/// Sets up, then builds and runs `cg-torture`.
pub(crate) fn run(context: &Context, options: &Options) -> Result<()> {
    let environment = setup::prepare(context)?;
    let mut tool = context.cargo().arg("run");
    if options.release {
        tool = tool.arg("--release");
    }
    tool = tool.args(["--package", "cg-bench", "--bin", "cg-torture", "--"]);
    if let Some(only) = options.only {
        tool = tool.args([
            "--only",
            match only {
                Torment::Kill => "kill",
                Torment::Flip => "flip",
                Torment::Cut => "cut",
                Torment::Promote => "promote",
                Torment::Segments => "segments",
            },
        ]);
    }
    for (name, value) in [("--rounds", options.rounds), ("--seed", options.seed)] {
        if let Some(value) = value {
            tool = tool.arg(name).arg(value.to_string());
        }
    }
    if options.ci {
        tool = tool.arg("--ci");
    }
    if let Some(how) = &options.broken {
        tool = tool.args(["--break", how]);
    }
    environment.apply(tool).run()
}
