//! The region files below a folder, wherever versions and tools put them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::error::SaveError;
use super::file::{RegionFile, RegionKind};
use super::forms::{self, OtherForm};
use super::layout::{self, Layout, OVERWORLD};
use crate::region::{ColumnPos, RegionPos, number, region_pos, split_name};

/// How deep folders below `dimensions/<namespace>/` are followed; a dimension's name may hold slashes.
const MAX_FOLDER_DEPTH: usize = 8;

/// The folders of a dimension that hold region files.
pub(super) const REGION_FOLDERS: [(&str, RegionKind); 3] = [
    ("region", RegionKind::Blocks),
    ("entities", RegionKind::Entities),
    ("poi", RegionKind::PointsOfInterest),
];

/// Files and dimensions that were found below a folder.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<RegionFile>,
    /// Dimensions with a folder for region files, also an empty one.
    pub(super) dimensions: BTreeSet<(String, Layout)>,
    /// Files whose chunks are in another form.
    pub(super) other_forms: Vec<OtherForm>,
}

/// Contents of a folder of region files without a save around it.
#[derive(Debug, Default)]
pub(super) struct Bare {
    pub(super) files: Vec<RegionFile>,
    /// Copies of these, each with the name of the file that it is one of.
    pub(super) copies: Vec<(PathBuf, String)>,
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

/// The region files of a dimension's folder: those that the game names so.
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
            let named = files(&folder, "mca")?.into_iter().filter_map(|path| Some((own_pos(&path)?, path)));
            found.files.extend(named.map(|(pos, path)| RegionFile {
                dimension: dimension.to_owned(),
                kind,
                pos: Some(pos),
                path,
                layout: Some(layout),
            }));
        }
    }
    found.other_forms.extend(forms::of_dimension(folder, dimension)?);
    Ok(())
}

/// Whether a path from a save's folder on is that of a region of a dimension, or of a part of one, as the game names them.
pub fn is_region_part(name: &str) -> bool {
    let Some((folder, file)) = name.rsplit_once('/') else { return false };
    let (dimension, part) = folder.rsplit_once('/').unwrap_or(("", folder));
    REGION_FOLDERS.iter().any(|(known, _)| *known == part)
        && is_dimension_folder(dimension)
        && (own_pos(Path::new(file)).is_some() || external_column(file).is_some())
}

/// Whether an import looks for a dimension in a folder of a save.
fn is_dimension_folder(folder: &str) -> bool {
    if folder.is_empty() || layout::numbered(folder).is_some() {
        return true;
    }
    let below = folder.strip_prefix(layout::DIMENSIONS).and_then(|below| below.strip_prefix('/'));
    let Some((namespace, name)) = below.and_then(|below| below.split_once('/')) else { return false };
    name.split('/').zip(0..).all(|(name, depth)| is_looked_for(name, depth))
        && is_folder_of(Path::new(folder), &format!("{namespace}:{name}"))
}

/// Whether a folder below `dimensions/` is the one to which an export puts the dimension of its name.
fn is_folder_of(folder: &Path, dimension: &str) -> bool {
    layout::found_folder(dimension, Layout::Dimensions).is_some_and(|wanted| folder.ends_with(wanted))
}

/// The column of a file's name, if that is the game's of a column beside its region.
pub(super) fn external_column(file: &str) -> Option<ColumnPos> {
    let (x, z) = file.strip_prefix("c.")?.strip_suffix(".mcc")?.split_once('.')?;
    Some(ColumnPos::new(number(x)?, number(z)?))
}

/// The region files that a folder itself holds, or the one file, without a save around them.
///
/// Where two have the same place in their names, what stands before `r.X.Z.mca` names a dimension of its own. A copy of a
/// file beside it is none of them.
pub(super) fn bare(files: Vec<PathBuf>, of: Option<(String, Layout)>) -> Bare {
    let (files, copies) = without_copies(files);
    Bare { files: listed(files, of), copies }
}

/// Region files without a save around them, whatever their names.
pub(super) fn listed(files: Vec<PathBuf>, of: Option<(String, Layout)>) -> Vec<RegionFile> {
    let (dimension, layout) = match of {
        Some((dimension, layout)) => (dimension, Some(layout)),
        None => (OVERWORLD.to_owned(), None),
    };
    let mut places = BTreeSet::new();
    let collide = files.iter().filter_map(|path| region_pos(path)).any(|pos| !places.insert(pos));
    let file = |path: PathBuf| {
        let (prefix, pos) = match split_name(&path) {
            Some((prefix, pos)) => (name_of(prefix), Some(pos)),
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

/// Parts copies from the files that they are copies of: `Copy of r.0.0.mca`, `r.0.0 (1).mca`, `r.-0.0.mca`, `r.0.0.MCA`.
fn without_copies(files: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<(PathBuf, String)>) {
    let own: BTreeMap<_, _> = files
        .iter()
        .filter_map(|path| Some((own_pos(path)?, path.file_name()?.to_string_lossy().into_owned())))
        .collect();
    let original = |path: &Path| {
        // A name before that of a region, without blanks, tells files of several saves apart.
        let is_named = |(prefix, _): (&str, RegionPos)| {
            !name_of(prefix).is_empty() && !prefix.contains(char::is_whitespace)
        };
        if own_pos(path).is_some() || split_name(path).is_some_and(is_named) {
            return None;
        }
        own.get(&meant_pos(path)?).cloned()
    };
    let (mut regions, mut copies) = (Vec::new(), Vec::new());
    for path in files {
        match original(&path) {
            Some(original) => copies.push((path, original)),
            None if path.extension().is_some_and(|ending| ending == "mca") => regions.push(path),
            // No game reads it, and nothing says what it is.
            None => {}
        }
    }
    (regions, copies)
}

/// Name in a prefix of a region's name, without the separators at its end.
fn name_of(prefix: &str) -> &str {
    prefix.trim_end_matches(['_', '-', '.', ' '])
}

/// The place that the name of a copy means: the first `r.X.Z` in it, whatever stands around it and however the numbers are
/// written.
fn meant_pos(path: &Path) -> Option<RegionPos> {
    fn number(text: &str) -> Option<(i32, &str)> {
        let sign = usize::from(text.starts_with(['+', '-']));
        let digits = text.get(sign..)?.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at_checked(sign + digits)?;
        Some((number.parse().ok()?, rest))
    }
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    name.match_indices("r.").find_map(|(at, _)| {
        let (before, from) = name.split_at_checked(at)?;
        if before.ends_with(|last: char| last.is_ascii_alphanumeric()) {
            return None;
        }
        let (x, rest) = number(from.strip_prefix("r.")?)?;
        let (z, _) = number(rest.strip_prefix('.')?)?;
        RegionPos::new(x, z)
    })
}

/// The place in a file name that is `r.X.Z.mca` and nothing else, as the game writes it.
pub(super) fn own_pos(path: &Path) -> Option<RegionPos> {
    split_name(path).filter(|(prefix, _)| prefix.is_empty()).map(|(_, pos)| pos)
}

/// Whether a dimension is looked for at a folder of this name so deep below `dimensions/<namespace>/`: in a dimension's
/// folder some names have a meaning of their own.
fn is_looked_for(name: &str, depth: usize) -> bool {
    let is_part = || name == "data" || REGION_FOLDERS.iter().any(|(part, _)| *part == name);
    depth < MAX_FOLDER_DEPTH && (depth == 0 || !is_part())
}

/// Whether an import of a save looks at the folder of a dimension of this name.
pub fn is_found(dimension: &str) -> bool {
    let folder = layout::found_folder(dimension, Layout::Dimensions).unwrap_or_default();
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
        if is_folder_of(&entry, &dimension) {
            of_dimension(&entry, &dimension, Layout::Dimensions, found)?;
        }
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

/// The files of a folder that have this ending, in whichever case, by name.
pub(super) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, SaveError> {
    let mut entries = entries(folder)?;
    let has_ending =
        |path: &PathBuf| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension));
    entries.retain(|path| has_ending(path) && path.is_file());
    Ok(entries)
}

/// Entries of a folder, in order of their names.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, SaveError> {
    let fault = |source| SaveError::Io { path: folder.to_owned(), source };
    let entries: io::Result<Vec<_>> =
        fs::read_dir(folder).map_err(fault)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(fault)?;
    entries.sort();
    Ok(entries)
}
