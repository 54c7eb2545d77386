//! Where a world is.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a world is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// A directory.
    Directory(PathBuf),
    /// Rows that an engine reaches by an address, without secrets. The engine gives it:
    /// [`Engine::address`](crate::engine::Engine::address).
    Address(String),
}

impl Location {
    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::Address(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::Directory(path)
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::Directory(path.into())
    }
}
