//! `cg accept-loss`: goes on with a world that has lost synced commits.

use std::fmt;

use cg_store::engine::EngineError;
use cg_store::{Error, OpenError, World, WorldOptions};

use serde::Serialize;

use crate::args::{WrittenWorldArg, YesArg};
use crate::output::{Failure, Outcome, Output, counted};

/// Accept that synced commits of a world are lost, so that it opens again. Writes.
///
/// Every command refuses a world whose newest commits were synced and are gone: a file `db/*.log` is missing or cut. Put
/// that file back, or restore a checkpoint, if there is one. Accepted, the world is as it was at the newest commit that is
/// left, gets a new incarnation, and cannot take the file back. Without `--yes` it says how many commits are lost. A world
/// that has lost none is left alone. JSON: `{"lost":N,"last_commit":N}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct Report {
    lost: u64,
    last_commit: u64,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let lost = match args
        .world
        .when_free(out, || World::builder().options(&args.world.options()).open_read_only(args.world.path()))
    {
        Ok(world) => {
            out.print(&Report { lost: 0, last_commit: world.last_commit().get() })?;
            return Ok(Outcome::Good);
        }
        Err(Error::Open(OpenError::Engine { source: EngineError::LostCommits { floor, found }, .. })) => {
            floor.get() - found.get()
        }
        Err(error) => return Err(error.into()),
    };
    let commits = counted(lost, "synced commit");
    args.yes.confirm(&format!("{commits} of {} would be given up for good", args.world.path().display()))?;
    let accepting = WorldOptions { accept_lost_commits: true, ..args.world.options() };
    let world = args.world.when_free(out, || World::builder().options(&accepting).open(args.world.path()))?;
    let last_commit = world.last_commit().get();
    world.close()?;
    out.print(&Report { lost, last_commit })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lost {
            0 => writeln!(f, "no synced commit is lost; the newest is {}", self.last_commit),
            lost => writeln!(
                f,
                "{} given up; the world is as of commit {}; run `cg verify`",
                counted(lost, "synced commit"),
                self.last_commit
            ),
        }
    }
}
