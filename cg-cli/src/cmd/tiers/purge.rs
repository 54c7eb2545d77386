//! `cg tiers purge`: allows that tombstones are purged.

use std::fmt;

use cg_store::engine::CommitSeq;
use serde::Serialize;

use crate::args::WrittenWorldArg;
use crate::output::{Failure, Outcome, Output, counted};

/// Allow the world to forget which chunks were deleted before a commit, for good. Writes.
///
/// A deleted chunk leaves a tombstone, a row that tells a client with an older state what is gone. The rows go when a host ticks the world,
/// or at once with `cg tiers demote`; those that hide an older copy go when its cluster is written without it. Chunks stay
/// deleted either way: `cg hash` prints the same before and after. What was once allowed is not taken back. JSON:
/// `{"forgotten_before":N,"marks":N,"allowed":bool}`: the first commit whose deletions are kept, and how many rows of
/// deletions before it are left.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["before", "all"]))]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// The oldest state from which a client may still ask what changed: deletions by commits before it are forgotten.
    #[arg(long, value_name = "COMMIT")]
    before: Option<u64>,
    /// No client asks what changed: all deletions up to now are forgotten.
    #[arg(long)]
    all: bool,
    /// Only say how many rows could go.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(rename = "forgotten_before")]
    tombstone_horizon: u64,
    marks: u64,
    allowed: bool,
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = if args.dry_run { args.world.open(out)? } else { args.world.open_for_writing(out)? };
    let before = CommitSeq::new(args.before.unwrap_or(u64::MAX));
    let tombstone_horizon = if args.dry_run {
        before.min(world.last_commit().next()).max(world.tiers().tombstone_horizon())
    } else {
        world.tiers().purge_tombstones_before(before)?
    };
    let marks = world.tiers().count_tombstones_before(tombstone_horizon)?;
    world.close()?;
    out.print(&Report { tombstone_horizon: tombstone_horizon.get(), marks, allowed: !args.dry_run })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (marks, before) = (counted(self.marks, "row"), self.tombstone_horizon);
        if self.allowed {
            writeln!(
                f,
                "tombstones of deletions before commit {before} may be purged; {marks} of them are left"
            )?;
            writeln!(f, "they go when the world is ticked, or with `cg tiers demote`")
        } else {
            writeln!(f, "{marks} of deletions before commit {before} could be purged")
        }
    }
}
