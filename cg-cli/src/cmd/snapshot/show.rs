//! `cg snapshot show`

use cg_snapshot::Unverifiable;

use super::picture::MapArg;
use super::{About, read_kept};
use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output};

/// Say what a snapshot is of, after reading and checking all of it, and draw it from above with --map.
///
/// JSON: as `cg snapshot create`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The snapshot's name.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    map: MapArg,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    args.map.check()?;
    let world = args.world.open(out)?;
    let (snapshot, stored_bytes) = read_kept(&world, &args.name, Unverifiable::Fail)?;
    snapshot.check().map_err(Failure::failed)?;
    let map = args.map.draw(&snapshot, out)?;
    out.print(&About { map, ..About::new(snapshot.info(), &args.name, stored_bytes) })?;
    Ok(Outcome::Good)
}
