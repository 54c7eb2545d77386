//! `cg info`: how much of everything a world holds.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use cg_cli::export::{LayoutChoice, Layouts, Placed};
use cg_cli::import::{Unfinished, unfinished};
use cg_cli::mapping::name;
use cg_format::Tier;
use cg_registry::{Catalog, ListKind};
use cg_store::verify::{Census, TierCensus};
use serde::Serialize;

use super::{name_of, unfinished_text};
use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped};

/// Count chunks, entities, objects, records and names, and say what they take on disk.
///
/// Reads every row once. JSON: `{"chunks","dimensions":{NAME:{"chunks","layout"}},"registry":{"blocks",…},"entities","detached",
/// "objects","records","tiers":{"l0":{"keys","chunks","bytes"},…},"disk_bytes","damaged","uuid","incarnation"}`, where a tier's bytes are
/// those of its rows before the engine compresses them. While an import is unfinished, `"unfinished_import":{"save","begun",
/// "imported_columns"}` too. Exit code 1 if damaged rows were met or an import is unfinished.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
}

#[derive(Debug, Serialize)]
struct Report {
    uuid: String,
    incarnation: String,
    chunks: u64,
    dimensions: BTreeMap<String, DimensionReport>,
    registry: BTreeMap<&'static str, usize>,
    entities: u64,
    detached: u64,
    objects: u64,
    records: u64,
    tiers: BTreeMap<&'static str, TierReport>,
    disk_bytes: u64,
    damaged: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished_import: Option<Unfinished>,
}

#[derive(Debug, Serialize)]
struct DimensionReport {
    chunks: u64,
    /// The folders of a save into which it is exported; `None` for a name that has no folder.
    layout: Option<Placed>,
}

#[derive(Debug, Serialize)]
struct TierReport {
    keys: u64,
    chunks: u64,
    bytes: u64,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open()?;
    let catalog = world.catalog();
    let census = world.tiers().census()?;
    let disk_bytes = disk_bytes(args.world.path())
        .map_err(|error| Failure::io("measure the files of", args.world.path(), &error))?;
    let report = Report {
        uuid: world.identity().uuid.to_string(),
        incarnation: world.identity().incarnation.to_string(),
        chunks: census.chunks(),
        dimensions: dimensions(&Layouts::read(&world)?, &catalog, &census)?,
        registry: ListKind::ALL.map(|list| (list.row(), catalog.list(list).len())).into(),
        entities: census.entities,
        detached: census.detached,
        objects: census.objects,
        records: census.records,
        tiers: Tier::ALL.map(|tier| (tier_name(tier), TierReport::from(census.tier(tier)))).into(),
        disk_bytes,
        damaged: census.damaged,
        unfinished_import: unfinished(&world)?,
    };
    out.print(&report)?;
    Ok(Outcome::good_if(report.damaged == 0 && report.unfinished_import.is_none()))
}

/// Every dimension that is registered or that a chunk names.
fn dimensions(
    layouts: &Layouts<'_>,
    catalog: &Catalog,
    census: &Census,
) -> Result<BTreeMap<String, DimensionReport>, Failure> {
    let registered = catalog.list(ListKind::Dimensions).names().iter().map(|name| (name.to_string(), 0));
    let mut all: BTreeMap<_, u64> = registered.collect();
    for (dimension, chunks) in &census.dimensions {
        all.insert(name_of(catalog, ListKind::Dimensions, dimension.get()), *chunks);
    }
    let placed = |(name, chunks): (String, u64)| {
        let layout = layouts.of(&name::text(&name), LayoutChoice::AsImported)?;
        Ok((name, DimensionReport { chunks, layout }))
    };
    all.into_iter().map(placed).collect()
}

/// The length of all files under a directory.
fn disk_bytes(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sum += disk_bytes(&entry.path())?;
        } else if kind.is_file() {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}

/// A tier's name in output.
pub(crate) const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::L0 => "l0",
        Tier::L1 => "l1",
        Tier::L2 => "l2",
    }
}

impl From<TierCensus> for TierReport {
    fn from(census: TierCensus) -> Self {
        Self { keys: census.keys, chunks: census.chunks, bytes: census.bytes }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "world     {}", self.uuid)?;
        writeln!(f, "chunks    {}", grouped(self.chunks))?;
        writeln!(f, "entities  {} ({} detached)", grouped(self.entities), grouped(self.detached))?;
        writeln!(f, "objects   {}", grouped(self.objects))?;
        writeln!(f, "records   {}", grouped(self.records))?;
        writeln!(f, "on disk   {}", bytes_text(self.disk_bytes))?;
        if self.damaged > 0 {
            writeln!(f, "DAMAGED   {}; `cg verify` says which", counted(self.damaged, "row"))?;
        }
        if let Some(import) = &self.unfinished_import {
            writeln!(f, "{}", unfinished_text(import))?;
        }
        writeln!(f)?;
        let width = self.dimensions.keys().map(String::len).max().unwrap_or(0).max("dimension".len());
        writeln!(f, "{:width$}  {:>12}  {:>12}", "dimension", "chunks", "layout")?;
        for (name, DimensionReport { chunks, layout }) in &self.dimensions {
            let layout =
                layout.as_ref().map_or_else(|| "none".to_owned(), |placed| placed.layout.to_string());
            writeln!(f, "{name:width$}  {:>12}  {layout:>12}", grouped(*chunks))?;
        }
        writeln!(f)?;
        writeln!(f, "{:width$}  {:>12}  {:>12}  {:>12}", "tier", "chunks", "keys", "bytes")?;
        for (name, tier) in &self.tiers {
            let (chunks, keys) = (grouped(tier.chunks), grouped(tier.keys));
            writeln!(f, "{name:width$}  {chunks:>12}  {keys:>12}  {:>12}", bytes_text(tier.bytes))?;
        }
        writeln!(f)?;
        writeln!(f, "{:width$}  {:>12}", "registry", "names")?;
        for list in ListKind::ALL {
            let count = self.registry.get(list.row()).copied().unwrap_or(0);
            writeln!(f, "{:width$}  {:>12}", list.row(), grouped(count as u64))?;
        }
        Ok(())
    }
}
