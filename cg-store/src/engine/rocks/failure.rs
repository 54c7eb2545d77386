//! What RocksDB's errors mean here. It reports them as text; the kind is the text's beginning.

use std::path::Path;

use cg_format::key::Family;
use rocksdb::{Error, ErrorKind};

use super::super::{EngineError, Place};

/// An error of an open.
pub(super) fn opening(dir: &Path, error: Error) -> EngineError {
    let text = error.as_ref();
    let held = text.contains("lock hold by current process") || text.contains("While lock file");
    if error.kind() == ErrorKind::IOError && held {
        let by = text.contains("by current process").then(std::process::id);
        return EngineError::Locked { dir: dir.to_path_buf(), by };
    }
    // A file that the manifest names and that is gone is damage too.
    if error.kind() == ErrorKind::Corruption || text.contains("No such file") {
        return EngineError::Corrupt { place: Place::Dir(dir.to_path_buf()), message: error.into_string() };
    }
    of("open the engine", error)
}

/// An error of reading one row.
pub(super) fn reading_row(family: Family, key: &[u8], error: Error) -> EngineError {
    match is_damage(&error) {
        true => EngineError::Corrupt {
            place: Place::Row { family, key: key.into() },
            message: error.into_string(),
        },
        false => of("read a row", error),
    }
}

/// An error of reading somewhere in a family.
pub(super) fn reading(family: Family, error: Error) -> EngineError {
    match is_damage(&error) {
        true => EngineError::Corrupt { place: Place::Family(family), message: error.into_string() },
        false => of("scan a family", error),
    }
}

/// Any other error.
pub(super) fn of(operation: &'static str, error: Error) -> EngineError {
    if error.as_ref().contains("No space left on device") {
        return EngineError::NoSpace { message: error.into_string() };
    }
    match error.kind() {
        ErrorKind::ShutdownInProgress => EngineError::Closed,
        _ => EngineError::Other { operation, source: Box::new(error) },
    }
}

/// A checksum that does not fit, or a file that was there and is gone.
fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Corruption || error.as_ref().contains("No such file")
}
