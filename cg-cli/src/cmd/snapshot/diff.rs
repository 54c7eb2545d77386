//! `cg snapshot diff`

use std::fmt;

use cg_snapshot::{CaptureOptions, Region, Unverifiable, capture, diff};
use serde::Serialize;

use super::kinds::{self, ByKind, Kinds};
use super::read_kept;
use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output, counted};

/// Say what differs between two snapshots of one box, or between a snapshot and the world as it is.
///
/// JSON: `{"sections","blocks","components","entities","by_kind":{NAME:{"gained":N,"lost":N}}}`, from the first to the second.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The earlier snapshot.
    #[arg(value_name = "NAME")]
    first: String,
    /// The later one [default: the world as it is now].
    #[arg(value_name = "OTHER")]
    second: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    sections: u64,
    blocks: u64,
    components: u64,
    entities: u64,
    by_kind: ByKind,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open()?;
    let catalog = world.catalog();
    let kept = |name: &str| {
        let (snapshot, _) = read_kept(&world, name, Unverifiable::Fail)?;
        Ok::<_, Failure>(snapshot.arrive(&catalog).map_err(Failure::failed)?.0)
    };
    let first = kept(&args.first)?;
    let second = if let Some(name) = &args.second {
        kept(name)?
    } else {
        let region = Region::new(first.region().dimension(), first.region().area());
        let options = CaptureOptions { contents: first.info().contents, ..CaptureOptions::named("now") };
        world.still(|still| capture(still, &catalog, region, &options))?.map_err(Failure::failed)?
    };
    let mut kinds = Kinds::default();
    let found = diff(&first, &second, &mut |change| kinds.count(&change)).map_err(Failure::failed)?;
    out.print(&Report {
        sections: found.sections,
        blocks: found.blocks,
        components: found.components,
        entities: found.entities,
        by_kind: kinds.by_name(&catalog),
    })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blocks, sections) = (counted(self.blocks, "block"), counted(self.sections, "section"));
        let data = counted(self.components, "block");
        writeln!(f, "{blocks} in {sections} differ, the data of {data}, {} entities", self.entities)?;
        kinds::print(&self.by_kind, f)
    }
}
