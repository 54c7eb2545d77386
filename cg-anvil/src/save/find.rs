//! Finding the region files of a save.

use std::path::{Path, PathBuf};

use super::error::SaveError;
use super::file::LEVEL;
use super::forms::{self, Form};
use super::layout::{FOLDERS_OF_26, Layout, dimension_folder};
use super::level::level;
use super::listing::{Save, Taken};
use super::regions::{self, Bare, Found, REGION_FOLDERS};
use super::server::ServerFolder;
use super::strays;

/// Lists the region files of a save, of a dimension's folder, of a folder of region files, or the one file that is named.
///
/// A folder of a save that is a dimension's own, such as `DIM-1` or `dimensions/minecraft/the_end`, is that dimension, and
/// so is `region/` in it or a file there. Files of any other folder without a save around it belong to [`OVERWORLD`](super::OVERWORLD),
/// unless two of them have the same place in the name: then what stands before `r.X.Z.mca` names a dimension of its own,
/// `file:<prefix>`, so that no column replaces another. Copies of a file beside them, such as `r.0.0 (1).mca`, are left out.
/// In the folder of a dimension a region is `r.X.Z.mca` as the game writes it, and every other file is a file of the save.
///
/// Opens folders, `level.dat`, and the headers of region files of dimensions that both layouts hold.
///
/// # Errors
/// [`SaveError`].
pub fn find(path: &Path) -> Result<Save, SaveError> {
    let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    if ending.is_some_and(|ending| ending == "schem" || ending == "schematic") && path.is_file() {
        return Err(SaveError::Schematic(path.to_owned()));
    }
    if path.is_file() {
        if let Some(form) = Form::of_file(path) {
            return Err(SaveError::OtherForm { path: path.to_owned(), form });
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let file = regions::listed(vec![path.to_owned()], own_dimension(folder));
        return Ok(Save::of(path, file, None));
    }
    let has_level = path.join(LEVEL).is_file();
    let own = if has_level { None } else { own_dimension(path) };
    let bare = regions::files(path, "mca")?;
    if let Some((dimension, layout)) = own {
        let mut found = Found::default();
        regions::of_dimension(path, &dimension, layout, &mut found)?;
        let is_bare = found.dimensions.is_empty();
        if !is_bare || path.join("data").is_dir() {
            let folder = dimension_folder(&dimension, layout).unwrap_or_default();
            if is_bare {
                found.files = regions::bare(bare, Some((dimension.clone(), layout))).files;
            }
            if let Some(other) = found.other_forms.first().filter(|_| found.files.is_empty()) {
                return Err(SaveError::OtherForm { path: path.to_owned(), form: other.form });
            }
            found.dimensions.insert((dimension, layout));
            let to = format!("{}/", folder.display());
            let mut save = Save::of(path, found.files, Some(Taken { from: Some(String::new()), to }));
            save.other_forms = found.other_forms;
            save.layouts = found.dimensions.into_iter().collect();
            return Ok(save);
        }
        let Bare { files, copies } = regions::bare(bare.clone(), Some((dimension, layout)));
        if !files.is_empty() {
            return Ok(Save { other_forms: forms::of_bare(path)?, copies, ..Save::of(path, files, None) });
        }
    }
    whole(path, bare)
}

/// A folder that is no dimension's own.
fn whole(path: &Path, bare: Vec<PathBuf>) -> Result<Save, SaveError> {
    let mut found = Found::default();
    regions::of_save(path, &mut found)?;
    let mut copies = Vec::new();
    if found.dimensions.is_empty() {
        // Beside the folders of dimensions they are files as others.
        let bare = regions::bare(bare, None);
        (found.files, copies) = (bare.files, bare.copies);
        found.other_forms.extend(forms::of_bare(path)?);
    }
    let level = level(path)?;
    if found.files.is_empty() {
        if let Some(other) = found.other_forms.first() {
            return Err(SaveError::OtherForm { path: path.to_owned(), form: other.form });
        }
        // A save whose folders are there but empty is a save with nothing in it.
        if found.dimensions.is_empty() && level.is_none() {
            if let Some(server) = ServerFolder::find(path).ok().flatten() {
                return Err(SaveError::Server(server));
            }
            return Err(SaveError::NotASave(path.to_owned()));
        }
    }
    let is_save = !found.dimensions.is_empty() || path.join(LEVEL).is_file();
    let taken = is_save.then(|| Taken { from: Some(String::new()), to: String::new() });
    let files_of_26 = FOLDERS_OF_26.iter().any(|folder| path.join(folder).is_dir());
    let looks = match &level {
        Some(level) => Layout::of_level(level, files_of_26),
        None if files_of_26 => Layout::Dimensions,
        None => Layout::Old,
    };
    let strays::Parted { live, strays, dropped } = strays::part(found.files, looks);
    if is_save {
        // They are files of it.
        copies.clear();
    }
    let other_forms = found.other_forms;
    let mut save = Save { strays, level, other_forms, copies, dropped, ..Save::of(path, live, taken) };
    for (dimension, layout) in found.dimensions {
        let has_regions = save.regions.iter().any(|file| file.dimension == dimension);
        // Of two empty folders, the one in which the game looks.
        if !has_regions && (layout == looks || !save.layouts.contains_key(&dimension)) {
            save.layouts.insert(dimension, layout);
        }
    }
    Ok(save)
}

/// The dimension whose own folder is a folder, or the folder around `region/`.
fn own_dimension(folder: &Path) -> Option<(String, Layout)> {
    let absolute = regions::absolute(folder).ok()?;
    let is_part = |name| REGION_FOLDERS.iter().any(|(part, _)| *part == name);
    let own = match absolute.file_name()?.to_str() {
        Some(name) if is_part(name) => absolute.parent()?,
        _ => &absolute,
    };
    // A save may have any name, and a dimension that of a part.
    if [own, &absolute].iter().any(|folder| folder.join(LEVEL).is_file()) {
        return None;
    }
    regions::dimension_of(own).or_else(|| regions::dimension_of(&absolute))
}
