//! The files of a save, and what tells this save from another.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use crate::anvil::save::{self, OtherFiles, RegionFile, SaveError};

/// A save's files.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) files: Vec<RegionFile>,
    /// All other files.
    pub(super) others: OtherFiles,
    /// Each file's path from the save's folder on, with `/` on every system.
    pub(super) names: Vec<String>,
    /// Changes with the files' names, lengths and times of change; not with the place of the save.
    pub(super) identity: String,
}

impl Source {
    pub(super) fn new(save: &Path, files: Vec<RegionFile>) -> Result<Self, SaveError> {
        let folder = if save.is_file() { save.parent().unwrap_or(Path::new("")) } else { save };
        let mut hash = Sha256::new();
        let mut names = Vec::with_capacity(files.len());
        for file in &files {
            let path = file.path.strip_prefix(folder).unwrap_or(&file.path);
            let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
            let name = parts.join("/");
            let metadata = fs::metadata(&file.path)
                .map_err(|source| SaveError::Io { path: file.path.clone(), source })?;
            // A system without times of change tells saves apart by their lengths.
            let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let changed = changed.map_or(0, |time| time.as_nanos());
            hash.update(format!("{name}\n{}\n{}\n{changed}\n", file.dimension, metadata.len()));
            names.push(name);
        }
        let identity = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { others: save::other_files(save, &files)?, files, names, identity })
    }
}
