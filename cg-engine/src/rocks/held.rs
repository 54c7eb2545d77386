//! Families whose files RocksDB no longer rewrites, because one of them is damaged.
//!
//! RocksDB refuses all writes after a compaction has read a damaged block, and a compaction cannot skip a file. So
//! when a read or a compaction finds damage, the compactions of that family end. Its files stay as they are, new
//! files are added, and everything else continues. RocksDB does not delay writers because of that.
//!
//! The file `DAMAGED` keeps these families across restarts. Each line has the name of a family and the message of the
//! error. The operator deletes the file after replacing the damaged file. If the damage was in values in blob files,
//! the next requested compaction releases the family when all of its values can be read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use cg_format::key::Family;
use rocksdb::{ErrorKind, ReadOptions};

use super::super::{ALL_KEYS, EngineError, Place, Table};
use super::{Access, RocksEngine, failure, open, tuning};

/// The file that names the families.
pub(super) const FILE: &str = "DAMAGED";
/// The name under which the new version is written. It is then renamed.
pub(super) const NEW_FILE: &str = "DAMAGED.new";

/// The held families, each with the message of its error.
pub(super) type Held = BTreeMap<Family, String>;

/// Reads which families of a directory are held. All are, if the file cannot be read.
pub(super) fn read(dir: &Path) -> Held {
    let path = dir.join(FILE);
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Held::new(),
        Err(error) => {
            tracing::error!(%error, path = %path.display(), "it is unknown which files are damaged; none is rewritten");
            let said = format!("{FILE} cannot be read: {error}");
            return Family::ALL.into_iter().map(|family| (family, said.clone())).collect();
        }
    };
    let named = |line: &str| {
        let (name, said) = line.split_once(' ').unwrap_or((line, ""));
        Some((Family::ALL.into_iter().find(|family| family.name() == name)?, said.to_owned()))
    };
    text.lines().filter_map(named).collect()
}

/// Writes which families are held into a directory with their files, atomically. Removes the file if none is held.
pub(super) fn write(dir: &Path, held: &Held) -> Result<(), EngineError> {
    let (path, new) = (dir.join(FILE), dir.join(NEW_FILE));
    if held.is_empty() {
        return match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(EngineError::Io { path, source }),
            _ => Ok(()),
        };
    }
    let line =
        |(family, said): (&Family, &String)| format!("{} {}\n", family.name(), said.replace('\n', " "));
    let lines: Vec<_> = held.iter().map(line).collect();
    let write = || {
        // Whatever has the name is not written to: it may be a link.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::create_new(&new)?;
        file.write_all(lines.concat().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    write().map_err(|source| EngineError::Io { path: path.clone(), source })?;
    open::sync_dir(dir)
}

/// The name of the sorted file in a message of RocksDB.
pub(super) fn table_in(message: &str) -> Option<&str> {
    let names = message.split(['/', '\\', ' ', ',', ':']);
    names.rev().find(|name| {
        let number = name.strip_suffix(".sst").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Whether a message of RocksDB is about a value in a blob file, whose key was read from an intact block.
pub(super) fn is_of_blob(message: &str) -> bool {
    table_in(message).is_none() && message.to_ascii_lowercase().contains("blob")
}

impl RocksEngine {
    /// Ends the compactions of a damaged family. If that fails, it is logged, and the next compaction may make the
    /// engine read-only.
    fn hold(&self, family: Family, message: &str) {
        let mut held = self.held.lock();
        if self.access == Access::ReadOnly || held.contains_key(&family) {
            return;
        }
        held.insert(family, message.to_owned());
        tracing::error!(family = family.name(), message, dir = %self.dir.display(), "files are damaged; they are rewritten no more");
        // After a failure of its own RocksDB compacts nothing.
        if self.is_sound()
            && let Err(error) = self.set_option(family, "disable_auto_compactions", "true")
        {
            tracing::warn!(%error, "compactions could not be ended");
        }
        if let Err(error) = write(&self.dir, &held) {
            tracing::warn!(%error, "the damaged family could not be noted");
        }
    }

    /// Releases a family that is held because of values in blob files, if all of its values are intact now. A
    /// compaction reads no value that was deleted or overwritten. But it reads every block of a sorted file, so a
    /// family with a damaged one stays held. Returns whether the family is not held any more.
    pub(super) fn let_go(&self, family: Family) -> Result<bool, EngineError> {
        let Some(said) = self.held.lock().get(&family).cloned() else { return Ok(true) };
        if !is_of_blob(&said) {
            return Ok(false);
        }
        let mut reads = ReadOptions::default();
        reads.fill_cache(false);
        let read = self.iterate(family, ALL_KEYS, reads, |_, _| ControlFlow::<()>::Continue(()));
        match read {
            Err(EngineError::Corrupt { .. }) => return Ok(false),
            read => read?,
        };
        self.check_background()?;
        let mut held = self.held.lock();
        held.remove(&family);
        write(&self.dir, &held)?;
        self.set_option(family, "disable_auto_compactions", "false")?;
        Ok(true)
    }

    /// Whether RocksDB no longer rewrites the files of a family.
    pub(super) fn is_held(&self, family: Family) -> bool {
        self.held.lock().contains_key(&family)
    }

    /// Holds the family if the error of a read is damage. Returns the error.
    pub(super) fn noticed(&self, family: Family, error: EngineError) -> EngineError {
        if let EngineError::Corrupt { message, .. } = &error {
            self.hold(family, message);
        }
        error
    }

    /// Adds the sorted file to the error of a scan, if its message names one.
    pub(super) fn in_table(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::Corrupt { place: Place::Family(family), message } => {
                let table = self.table(&message).map(|table| Place::Table(Box::new(table)));
                EngineError::Corrupt { place: table.unwrap_or(Place::Family(family)), message }
            }
            other => other,
        }
    }

    /// The sorted file that a message of RocksDB names.
    fn table(&self, message: &str) -> Option<Table> {
        let name = table_in(message)?;
        // To find the end of a gap, scans read the same file many times.
        let mut known = self.damaged_table.lock();
        if known.as_ref().is_none_or(|known| known.name != name) {
            let files = self.db.live_files().ok()?;
            let file = files.into_iter().find(|file| file.name.trim_start_matches('/') == name)?;
            let family = Family::ALL.into_iter().find(|family| family.name() == file.column_family_name)?;
            let [from, to] = [file.start_key, file.end_key].map(|key| key.unwrap_or_default().into());
            *known = Some(Table { name: name.to_owned(), family, from, to });
        }
        known.clone()
    }

    /// Converts an error of a write. If RocksDB refuses writes because a compaction found damage, the error names the
    /// place.
    pub(super) fn writing(&self, operation: &'static str, error: rocksdb::Error) -> EngineError {
        if error.kind() != ErrorKind::Corruption {
            return failure::of(operation, error);
        }
        let message = error.into_string();
        let place = if let Some(table) = self.table(&message) {
            self.hold(table.family, &message);
            Place::Table(Box::new(table))
        } else {
            // The damage is in a blob file of an unknown family.
            for family in Family::ALL {
                if tuning::blob_age_cutoff(family).is_some() {
                    self.hold(family, &message);
                }
            }
            Place::Dir(self.dir.clone())
        };
        let message = format!(
            "{message}; once the engine is opened again, files of this family are not rewritten any more and \
             everything else goes on: resume the world, let `cg verify` find what cannot be read, and set it aside or \
             restore a checkpoint"
        );
        EngineError::Corrupt { place, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_file() {
        let said =
            "Corruption: block checksum mismatch: stored = 1, type = 4  in /a/12.sst.d/db/000011.sst, block";
        assert_eq!(table_in("in /world/db/000011.sst offset 8142 size 404"), Some("000011.sst"));
        assert_eq!(table_in(said), Some("000011.sst"), "a directory may be called anything");
        let missing =
            "While open a file: /a/000013.sst: No such file  The file MANIFEST-000005 may be corrupted.";
        assert_eq!(table_in(missing), Some("000013.sst"));
        for none in ["", "no file", ".sst", "/x.sst"] {
            assert_eq!(table_in(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let names = || read(dir.path()).into_keys().collect::<Vec<_>>();
        write(dir.path(), &Held::new()).unwrap();
        assert!(names().is_empty() && !dir.path().join(FILE).exists());
        let held = Held::from([(Family::ChunkL0, "bad\nblock".to_owned()), (Family::Index, String::new())]);
        write(dir.path(), &held).unwrap();
        assert_eq!(
            read(dir.path()),
            [(Family::ChunkL0, "bad block".to_owned()), (Family::Index, String::new())].into()
        );
        assert!(!dir.path().join(NEW_FILE).exists());
        // An older release could leave an incomplete line at a power cut. It affects no other line.
        fs::write(dir.path().join(FILE), "nothing known\n\u{0}\nentity\nchunkl").unwrap();
        assert_eq!(names(), [Family::Entity]);
    }

    #[test]
    fn where_nobody_can_tell_all_are_held() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(FILE)).unwrap();
        let held = read(dir.path());
        assert_eq!(held.len(), Family::ALL.len());
        assert!(held[&Family::ChunkL0].starts_with("DAMAGED cannot be read: "), "{held:?}");
    }
}
