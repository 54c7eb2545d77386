//! Reading the `level.dat` of a save.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::error::SaveError;
use super::file::LEVEL;
use crate::Level;

/// The longest `level.dat` that is read.
const MAX_LEVEL_BYTES: u64 = 64 << 20;

/// Reads a save's `level.dat`, or `level.dat_old` where that cannot be read.
pub(crate) fn level(save: &Path) -> Result<Option<Level>, SaveError> {
    for name in [LEVEL, "level.dat_old"] {
        let path = save.join(name);
        if !path.is_file() {
            continue;
        }
        let mut bytes = Vec::new();
        let file = fs::File::open(&path).and_then(|file| file.take(MAX_LEVEL_BYTES).read_to_end(&mut bytes));
        file.map_err(|source| SaveError::Io { path, source })?;
        if let Some(level) = Level::read(&bytes) {
            return Ok(Some(level));
        }
    }
    Ok(None)
}
