//! The meaning of RocksDB's errors. RocksDB reports them as text that begins with their kind.

use std::path::Path;

use cg_format::key::Family;
use rocksdb::{Error, ErrorKind};

use super::super::{EngineError, Place};

/// Converts an error of an open.
pub(super) fn opening(dir: &Path, error: Error) -> EngineError {
    let text = error.as_ref();
    let held = text.contains("lock hold by current process") || text.contains("While lock file");
    if error.kind() == ErrorKind::IOError && held {
        let by = text.contains("by current process").then(std::process::id);
        return EngineError::Locked { dir: dir.to_path_buf(), by };
    }
    at(Place::Dir(dir.to_path_buf()), "open the engine", error)
}

/// Converts an error of reading one row.
pub(super) fn reading_row(family: Family, key: &[u8], error: Error) -> EngineError {
    let place = Place::Row { family, key: key.into() };
    at(place, "read a row", error)
}

/// Converts an error of reading an unknown place in a family.
pub(super) fn reading(family: Family, error: Error) -> EngineError {
    at(Place::Family(family), "scan a family", error)
}

/// Replaces the place of a damage error by the row that it is about.
pub(super) fn in_row(family: Family, key: &[u8], error: EngineError) -> EngineError {
    match error {
        EngineError::Corrupt { message, .. } => {
            EngineError::Corrupt { place: Place::Row { family, key: key.into() }, message }
        }
        other => other,
    }
}

/// Converts any other error.
pub(super) fn of(operation: &'static str, error: Error) -> EngineError {
    if error.as_ref().contains("No space left on device") {
        return EngineError::NoSpace { message: error.into_string() };
    }
    match error.kind() {
        ErrorKind::ShutdownInProgress => EngineError::Closed,
        _ => EngineError::Other { operation, source: Box::new(error) },
    }
}

/// Whether it is a failed sync of any file. RocksDB names the operation before the file.
pub(super) fn is_sync(error: &EngineError) -> bool {
    let said = error.to_string();
    ["While fsync", "While fdatasync", "While sync_file_range", "while fcntl(F_FULLFSYNC)"]
        .iter()
        .any(|sync| said.contains(sync))
}

/// Damage, if a checksum does not match or a file that the manifest names is absent. Otherwise any other error.
fn at(place: Place, operation: &'static str, error: Error) -> EngineError {
    if error.kind() == ErrorKind::Corruption || error.as_ref().contains("No such file") {
        return EngineError::Corrupt { place, message: error.into_string() };
    }
    of(operation, error)
}
