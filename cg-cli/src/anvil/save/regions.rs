//! The region files below a folder, wherever versions and tools put them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::layout::{self, Layout, OVERWORLD};
use super::{RegionFile, RegionKind, SaveError};
use crate::anvil::region::RegionPos;

/// How deep folders below `dimensions/<namespace>/` are followed; a dimension's name may hold slashes.
const MAX_FOLDER_DEPTH: usize = 8;

/// The folders of a dimension that hold region files.
pub(super) const REGION_FOLDERS: [(&str, RegionKind); 3] = [
    ("region", RegionKind::Blocks),
    ("entities", RegionKind::Entities),
    ("poi", RegionKind::PointsOfInterest),
];

/// What is found below a folder.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<RegionFile>,
    /// Dimensions with a folder for region files, also an empty one.
    pub(super) dimensions: BTreeSet<(String, Layout)>,
}

/// A path from the root on, without `..`. Links keep their names, unless the path leads up from one: then it leads to the
/// folder around its target, as the system has it.
pub(super) fn absolute(path: &Path) -> io::Result<PathBuf> {
    // The folder of a file that is named alone.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut place = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        if part != Component::ParentDir {
            place.push(part);
            continue;
        }
        if place.is_symlink() {
            place = fs::canonicalize(&place)?;
        }
        place.pop();
    }
    Ok(place)
}

/// The dimension that a path inside a save is the folder of, and the layout that has this folder.
///
/// Only the path's names count: the last of `DIM<number>`, or all that follow `dimensions`.
pub(super) fn dimension_of(path: &Path) -> Option<(String, Layout)> {
    let path = absolute(path).ok()?;
    let names = path.components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => Some(""),
    });
    let names: Vec<&str> = names.collect::<Option<_>>()?;
    if let Some(dimension) = layout::numbered(names.last()?) {
        return Some((dimension, Layout::Old));
    }
    let at = names.iter().rposition(|name| *name == layout::DIMENSIONS)?;
    let (namespace, name) = names.get(at + 1..)?.split_first()?;
    let dimension = format!("{namespace}:{}", name.join("/"));
    layout::dimension_folder(&dimension, Layout::Dimensions)?;
    Some((dimension, Layout::Dimensions))
}

/// The region files of a save's folder, by dimension; those of the folder itself are not among them.
pub(super) fn of_save(save: &Path, found: &mut Found) -> Result<(), SaveError> {
    of_dimension(save, OVERWORLD, Layout::Old, found)?;
    for entry in folders(save)? {
        let Some(name) = entry.file_name().and_then(OsStr::to_str) else { continue };
        if name == layout::DIMENSIONS {
            for namespace in folders(&entry)? {
                let Some(name) = namespace.file_name().and_then(OsStr::to_str) else { continue };
                if leads_up(&namespace) {
                    continue;
                }
                of_namespace(&namespace, &format!("{name}:"), 0, &mut BTreeSet::new(), found)?;
            }
        } else if let Some(dimension) = layout::numbered(name) {
            of_dimension(&entry, &dimension, Layout::Old, found)?;
        }
    }
    Ok(())
}

/// The region files of a dimension's folder.
pub(super) fn of_dimension(
    folder: &Path,
    dimension: &str,
    layout: Layout,
    found: &mut Found,
) -> Result<(), SaveError> {
    for (name, kind) in REGION_FOLDERS {
        let folder = folder.join(name);
        if folder.is_dir() {
            found.dimensions.insert((dimension.to_owned(), layout));
            found.files.extend(files(&folder, "mca")?.into_iter().map(|path| RegionFile {
                dimension: dimension.to_owned(),
                kind,
                pos: region_pos(&path),
                path,
                layout: Some(layout),
            }));
        }
    }
    Ok(())
}

/// The region files that a folder itself holds, or the one file, without a save around them.
///
/// Where two have the same place in their names, what stands before `r.X.Z.mca` names a dimension of its own.
pub(super) fn bare(files: Vec<PathBuf>, of: Option<(String, Layout)>) -> Vec<RegionFile> {
    let (dimension, layout) = match of {
        Some((dimension, layout)) => (dimension, Some(layout)),
        None => (OVERWORLD.to_owned(), None),
    };
    let mut places = BTreeSet::new();
    let collide = files.iter().filter_map(|path| region_pos(path)).any(|pos| !places.insert(pos));
    let file = |path: PathBuf| {
        let (prefix, pos) = match split_name(&path) {
            Some((prefix, pos)) => (prefix.trim_end_matches(['_', '-', '.', ' ']), Some(pos)),
            None => ("", None),
        };
        let (dimension, layout) = if collide && !prefix.is_empty() {
            (format!("file:{prefix}"), None)
        } else {
            (dimension.clone(), layout)
        };
        RegionFile { dimension, kind: RegionKind::ByContent, pos, path, layout }
    };
    files.into_iter().map(file).collect()
}

/// The place in a file name that ends in `r.X.Z.mca`, whatever stands before it.
///
/// ```
/// use std::path::Path;
/// use cg_cli::anvil::{region::RegionPos, save};
/// let place = RegionPos::new(-1, 0);
/// assert_eq!(save::region_pos(Path::new("region/r.-1.0.mca")), place);
/// assert_eq!(save::region_pos(Path::new("1.20.1_city_r.-1.0.mca")), place);
/// assert_eq!(save::region_pos(Path::new("backup.mca")), None);
/// ```
pub fn region_pos(path: &Path) -> Option<RegionPos> {
    split_name(path).map(|(_, pos)| pos)
}

/// The prefix and place of a region file's name.
fn split_name(path: &Path) -> Option<(&str, RegionPos)> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".mca")?;
    let (rest, z) = stem.rsplit_once('.')?;
    let (rest, x) = rest.rsplit_once('.')?;
    let prefix = rest.strip_suffix('r')?;
    if prefix.ends_with(|last: char| last.is_ascii_alphanumeric()) {
        return None;
    }
    Some((prefix, RegionPos::new(layout::number(x)?, layout::number(z)?)?))
}

/// Whether a dimension is looked for at a folder of this name so deep below `dimensions/<namespace>/`: in a dimension's
/// folder some names have a meaning of their own.
fn is_looked_for(name: &str, depth: usize) -> bool {
    let is_part = || name == "data" || REGION_FOLDERS.iter().any(|(part, _)| *part == name);
    depth < MAX_FOLDER_DEPTH && (depth == 0 || !is_part())
}

/// Whether an import of a save looks at the folder of a dimension of this name.
pub fn is_found(dimension: &str) -> bool {
    let folder = layout::dimension_folder(dimension, Layout::Dimensions).unwrap_or_default();
    let Ok(below) = folder.strip_prefix(layout::DIMENSIONS) else { return true };
    let names = below.iter().skip(1).map(|name| name.to_str().unwrap_or_default());
    names.zip(0..).all(|(name, depth)| is_looked_for(name, depth))
}

/// Folders of `dimensions/<namespace>/`: one that has `region` or `entities` is a dimension; others go deeper. Where a link
/// leads is looked at once: links to each other would lead anywhere in any number of ways.
fn of_namespace(
    folder: &Path,
    prefix: &str,
    depth: usize,
    links: &mut BTreeSet<PathBuf>,
    found: &mut Found,
) -> Result<(), SaveError> {
    for entry in folders(folder)? {
        let Some(name) = entry.file_name().and_then(OsStr::to_str) else { continue };
        if !is_looked_for(name, depth) {
            continue;
        }
        if entry.is_symlink() {
            let target = fs::canonicalize(&entry);
            let target = target.map_err(|source| SaveError::Io { path: entry.clone(), source })?;
            if leads_up(&entry) || !links.insert(target) {
                continue;
            }
        }
        let dimension = format!("{prefix}{name}");
        of_dimension(&entry, &dimension, Layout::Dimensions, found)?;
        of_namespace(&entry, &format!("{dimension}/"), depth + 1, links, found)?;
    }
    Ok(())
}

/// Whether a path is a link to a folder that it is inside of.
pub(super) fn leads_up(path: &Path) -> bool {
    let place = |path: &Path| fs::canonicalize(path).ok();
    let around = path.parent().and_then(place);
    path.is_symlink() && around.zip(place(path)).is_some_and(|(around, target)| around.starts_with(target))
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, SaveError> {
    let mut entries = entries(folder)?;
    entries.retain(|path| path.is_dir());
    Ok(entries)
}

/// The files of a folder that have this ending, by name.
pub(super) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, SaveError> {
    let mut entries = entries(folder)?;
    entries.retain(|path| path.extension().is_some_and(|found| found == extension) && path.is_file());
    Ok(entries)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, SaveError> {
    let fault = |source| SaveError::Io { path: folder.to_owned(), source };
    let entries: io::Result<Vec<_>> =
        fs::read_dir(folder).map_err(fault)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(fault)?;
    entries.sort();
    Ok(entries)
}
