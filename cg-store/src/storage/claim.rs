//! Directories of worlds: claiming, syncing, and reading `world.cg` of finished ones.

use std::fs;
use std::path::{Path, PathBuf};

use crate::storage::directory::{self, State, WorldFile};
use crate::storage::error::OpenError;

/// The path of a directory whatever the current directory of the process becomes.
///
/// # Errors
/// [`OpenError::Io`] for an empty path, or if there is no current directory.
pub(crate) fn absolute(dir: &Path) -> Result<PathBuf, OpenError> {
    std::path::absolute(dir).map_err(|error| OpenError::io("find", dir, error))
}

/// Makes sure that a directory exists and is empty.
///
/// # Errors
/// [`OpenError::NotEmpty`]; [`OpenError::Io`].
pub fn claim(dir: &Path) -> Result<(), OpenError> {
    fs::create_dir_all(dir).map_err(|error| OpenError::io("create", dir, error))?;
    let mut entries = fs::read_dir(dir).map_err(|error| OpenError::io("list", dir, error))?;
    if entries.next().is_some() { Err(OpenError::NotEmpty { at: dir.into() }) } else { Ok(()) }
}

/// Syncs the parent directory of a new world, so that a power cut does not remove the world's own name.
///
/// # Errors
/// [`OpenError::Io`].
pub fn sync_parent(dir: &Path) -> Result<(), OpenError> {
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => directory::sync_directory(Path::new(".")),
        Some(parent) => directory::sync_directory(parent),
        None => Ok(()),
    }
}

/// Reads the file of a world whose creation was finished.
pub(crate) fn read_finished(dir: &Path) -> Result<WorldFile, OpenError> {
    let file = WorldFile::read(dir)?;
    if file.state == State::Creating { Err(OpenError::HalfCreated { at: dir.into() }) } else { Ok(file) }
}
