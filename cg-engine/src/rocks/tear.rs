//! The unsynced ends of the manifest and of the logs that a power cut left torn, and how they are cut.
//!
//! No commit may follow one that is missing. So the logs after a torn one are removed with its end.
//! RocksDB does not do this by itself: it refuses some tears, and reads on after others.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::path::Path;

use cg_format::frame::Version;

use super::super::EngineError;
use super::listing::{self, Listing, is_log, number_of};
use super::log_parts;
use super::log_scan::{self, LogEnd, LogProblem, Tear};
use super::missing;
use super::open::{corrupt_file, scan, sync_dir};
use super::synced::Synced;

/// What is cut from the files of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tears {
    /// Names, and the bytes that are kept: none of a log after a torn one.
    ends: Vec<(String, u64)>,
    /// The logs that hold commits and are read.
    pub(super) logs: Vec<LogCommits>,
}

/// The commits of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogCommits {
    pub(super) name: String,
    pub(super) first: Version,
    pub(super) last: Version,
}

/// Records that are tried as the last one of a manifest.
const TRIED_RECORDS: usize = 64;

impl Tears {
    /// Reads the manifest and the logs to their ends.
    ///
    /// Where nothing is known to be synced, only the newest log that holds commits may end in an incomplete record. The
    /// manifest is synced before anything relies on it.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] for what no power cut does; errors of the disk.
    pub(super) fn find(dir: &Path, manifest: &str, synced: Synced) -> Result<Self, EngineError> {
        let mut tears = Self::default();
        let synced_bytes = synced.of_manifest(number_of(manifest));
        let end = scan(dir, manifest, synced_bytes.unwrap_or(u64::MAX))?;
        let is_short = synced_bytes.is_none_or(|synced_bytes| end.whole_bytes < synced_bytes);
        match (end.tear, synced_bytes) {
            (Some(Tear::Zeros), _) if is_short => {
                return Err(corrupt_file(manifest, end.whole_bytes, &LogProblem::Zeros));
            }
            (_, Some(synced_bytes)) if is_short => {
                return Err(missing::cut_manifest(manifest, end.whole_bytes, synced_bytes));
            }
            // RocksDB ignores the part of a record that the file ends in.
            (None | Some(Tear::Cut), _) => {}
            (Some(_), _) => tears.cut(dir, manifest, end),
        }
        // A change that was never synced may be cut, and then RocksDB reads the logs that it calls obsolete.
        let named = listing::named(dir, manifest, synced_bytes.unwrap_or(u64::MAX));
        let listing = Listing::look(dir)?;
        listing.check_numbers(manifest, named.as_ref())?;
        let mut torn: Option<(String, LogEnd)> = None;
        for name in listing.logs(named.as_ref()) {
            let end = scan(dir, &name, synced.of_log(number_of(&name)))
                .map_err(|error| missing::or_stray_log(&name, named.as_ref(), error))?;
            if let Some((torn, torn_end)) = torn.as_ref().filter(|_| end.holds_commits) {
                // Of logs that were not synced, a later one may have reached the disk and an earlier one not.
                let may_be_torn = (1..=number_of(torn)).contains(&synced.log.number);
                if !may_be_torn {
                    return Err(corrupt_file(torn, torn_end.whole_bytes, &LogProblem::CommitsBehindTear));
                }
                tears.drop_log(&name, end);
                continue;
            }
            if let Some((first, last)) = end.commits {
                tears.logs.push(LogCommits { name: name.clone(), first, last });
            }
            match end.tear {
                None => {}
                Some(Tear::Cut) => torn = Some((name, end)),
                Some(_) => {
                    tears.cut(dir, &name, end);
                    torn = Some((name, end));
                }
            }
        }
        if let Some((name, end)) = torn
            && tears.ends.iter().any(|(_, bytes)| *bytes == 0)
            && tears.end_of(&name).is_none()
        {
            // RocksDB would take what is cut off for the end of all logs, and the next one for damage.
            tears.cut(dir, &name, end);
        }
        Ok(tears)
    }

    fn cut(&mut self, dir: &Path, name: &str, end: LogEnd) {
        let (records, torn_bytes) =
            (log_parts::whole_records_after(&dir.join(name), end.whole_bytes), end.torn_bytes);
        let commits = if is_log(OsStr::new(name)) { records } else { 0 };
        tracing::warn!(
            file = name,
            at_bytes = end.whole_bytes,
            torn_bytes,
            commits,
            "the end of a file was never synced and is torn; it is cut"
        );
        self.ends.push((name.to_owned(), end.whole_bytes));
    }

    fn drop_log(&mut self, name: &str, end: LogEnd) {
        tracing::warn!(
            file = name,
            bytes = end.whole_bytes,
            commits = end.record_count,
            "a log that was never synced follows a torn one; it is left out"
        );
        self.ends.push((name.to_owned(), 0));
    }

    /// As these, with a manifest that ends before one of its last records, for each record that was not synced, the last
    /// first.
    ///
    /// RocksDB syncs each change before anything relies on it. If the sync fails, it may delete the files that the change
    /// names.
    pub(super) fn with_shorter_manifests(&self, dir: &Path, manifest: &str, synced: Synced) -> Vec<Self> {
        let Some(synced_bytes) = synced.of_manifest(number_of(manifest)) else { return Vec::new() };
        let starts = log_scan::record_starts(&dir.join(manifest), synced_bytes).unwrap_or_default();
        let shorter = |start: u64| {
            let mut ends = self.ends.clone();
            ends.retain(|(name, _)| name != manifest);
            ends.push((manifest.to_owned(), start));
            Self { ends, logs: self.logs.clone() }
        };
        starts.into_iter().rev().take(TRIED_RECORDS).map(shorter).collect()
    }

    /// How many bytes stay of a file; `None` for all.
    pub(super) fn end_of(&self, name: &str) -> Option<u64> {
        self.ends.iter().find(|(torn, _)| torn == name).map(|(_, end)| *end)
    }

    pub(super) fn is_none(&self) -> bool {
        self.ends.is_empty()
    }

    /// Cuts the files. Stopped at any point, what stays is found torn in the same way.
    pub(super) fn cut_files(&self, dir: &Path) -> Result<(), EngineError> {
        // The logs after the torn one first, from the last on: they would follow a log that looks whole.
        let mut gone: Vec<_> = self.ends.iter().filter(|(_, end)| *end == 0).collect();
        gone.sort_unstable_by_key(|(name, _)| std::cmp::Reverse(number_of(name)));
        for (name, _) in &gone {
            let path = dir.join(name);
            fs::remove_file(&path).map_err(|source| EngineError::Io { path, source })?;
            sync_dir(dir)?;
        }
        for (name, end) in self.ends.iter().filter(|(_, end)| *end > 0) {
            let path = dir.join(name);
            let cut = OpenOptions::new().write(true).open(&path).and_then(|file| {
                file.set_len(*end)?;
                file.sync_all()
            });
            cut.map_err(|source| EngineError::Io { path, source })?;
        }
        Ok(())
    }
}
