//! The files of a save that are no regions: `level.dat`, players, maps, data packs, whatever mods leave.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use super::{RegionFile, RegionKind, SaveError};

/// How deep folders are followed.
const MAX_DEPTH: usize = 32;
/// Folders whose `.mca` and `.mcc` files are parts of regions.
const REGION_FOLDERS: [&str; 3] = ["region", "entities", "poi"];
/// What the running game holds, which says nothing of the save.
const LOCK: &str = "session.lock";

/// The files of a save that are no regions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherFiles {
    /// Each file's path from the save's folder on, with `/` on every system, and where it lies. `level.dat` comes first,
    /// the others by their paths.
    pub files: Vec<(String, PathBuf)>,
    /// What is there and is no file that can be taken, in words.
    pub refused: Vec<String>,
}

/// Lists the files of a save that are no regions; those of a folder without a save around it, or beside a region file
/// that is named by itself, are none of a save.
///
/// Links are not followed. Nothing is opened but folders.
///
/// # Errors
/// [`SaveError::Io`] when a folder cannot be read.
pub fn other_files(save: &Path, regions: &[RegionFile]) -> Result<OtherFiles, SaveError> {
    let mut found = OtherFiles::default();
    let is_save = regions.iter().any(|file| file.kind != RegionKind::ByContent)
        || save.join("level.dat").is_file()
        || save.join("region").is_dir();
    if save.is_dir() && is_save {
        let folders = regions.iter().filter_map(|file| file.path.parent()).collect();
        let regions = regions.iter().map(|file| file.path.as_path()).collect();
        walk(save, "", 0, &Regions { files: regions, folders }, &mut found)?;
        found.files.sort_by(|(a, _), (b, _)| (a != "level.dat", a).cmp(&(b != "level.dat", b)));
        found.refused.sort();
    }
    Ok(found)
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
    REGION_FOLDERS.contains(&folder) && ["mca", "mcc"].iter().any(|part| ending.eq_ignore_ascii_case(part))
}

/// Where a file goes whose path from a save's folder on is this; `None` when it would leave the folder, or is no path on
/// this system.
pub fn file_path(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    for part in name.split('/') {
        let mut components = Path::new(part).components();
        match (components.next(), components.next()) {
            (Some(std::path::Component::Normal(only)), None) if only == part && part.len() <= 255 => {}
            _ => return None,
        }
        if part.contains(['\0', '\\']) {
            return None;
        }
        path.push(part);
    }
    Some(path)
}

/// The region files of a save, and the folders that hold some.
struct Regions<'a> {
    files: BTreeSet<&'a Path>,
    folders: BTreeSet<&'a Path>,
}

fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    regions: &Regions<'_>,
    found: &mut OtherFiles,
) -> Result<(), SaveError> {
    let Regions { files, folders } = regions;
    let fault = |source| SaveError::Io { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let kind = entry.file_type().map_err(fault)?;
        let path = entry.path();
        let raw = entry.file_name();
        let name = format!("{prefix}{}", raw.to_string_lossy());
        if files.contains(path.as_path()) || name == LOCK {
            continue;
        }
        if kind.is_dir() {
            match raw.to_str() {
                // Its files change while they are read, and would become objects of themselves.
                _ if path.join(cg_store::directory::FILE_NAME).is_file() => {
                    found.refused.push(format!("folder {name}: it is a world of CherryGrove"));
                }
                _ if depth >= MAX_DEPTH => found.refused.push(format!("folder {name}: it lies too deep")),
                None => found.refused.push(format!("folder {name}: its name is no text")),
                Some(_) => walk(&path, &format!("{name}/"), depth + 1, regions, found)?,
            }
        } else if !kind.is_file() {
            // The regions that a link leads to are read all the same.
            if !path.is_dir() || !files.iter().any(|region| region.starts_with(&path)) {
                found.refused.push(format!("{name}: it is neither a file nor a folder"));
            }
        } else if raw.to_str().is_none() {
            found.refused.push(format!("file {name}: its name is no text"));
        } else if is_region_part(&name) {
            // A part of a region in its own file was read with the region.
            let is_external = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mcc"));
            if !is_external {
                found.refused.push(format!("file {name}: a region of no dimension"));
            } else if !folders.contains(folder) {
                found.refused.push(format!("file {name}: a part of a region of no dimension"));
            }
        } else {
            found.files.push((name, path));
        }
    }
    Ok(())
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
        let regions = save::find(folder.path()).expect("a save");
        let found = other_files(folder.path(), &regions).expect("readable");
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
        expect![[r"
            elsewhere: it is neither a file nor a folder
            file mods/some/region/c.1.1.mcc: a part of a region of no dimension
            file mods/some/region/r.0.0.mca: a region of no dimension
            folder backups/world: it is a world of CherryGrove"]]
        .assert_eq(&found.refused.join("\n"));
    }

    #[test]
    fn a_folder_of_regions_has_no_other_files() {
        let folder = tempfile::tempdir().expect("a folder");
        touch(folder.path(), &["r.0.0.mca", "readme.txt"]);
        let regions = save::find(folder.path()).expect("regions");
        assert_eq!(other_files(folder.path(), &regions).expect("readable"), OtherFiles::default());
        let file = folder.path().join("r.0.0.mca");
        let regions = save::find(&file).expect("a region");
        assert_eq!(other_files(&file, &regions).expect("readable"), OtherFiles::default());
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
