//! Why an export ended early.

use std::io;
use std::path::PathBuf;

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The world could not be read on.
    #[error(transparent)]
    Store(#[from] cg_store::Error),
    /// The target holds something: nothing is overwritten.
    #[error("{} is not empty; an export goes into an empty or missing directory", .0.display())]
    NotEmpty(PathBuf),
    /// The target holds an unfinished export, and what is not of it.
    #[error(
        "{} holds an unfinished export and {}, which is not of it; move that away, or export into another directory",
        dir.display(), path.display()
    )]
    Foreign {
        /// The target.
        dir: PathBuf,
        /// The first file that is not of the export.
        path: PathBuf,
    },
    /// The target holds an unfinished export of another world.
    #[error("{} holds the unfinished export of another world; export into another directory", .0.display())]
    OtherWorld(PathBuf),
    /// Another process exports into the target.
    #[error("another process exports into {}", .0.display())]
    InUse(PathBuf),
    /// No such dimension.
    #[error("the world has no dimension `{0}`")]
    NoDimension(String),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file or its directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}
