//! `cg checkpoint`: a copy of a world, by hard links where the disk allows.

use std::fmt;
use std::path::PathBuf;

use clap::ValueHint;
use serde::Serialize;

use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output};

/// Copy the world as it is now into a new directory, by hard links where the disk allows.
///
/// Writes: the world is opened for writing, so nobody else may have it open. Its content stays as it is. JSON:
/// `{"checkpoint":DIR,"last_commit":N}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The new directory; it must not exist or be empty.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    to: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    checkpoint: String,
    last_commit: u64,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open_for_writing()?;
    world.checkpoint(&args.to)?;
    let last_commit = world.last_commit();
    world.close()?;
    out.print(&Report { checkpoint: args.to.display().to_string(), last_commit })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} holds the world as of commit {}", self.checkpoint, self.last_commit)
    }
}
