//! The files of a save that are no regions: `level.dat`, players, maps, data packs, whatever mods leave.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use super::{REGION_FOLDERS, Save, SaveError, layout, lock, regions};

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
    /// Worlds of CherryGrove and regions of no dimension, in words.
    pub foreign: Vec<String>,
    /// The paths of that, and of links that are not followed: what else is below them is the save's.
    pub not_entered: Vec<String>,
    /// How many files belong to what is left out of the save.
    pub left_out: u64,
}

impl Save {
    /// Lists the files of a save that are no regions; those of a folder without a save around it, or beside a region file
    /// that is named by itself, are none of a save.
    ///
    /// Links are not followed, but to a dimension's folder. Nothing is opened but folders.
    ///
    /// # Errors
    /// [`SaveError::Io`] when a folder cannot be read.
    pub fn other_files(&self) -> Result<OtherFiles, SaveError> {
        let mut found = OtherFiles::default();
        let Some(taken) = &self.taken else { return Ok(found) };
        let strays = self.strays.iter().flat_map(|strays| &strays.files);
        let files: BTreeSet<_> = self.regions.iter().chain(strays).map(|file| file.path.as_path()).collect();
        let dropped: BTreeSet<_> = self.dropped.iter().map(PathBuf::as_path).collect();
        let folders = files.union(&dropped).filter_map(|file| file.parent()).collect();
        let root = fs::canonicalize(&self.path)
            .map_err(|source| SaveError::Io { path: self.path.clone(), source })?;
        Walk { root, files, dropped, folders, has_left_out: !self.left_out.is_empty() }
            .folder(&self.path, "", 0, false, &mut found)?;
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
        found.foreign.sort();
        Ok(found)
    }
}

impl OtherFiles {
    fn refuse(&mut self, name: &str, why: &'static str) {
        self.refused.push((name.to_owned(), why));
        self.not_entered.push(name.to_owned());
    }

    fn note_foreign(&mut self, name: &str, kind: &str, what: &str) {
        self.foreign.push(format!("{kind} {name}: {what}"));
        self.not_entered.push(name.to_owned());
    }
}

/// Whether a path from a save's folder on is that of a region or of a part of one, by its folder and ending.
pub fn is_region_part(name: &str) -> bool {
    let mut parts = name.rsplit('/');
    let (file, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    if !name.contains('/') {
        // Beside the folders of a save regions are found too.
        return ending == "mca";
    }
    REGION_FOLDERS.iter().any(|(part, _)| *part == folder)
        && ["mca", "mcc"].iter().any(|part| ending.eq_ignore_ascii_case(part))
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
    /// Region files that bring nothing.
    dropped: BTreeSet<&'a Path>,
    /// The folders that hold some.
    folders: BTreeSet<&'a Path>,
    /// Whether there are more, which were left out.
    has_left_out: bool,
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
            if is_region || name == lock::NAME {
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
            } else if is_region_part(&name) {
                self.region_part(&path, &name, folder, found);
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
            found.note_foreign(name, "folder", "it is a world of CherryGrove");
        } else if depth >= MAX_DEPTH {
            found.refuse(name, "the folder is too deep");
        } else if raw.is_none() {
            found.refuse(name, "the folder's name is not UTF-8");
        } else {
            self.folder(path, &format!("{name}/"), depth + 1, is_linked, found)?;
        }
        Ok(())
    }

    /// Says what is not read of a region. A part of one in its own file was read with the region.
    fn region_part(&self, path: &Path, name: &str, folder: &Path, found: &mut OtherFiles) {
        let is_external = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mcc"));
        if self.has_left_out {
            // It may be of what was left out.
        } else if !is_external {
            found.note_foreign(name, "file", "a region of no dimension");
        } else if !self.folders.contains(folder) {
            found.note_foreign(name, "file", "a part of a region of no dimension");
        }
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
    use expect_test::expect;

    use super::*;
    use crate::anvil::save;

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
                "R.0.0.MCA",
                "data/raids.dat",
                "icon.png",
                "region/notes.txt"
            ]
        );
        assert_eq!(found.refused, [("elsewhere".to_owned(), IS_LINK)]);
        expect![[r"
            file mods/some/region/c.1.1.mcc: a part of a region of no dimension
            file mods/some/region/r.0.0.mca: a region of no dimension
            folder backups/world: it is a world of CherryGrove"]]
        .assert_eq(&found.foreign.join("\n"));
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
