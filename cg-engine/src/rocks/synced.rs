//! How much of the newest log and of the manifest is known to be on the disk.
//!
//! A power cut may leave any part of what was never synced: a later page without an earlier one, or some sectors
//! of a page. What was synced is there. So the lengths tell what a power cut can have done from what it cannot.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::listing::{self, is_log};
use super::open::current_manifest;

/// Bytes of a file that begin it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FileEnd {
    /// The number in the file's name; 0 for no file.
    pub(super) number: u64,
    /// Its bytes up to here.
    pub(super) len_bytes: u64,
}

/// The synced bytes of both files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Synced {
    /// Of the newest log. Logs with lower numbers were synced to their ends.
    pub(super) log: FileEnd,
    /// Of the manifest.
    pub(super) manifest: FileEnd,
}

impl Synced {
    /// The synced bytes of a log; `u64::MAX` for all of it, also where nothing is known.
    pub(super) fn of_log(self, number: u64) -> u64 {
        match self.log.number {
            0 => u64::MAX,
            newest if number < newest => u64::MAX,
            newest if number == newest => self.log.len_bytes,
            _ => 0,
        }
    }

    /// The synced bytes of a manifest, if they are known.
    pub(super) fn of_manifest(self, number: u64) -> Option<u64> {
        (number == self.manifest.number).then_some(self.manifest.len_bytes)
    }
}

/// The newest log of a directory.
pub(super) struct NewestLog(Option<(u64, PathBuf)>);

impl NewestLog {
    /// Lists the directory, which takes as long as it has files.
    pub(super) fn find(dir: &Path) -> Self {
        let names = fs::read_dir(dir).into_iter().flatten().flatten();
        let logs = names.filter(|entry| is_log(&entry.file_name()));
        let numbered =
            logs.map(|entry| (listing::number_of(&entry.file_name().to_string_lossy()), entry.path()));
        Self(numbered.max_by_key(|(number, _)| *number))
    }

    /// Its bytes now, which a sync that begins afterwards covers. The caller keeps others from writing to it, so that it
    /// ends with a record. If RocksDB has begun another log meanwhile, this one was written to its end.
    pub(super) fn end(&self) -> FileEnd {
        let Self(Some((number, path))) = self else { return FileEnd::default() };
        let found = path.metadata();
        found.map_or(FileEnd::default(), |found| FileEnd { number: *number, len_bytes: found.len() })
    }
}

/// The manifest of an engine that is open for writing, which RocksDB's threads write.
///
/// RocksDB syncs each change before anything relies on it. The length of the file may include a change that is written and
/// not synced yet. So a length counts once a later sync of the same file has succeeded.
#[derive(Debug, Default)]
pub(super) struct ManifestSync {
    /// Stays open: the system reports a page that could not be written to those who had the file open then.
    file: Option<(u64, File)>,
    /// The length to be confirmed by the next sync.
    seen: FileEnd,
    synced: FileEnd,
}

impl ManifestSync {
    /// Takes the manifest of a directory that was just opened: RocksDB has written and synced all of it.
    pub(super) fn begun(dir: &Path) -> Self {
        let mut begun = Self::default();
        begun.confirm(dir);
        Self { synced: begun.seen, ..begun }
    }

    /// Syncs the manifest and confirms the length that was seen before. The caller knows that no write of RocksDB has
    /// failed.
    pub(super) fn confirm(&mut self, dir: &Path) -> FileEnd {
        let number = current_manifest(dir).map_or(0, |name| listing::number_of(&name));
        if self.file.as_ref().is_none_or(|(open, _)| *open != number) {
            // RocksDB has begun another one.
            let path = dir.join(format!("MANIFEST-{number:06}"));
            *self = Self { file: File::open(path).ok().map(|file| (number, file)), ..Self::default() };
        }
        let Some((number, file)) = &self.file else { return FileEnd::default() };
        let len_bytes = file.metadata().map_or(0, |found| found.len());
        if file.sync_data().is_ok() {
            self.synced = self.seen;
            self.seen = FileEnd { number: *number, len_bytes };
        }
        self.synced
    }

    /// The bytes that were confirmed last.
    pub(super) const fn synced(&self) -> FileEnd {
        self.synced
    }
}
