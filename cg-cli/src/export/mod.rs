//! A world as region files that other tools open.
//!
//! What an import brought goes back as it came: water of layer 1 into the states, block entities, biomes, light,
//! entities, fields that no chunk holds and files that are no regions byte for byte, each column in the layout of the
//! version that it was read from. What follows from the blocks of a column, such as its height maps, goes back only
//! where none was changed. A world that never was a save is written as one of 1.21.1. What region files cannot hold is
//! counted in the report.
//!
//! ```
//! use cg_cli::export::{ExportOptions, export};
//! use cg_store::prelude::*;
//!
//! let world = World::temporary(&[], &WorldOptions::default())?;
//! let overworld = world.register_dimension("minecraft:overworld")?;
//! let [stone] = world.register_blocks(["minecraft:stone"])?;
//! world.transaction(|tx| {
//!     let schema = tx.catalog().current_schema();
//!     tx.save(ChunkAt::new(overworld, ChunkPos::new(-1, 4, 0)?), Chunk::filled(stone, &schema)?);
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! let dir = tempfile::tempdir()?;
//! let report = export(&world, dir.path(), &ExportOptions::default(), |_| {})?;
//! assert_eq!((report.files, report.columns, report.chunks), (1, 1, 1));
//! assert!(dir.path().join("region/r.-1.0.mca").is_file());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod column;
mod entities;
mod files;
mod layout;
mod survey;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cg_format::{ChunkBox, ChunkPos, Dimension};
use cg_registry::{Catalog, ListKind};
use cg_store::engine::Engine;
use cg_store::{Area, World};
use serde::Serialize;

use self::column::ColumnBuilder;
use self::entities::{Listed, Lists};
pub(crate) use self::entities::{Whole, whole_entity};
pub use self::layout::{LayoutChoice, Layouts, Placed};
use self::survey::{Contents, Survey, survey};
use crate::anvil::column::EntityColumn;
use crate::anvil::nbt::Tag;
use crate::anvil::region::{RegionPos, RegionWriter, Slot};
use crate::anvil::save::Layout;
use crate::anvil::{save, write};
use crate::import::{Unfinished, unfinished};
use crate::mapping::leftovers::Blocks;
use crate::mapping::origin::ListedIn;
use crate::mapping::{EntitySlot, name};

/// The version whose layout is written where nothing says another: 1.21.1.
const DATA_VERSION: i32 = 3955;
/// The sections that a column can have.
const SECTION_Y: std::ops::RangeInclusive<i64> = -128..=127;

/// Choices of an export.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// Only this dimension, by the name that the save would have. Default: all.
    pub dimension: Option<String>,
    /// In which folders the overworld, the nether and the end go. Default: as they were imported.
    pub layout: LayoutChoice,
}

/// What an export wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Region files, those of entities and points of interest too.
    pub files: u64,
    /// Columns.
    pub columns: u64,
    /// Chunks of ours: sections with blocks.
    pub chunks: u64,
    /// Entities, riders too.
    pub entities: u64,
    /// Files that are no regions.
    pub other_files: u64,
    /// Columns whose blocks are not those that they were imported with: without height maps, ticks that were due, the
    /// word that their light is done, and points of interest, which the game makes anew.
    pub changed_columns: u64,
    /// Columns of before 1.13 that went back as they came.
    pub old_slots: u64,
    /// Columns of before 1.13 that were left out, because the world has blocks there.
    pub left_old_slots: u64,
    /// The layout of each dimension that a save has a folder for.
    pub layout: BTreeMap<String, Placed>,
    /// The import that is not done, of which the save holds a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished_import: Option<Unfinished>,
    /// Which dimensions a game with the exported `level.dat`, or an import, would not find, and why.
    pub warnings: Vec<String>,
    /// What region files cannot hold, or could not be read: in words, and how often.
    pub not_exported: BTreeMap<String, u64>,
}

/// How far an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportProgress {
    /// Regions that are done.
    pub regions_done: usize,
    /// Regions of the world.
    pub regions: usize,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The world could not be read on.
    #[error(transparent)]
    Store(#[from] cg_store::Error),
    /// The target holds something: nothing is overwritten.
    #[error("{} is not empty; an export goes into an empty or missing directory", .0.display())]
    NotEmpty(PathBuf),
    /// No such dimension.
    #[error("the world has no dimension `{0}`")]
    NoDimension(String),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file or its directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ExportReport {
    /// Whether the world is whole and everything was exported, to where the game looks for it or where these options say.
    pub fn is_whole(&self, options: &ExportOptions) -> bool {
        let is_asked_for = options.layout != LayoutChoice::AsImported || options.dimension.is_some();
        self.unfinished_import.is_none()
            && self.not_exported.is_empty()
            && (is_asked_for || self.warnings.is_empty())
    }

    fn missed(&mut self, what: impl Into<String>, count: u64) {
        if count > 0 {
            *self.not_exported.entry(what.into()).or_default() += count;
        }
    }
}

/// Writes a world's dimensions as a save's folders of region files; `watch` is told how far it is.
///
/// Holds one column and the ids of all entities in memory.
///
/// # Errors
/// [`ExportError`]. The files that were finished are whole; the one begun is gone.
pub fn export<E: Engine>(
    world: &World<E>,
    dir: &Path,
    options: &ExportOptions,
    mut watch: impl FnMut(ExportProgress),
) -> Result<ExportReport, ExportError> {
    let io = |source| ExportError::Io { path: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(io)?;
    if fs::read_dir(dir).map_err(io)?.next().is_some() {
        return Err(ExportError::NotEmpty(dir.to_owned()));
    }
    let catalog = world.catalog();
    let only = match &options.dimension {
        None => None,
        Some(wanted) => {
            let named = name::of(wanted).ok().and_then(|name| catalog.dimension(name.as_str()));
            Some(named.ok_or_else(|| ExportError::NoDimension(wanted.clone()))?)
        }
    };
    let mut report = ExportReport { unfinished_import: unfinished(world)?, ..ExportReport::default() };
    let folders = folders(world, &catalog, only, options, &mut report)?;
    let Survey { regions, riders } = survey(world, &catalog, only, &mut report)?;
    let mut joined = 0;
    let count = regions.len();
    for (done, ((dimension, pos), contents)) in regions.into_iter().enumerate() {
        let dimension_name = dimension_name(&catalog, dimension);
        match folders.get(&dimension) {
            Some(Ok(folder)) => {
                let folder = dir.join(folder);
                let region = Region { world, catalog: &catalog, dimension, dimension_name, pos, folder };
                joined += region.write(contents, &mut report)?;
            }
            Some(Err(why)) => report.missed(format!("regions of `{dimension_name}`, {why}"), 1),
            None => report.missed(format!("regions of `{dimension_name}`, which has no name"), 1),
        }
        watch(ExportProgress { regions_done: done + 1, regions: count });
    }
    let below = only.map(|only| {
        let placed = folders.get(&only).and_then(|folder| folder.as_deref().ok());
        files::folders_of(&dimension_name(&catalog, only), placed)
    });
    files::write(world, dir, below.as_deref(), &mut report)?;
    report.missed(
        "entities that ride in a circle, or a vehicle that cannot be exported",
        riders.saturating_sub(joined),
    );
    Ok(report)
}

/// The folder of each dimension, or why it has none; notes the layouts in the report.
fn folders<E: Engine>(
    world: &World<E>,
    catalog: &Catalog,
    only: Option<Dimension>,
    options: &ExportOptions,
    report: &mut ExportReport,
) -> Result<BTreeMap<Dimension, Result<PathBuf, &'static str>>, ExportError> {
    let layouts = Layouts::read(world)?;
    // Of a dimension alone, the files below it are to be put beside the `level.dat` of the world.
    let choice = match (options.layout, layouts.looks()) {
        (LayoutChoice::AsImported, Some(Layout::Old)) if only.is_some() => LayoutChoice::Old,
        (LayoutChoice::AsImported, Some(Layout::Dimensions)) if only.is_some() => LayoutChoice::New,
        (choice, _) => choice,
    };
    let dimensions = (0..catalog.list(ListKind::Dimensions).len() as u64).map(Dimension::new);
    let mut dimensions: Vec<_> =
        dimensions.filter(|dimension| only.is_none_or(|only| only == *dimension)).collect();
    let named = |dimension: &Dimension| dimension_name(catalog, *dimension);
    // Strays go to the folder that they came from, unless a dimension has it.
    dimensions.sort_by_key(|dimension| (save::stray_of(&named(dimension)).is_some(), *dimension));
    let mut folders = BTreeMap::new();
    for dimension in dimensions {
        let name = named(&dimension);
        let folder = match layouts.of(&name, choice)? {
            None => Err("which no folder of a save can be named"),
            Some(placed) if folders.values().any(|taken| *taken == Ok(placed.folder.clone())) => {
                Err("whose folder another dimension has in this layout")
            }
            Some(placed) => {
                report.warnings.extend(layouts.misfit(&name, &placed));
                report.layout.insert(name, placed.clone());
                Ok(placed.folder)
            }
        };
        folders.insert(dimension, folder);
    }
    Ok(folders)
}

/// A dimension's name in a save.
fn dimension_name(catalog: &Catalog, dimension: Dimension) -> String {
    let name = catalog.list(ListKind::Dimensions).name(dimension.get());
    name::text(name.map_or("", |name| name.as_str()))
}

/// The columns of a region with the heights of their chunks, in slot order.
type Heights = BTreeMap<Slot, ((i32, i32), Vec<i32>)>;

/// What blocks an export writes where points of interest are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// None.
    Nothing,
    /// Those that they came with.
    Same,
    /// Others.
    Others,
}

/// One region on its way out.
struct Region<'a, E: Engine> {
    world: &'a World<E>,
    catalog: &'a Catalog,
    dimension: Dimension,
    dimension_name: String,
    pos: RegionPos,
    /// The dimension's folder.
    folder: PathBuf,
}

impl<E: Engine> Region<'_, E> {
    /// Writes the region's files; gives the count of entities that ride others in it.
    fn write(&self, contents: Contents, report: &mut ExportReport) -> Result<u64, ExportError> {
        let mut columns = self.chunks()?;
        for column in contents.bare_columns {
            columns.entry(slot_of(column)).or_insert((column, Vec::new()));
        }
        let mut listed = entities::listed(self.world, &contents.entities, report)?;
        let riders = listed.values().flatten().map(|listed| listed.count - 1).sum();
        let mut writer = None;
        let builder = ColumnBuilder::new(self.world, self.catalog, self.dimension, &self.dimension_name);
        let mut with_points: BTreeMap<Slot, _> =
            contents.points.into_iter().map(|column| (slot_of(column), (column, Beside::Nothing))).collect();
        for column in contents.old_slots {
            let slot = slot_of(column);
            let Some(old) = builder.old_slot(column.0, column.1, report)? else { continue };
            if columns.contains_key(&slot) {
                report.left_old_slots += 1;
                continue;
            }
            self.put(&mut writer, "region", slot, &old.slot, old.timestamp)?;
            report.old_slots += 1;
            with_points.entry(slot).and_modify(|(_, beside)| *beside = Beside::Same);
        }
        for (slot, ((x, z), heights)) in columns {
            let (mut column, back) = builder.build(x, z, &heights, report)?;
            let beside = if back.blocks == Blocks::Same { Beside::Same } else { Beside::Others };
            with_points.entry(slot).and_modify(|(_, known)| *known = beside);
            // Entities whose column is not stored go to a file of their own.
            let in_column = listed.remove(&(ListedIn::Column, (x, z))).unwrap_or_default();
            let entity_count = in_column.iter().map(|listed| listed.count).sum::<u64>();
            column.entities.extend(in_column.into_iter().map(|listed| listed.nbt));
            match write::column(&column) {
                Ok(nbt) => {
                    self.put(&mut writer, "region", slot, &nbt, back.timestamp(&column))?;
                    report.columns += 1;
                    report.chunks +=
                        column.sections.iter().filter(|section| section.blocks.is_some()).count() as u64;
                    report.entities += entity_count;
                }
                Err(error) => {
                    report.missed(format!("column ({x}, {z}) of `{}`: {error}", self.dimension_name), 1);
                }
            }
        }
        self.finish(writer, report)?;
        self.write_points(&builder, with_points, report)?;
        self.write_entities(&builder, listed, contents.entity_slots, report)?;
        Ok(riders)
    }

    /// Writes points of interest: those of blocks that are as they were, and those that came without blocks.
    fn write_points(
        &self,
        builder: &ColumnBuilder<'_, E>,
        columns: BTreeMap<Slot, ((i32, i32), Beside)>,
        report: &mut ExportReport,
    ) -> Result<(), ExportError> {
        let mut writer = None;
        for (slot, ((x, z), beside)) in columns {
            let Some(points) = builder.points_of_interest(x, z, report)? else { continue };
            if beside == Beside::Same || beside == Beside::Nothing && points.is_alone {
                self.put(&mut writer, "poi", slot, &points.slot, points.timestamp)?;
            } else if beside == Beside::Nothing {
                report.missed("points of interest of columns without blocks", 1);
            }
        }
        self.finish(writer, report)
    }

    fn write_entities(
        &self,
        builder: &ColumnBuilder<'_, E>,
        listed: Lists,
        entity_slots: Vec<(i32, i32)>,
        report: &mut ExportReport,
    ) -> Result<(), ExportError> {
        let mut columns = BTreeMap::<Slot, ((i32, i32), Vec<Listed>)>::new();
        for ((_, column), listed) in listed {
            columns.entry(slot_of(column)).or_insert_with(|| (column, Vec::new())).1.extend(listed);
        }
        for column in entity_slots {
            columns.entry(slot_of(column)).or_insert_with(|| (column, Vec::new()));
        }
        let mut writer = None;
        for (slot, ((x, z), listed)) in columns {
            let left = builder.entity_slot(x, z, report)?;
            let data_version = listed.iter().map(|listed| listed.data_version).max();
            let data_version = data_version.or(left.as_ref().map(|left| left.data_version));
            let data_version = data_version.unwrap_or(DATA_VERSION);
            let count = listed.iter().map(|listed| listed.count).sum::<u64>();
            let entities = listed.into_iter().map(|listed| listed.nbt).collect();
            let mut column = EntityColumn { x, z, data_version, entities, list: Tag::End, left: None };
            let had_fields = left.as_ref().is_some_and(EntitySlot::has_fields);
            let was_empty = left.as_ref().is_some_and(EntitySlot::was_empty);
            let timestamp = left.map_or(0, |left| left.put_back(&mut column));
            if column.left.is_none() {
                report.missed("fields of slots of entities/ of another data version", had_fields.into());
                if column.entities.is_empty() && !was_empty {
                    continue;
                }
            }
            match write::entities(&column) {
                Ok(nbt) => {
                    self.put(&mut writer, "entities", slot, &nbt, timestamp)?;
                    report.entities += count;
                }
                Err(error) => report.missed(format!("entities of column ({x}, {z}): {error}"), count),
            }
        }
        self.finish(writer, report)
    }

    /// The heights of the stored chunks of each column, ascending.
    fn chunks(&self) -> Result<Heights, ExportError> {
        let corner = |dx: i64, y: i64| {
            let (x, z) = (i64::from(self.pos.x()) * 32 + dx, i64::from(self.pos.z()) * 32 + dx);
            ChunkPos::new(x, y, z).expect("a region lies inside the world")
        };
        let area = ChunkBox::new(corner(0, *SECTION_Y.start()), corner(31, *SECTION_Y.end()));
        let mut columns = Heights::new();
        self.world.for_each_place(Area::Box(self.dimension, area), |stored| {
            if let Ok(stored) = stored {
                let pos = stored.at.pos;
                let column = (pos.x() as i32, pos.z() as i32);
                columns.entry(slot_of(column)).or_insert((column, Vec::new())).1.push(pos.y() as i32);
            }
            ControlFlow::<()>::Continue(())
        })?;
        for (_, heights) in columns.values_mut() {
            heights.sort_unstable();
        }
        Ok(columns)
    }

    fn put(
        &self,
        writer: &mut Option<RegionWriter>,
        folder: &str,
        slot: Slot,
        nbt: &[u8],
        timestamp: u32,
    ) -> Result<(), ExportError> {
        let folder = self.folder.join(folder);
        let io = |source| ExportError::Io { path: folder.join(self.pos.file_name()), source };
        let writer = match writer {
            Some(writer) => writer,
            None => writer.insert(RegionWriter::create(&folder, self.pos).map_err(io)?),
        };
        writer.put(slot, nbt, timestamp).map_err(io)
    }

    fn finish(&self, writer: Option<RegionWriter>, report: &mut ExportReport) -> Result<(), ExportError> {
        let Some(writer) = writer else { return Ok(()) };
        writer.finish().map_err(|source| ExportError::Io { path: self.folder.clone(), source })?;
        report.files += 1;
        Ok(())
    }
}

const fn slot_of((x, z): (i32, i32)) -> Slot {
    Slot::of_column(x, z)
}
