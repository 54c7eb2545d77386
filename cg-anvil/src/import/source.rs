//! The files of a save, and what tells this save from another.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::save::{FOLDERS_OF_26, Layout, OtherFiles, RegionFile, Save, SaveError};

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
    /// Where the save is.
    pub(super) path: String,
    stamps: Vec<Stamp>,
}

/// Length and time of a file, by which a change of it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    len_bytes: u64,
    /// Seconds since 1970 and nanoseconds.
    changed: Option<(i64, u32)>,
}

impl Stamp {
    pub(super) fn of(file: &Metadata) -> Self {
        // A system without times of change tells files apart by their lengths.
        let changed = file.modified().ok().map(|time| match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (after.as_secs().cast_signed(), after.subsec_nanos()),
            Err(before) => {
                let before = before.duration();
                (-before.as_secs().cast_signed(), before.subsec_nanos())
            }
        });
        Self { len_bytes: file.len(), changed }
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
            hash.update(serde_json::to_vec(&(&name, &file.dimension, stamp)).expect("plain data is JSON"));
            names.push(name);
            stamps.push(stamp);
        }
        let identity = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let path = fs::canonicalize(&save.path).unwrap_or_else(|_| save.path.clone());
        let path = path.to_string_lossy().into_owned();
        Ok(Self { others: save.other_files()?, save, names, identity, path, stamps })
    }

    /// A file's path from the save's folder on, with `/` on every system.
    pub(super) fn name(&self, path: &Path) -> String {
        name_in(&self.save, path)
    }

    pub(super) fn files(&self) -> &[RegionFile] {
        &self.save.regions
    }

    /// The layout in which the game of the save looks for players.
    pub(super) fn layout(&self) -> Layout {
        let is_of_26 = |name: &str| {
            FOLDERS_OF_26
                .iter()
                .any(|folder| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
        };
        let of_26 = || self.others.files.iter().any(|(name, _)| is_of_26(name));
        match &self.save.level {
            Some(level) => Layout::of_level(level, of_26()),
            None if of_26() => Layout::Dimensions,
            None => Layout::Old,
        }
    }

    /// Leaves out all but a dimension and its files.
    pub(super) fn only(&mut self, dimension: &str) -> Result<(), SaveError> {
        let paths = self.save.regions.iter().map(|file| file.path.clone());
        let mut known: HashMap<_, _> = paths.zip(self.names.drain(..).zip(self.stamps.drain(..))).collect();
        self.save.only(dimension);
        let left = self.save.regions.iter().filter_map(|file| known.remove(&file.path));
        (self.names, self.stamps) = left.unzip();
        self.others = self.save.other_files()?;
        Ok(())
    }

    /// Stamp of a region file when it was listed.
    pub(super) fn stamp(&self, file: usize) -> Stamp {
        self.stamps.get(file).copied().unwrap_or_default()
    }

    /// Whether a region file is another one than it was.
    pub(super) fn is_changed(&self, file: usize, was: Stamp) -> bool {
        let now = fs::metadata(&self.save.regions[file].path).map(|file| Stamp::of(&file));
        now.ok() != Some(was)
    }
}

fn name_in(save: &Save, path: &Path) -> String {
    let folder = if save.path.is_file() { save.path.parent().unwrap_or(Path::new("")) } else { &save.path };
    let path = path.strip_prefix(folder).unwrap_or(path);
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// A file's bytes and whether it was changed meanwhile, or their count when it is over the limit.
pub(super) fn read(path: &Path, limit_bytes: u64) -> io::Result<Result<(Vec<u8>, bool), u64>> {
    // It may have become something else since it was listed: opening a pipe waits for its writer.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file any more"));
    }
    let file = File::open(path)?;
    let before = file.metadata()?;
    if before.len() > limit_bytes {
        return Ok(Err(before.len()));
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    (&file).take(limit_bytes + 1).read_to_end(&mut bytes)?;
    let found_bytes = bytes.len() as u64;
    if found_bytes > limit_bytes {
        return Ok(Err(found_bytes));
    }
    let is_changed = found_bytes != before.len() || Stamp::of(&before) != Stamp::of(&file.metadata()?);
    Ok(Ok((bytes, is_changed)))
}
