//! `cg snapshot diff`

use std::collections::BTreeMap;
use std::fmt;

use cg_snapshot::{CaptureOptions, Region, Unverifiable, capture, diff};
use serde::Serialize;

use super::kinds::{self, ByKind, Kinds};
use super::read_kept;
use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output, counted};
use crate::shown::shown;

/// Say what differs between two snapshots of one box, or between a snapshot and the world as it is.
///
/// JSON: `{"sections","blocks","components","entities","by_kind":{NAME:{"gained":N,"lost":N}}}`, from the first to the second,
/// and `"components_left":{NAME:N}` if data of a component was not compared, because the world's registry gives it another
/// shape or a block no such component.
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    components_left: BTreeMap<String, u64>,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let catalog = world.catalog();
    let mut components_left: BTreeMap<String, u64> = BTreeMap::new();
    let mut kept = |name: &str| {
        let (snapshot, _) = read_kept(&world, name, Unverifiable::Fail)?;
        let (snapshot, report) = snapshot.arrive(&catalog).map_err(Failure::failed)?;
        for (component, count) in report.components_left {
            *components_left.entry(component).or_default() += count;
        }
        Ok::<_, Failure>(snapshot)
    };
    let first = kept(&args.first)?;
    let second = if let Some(name) = &args.second {
        kept(name)?
    } else {
        let region = Region::new(first.region().dimension(), first.region().area());
        let options = CaptureOptions { contents: first.info().contents, ..CaptureOptions::named("now") };
        world.read_view(|view| capture(view, &catalog, region, &options).map_err(Failure::failed))?
    };
    let mut kinds = Kinds::default();
    let found = diff(&first, &second, &mut |change| kinds.count(&change)).map_err(Failure::failed)?;
    out.print(&Report {
        sections: found.sections,
        blocks: found.blocks,
        components: found.components,
        entities: found.entities,
        by_kind: kinds.by_name(&catalog),
        components_left,
    })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blocks, sections) = (counted(self.blocks, "block"), counted(self.sections, "section"));
        let data = counted(self.components, "block");
        writeln!(f, "{blocks} in {sections} differ, the data of {data}, {} entities", self.entities)?;
        kinds::print(&self.by_kind, f)?;
        self.components_left
            .iter()
            .try_for_each(|(name, count)| writeln!(f, "not compared: data of {} ({count})", shown(name)))
    }
}
