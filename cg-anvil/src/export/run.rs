//! An export from its first file to its last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cg_format::Dimension;
use cg_minecraft::name;
use cg_registry::{Catalog, ListKind};
use cg_store::World;

use super::error::ExportError;
use super::files;
use super::journal::{Done, Journal};
use super::layout::{LayoutChoice, Layouts};
use super::options::ExportOptions;
use super::players::Players;
use super::region::Region;
use super::report::ExportReport;
use super::scope::Scope;
use super::slots::RegionFiles;
use super::survey::{Survey, survey};
use crate::import::unfinished;
use crate::mapping::defaults::SECTION_Y;
use crate::save::{self, Layout};

/// How far an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportProgress {
    /// Regions that are done.
    pub regions_done: usize,
    /// Regions of the world.
    pub regions: usize,
}

/// Writes a world's dimensions as a save's folders of region files; `watch` is told how far it is.
///
/// Holds one column and the ids of all entities in memory. When it returns, every file and its name are on the disk. One that
/// was stopped left the file [`UNFINISHED`](super::UNFINISHED) in the folder. It is continued there, with the regions that are not done, if world
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
    let Survey { regions, riders, players, heights } =
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
    let players = Players::new(world, players, layouts.of_players());
    files::write((world, players), dir, below.as_deref(), &mut journal, &mut report)?;
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
