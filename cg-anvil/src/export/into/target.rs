//! The save that columns are put into, and where in it a dimension is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::IntoError;
use crate::save::{self, FOLDERS_OF_26, Layout, ServerFolder};

/// A save, as the game of its `level.dat` looks at it.
#[derive(Debug)]
pub(super) struct Target {
    /// The save's folder, without links.
    pub(super) root: PathBuf,
    /// The layout in which the game looks for dimensions.
    pub(super) looks: Layout,
    /// The `DataVersion` of `level.dat`; `None` before 1.9, and where it cannot be read.
    pub(super) data_version: Option<i32>,
    /// Whether `level.dat` could be read.
    has_level: bool,
    /// The dimension's folder, from the save's on.
    pub(super) folder: PathBuf,
}

impl Target {
    pub(super) fn find(save: &Path, dimension: &str) -> Result<Self, IntoError> {
        let failed = |source| IntoError::Io { path: save.to_owned(), source };
        if !save.join(save::LEVEL).is_file() {
            let saves = ServerFolder::find(save).ok().flatten().map_or_else(Vec::new, ServerFolder::saves);
            return Err(IntoError::NoSave { path: save.to_owned(), saves });
        }
        let root = save.canonicalize().map_err(failed)?;
        let level = save::level(&root)?;
        let files_of_26 = FOLDERS_OF_26.iter().any(|folder| root.join(folder).is_dir());
        let looks = match &level {
            Some(level) => Layout::of_level(level, files_of_26),
            None if files_of_26 => Layout::Dimensions,
            None => Layout::Old,
        };
        let folder = Some(dimension).filter(|dimension| save::stray_of(dimension).is_none());
        let folder = folder.and_then(|dimension| save::dimension_folder(dimension, looks));
        let folder = folder.ok_or_else(|| IntoError::NoFolder(dimension.to_owned()))?;
        let has_level = level.is_some();
        Ok(Self { root, looks, data_version: level.and_then(|level| level.data_version), has_level, folder })
    }

    /// Whether a column of this version is newer than the save's game.
    pub(super) fn is_older_than(&self, data_version: i32) -> bool {
        // Before 1.9 neither states one.
        let own = self.data_version.or(self.has_level.then_some(0));
        own.is_none_or(|own| own < data_version)
    }

    /// Says that it is not known which columns the save's game reads.
    pub(super) fn unread_level(&self) -> Option<String> {
        let text = "level.dat cannot be read, so that each column counts as newer than the save and is put only if newer ones are allowed";
        (!self.has_level).then(|| text.to_owned())
    }

    /// Says that a server keeps a dimension in a save of its own beside this one.
    pub(super) fn of_server(&self, dimension: &str) -> Option<String> {
        let ending = ServerFolder::ending(dimension)?;
        let mut beside = self.root.file_name()?.to_owned();
        beside.push(ending);
        let beside = self.root.with_file_name(beside);
        let is_there = beside.is_dir() && !self.root.join(&self.folder).join("region").is_dir();
        is_there.then(|| {
            format!(
                "the save had no {dimension}, and a server that keeps it in {} does not look into {}/",
                beside.display(),
                self.folder.join("region").display()
            )
        })
    }

    /// Whether a server keeps the nether or the end here, beside the save of the overworld. It looks for players in that alone.
    pub(super) fn is_beside_overworld(&self) -> Result<bool, IntoError> {
        let name = self.root.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let overworld = ServerFolder::overworld_of(name);
        let is_beside =
            overworld.is_some_and(|name| self.root.with_file_name(name).join(save::LEVEL).is_file());
        let own = save::dimension_folder(save::OVERWORLD, self.looks).unwrap_or_default();
        Ok(is_beside && !self.root.join(own).join("region").is_dir()
            || save::find(&self.root)?.only_nether_or_end().is_some())
    }

    /// Says that the save keeps a dimension where its game does not look.
    pub(super) fn misfit(&self, dimension: &str) -> Option<String> {
        let elsewhere = match self.looks {
            Layout::Old => Layout::Dimensions,
            Layout::Dimensions => Layout::Old,
        };
        let region = |folder: &Path| self.root.join(folder).join("region");
        let kept = save::dimension_folder(dimension, elsewhere).filter(|kept| *kept != self.folder)?;
        (region(&kept).is_dir() && !region(&self.folder).is_dir()).then(|| {
            format!(
                "the save keeps {dimension} in {}/, where the game of its level.dat does not look; what is put back is in {}/",
                kept.join("region").display(),
                self.folder.join("region").display()
            )
        })
    }
}
