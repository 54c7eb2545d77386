//! A world as region files that other tools open.
//!
//! What an import brought goes back as it came: water of layer 1 into the states, block entities, biomes, light,
//! entities, fields that no chunk holds and files that are no regions byte for byte, each column in the layout of the
//! version that it was read from. What follows from the blocks of a column, such as its height maps, goes back only
//! where none was changed. A world that never was a save is written as one of 1.21.1. What region files cannot hold is
//! counted in the report.
//!
//! ```
//! use cg_anvil::export::{ExportOptions, export};
//! use cg_store::prelude::*;
//!
//! let world = World::builder().in_memory()?;
//! let overworld = world.registry().register_dimension("minecraft:overworld")?;
//! let [stone] = world.registry().register_blocks(["minecraft:stone"])?;
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
mod damaged;
mod entities;
mod files;
pub mod into;
mod journal;
mod kept;
mod layout;
mod region;
mod scope;
mod slots;
mod survey;

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use cg_format::Dimension;
use cg_minecraft::name;
use cg_registry::{Catalog, ListKind};
use cg_store::World;
use serde::{Deserialize, Serialize};

pub use self::damaged::{Damaged, DamagedColumn};
pub(crate) use self::entities::{Whole, whole_entity};
pub use self::journal::UNFINISHED;
use self::journal::{Done, Journal};
pub use self::kept::DroppedSlot;
pub use self::layout::{LayoutChoice, Layouts, Placed};
use self::region::Region;
use self::scope::Scope;
use self::slots::RegionFiles;
use self::survey::{Survey, survey};
use crate::import::{Unfinished, unfinished};
use crate::save::{self, Layout};

/// The version whose layout is written where nothing says another: 1.21.1.
const DATA_VERSION: i32 = 3955;
/// The sections that a column can have.
const SECTION_Y: RangeInclusive<i64> = -128..=127;

/// Choices of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportOptions {
    /// Only this dimension, by the name that the save would have. Default: all.
    pub dimension: Option<String>,
    /// In which folders the overworld, the nether and the end go. Default: as they were imported.
    pub layout: LayoutChoice,
    /// Treatment of columns with unreadable chunks. Default: they are left out.
    pub damaged: Damaged,
}

/// Report of an export, with its earlier runs that were stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    /// Slots that had an unreadable part when they were imported, and that went back as they came.
    pub kept_slots: u64,
    /// The bytes of these.
    pub kept_slot_bytes: u64,
    /// Slots with an unreadable part that is not written, because the world has something else there: the first
    /// thousand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_slots: Vec<DroppedSlot>,
    /// How many of these there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_slot_count: u64,
    /// The layout of each dimension that a save has a folder for.
    pub layout: BTreeMap<String, Placed>,
    /// The unfinished import; the save holds a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished_import: Option<Unfinished>,
    /// Which dimensions a game with the exported `level.dat`, or an import, would not find, and why.
    pub warnings: Vec<String>,
    /// Columns with unreadable chunks, each by its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged_columns: Vec<DamagedColumn>,
    /// Content that region files cannot hold, or that could not be read: in words, and how often.
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
    /// The target holds an unfinished export, and what is not of it.
    #[error(
        "{} holds an unfinished export and {}, which is not of it; move that away, or export into another directory",
        dir.display(), path.display()
    )]
    Foreign {
        /// The target.
        dir: PathBuf,
        /// The first file that is not of the export.
        path: PathBuf,
    },
    /// The target holds an unfinished export of another world.
    #[error("{} holds the unfinished export of another world; export into another directory", .0.display())]
    OtherWorld(PathBuf),
    /// Another process exports into the target.
    #[error("another process exports into {}", .0.display())]
    InUse(PathBuf),
    /// No such dimension.
    #[error("the world has no dimension `{0}`")]
    NoDimension(String),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file or its directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ExportReport {
    /// Whether the world is whole and everything was exported, to where the game looks for it or where these options say.
    pub fn is_whole(&self, options: &ExportOptions) -> bool {
        let is_asked_for = options.layout != LayoutChoice::AsImported || options.dimension.is_some();
        self.unfinished_import.is_none()
            && self.not_exported.is_empty()
            && self.damaged_columns.is_empty()
            && self.dropped_slot_count == 0
            && (is_asked_for || self.warnings.is_empty())
    }

    /// Adds what a region came to.
    fn add(&mut self, region: Self) {
        let Self {
            files,
            columns,
            chunks,
            entities,
            other_files,
            changed_columns,
            old_slots,
            left_old_slots,
            kept_slots,
            kept_slot_bytes,
            dropped_slots,
            dropped_slot_count,
            layout,
            unfinished_import: _,
            warnings,
            damaged_columns,
            not_exported,
        } = region;
        self.files += files;
        self.columns += columns;
        self.chunks += chunks;
        self.entities += entities;
        self.other_files += other_files;
        self.changed_columns += changed_columns;
        self.old_slots += old_slots;
        self.left_old_slots += left_old_slots;
        self.kept_slots += kept_slots;
        self.kept_slot_bytes += kept_slot_bytes;
        let has_room = kept::LISTED.saturating_sub(self.dropped_slots.len());
        self.dropped_slots.extend(dropped_slots.into_iter().take(has_room));
        self.dropped_slot_count += dropped_slot_count;
        self.layout.extend(layout);
        self.warnings.extend(warnings);
        self.damaged_columns.extend(damaged_columns);
        for (what, count) in not_exported {
            self.missed(what, count);
        }
    }

    fn missed(&mut self, what: impl Into<String>, count: u64) {
        if count > 0 {
            *self.not_exported.entry(what.into()).or_default() += count;
        }
    }
}

/// Writes a world's dimensions as a save's folders of region files; `watch` is told how far it is.
///
/// Holds one column and the ids of all entities in memory. When it returns, every file and its name are on the disk. One that
/// was stopped left the file [`UNFINISHED`] in the folder. It is continued there, with the regions that are not done, if world
/// and options are the same; if the world or the options changed, what it left is deleted first.
///
/// # Errors
/// [`ExportError`]. The files that were finished are whole, and the export can be continued.
pub fn export(
    world: &World,
    dir: &Path,
    options: &ExportOptions,
    mut watch: impl FnMut(ExportProgress),
) -> Result<ExportReport, ExportError> {
    let catalog = world.catalog();
    let only = match &options.dimension {
        None => None,
        Some(wanted) => {
            let named = name::of(wanted).ok().and_then(|name| catalog.dimension(name.as_str()));
            Some(named.ok_or_else(|| ExportError::NoDimension(wanted.clone()))?)
        }
    };
    let mut journal = Journal::open(world, dir, options)?;
    let mut report = ExportReport { unfinished_import: unfinished(world)?, ..ExportReport::default() };
    let layouts = Layouts::read(world)?;
    let level = layouts.data_version();
    let folders = folders(&layouts, &catalog, only, options, &mut report)?;
    let Survey { regions, riders, heights } =
        survey(world, &catalog, only.map_or(Scope::World, Scope::Dimension), &mut report)?;
    let mut joined = 0;
    let count = regions.len();
    for (done, ((dimension, pos), contents)) in regions.into_iter().enumerate() {
        let dimension_name = dimension_name(&catalog, dimension);
        match folders.get(&dimension) {
            Some(Ok(placed)) => {
                let finished = if let Some(finished) = journal.begin(placed, pos)? {
                    finished
                } else {
                    let heights = heights.get(&dimension).cloned().unwrap_or(SECTION_Y);
                    let (catalog, damaged) = (&catalog, options.damaged);
                    let region = Region {
                        world,
                        catalog,
                        dimension,
                        dimension_name,
                        pos,
                        heights,
                        damaged,
                        level,
                        columns: None,
                    };
                    let mut part = ExportReport::default();
                    let folder = dir.join(placed);
                    let mut files = RegionFiles::new(&folder, pos);
                    let riders = region.write(contents, &mut files, &mut part)?;
                    let written = files.finish()?;
                    part.files += written.files;
                    part.missed("slots whose bytes are not kept", written.left_out);
                    let finished = Done { report: part, riders };
                    journal.end(placed, pos, &finished)?;
                    finished
                };
                joined += finished.riders;
                report.add(finished.report);
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
    files::write(world, dir, below.as_deref(), &mut journal, &mut report)?;
    report.missed(
        "entities that ride in a circle, or a vehicle that cannot be exported",
        riders.saturating_sub(joined),
    );
    journal.finish()?;
    Ok(report)
}

/// The folder of each dimension, or why it has none; notes the layouts in the report.
fn folders(
    layouts: &Layouts<'_>,
    catalog: &Catalog,
    only: Option<Dimension>,
    options: &ExportOptions,
    report: &mut ExportReport,
) -> Result<BTreeMap<Dimension, Result<PathBuf, &'static str>>, ExportError> {
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
