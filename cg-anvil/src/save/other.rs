//! The files of a save that are no regions: `level.dat`, players, maps, data packs, whatever mods leave.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use super::error::SaveError;
use super::listing::Save;
use super::regions::{REGION_FOLDERS, is_region_part};
use super::{layout, lock, regions};
use crate::Region;
use crate::region::Slot;

/// How deep folders are followed.
const MAX_DEPTH: usize = 32;
const IS_LINK: &str = "it is a link, and links are not followed";

/// The files of a save that are no regions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherFiles {
    /// Each file's path from the save's folder on, with `/` on every system, and where it is. `level.dat` comes first,
    /// the others by their paths.
    pub files: Vec<(String, PathBuf)>,
    /// The paths of what is there and cannot be taken, each with why.
    pub refused: Vec<(String, &'static str)>,
    /// Worlds of CherryGrove: the paths of their folders, and where they are.
    pub worlds: Vec<(String, PathBuf)>,
    /// The paths of regions that are read by another path.
    pub read_elsewhere: Vec<String>,
    /// The paths of that, and of links that are not followed: what else is below them is the save's.
    pub not_entered: Vec<String>,
    /// How many files belong to what is left out of the save.
    pub left_out: u64,
}

impl Save {
    /// Lists the files of a save that are no regions; those of a folder without a save around it, or beside a region file
    /// that is named by itself, are none of a save.
    ///
    /// Region files of no dimension, files that are not named as the game names regions, files of columns to which no region
    /// points, and region files without a slot that hold bytes all the same are among them. Links are not followed, but to a
    /// dimension's folder. Of region files the headers are read.
    ///
    /// # Errors
    /// [`SaveError::Io`] when a folder cannot be read.
    pub fn other_files(&self) -> Result<OtherFiles, SaveError> {
        let mut found = OtherFiles::default();
        let Some(taken) = &self.taken else { return Ok(found) };
        let strays = self.strays.iter().flat_map(|strays| &strays.files);
        let files: BTreeSet<_> = self.regions.iter().chain(strays).map(|file| file.path.as_path()).collect();
        let dropped: BTreeSet<_> = self.dropped.iter().map(PathBuf::as_path).collect();
        let root = fs::canonicalize(&self.path)
            .map_err(|source| SaveError::Io { path: self.path.clone(), source })?;
        let external = RefCell::default();
        Walk { root, files, dropped, external }.folder(&self.path, "", 0, false, &mut found)?;
        let count = found.files.len();
        let renamed = |name: &str| {
            let rest = name.strip_prefix(taken.from.as_deref()?)?;
            Some(format!("{}{rest}", taken.to))
        };
        let is_taken = |(name, path): (String, PathBuf)| Some((renamed(&name)?, path));
        found.files = found.files.into_iter().filter_map(is_taken).collect();
        found.not_entered = found.not_entered.iter().filter_map(|name| renamed(name)).collect();
        found.left_out = (count - found.files.len()) as u64;
        found.files.sort_by(|(a, _), (b, _)| (a != "level.dat", a).cmp(&(b != "level.dat", b)));
        found.refused.sort();
        found.worlds.sort();
        found.read_elsewhere.sort();
        Ok(found)
    }
}

impl OtherFiles {
    fn refuse(&mut self, name: &str, why: &'static str) {
        self.refused.push((name.to_owned(), why));
        self.not_entered.push(name.to_owned());
    }
}

/// Whether a file is named as a region, or as a part of one, wherever it is and whatever else stands in its name.
pub fn is_named_as_region(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["mca", "mcc"].iter().any(|part| ending.eq_ignore_ascii_case(part))
}

/// Where a file goes whose path from a save's folder on is this; `None` when it would leave the folder, or is no path on
/// this system.
pub fn file_path(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    for part in name.split('/') {
        let mut components = Path::new(part).components();
        match (components.next(), components.next()) {
            (Some(std::path::Component::Normal(only)), None)
                if only == part && part.len() <= layout::MAX_NAME_BYTES => {}
            _ => return None,
        }
        if part.contains(['\0', '\\']) {
            return None;
        }
        path.push(part);
    }
    Some(path)
}

/// A walk through all folders of a save.
struct Walk<'a> {
    /// The save's folder, without links.
    root: PathBuf,
    /// The region files of the save.
    files: BTreeSet<&'a Path>,
    /// Region files that bring nothing, and those of dimensions that were left out.
    dropped: BTreeSet<&'a Path>,
    /// The slots of region files whose columns are in files of their own, of those that were opened.
    external: RefCell<BTreeMap<PathBuf, BTreeSet<Slot>>>,
}

impl Walk<'_> {
    /// Takes the files of a folder, which a link may lead to.
    fn folder(
        &self,
        folder: &Path,
        prefix: &str,
        depth: usize,
        is_linked: bool,
        found: &mut OtherFiles,
    ) -> Result<(), SaveError> {
        let fault = |source| SaveError::Io { path: folder.to_owned(), source };
        for entry in fs::read_dir(folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let kind = entry.file_type().map_err(fault)?;
            let (path, raw) = (entry.path(), entry.file_name());
            let name = format!("{prefix}{}", raw.to_string_lossy());
            let is_region = [&self.files, &self.dropped].iter().any(|files| files.contains(path.as_path()));
            if name == lock::NAME {
                continue;
            }
            if is_region {
                // One without a column is not read, and what it holds all the same is kept as a file.
                if Region::open(&path).and_then(|mut region| region.is_remains()).unwrap_or(false) {
                    found.files.push((name, path));
                }
                continue;
            }
            if kind.is_dir() {
                self.inner(&path, raw.to_str(), &name, depth, is_linked, found)?;
            } else if kind.is_symlink() && path.is_dir() {
                let is_entered =
                    !is_linked && !regions::leads_up(&path) && self.is_of_a_dimension(&path, &name);
                let is_elsewhere = is_entered && self.is_taken_elsewhere(&path);
                if is_entered && !is_elsewhere {
                    self.inner(&path, raw.to_str(), &name, depth, true, found)?;
                // The regions that a link leads to are read all the same.
                } else if is_elsewhere || has_below(&self.files, &path) || has_below(&self.dropped, &path) {
                    found.not_entered.push(name);
                } else {
                    found.refuse(&name, IS_LINK);
                }
            } else if kind.is_symlink() {
                found.refuse(&name, IS_LINK);
            } else if !kind.is_file() {
                found.refuse(&name, "it is neither a file nor a folder");
            } else if raw.to_str().is_none() {
                found.refuse(&name, "its name is not UTF-8");
            } else if self.is_external(folder, raw.to_str().unwrap_or_default()) {
                // It was read with its region.
            } else if is_linked && is_region_part(&name) {
                found.not_entered.push(name.clone());
                found.read_elsewhere.push(name);
            } else {
                found.files.push((name, path));
            }
        }
        Ok(())
    }

    /// Takes the files of a folder inside another, if that can be done.
    fn inner(
        &self,
        path: &Path,
        raw: Option<&str>,
        name: &str,
        depth: usize,
        is_linked: bool,
        found: &mut OtherFiles,
    ) -> Result<(), SaveError> {
        if path.join(cg_store::directory::FILE_NAME).is_file() {
            // Its files change while they are read, and would become objects of themselves.
            found.not_entered.push(name.to_owned());
            found.worlds.push((name.to_owned(), path.to_owned()));
        } else if depth >= MAX_DEPTH {
            found.refuse(name, "the folder is too deep");
        } else if raw.is_none() {
            found.refuse(name, "the folder's name is not UTF-8");
        } else {
            self.folder(path, &format!("{name}/"), depth + 1, is_linked, found)?;
        }
        Ok(())
    }

    /// Whether a file is that of a column to which a slot of the region beside it points.
    fn is_external(&self, folder: &Path, name: &str) -> bool {
        let Some(column) = regions::external_column(name) else { return false };
        let region = folder.join(column.region().file_name());
        if !self.files.contains(region.as_path()) && !self.dropped.contains(region.as_path()) {
            return false;
        }
        let mut external = self.external.borrow_mut();
        let slots = external.entry(region).or_insert_with_key(|path| {
            // Of a region that cannot be opened, nothing points to it.
            Region::open(path).map(|mut region| region.external_slots()).unwrap_or_default()
        });
        slots.contains(&column.slot())
    }

    /// Whether a link leads into the folder of another dimension of the save, and brings no region by its own path.
    fn is_taken_elsewhere(&self, path: &Path) -> bool {
        let Ok(target) = fs::canonicalize(path) else { return false };
        let Ok(inside) = target.strip_prefix(&self.root) else { return false };
        // Names around the save do not count.
        let is_dimension = |folder: &Path| regions::dimension_of(&Path::new("/").join(folder)).is_some();
        inside.ancestors().any(is_dimension) && !has_below(&self.files, path)
    }

    /// Whether a link is a dimension's folder, holds some, or is a folder of region files.
    fn is_of_a_dimension(&self, path: &Path, name: &str) -> bool {
        let is_below_dimensions = name.split('/').next() == Some(layout::DIMENSIONS);
        let has_parts = || REGION_FOLDERS.iter().any(|(folder, _)| path.join(folder).is_dir());
        layout::numbered(name).is_some() || is_below_dimensions && has_parts() || has_below(&self.files, path)
    }
}

/// Whether one of the files is below a folder.
fn has_below(files: &BTreeSet<&Path>, folder: &Path) -> bool {
    files.iter().any(|file| file.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::save;

    fn touch(folder: &Path, names: &[&str]) {
        for name in names {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
            fs::write(path, name).expect("written");
        }
    }

    #[test]
    fn all_that_is_no_region_is_listed_level_first() {
        let folder = tempfile::tempdir().expect("a folder");
        touch(
            folder.path(),
            &[
                "data/raids.dat",
                "DIM-1/data/map_0.dat",
                "DIM-1/region/r.0.0.mca",
                "region/r.0.0.mca",
                "region/c.1.1.mcc",
                "region/notes.txt",
                "entities/r.0.0.mca",
                "poi/r.0.0.mca",
                "level.dat",
                "icon.png",
                "session.lock",
                "mods/some/region/r.0.0.mca",
                "mods/some/region/c.1.1.mcc",
                "backups/world/world.cg",
                "backups/world/db/CURRENT",
                "R.0.0.MCA",
                "r.9.9.mca",
                "region/r.0.0 (1).mca",
                "region/Copy of r.0.0.mca",
                "region/r.-0.0.mca",
                "region/r.01.0.mca",
                "region/r.0.67108864.mca",
                "entities/r.0.0.MCA",
                "DIM07/region/r.0.0.mca",
                "dimensions/dim/7/region/r.0.0.mca",
            ],
        );
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", folder.path().join("elsewhere")).expect("a link");
        let save = save::find(folder.path()).expect("a save");
        let found = save.other_files().expect("readable");
        let names: Vec<_> = found.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "level.dat",
                "DIM-1/data/map_0.dat",
                "DIM07/region/r.0.0.mca",
                "R.0.0.MCA",
                "data/raids.dat",
                "dimensions/dim/7/region/r.0.0.mca",
                "entities/r.0.0.MCA",
                "icon.png",
                "mods/some/region/c.1.1.mcc",
                "mods/some/region/r.0.0.mca",
                "r.9.9.mca",
                "region/Copy of r.0.0.mca",
                "region/c.1.1.mcc",
                "region/notes.txt",
                "region/r.-0.0.mca",
                "region/r.0.0 (1).mca",
                "region/r.0.67108864.mca",
                "region/r.01.0.mca"
            ]
        );
        assert_eq!(found.refused, [("elsewhere".to_owned(), IS_LINK)]);
        let world = ("backups/world".to_owned(), folder.path().join("backups/world"));
        assert_eq!((found.worlds, found.read_elsewhere), (vec![world], vec![]));
    }

    #[test]
    fn a_folder_of_regions_has_no_other_files() {
        let folder = tempfile::tempdir().expect("a folder");
        touch(folder.path(), &["r.0.0.mca", "readme.txt"]);
        let save = save::find(folder.path()).expect("regions");
        assert_eq!(save.other_files().expect("readable"), OtherFiles::default());
        let save = save::find(&folder.path().join("r.0.0.mca")).expect("a region");
        assert_eq!(save.other_files().expect("readable"), OtherFiles::default());
    }

    #[test]
    fn no_path_leaves_its_folder() {
        let folder = Path::new("out");
        assert_eq!(file_path(folder, "data/a.dat"), Some(folder.join("data/a.dat")));
        let long = "x".repeat(256);
        for name in ["", "/etc/passwd", "..", "data/../../a", "./a", "a//b", "a/", "a\0b", "a\\..\\b", &long]
        {
            assert_eq!(file_path(folder, name), None, "{name:?}");
        }
    }
}
