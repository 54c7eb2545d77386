//! Families whose files RocksDB rewrites no more, because one of them is damaged.
//!
//! RocksDB takes no writes any more once a compaction has read a damaged block, and there is no way to have it leave one
//! file out. So as soon as damage is met, by a read or by a compaction, the compactions of that family end: its files
//! stay as they are, new ones come on top, and everything else goes on. RocksDB holds back no writer because of that.
//!
//! Which families these are outlives the process in the file `DAMAGED`, a line for each: its name and what was said.
//! The operator deletes it after replacing the damaged file. A family whose damage was in values, in blob files, is released by the next
//! compaction that is asked for when all of its values can be read.

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
/// What it is written as before it takes the place of the one before.
const NEW_FILE: &str = "DAMAGED.new";

/// The families that are held, and what was said of each.
pub(super) type Held = BTreeMap<Family, String>;

/// Which families of a directory are held: all, if the file that names them cannot be read.
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

/// Writes which families are held, if any is or was, into a directory that has their files: all of it or nothing.
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
        let mut file = File::create(&new)?;
        file.write_all(lines.concat().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    write().map_err(|source| EngineError::Io { path: path.clone(), source })?;
    open::sync_dir(dir)
}

/// The name of the sorted file that a message of RocksDB speaks of.
pub(super) fn table_in(message: &str) -> Option<&str> {
    let names = message.split(['/', '\\', ' ', ',', ':']);
    names.rev().find(|name| {
        let number = name.strip_suffix(".sst").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Whether a message of RocksDB is of a value in a blob file, whose key was read from a sound block.
pub(super) fn is_of_blob(message: &str) -> bool {
    table_in(message).is_none() && message.to_ascii_lowercase().contains("blob")
}

impl RocksEngine {
    /// Ends the compactions of a family in which something is damaged. What fails of that is logged: the next
    /// compaction may then make the engine read-only.
    fn hold(&self, family: Family, message: &str) {
        let mut held = self.held.lock();
        if self.access == Access::ReadOnly || held.contains_key(&family) {
            return;
        }
        held.insert(family, message.to_owned());
        tracing::error!(family = family.name(), message, dir = %self.dir.display(), "files are damaged; they are rewritten no more");
        let ended = self.db.set_options_cf(self.family(family), &[("disable_auto_compactions", "true")]);
        if let Err(error) = ended {
            tracing::warn!(%error, "compactions could not be ended");
        }
        if let Err(error) = write(&self.dir, &held) {
            tracing::warn!(%error, "the damaged family could not be noted");
        }
    }

    /// Lets a family go that is held because of values in blob files, if all of its values are sound now: compactions read
    /// no value that was deleted or overwritten. Of a sorted file they read every block, so its family stays held. Says
    /// whether the family is held no more.
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
        let mut held = self.held.lock();
        held.remove(&family);
        write(&self.dir, &held)?;
        let resumed = self.db.set_options_cf(self.family(family), &[("disable_auto_compactions", "false")]);
        resumed.map_err(|error| failure::of("set an option", error))?;
        Ok(true)
    }

    /// Whether RocksDB rewrites the files of a family no more.
    pub(super) fn is_held(&self, family: Family) -> bool {
        self.held.lock().contains_key(&family)
    }

    /// An error of a read, after what follows from it.
    pub(super) fn noticed(&self, family: Family, error: EngineError) -> EngineError {
        if let EngineError::Corrupt { message, .. } = &error {
            self.hold(family, message);
        }
        error
    }

    /// An error of a scan, with the sorted file that it is about if it names one.
    pub(super) fn in_table(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::Corrupt { place: Place::Family(family), message } => {
                let table = self.table(&message).map(|table| Place::Table(Box::new(table)));
                EngineError::Corrupt { place: table.unwrap_or(Place::Family(family)), message }
            }
            other => other,
        }
    }

    /// The sorted file that a message of RocksDB speaks of.
    fn table(&self, message: &str) -> Option<Table> {
        let name = table_in(message)?;
        // To find the end of a gap, scans meet the same file again and again.
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

    /// What an error of a write means. If RocksDB refuses writes because a compaction has met damage, that says where.
    pub(super) fn writing(&self, operation: &'static str, error: rocksdb::Error) -> EngineError {
        if error.kind() != ErrorKind::Corruption {
            return failure::of(operation, error);
        }
        let message = error.into_string();
        let place = if let Some(table) = self.table(&message) {
            self.hold(table.family, &message);
            Place::Table(Box::new(table))
        } else {
            // It is a blob file, and its family is unknown.
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
        // A line that was cut off, as an older release left it at a power cut, takes no other with it.
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
