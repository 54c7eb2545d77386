//! Files of a save that hold chunks in a form that is not read.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use super::error::SaveError;
use super::layout;
use super::regions::{self, REGION_FOLDERS};

/// Endings of files that other programs packed.
const PACKED: [&str; 15] =
    ["zip", "gz", "tgz", "tar", "7z", "rar", "xz", "txz", "bz2", "tbz2", "zst", "zstd", "lz4", "lzma", "br"];
/// The folders in which Cubic Chunks keeps cubes, and what it knows of their columns.
const CUBIC: [&str; 2] = ["region3d", "region2d"];

/// A form of chunks that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// `r.X.Z.mcr`, until 1.1.
    McRegion,
    /// `r.X.Z.linear`, of some servers.
    Linear,
    /// `region3d/` and `region2d/`, of the mod Cubic Chunks.
    Cubic,
    /// Region files, or folders of them, that another program packed: `region.zip`, `r.0.0.mca.gz`.
    Packed,
}

/// Files of one folder that hold chunks in a form that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherForm {
    /// The dimension whose folder it is.
    pub dimension: String,
    /// The folder.
    pub folder: PathBuf,
    /// The form.
    pub form: Form,
    /// The number of files.
    pub files: u64,
}

impl Form {
    /// Advice on what to do with such files.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::McRegion => "open the save once in 1.13 or later",
            Self::Linear => "convert them to .mca region files with the server's tool",
            Self::Cubic => "convert the save with the mod's converter",
            Self::Packed => "unpack them first",
        }
    }

    /// The form of a file that is named by itself; `None` if its name says none.
    pub(super) fn of_file(path: &Path) -> Option<Self> {
        let ending = ending(path)?;
        match &*ending {
            "linear" | "b_linear" => Some(Self::Linear),
            "3dr" | "2dr" => Some(Self::Cubic),
            ending => PACKED.contains(&ending).then_some(Self::Packed),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::McRegion => ".mcr region files of Minecraft 1.1 and older",
            Self::Linear => ".linear region files of a server's own format",
            Self::Cubic => "files of the mod Cubic Chunks",
            Self::Packed => "packed region files",
        })
    }
}

/// The files of a dimension's folder whose chunks no region file beside them has.
pub(super) fn of_dimension(folder: &Path, dimension: &str) -> Result<Vec<OtherForm>, SaveError> {
    let mut counts = BTreeMap::new();
    for (part, _) in REGION_FOLDERS {
        let part = folder.join(part);
        if part.is_dir() {
            of_regions(&part, &mut counts)?;
        }
    }
    for name in CUBIC {
        let cubes = folder.join(name);
        if cubes.is_dir() {
            let files = regions::entries(&cubes)?.len() as u64;
            *counts.entry((cubes, Form::Cubic)).or_insert(0) += files;
        }
    }
    for path in regions::entries(folder)? {
        if is_packed_folder(&path)? {
            *counts.entry((folder.to_owned(), Form::Packed)).or_insert(0) += 1;
        }
    }
    let other = |((folder, form), files)| OtherForm { dimension: dimension.to_owned(), folder, form, files };
    Ok(counts.into_iter().filter(|(_, files)| *files > 0).map(other).collect())
}

/// The same of a folder of region files without a save around it.
pub(super) fn of_bare(folder: &Path) -> Result<Vec<OtherForm>, SaveError> {
    let mut counts = BTreeMap::new();
    of_regions(folder, &mut counts)?;
    let other = |((folder, form), files)| OtherForm { dimension: String::new(), folder, form, files };
    Ok(counts.into_iter().map(other).collect())
}

fn of_regions(folder: &Path, counts: &mut BTreeMap<(PathBuf, Form), u64>) -> Result<(), SaveError> {
    for path in regions::entries(folder)? {
        let form = match ending(&path).as_deref() {
            // The game leaves those that it has converted.
            Some("mcr") if !path.with_extension("mca").is_file() => Form::McRegion,
            Some("linear" | "b_linear") => Form::Linear,
            Some(ending) if PACKED.contains(&ending) && is_packed_region(&path) => Form::Packed,
            _ => continue,
        };
        if path.is_file() {
            *counts.entry((folder.to_owned(), form)).or_insert(0) += 1;
        }
    }
    Ok(())
}

/// Whether a packed file is named as a region whose file is not there.
fn is_packed_region(path: &Path) -> bool {
    let Some(stem) = path.file_stem().and_then(OsStr::to_str) else { return false };
    // `r.0.0.zip` has no other ending.
    let stem = stem.to_ascii_lowercase();
    let named = format!("{}.mca", stem.strip_suffix(".mca").unwrap_or(&stem));
    regions::own_pos(Path::new(&named)).is_some() && !path.with_file_name(named).is_file()
}

/// Whether a packed file is named as a folder of regions, or of dimensions, which is not there or holds none.
fn is_packed_folder(path: &Path) -> Result<bool, SaveError> {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return Ok(false) };
    let mut parts = name.split('.');
    let folder = parts.next().unwrap_or_default();
    let endings: Vec<_> = parts.map(str::to_ascii_lowercase).collect();
    let is_packed = !endings.is_empty() && endings.iter().all(|ending| PACKED.contains(&&**ending));
    if !is_packed || !path.is_file() {
        return Ok(false);
    }
    let place = path.with_file_name(folder);
    if REGION_FOLDERS.iter().any(|(part, _)| *part == folder) {
        let is_there = place.is_dir()
            && regions::files(&place, "mca")?.iter().any(|file| regions::own_pos(file).is_some());
        return Ok(!is_there);
    }
    let is_dimensions = folder == layout::DIMENSIONS || layout::numbered(folder).is_some();
    Ok(is_dimensions && !place.is_dir())
}

fn ending(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}
