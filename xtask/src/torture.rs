//! `cargo xtask torture`: kills, flipped bits, cut logs, killed promotions, power cuts and failing calls, each with a control that
//! must fail.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::context::Context;
use crate::process::Tool;
use crate::report::Outcome;
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
    /// Kill -9 at each step of transactions in segments with an object, a record, a property and a chunk.
    Transactions,
    /// Kill -9 a server of fifty players on a segmented world, beside one on a plain world.
    Server,
    /// Kill -9 at each step of compactions, archives and restores.
    Upkeep,
    /// Cut the power: open what it may leave of what was recorded on a file system.
    Power,
    /// Cut the power of real file systems on a loop device.
    Disks,
    /// Let each call of the file system fail once.
    Calls,
}

/// How much of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this kind; all when left out.
    #[arg(long)]
    only: Option<Torment>,
    /// How many rounds of each kind: kills, flipped bits, random cuts, power cuts, failing calls.
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
    /// The number of the first power cut, to have one of a run again.
    #[arg(long)]
    from: Option<u64>,
    /// Only calls that fail in this deed: `demote`, `import` and others.
    #[arg(long)]
    deed: Option<String>,
    /// Only failing calls of this kind: `sync`, `write` and others.
    #[arg(long)]
    call: Option<String>,
    /// Only this failing call, as a run prints it: `safe sync 3 EIO`.
    #[arg(long)]
    again: Option<String>,
    /// Keep the worlds that a power cut or a failing call broke in this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<std::path::PathBuf>,
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
    tool = tool.args(["--package", "cg-bench", "--bin", "cg-torture"]).arg("--");
    if let Some(only) = options.only {
        tool = tool.args([
            "--only",
            match only {
                Torment::Kill => "kill",
                Torment::Flip => "flip",
                Torment::Cut => "cut",
                Torment::Promote => "promote",
                Torment::Segments => "segments",
                Torment::Transactions => "transactions",
                Torment::Server => "server",
                Torment::Upkeep => "upkeep",
                Torment::Power => "power",
                Torment::Disks => "disks",
                Torment::Calls => "calls",
            },
        ]);
    }
    for (name, value) in [("--rounds", options.rounds), ("--seed", options.seed), ("--from", options.from)] {
        if let Some(value) = value {
            tool = tool.arg(name).arg(value.to_string());
        }
    }
    for (name, value) in [("--deed", &options.deed), ("--call", &options.call), ("--again", &options.again)] {
        if let Some(value) = value {
            tool = tool.arg(name).arg(value);
        }
    }
    if let Some(dir) = &options.keep {
        tool = tool.arg("--keep").arg(dir);
    }
    if options.ci {
        tool = tool.arg("--ci");
    }
    if let Some(how) = &options.broken {
        tool = tool.args(["--break", how]);
    }
    environment.apply(tool).run()
}

/// The exit code of the program where it cannot mount a file system.
const SKIPPED: i32 = 77;

/// Cuts the power or lets calls fail with the program that the tests have compiled, in the size that its options state. Skipped
/// where no file system can be mounted. What it writes goes into `scratch`.
///
/// # Errors
/// A world was lost, or a control was not caught.
pub(crate) fn on_a_file_system(
    program: &Path,
    torment: &str,
    size: &[&str],
    scratch: Option<&Path>,
) -> Result<Outcome> {
    let tool = Tool::new(program).args(["--only", torment]).args(size);
    let tool = match scratch {
        Some(scratch) => tool.env("TMPDIR", scratch),
        None => tool,
    };
    let status = tool.command().status().with_context(|| format!("cannot run {}", program.display()))?;
    outcome(torment, status.code())
}

/// What the exit code of the program says; `None` if a signal ended it.
fn outcome(torment: &str, code: Option<i32>) -> Result<Outcome> {
    match code {
        Some(0) => Ok(Outcome::Passed),
        Some(SKIPPED) => Ok(Outcome::Optional(
            "no file system can be mounted: it needs root, /dev/fuse and, for disks, loop devices".to_owned(),
        )),
        Some(code) => bail!("torture --only {torment} failed with code {code}"),
        None => bail!("torture --only {torment} was ended by a signal"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, SKIPPED, outcome};

    #[test]
    fn what_cannot_be_mounted_is_skipped_and_never_passed() {
        assert_eq!(outcome("power", Some(0)).expect("passed"), Outcome::Passed);
        let skipped = outcome("disks", Some(SKIPPED)).expect("skipped");
        assert!(matches!(&skipped, Outcome::Optional(why) if why.contains("/dev/fuse")), "{skipped:?}");
        let failed = outcome("calls", Some(1)).expect_err("failed");
        assert_eq!(failed.to_string(), "torture --only calls failed with code 1");
        let crashed = outcome("calls", None).expect_err("crashed");
        assert_eq!(crashed.to_string(), "torture --only calls was ended by a signal");
    }
}
