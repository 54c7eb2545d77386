//! `cg accept-loss`: goes on with a world that has lost synced commits.

use std::fmt;

use cg_store::directory::{self, WorldFile};
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
/// whose file `db/DURABLE` is missing or damaged can be read and not written: nothing says whether it has lost commits.
/// Accepted, it gets a new one. A world that has lost nothing is left alone. JSON:
/// `{"lost":N,"last_commit":N,"unchecked":BOOL}`.
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
    /// Whether nothing said if commits are lost.
    unchecked: bool,
}

/// The way to do the same in a database.
const INSTEAD: &str = "a database is recovered by its own means; a host that goes on with a restored one sets `accept_lost_commits` for one open";

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let path = args.world.place().directory(INSTEAD)?;
    let opened =
        args.world.when_free(out, || World::builder().options(&args.world.options()).open_read_only(path));
    let problem = WorldFile::read(path).ok().and_then(|file| directory::floor_problem(path, &file));
    let lost = match opened {
        Ok(world) if problem.is_none() => {
            out.print(&Report { lost: 0, last_commit: world.last_commit().get(), unchecked: false })?;
            return Ok(Outcome::Good);
        }
        Ok(world) => {
            drop(world);
            0
        }
        Err(Error::Open(OpenError::Engine { source: EngineError::LostCommits { floor, found }, .. })) => {
            floor.get() - found.get()
        }
        Err(error) => return Err(error.into()),
    };
    let given_up = match &problem {
        Some(problem) => format!("{problem}; synced commits of {} that are missing", path.display()),
        None => format!("{} of {}", counted(lost, "synced commit"), path.display()),
    };
    args.yes.confirm(&format!("{given_up} would be given up for good"))?;
    let accepting = WorldOptions { accept_lost_commits: true, ..args.world.options() };
    let world = args.world.when_free(out, || World::builder().options(&accepting).open(path))?;
    let last_commit = world.last_commit().get();
    world.close()?;
    out.print(&Report { lost, last_commit, unchecked: problem.is_some() })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lost {
            _ if self.unchecked => writeln!(
                f,
                "db/DURABLE was written anew; the world is as of commit {}, and whether synced commits after it are missing could not be checked; run `cg verify`",
                self.last_commit
            ),
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
