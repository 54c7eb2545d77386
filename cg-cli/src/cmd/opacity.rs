//! `cg opacity`: the map of what hides what, drawn again from the chunks.

use std::fmt;

use serde::Serialize;

use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output, counted};

/// Draw the opacity map again.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Rebuild(Rebuild),
}

/// Draw the opacity map again from the chunks. Writes, but no chunk is changed.
///
/// The map is a cache; this is the remedy where `cg verify` says that it is wrong. Chunks that are damaged are taken to
/// hide nothing. Stopped in the middle, it may be run again. JSON: `{"replaced_tiles":N}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Rebuild {
    #[command(flatten)]
    world: WorldArg,
}

#[derive(Debug, Serialize)]
struct Report {
    replaced_tiles: u64,
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    let Command::Rebuild(args) = command;
    let world = args.world.open_for_writing()?;
    let replaced_tiles = world.rebuild_opacity()?;
    world.close()?;
    out.print(&Report { replaced_tiles })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} replaced", counted(self.replaced_tiles, "tile"))
    }
}
