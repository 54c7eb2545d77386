//! `cg info`: the settings of a world, and how much of everything it holds.

mod counts;
mod disk;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use cg_anvil::export::{LayoutChoice, Layouts, Placed};
use cg_anvil::import::{Unfinished, Untested, unfinished};
use cg_anvil::mapping::{ImportedObjects, ObjectCount};
use cg_format::{Dimension, Tier};
use cg_minecraft::game::is_known;
use cg_minecraft::{kind, name};
use cg_registry::{Catalog, ListKind};
use clap::ValueHint;
use serde::Serialize;

use self::counts::{Counts, LeftOut, ObjectsReport, RowsReport, SnapshotsReport, TierReport};
use self::disk::{DatabaseReport, Disk};
use super::settings::{Damaged, Found, Values};
use super::{name_of, unfinished_text};
use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped};
use crate::picture::{refuse_existing, save_bytes};
use crate::shown::shown;

/// Show the settings of a world, count chunks, entities, objects, records and names, and say what they take on disk.
///
/// Reads every row once, and what imports keep of columns a second time to count their `DataVersion`s: of half a million columns
/// some gigabyte. Detached entities belong to no chunk: there is none where they stand, or a host took them out of it.
/// JSON: `{"name","chunks","dimensions":{NAME:{"chunks","layout"}},"registry":{"blocks",…},"entities","detached",
/// "objects","records","imported":{"columns","points_of_interest","entity_slots","kept_slots","files"},
/// "data_versions":[{"data_version","columns"}],"snapshots":{"count","bytes","unreadable"},"quarantined":{"count","bytes"},
/// "tiers":{"l0":{"keys","chunks","bytes"},…},"disk_bytes","damaged","uuid","incarnation"}`. `name` is the `LevelName` of an imported
/// `level.dat`, or null; of a world with settings there is `"settings":{NAME:VALUE}` as `cg settings` prints it, and
/// `"damaged_settings":[{"setting","problem"}]` if some are damaged; each of `imported` is `{"objects","bytes"}`, where
/// `kept_slots` are slots of a save that are kept as
/// bytes; `data_versions` begins with the most frequent, is at most 32 long, and what it leaves out is
/// `"more_data_versions":{"count","columns"}`; a tier's bytes are
/// those of its rows before the engine compresses them. `"untested":{"data_version","columns","level"}` is there if a
/// `DataVersion` is newer than the newest that was tested, `"unknown_defaults":N` if there are blocks of `minecraft` whose default
/// state is not known, so that a state of theirs that leaves out properties is a block of its own. While an import is unfinished, `"unfinished_import":{"save","begun",
/// "imported_columns"}` too. Of a world in a database `"database":{"address","replication","last_commit"}` too, and `disk_bytes` is what its tables and
/// indexes take there. Exit code 1 if damaged rows, damaged settings or unreadable snapshots were met or an import is unfinished.
///
/// Of a segmented world, which holds `root` and `segments`, names and settings are the root's, and all else is the sum over the root
/// and the segments. Where a process died while it moved an entity or a record, it may be counted twice, until the world is opened
/// for writing. `disk_bytes` are of all files in the directory. JSON has `"segments":N` too, and in each of
/// `dimensions` `"segments":N`. A segment that cannot be read is left out, and makes the exit code 1:
/// `"left_out":[{"world","why"}]`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// Write the world's thumbnail, a PNG, to this file, which must not exist. Exit code 4 if the world has none.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    thumbnail: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    /// The save's name.
    name: Option<String>,
    #[serde(skip_serializing_if = "Values::is_empty")]
    settings: Values,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged_settings: Vec<Damaged>,
    uuid: String,
    incarnation: String,
    /// `None` of a world that is not segmented.
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    chunks: u64,
    dimensions: BTreeMap<String, DimensionReport>,
    registry: BTreeMap<&'static str, usize>,
    entities: u64,
    detached: u64,
    objects: u64,
    records: u64,
    imported: BTreeMap<&'static str, ObjectsReport>,
    data_versions: Vec<VersionReport>,
    /// Versions in it that are newer than the newest that was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    untested: Option<Untested>,
    /// Blocks of the game, of whatever states, whose default state is not known; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_defaults: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more_data_versions: Option<MoreVersions>,
    snapshots: SnapshotsReport,
    quarantined: RowsReport,
    tiers: BTreeMap<&'static str, TierReport>,
    disk_bytes: u64,
    /// `None` of a world in a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DatabaseReport>,
    damaged: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished_import: Option<Unfinished>,
}

#[derive(Debug, Serialize)]
struct DimensionReport {
    chunks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<u64>,
    /// The folders of a save into which it is exported; `None` for a name that has no folder.
    layout: Option<Placed>,
}

/// The columns of one `DataVersion`; `None` where the object of a column is none.
#[derive(Debug, Serialize)]
struct VersionReport {
    data_version: Option<i32>,
    columns: u64,
}

#[derive(Debug, Serialize)]
struct MoreVersions {
    count: u64,
    columns: u64,
}

/// At most this many values of `DataVersion` are listed.
const MAX_VERSIONS: usize = 32;

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    if let Some(path) = &args.thumbnail {
        refuse_existing(path)?;
    }
    let (world, counts) = if let Some(dir) = args.world.place().segmented() {
        // The root stays open, so no process opens the world for writing meanwhile.
        (args.world.open_root(dir, out)?, Counts::of_segmented(dir, out)?)
    } else {
        let world = args.world.open(out)?;
        let counts = Counts::of_world(&world)?;
        (world, counts)
    };
    let catalog = world.catalog();
    let found = Found::read(&world)?;
    let thumbnail =
        args.thumbnail.as_deref().map(|path| Ok::<_, Failure>((path, found.thumbnail()?))).transpose()?;
    let disk = Disk::measure(args.world.place(), &world)?;
    let layouts = Layouts::read(&world)?;
    let dimensions = dimensions(&layouts, &catalog, &counts)?;
    let Counts { census, imported, snapshots, quarantined, segments, left_out } = counts;
    let (data_versions, more_data_versions) = versions(&imported);
    let report = Report {
        name: layouts.save_name().map(str::to_owned),
        settings: Values::of(&found.settings),
        uuid: world.identity().uuid.to_string(),
        incarnation: world.identity().incarnation.to_string(),
        segments: segments.map(|by_dimension| by_dimension.into_values().sum()),
        left_out,
        chunks: census.chunks(),
        dimensions,
        registry: ListKind::ALL.map(|list| (list.row(), catalog.list(list).len())).into(),
        entities: census.entities,
        detached: census.detached,
        objects: census.objects,
        records: census.records,
        imported: objects(&imported).map(|(kind, count)| (kind, ObjectsReport::from(count))).into(),
        data_versions,
        untested: untested(&layouts, &imported),
        unknown_defaults: unknown_defaults(&catalog),
        more_data_versions,
        snapshots,
        quarantined,
        tiers: Tier::ALL.map(|tier| (tier_name(tier), TierReport::from(census.tier(tier)))).into(),
        disk_bytes: disk.bytes,
        database: disk.database,
        damaged: census.damaged,
        unfinished_import: unfinished(&world)?,
        damaged_settings: found.damaged,
    };
    if let Some((path, picture)) = thumbnail {
        save_bytes(&picture, path).map_err(|error| Failure::io("write", path, &error))?;
    }
    out.print(&report)?;
    let is_sound = report.damaged + report.snapshots.unreadable == 0 && report.damaged_settings.is_empty();
    Ok(Outcome::good_if(is_sound && report.left_out.is_empty() && report.unfinished_import.is_none()))
}

/// Versions that are newer than the newest that was tested.
fn untested(layouts: &Layouts<'_>, imported: &ImportedObjects) -> Option<Untested> {
    let level = layouts.data_version().and_then(|version| Untested::of(version, 0));
    let columns = imported.data_versions.iter();
    let columns = columns.filter_map(|(version, columns)| Untested::of((*version)?, *columns));
    columns.fold(level, |all, one| Untested::and(all, Some(one)))
}

/// How many blocks of the game there are whose default state is not known, if any.
fn unknown_defaults(catalog: &Catalog) -> Option<usize> {
    let names = catalog.list(ListKind::Blocks).names().iter().map(|name| kind::base(name.as_str()));
    let unknown = names.filter(|name| name.starts_with("minecraft:") && !is_known(name));
    Some(unknown.collect::<BTreeSet<_>>().len()).filter(|count| *count > 0)
}

/// Objects that imports left, by kind.
fn objects(imported: &ImportedObjects) -> [(&'static str, ObjectCount); 5] {
    [
        ("columns", imported.columns),
        ("points_of_interest", imported.points),
        ("entity_slots", imported.entity_slots),
        ("kept_slots", imported.kept_slots),
        ("files", imported.files),
    ]
}

/// The most frequent values of `DataVersion`, and how many others there are.
fn versions(imported: &ImportedObjects) -> (Vec<VersionReport>, Option<MoreVersions>) {
    let all = imported.data_versions.iter();
    let mut all: Vec<_> =
        all.map(|(version, columns)| VersionReport { data_version: *version, columns: *columns }).collect();
    all.sort_by_key(|version| (Reverse(version.columns), Reverse(version.data_version)));
    let rest = all.split_off(all.len().min(MAX_VERSIONS));
    let more =
        MoreVersions { count: rest.len() as u64, columns: rest.iter().map(|version| version.columns).sum() };
    (all, (more.count > 0).then_some(more))
}

/// Every dimension that is registered or that a chunk or a segment names.
fn dimensions(
    layouts: &Layouts<'_>,
    catalog: &Catalog,
    counts: &Counts,
) -> Result<BTreeMap<String, DimensionReport>, Failure> {
    let registered = (0..catalog.list(ListKind::Dimensions).names().len() as u64).map(Dimension::new);
    let segments = counts.segments.as_ref();
    let all: BTreeSet<_> = registered
        .chain(counts.census.dimensions.keys().copied())
        .chain(segments.into_iter().flat_map(|segments| segments.keys().copied()))
        .collect();
    let placed = |dimension: Dimension| {
        let name = name_of(catalog, ListKind::Dimensions, dimension.get());
        let layout = layouts.of(&name::text(&name), LayoutChoice::AsImported)?;
        let chunks = counts.census.dimensions.get(&dimension).copied().unwrap_or(0);
        let segments = segments.map(|segments| segments.get(&dimension).copied().unwrap_or(0));
        Ok((name, DimensionReport { chunks, segments, layout }))
    };
    all.into_iter().map(placed).collect()
}

/// A tier's name in output.
pub(crate) const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::L0 => "l0",
        Tier::L1 => "l1",
        Tier::L2 => "l2",
    }
}

impl Report {
    /// Writes what is not in every world.
    fn write_beside(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.imported.values().any(|count| count.objects > 0) {
            let all = self.imported.iter().filter(|(_, count)| count.objects > 0);
            let all = all.map(|(kind, count)| {
                let (kind, objects) = (kind.replace('_', " "), grouped(count.objects));
                format!("{kind} {objects} ({})", bytes_text(count.bytes))
            });
            writeln!(f, "imported  {}", all.collect::<Vec<_>>().join(", "))?;
        }
        if !self.data_versions.is_empty() {
            let all = self.data_versions.iter().map(|version| {
                let name = version.data_version.map_or_else(|| "unknown".to_owned(), |it| it.to_string());
                format!("{name} ({})", counted(version.columns, "column"))
            });
            let more = self.more_data_versions.as_ref();
            let more =
                more.map(|it| format!("{} others ({})", grouped(it.count), counted(it.columns, "column")));
            writeln!(f, "versions  {}", all.chain(more).collect::<Vec<_>>().join(", "))?;
        }
        let SnapshotsReport { count, bytes, unreadable } = self.snapshots;
        if count > 0 {
            writeln!(f, "snapshots {} ({})", grouped(count), bytes_text(bytes))?;
        }
        if unreadable > 0 {
            writeln!(f, "DAMAGED   {}; `cg snapshot list` says which", counted(unreadable, "snapshot"))?;
        }
        if self.quarantined.count > 0 {
            let bytes = bytes_text(self.quarantined.bytes);
            writeln!(f, "quarantined {} ({bytes})", counted(self.quarantined.count, "row"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let save_name = self.name.as_deref();
        let name = self.settings.name().or(save_name);
        if let Some(name) = name {
            writeln!(f, "name      {}", shown(name))?;
        }
        if let Some(save_name) = save_name.filter(|_| save_name != name) {
            writeln!(f, "level.dat {}", shown(save_name))?;
        }
        writeln!(f, "world     {}", self.uuid)?;
        if let Some(segments) = self.segments {
            writeln!(f, "segments  {}", grouped(segments))?;
        }
        writeln!(f, "chunks    {}", grouped(self.chunks))?;
        writeln!(f, "entities  {} ({} detached)", grouped(self.entities), grouped(self.detached))?;
        writeln!(f, "objects   {}", grouped(self.objects))?;
        writeln!(f, "records   {}", grouped(self.records))?;
        writeln!(f, "on disk   {}", bytes_text(self.disk_bytes))?;
        if let Some(DatabaseReport { address, replication, last_commit }) = &self.database {
            writeln!(f, "database  {}, replication: {replication}", shown(address))?;
            writeln!(f, "as of     commit {}", grouped(*last_commit))?;
        }
        self.write_beside(f)?;
        if let Some(untested) = &self.untested {
            writeln!(f, "{untested}")?;
        }
        if let Some(count) = self.unknown_defaults {
            writeln!(f, "blocks of minecraft whose default state is not known: {count}")?;
        }
        for LeftOut { world, why } in &self.left_out {
            writeln!(f, "LEFT OUT  {world}: {}", shown(why))?;
        }
        for damaged in &self.damaged_settings {
            writeln!(f, "DAMAGED   setting {}", shown(&damaged.to_string()))?;
        }
        if self.damaged > 0 {
            writeln!(f, "DAMAGED   {}; `cg verify` says which", counted(self.damaged, "row"))?;
        }
        if let Some(import) = &self.unfinished_import {
            writeln!(f, "{}", unfinished_text(import))?;
        }
        if !self.settings.is_empty() {
            writeln!(f)?;
            write!(f, "{}", self.settings)?;
        }
        writeln!(f)?;
        let width = self.dimensions.keys().map(String::len).max().unwrap_or(0).max("dimension".len());
        let in_segments = |text: String| if self.segments.is_some() { format!("  {text:>12}") } else { text };
        let column = if self.segments.is_some() { "segments" } else { "" };
        let column = in_segments(column.to_owned());
        writeln!(f, "{:width$}  {:>12}{column}  {:>12}", "dimension", "chunks", "layout")?;
        for (name, DimensionReport { chunks, segments, layout }) in &self.dimensions {
            let segments = in_segments(segments.map(grouped).unwrap_or_default());
            let layout =
                layout.as_ref().map_or_else(|| "none".to_owned(), |placed| placed.layout.to_string());
            writeln!(f, "{name:width$}  {:>12}{segments}  {layout:>12}", grouped(*chunks))?;
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
