//! `cg tiers forget`: allows that deletions are forgotten.

use std::fmt;

use serde::Serialize;

use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output, counted};

/// Allow the world to forget which chunks were deleted before a commit, for good. Writes.
///
/// A deleted chunk leaves a row that tells who has an older state what is gone. The rows go when a host ticks the world,
/// or at once with `cg tiers settle`; those that hide an older copy go when its cluster is written without it. Chunks stay
/// deleted either way: `cg hash` prints the same before and after. What was once allowed is not taken back. JSON:
/// `{"forgotten_before":N,"marks":N,"allowed":bool}`: the first commit whose deletions are kept, and how many rows of
/// deletions before it are left.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["before", "all"]))]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The oldest state from which somebody may still ask what changed: deletions by commits before it are forgotten.
    #[arg(long, value_name = "COMMIT")]
    before: Option<u64>,
    /// Nobody asks what changed: all deletions up to now are forgotten.
    #[arg(long)]
    all: bool,
    /// Only say how many rows could go.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    forgotten_before: u64,
    marks: u64,
    allowed: bool,
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = if args.dry_run { args.world.open()? } else { args.world.open_for_writing()? };
    let before = args.before.unwrap_or(u64::MAX);
    let forgotten_before = if args.dry_run {
        before.min(world.last_commit().saturating_add(1)).max(world.forgotten_before())
    } else {
        world.forget_before(before)?
    };
    let marks = world.deletions_before(forgotten_before)?;
    world.close()?;
    out.print(&Report { forgotten_before, marks, allowed: !args.dry_run })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (marks, before) = (counted(self.marks, "row"), self.forgotten_before);
        if self.allowed {
            writeln!(f, "deletions before commit {before} may be forgotten; {marks} of them are left")?;
            writeln!(f, "they go when the world is ticked, or with `cg tiers settle`")
        } else {
            writeln!(f, "{marks} of deletions before commit {before} could be forgotten")
        }
    }
}
