//! The files of a save, and what tells this save from another.

use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::anvil::save::{OtherFiles, RegionFile, Save, SaveError};

/// A save's files.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) save: Save,
    /// All other files.
    pub(super) others: OtherFiles,
    /// Each region file's path from the save's folder on, with `/` on every system.
    pub(super) names: Vec<String>,
    /// Changes with the region files' names, lengths and times of change; not with the place of the save.
    pub(super) identity: String,
    stamps: Vec<Stamp>,
}

/// What tells that a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    len_bytes: u64,
    changed: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(file: &Metadata) -> Self {
        // A system without times of change tells files apart by their lengths.
        Self { len_bytes: file.len(), changed: file.modified().ok() }
    }
}

impl Source {
    pub(super) fn new(save: Save) -> Result<Self, SaveError> {
        let mut hash = Sha256::new();
        let (mut names, mut stamps) = (Vec::with_capacity(save.regions.len()), Vec::new());
        for file in &save.regions {
            let name = name_in(&save, &file.path);
            let metadata = fs::metadata(&file.path)
                .map_err(|source| SaveError::Io { path: file.path.clone(), source })?;
            let stamp = Stamp::of(&metadata);
            let changed = stamp.changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let changed = changed.map_or(0, |time| time.as_nanos());
            hash.update(format!("{name}\n{}\n{}\n{changed}\n", file.dimension, metadata.len()));
            names.push(name);
            stamps.push(stamp);
        }
        let identity = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { others: save.other_files()?, save, names, identity, stamps })
    }

    /// A file's path from the save's folder on, with `/` on every system.
    pub(super) fn name(&self, path: &Path) -> String {
        name_in(&self.save, path)
    }

    pub(super) fn files(&self) -> &[RegionFile] {
        &self.save.regions
    }

    /// Leaves out all but a dimension and its files.
    pub(super) fn only(&mut self, dimension: &str) -> Result<(), SaveError> {
        self.save.only(dimension);
        self.others = self.save.other_files()?;
        Ok(())
    }

    /// Whether a region file is another one than when the import began.
    pub(super) fn is_changed(&self, file: usize) -> bool {
        let now = fs::metadata(&self.save.regions[file].path).map(|file| Stamp::of(&file));
        now.ok() != self.stamps.get(file).copied()
    }
}

fn name_in(save: &Save, path: &Path) -> String {
    let folder = if save.path.is_file() { save.path.parent().unwrap_or(Path::new("")) } else { &save.path };
    let path = path.strip_prefix(folder).unwrap_or(path);
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}
