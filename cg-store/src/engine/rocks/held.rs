//! Families whose files RocksDB rewrites no more, because one of them is damaged.
//!
//! RocksDB takes no writes any more once a compaction has read a damaged block, and there is no way to have it leave one
//! file out. So as soon as damage is met, by a read or by a compaction, the compactions of that family end: its files
//! stay as they are, new ones come on top, and everything else goes on. RocksDB holds back no writer because of that.
//!
//! Which families these are outlives the process in the file `DAMAGED`, a line for each: its name and what was said.
//! Who has replaced the damaged file deletes it.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use cg_format::key::Family;
use rocksdb::ErrorKind;

use super::super::{EngineError, Place, Table};
use super::{Access, RocksEngine, failure, open, tuning};

/// The file that names the families.
pub(super) const FILE: &str = "DAMAGED";

/// Which families of a directory are held.
pub(super) fn read(dir: &Path) -> Result<BTreeSet<Family>, EngineError> {
    let path = dir.join(FILE);
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(source) => return Err(EngineError::Io { path, source }),
    };
    let named =
        |line: &str| Family::ALL.into_iter().find(|family| line.split(' ').next() == Some(family.name()));
    Ok(text.lines().filter_map(named).collect())
}

/// Adds a family.
fn note(dir: &Path, family: Family, message: &str) -> Result<(), EngineError> {
    let path = dir.join(FILE);
    let line = format!("{} {}\n", family.name(), message.replace('\n', " "));
    let write = || {
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        file.write_all(line.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|source| EngineError::Io { path: path.clone(), source })?;
    open::sync_dir(dir)
}

/// Copies what is noted, if anything is, into a directory that has the same files.
pub(super) fn copy(dir: &Path, to: &Path) -> Result<(), EngineError> {
    let (from, path) = (dir.join(FILE), to.join(FILE));
    match fs::copy(from, &path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(EngineError::Io { path, source }),
        _ => Ok(()),
    }
}

/// The name of the sorted file that a message of RocksDB speaks of.
fn table_in(message: &str) -> Option<&str> {
    let names = message.split(['/', '\\', ' ', ',']);
    names.rev().find(|name| {
        let number = name.strip_suffix(".sst").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}

impl RocksEngine {
    /// Ends the compactions of a family in which something is damaged. What fails of that is logged: the next
    /// compaction may then make the engine read-only.
    fn hold(&self, family: Family, message: &str) {
        if self.access == Access::ReadOnly || !self.held.lock().insert(family) {
            return;
        }
        tracing::error!(family = family.name(), message, dir = %self.dir.display(), "files are damaged; they are rewritten no more");
        let ended = self.db.set_options_cf(self.family(family), &[("disable_auto_compactions", "true")]);
        if let Err(error) = ended {
            tracing::warn!(%error, "compactions could not be ended");
        }
        if let Err(error) = note(&self.dir, family, message) {
            tracing::warn!(%error, "the damaged family could not be noted");
        }
    }

    /// Whether RocksDB rewrites the files of a family no more.
    pub(super) fn is_held(&self, family: Family) -> bool {
        self.held.lock().contains(&family)
    }

    /// An error of a read, after what follows from it.
    pub(super) fn noticed(&self, family: Family, error: EngineError) -> EngineError {
        if let EngineError::Corrupt { message, .. } = &error {
            self.hold(family, message);
        }
        error
    }

    /// What an error of a write means. If RocksDB refuses writes because a compaction has met damage, that says where.
    pub(super) fn writing(&self, operation: &'static str, error: rocksdb::Error) -> EngineError {
        if error.kind() != ErrorKind::Corruption {
            return failure::of(operation, error);
        }
        let message = error.into_string();
        let table = table_in(&message).and_then(|name| {
            let files = self.db.live_files().ok()?;
            files.into_iter().find(|file| file.name.trim_start_matches('/') == name)
        });
        let family_of = |name: &str| Family::ALL.into_iter().find(|family| family.name() == name);
        let found = table.and_then(|table| Some((family_of(&table.column_family_name)?, table)));
        let place = if let Some((family, table)) = found {
            self.hold(family, &message);
            let [from, to] = [table.start_key, table.end_key].map(|key| key.unwrap_or_default().into());
            let name = table.name.trim_start_matches('/').to_owned();
            Place::Table(Box::new(Table { name, family, from, to }))
        } else {
            // It is a blob file, of which nobody says whose it is.
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
        for none in ["", "no file", ".sst", "/x.sst"] {
            assert_eq!(table_in(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), BTreeSet::new());
        note(dir.path(), Family::ChunkL0, "bad\nblock").unwrap();
        note(dir.path(), Family::Index, "").unwrap();
        fs::write(dir.path().join("other"), "entity x").unwrap();
        assert_eq!(read(dir.path()).unwrap(), [Family::ChunkL0, Family::Index].into());
        fs::write(dir.path().join(FILE), "nothing known\n\u{0}\nentity\n").unwrap();
        assert_eq!(read(dir.path()).unwrap(), [Family::Entity].into());
    }
}
