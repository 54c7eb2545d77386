//! Why nothing was put, or not all.

use std::io;
use std::path::PathBuf;

use crate::export::ExportError;
use crate::save::SaveError;

/// Why nothing was put, or not all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IntoError {
    /// The world could not be read on.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The save could not be read.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The target is no save.
    #[error(
        "{} is no save, as it holds no level.dat; columns are put into the folder of a whole save{}",
        path.display(),
        of_server(saves)
    )]
    NoSave {
        /// The target.
        path: PathBuf,
        /// The saves in it, if it is the folder of a server.
        saves: Vec<String>,
    },
    /// A game has the save.
    #[error(
        "another process holds session.lock of {}: stop the game or server that has the save open, and run this again",
        .0.display()
    )]
    InUse(PathBuf),
    /// A dimension that no game has.
    #[error("no game looks for a dimension `{0}` in a folder of its own, so that nothing can be put into it")]
    NoFolder(String),
    /// The old files cannot be kept.
    #[error("cannot keep what is replaced beside {}: {source}", path.display())]
    Backup {
        /// The save.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Says which saves the folder of a server holds.
fn of_server(saves: &[String]) -> String {
    if saves.is_empty() { String::new() } else { format!(", and it holds the saves {}", saves.join(", ")) }
}

impl From<cg_store::Error> for IntoError {
    fn from(error: cg_store::Error) -> Self {
        Self::Export(error.into())
    }
}
