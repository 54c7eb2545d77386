//! The look at a directory before RocksDB opens anything in it.
//!
//! RocksDB follows links, waits for ever at a named pipe, and takes its next file number from any name that looks like
//! one of its own: after a file with the number 2⁶² no table can be named. So a directory with such a file is refused,
//! and the file is named. Files with other names are none of ours, and are not touched.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::path::Path;

use super::super::EngineError;
use super::manifest::Named;
use super::open::{self, CURRENT, corrupt_file};
use super::{floor, held, lock, log_scan};

/// How far the number of a file may be above those that the manifest knows. Between two edits of a manifest some files
/// are made; by no opening can a stray file of the next one use up the numbers.
const MAX_AHEAD: u64 = 1 << 20;
/// Numbers from here on are no file numbers of RocksDB, which keeps two bits of 64 for something else.
const MAX_NUMBER: u64 = 1 << 61;

/// A kind of numbered file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbered {
    Log,
    Table,
    Blob,
    /// Manifests, options and temporary files.
    Other,
}

/// The numbered files of a directory, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    files: Vec<(String, Numbered, Option<u64>)>,
}

impl Listing {
    /// Lists a directory. A directory that cannot be listed has no files here: what opens it says why.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if a name of the engine is no regular file; [`EngineError::Io`].
    pub(super) fn look(dir: &Path) -> Result<Self, EngineError> {
        let Ok(entries) = fs::read_dir(dir) else { return Ok(Self::default()) };
        let io = |source| EngineError::Io { path: dir.to_path_buf(), source };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let numbered = numbered(&name);
            if numbered.is_none() && !is_fixed(&name) {
                continue;
            }
            // The kind of the entry itself: a link is not followed.
            let kind = match entry.file_type() {
                Ok(kind) => kind,
                // A log may be deleted after the directory was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(EngineError::Io { path: entry.path(), source }),
            };
            // Whether a note of damage can be read is for its reader: without one all families are held.
            if kind.is_dir() && [held::FILE, held::NEW_FILE].contains(&&*name) {
                continue;
            }
            if !kind.is_file() {
                let advice = match numbered {
                    None if name != CURRENT => "remove it",
                    _ => "put the file itself in its place, or move it away if it is none of the world's",
                };
                let problem = format!("it is {}, not a file, and was not opened: {advice}", Kind(kind));
                return Err(corrupt_file(&name, 0, &problem));
            }
            if let Some((kind, number)) = numbered {
                files.push((name, kind, number));
            }
        }
        files.sort_unstable_by(|(a, ..), (b, ..)| (a.len(), a).cmp(&(b.len(), b)));
        Ok(Self { files })
    }

    /// Checks that no file would use up the numbers of new files.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] with the name of the file.
    pub(super) fn check_numbers(&self, manifest: &str, named: Option<&Named>) -> Result<(), EngineError> {
        let next = named.map_or(1 << 40, |named| named.next_file);
        if next >= MAX_NUMBER {
            let problem =
                format!("its next file number is {next}, which is out of range: restore a checkpoint");
            return Err(corrupt_file(manifest, 0, &problem));
        }
        let is_stray = |number: Option<u64>| number.is_none_or(|number| number > next + MAX_AHEAD);
        let stray = self.files.iter().find(|(name, _, number)| name != manifest && is_stray(*number));
        stray.map_or(Ok(()), |(name, ..)| {
            let problem =
                "its number is out of range, so the world did not make it: it is a stray file, move it away";
            Err(corrupt_file(name, 0, &problem))
        })
    }

    /// The logs that RocksDB reads, from the oldest to the newest.
    pub(super) fn logs(&self, named: Option<&Named>) -> Vec<String> {
        let is_used = |number: u64| named.is_none_or(|named| !named.is_obsolete_log(number));
        let logs = self.files.iter().filter_map(|(name, kind, number)| {
            (*kind == Numbered::Log && number.is_some_and(is_used)).then_some((*number, name))
        });
        let mut logs: Vec<_> = logs.collect();
        logs.sort_unstable();
        logs.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// The logs, tables and blob files that the manifest does not name and RocksDB will not read.
    pub(super) fn strays(&self, named: &Named) -> Vec<String> {
        let is_stray = |kind: Numbered, number: u64| match kind {
            Numbered::Log => named.is_obsolete_log(number),
            Numbered::Table => !named.names_table(number),
            Numbered::Blob => !named.names_blob(number),
            Numbered::Other => false,
        };
        let strays =
            self.files.iter().filter(|(_, kind, number)| number.is_some_and(|it| is_stray(*kind, it)));
        strays.map(|(name, ..)| name.clone()).collect()
    }

    /// Removes the logs without a commit that an opening made before it failed.
    pub(super) fn remove_later_empty_logs(&self, dir: &Path) {
        let Ok(now) = Self::look(dir) else { return };
        let later = now.files.iter().filter(|file| file.1 == Numbered::Log && !self.files.contains(file));
        for (name, ..) in later {
            let path = dir.join(name);
            let is_empty =
                log_scan::scan_file(&path, u64::MAX).is_ok_and(|end| end.is_ok_and(|end| !end.holds_commits));
            if is_empty && let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, log = name, "the empty log of a failed opening could not be removed");
            }
        }
    }

    /// Whether there are files with rows that are newer than all that the manifest knows.
    pub(super) fn is_newer_than(&self, named: &Named) -> bool {
        self.files.iter().any(|(_, kind, number)| {
            *kind != Numbered::Other && number.is_some_and(|number| number >= named.next_file)
        })
    }
}

/// What a manifest names in its first bytes. `None` if it cannot be read, or a record of it is unknown.
pub(super) fn named(dir: &Path, manifest: &str, len_bytes: u64) -> Option<Named> {
    Named::read(&dir.join(manifest), len_bytes).ok().flatten()
}

/// The logs, tables and blob files of a directory that its manifest does not name. None if that is not known.
///
/// # Errors
/// As [`Listing::look`].
pub(super) fn strays(dir: &Path) -> Result<Vec<String>, EngineError> {
    let listing = Listing::look(dir)?;
    let named = open::current_manifest(dir).ok().and_then(|manifest| named(dir, &manifest, u64::MAX));
    Ok(named.map_or_else(Vec::new, |named| listing.strays(&named)))
}

/// Whether a file of the directory is a write-ahead log.
pub(super) fn is_log(name: &OsStr) -> bool {
    name.to_str().and_then(log_number).is_some()
}

/// The number of a log.
pub(super) fn log_number(name: &str) -> Option<u64> {
    numbered(name).filter(|(kind, _)| *kind == Numbered::Log).and_then(|(_, number)| number)
}

/// The number in the name of any numbered file; 0 for other names, which no file of RocksDB has.
pub(super) fn number_of(name: &str) -> u64 {
    numbered(name).and_then(|(_, number)| number).unwrap_or(0)
}

/// The kind and number of a name that RocksDB reads as a numbered file; no number if it has too many digits.
fn numbered(name: &str) -> Option<(Numbered, Option<u64>)> {
    let (digits, kind) = if let Some((digits, end)) = name.split_once('.') {
        let kind = match end {
            "log" => Numbered::Log,
            "sst" | "ldb" => Numbered::Table,
            "blob" => Numbered::Blob,
            "dbtmp" => Numbered::Other,
            _ => return None,
        };
        (digits, kind)
    } else {
        let (start, digits) = name.rsplit_once('-')?;
        if !matches!(start, "MANIFEST" | "OPTIONS" | "METADB" | "COMPACTION_PROGRESS") {
            return None;
        }
        (digits, Numbered::Other)
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| (kind, digits.parse().ok()))
}

/// Whether RocksDB or the engine opens a file of this name.
fn is_fixed(name: &str) -> bool {
    [CURRENT, "LOCK", "IDENTITY", floor::FILE_NAME, held::FILE, held::NEW_FILE, lock::FILE_NAME]
        .contains(&name)
}

/// Opens a file of the engine for reading and writing. Does not follow a link and does not wait at a pipe, also if one
/// took the file's place since the directory was looked at.
///
/// # Errors
/// Those of the operating system, and [`io::ErrorKind::InvalidInput`] for what is no regular file.
pub(super) fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

struct Kind(FileType);

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_symlink() {
            "a link"
        } else if self.0.is_dir() {
            "a directory"
        } else {
            "a pipe, socket or device"
        })
    }
}

#[cfg(test)]
mod tests;
