//! The region files of a save, and which dimension each belongs to.

mod other;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use other::{OtherFiles, file_path, is_region_part, other_files};

use super::region::RegionPos;

/// The dimension of everything that does not say another.
pub const OVERWORLD: &str = "minecraft:overworld";

/// The namespace of dimensions whose folders have a number.
const NUMBERED: &str = "dim";

/// How deep folders below `dimensions/` are followed; a dimension's name may hold slashes.
const MAX_FOLDER_DEPTH: usize = 8;

/// One region file of a save.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegionFile {
    /// The dimension, `namespace:name`.
    pub dimension: String,
    /// What the file's folder says about its content.
    pub kind: RegionKind,
    /// The place in the file's name; `None` when it has none, and only the columns tell theirs.
    pub pos: Option<RegionPos>,
    /// Where the file lies.
    pub path: PathBuf,
}

/// What a region file's folder says about its content. Blocks come before entities, which belong to their chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegionKind {
    /// `region/`: columns.
    Blocks,
    /// A file by itself, or in a folder without a save around it: its content tells.
    ByContent,
    /// `entities/`: entities by column.
    Entities,
    /// `poi/`: points of interest by column.
    PointsOfInterest,
}

/// Why a path is no save.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// Nothing that a save has.
    #[error(
        "{} is no save: neither a region file (.mca), nor a folder of them, nor a folder with region/, DIM-1/, DIM1/ or dimensions/ in it",
        .0.display()
    )]
    NotASave(PathBuf),
    /// Old files by another name.
    #[error(
        "{} holds .mcr region files of Minecraft 1.1 and older, which are not read; open the save once in 1.13 or later",
        .0.display()
    )]
    McRegion(PathBuf),
    /// A folder or file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Lists the region files of a save, of a folder of region files, or the one file that is named.
///
/// The order is by dimension, content, place and path, the same on every machine. Nothing is opened but folders.
///
/// Files that lie in a folder without a save around it belong to [`OVERWORLD`], unless two of them have the same place
/// in the name: then what stands before `r.X.Z.mca` names a dimension of its own, `file:<prefix>`, so that no column
/// replaces another.
///
/// # Errors
/// [`SaveError`].
pub fn find(path: &Path) -> Result<Vec<RegionFile>, SaveError> {
    let mut found = Vec::new();
    if path.is_file() {
        found.push(RegionFile {
            dimension: OVERWORLD.to_owned(),
            kind: RegionKind::ByContent,
            pos: region_pos(path),
            path: path.to_owned(),
        });
        return Ok(found);
    }
    find_bare(path, &mut found)?;
    find_dimension(path, OVERWORLD, &mut found)?;
    for entry in folders(path)? {
        let Some(name) = entry.file_name().and_then(|name| name.to_str()) else { continue };
        match name {
            "DIM-1" => find_dimension(&entry, "minecraft:the_nether", &mut found)?,
            "DIM1" => find_dimension(&entry, "minecraft:the_end", &mut found)?,
            "dimensions" => {
                for namespace in folders(&entry)? {
                    let Some(name) = namespace.file_name().and_then(|name| name.to_str()) else { continue };
                    let mut links = BTreeSet::new();
                    find_namespaced(&namespace, &format!("{name}:"), 0, &mut links, &mut found)?;
                }
            }
            _ => {
                if let Some(number) = name.strip_prefix("DIM").and_then(coordinate) {
                    find_dimension(&entry, &format!("{NUMBERED}:{number}"), &mut found)?;
                }
            }
        }
    }
    if found.is_empty() {
        let region = path.join("region");
        let old = [path, region.as_path()].into_iter().filter(|folder| folder.is_dir());
        for folder in old {
            if !files(folder, "mcr")?.is_empty() {
                return Err(SaveError::McRegion(path.to_owned()));
            }
        }
        // A save whose folders are there but empty is a save with nothing in it.
        if !region.is_dir() {
            return Err(SaveError::NotASave(path.to_owned()));
        }
    }
    found.sort();
    Ok(found)
}

/// The folder of a dimension inside a save, relative to it: empty for the overworld.
///
/// `None` for a name that cannot be a path of the game's: only `a-z 0-9 _ . -` between slashes, no `.` or `..`.
pub fn dimension_folder(dimension: &str) -> Option<PathBuf> {
    match dimension {
        OVERWORLD => return Some(PathBuf::new()),
        "minecraft:the_nether" => return Some("DIM-1".into()),
        "minecraft:the_end" => return Some("DIM1".into()),
        _ => {}
    }
    let (namespace, name) = dimension.split_once(':')?;
    // As mods number them. Two of the numbers are the game's own.
    if let Some(number) = coordinate(name).filter(|number| namespace == NUMBERED && ![-1, 1].contains(number))
    {
        return Some(format!("DIM{number}").into());
    }
    let mut folder = PathBuf::from("dimensions");
    for part in std::iter::once(namespace).chain(name.split('/')) {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
        if part.is_empty() || part.bytes().all(|byte| byte == b'.') || !part.bytes().all(allowed) {
            return None;
        }
        folder.push(part);
    }
    Some(folder)
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
    Some((prefix, RegionPos::new(coordinate(x)?, coordinate(z)?)?))
}

/// A number as the game writes it: no plus, no leading zero.
fn coordinate(text: &str) -> Option<i32> {
    text.parse().ok().filter(|number: &i32| number.to_string() == text)
}

fn find_dimension(folder: &Path, dimension: &str, found: &mut Vec<RegionFile>) -> Result<(), SaveError> {
    for (name, kind) in [
        ("region", RegionKind::Blocks),
        ("entities", RegionKind::Entities),
        ("poi", RegionKind::PointsOfInterest),
    ] {
        let folder = folder.join(name);
        if folder.is_dir() {
            found.extend(files(&folder, "mca")?.into_iter().map(|path| RegionFile {
                dimension: dimension.to_owned(),
                kind,
                pos: region_pos(&path),
                path,
            }));
        }
    }
    Ok(())
}

/// Folders of `dimensions/<namespace>/`: one that has `region` or `entities` is a dimension; others go deeper. Where a link
/// leads is looked at once: links to each other would lead anywhere in any number of ways.
fn find_namespaced(
    folder: &Path,
    prefix: &str,
    depth: usize,
    links: &mut BTreeSet<PathBuf>,
    found: &mut Vec<RegionFile>,
) -> Result<(), SaveError> {
    if depth >= MAX_FOLDER_DEPTH {
        return Ok(());
    }
    for entry in folders(folder)? {
        let Some(name) = entry.file_name().and_then(|name| name.to_str()) else { continue };
        if ["region", "entities", "poi", "data"].contains(&name) {
            continue;
        }
        if entry.is_symlink() {
            let target = fs::canonicalize(&entry);
            let target = target.map_err(|source| SaveError::Io { path: entry.clone(), source })?;
            let is_around = fs::canonicalize(folder).is_ok_and(|folder| folder.starts_with(&target));
            if is_around || !links.insert(target) {
                continue;
            }
        }
        let dimension = format!("{prefix}{name}");
        find_dimension(&entry, &dimension, found)?;
        find_namespaced(&entry, &format!("{dimension}/"), depth + 1, links, found)?;
    }
    Ok(())
}

fn find_bare(folder: &Path, found: &mut Vec<RegionFile>) -> Result<(), SaveError> {
    let files = files(folder, "mca")?;
    let mut places = BTreeSet::new();
    let collide = files.iter().filter_map(|path| region_pos(path)).any(|pos| !places.insert(pos));
    for path in files {
        let (prefix, pos) = match split_name(&path) {
            Some((prefix, pos)) => (prefix.trim_end_matches(['_', '-', '.', ' ']), Some(pos)),
            None => ("", None),
        };
        let dimension =
            if collide && !prefix.is_empty() { format!("file:{prefix}") } else { OVERWORLD.to_owned() };
        found.push(RegionFile { dimension, kind: RegionKind::ByContent, pos, path });
    }
    Ok(())
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, SaveError> {
    let mut entries = entries(folder)?;
    entries.retain(|path| path.is_dir());
    Ok(entries)
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, SaveError> {
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

#[cfg(test)]
mod tests;
