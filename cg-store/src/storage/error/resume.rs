//! Why a world that stopped writing does not begin again.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::EngineError;

/// Why a world stays read-only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotResumed {
    /// A sync failed. The system may have dropped what it could not write and may call the next sync a success, so
    /// nobody knows what is on the disk.
    #[error(
        "a sync failed, and nobody knows what is on the disk now ({cause}); close the world, check the disk, open the \
         world again and run `cg verify`, or restore a backup"
    )]
    SyncFailed {
        /// What the system said.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Commits are gone that were reported as written. What is left can be read.
    #[error(
        "commits up to {promised} were reported as written, and the newest that was found is {found}; close the world \
         and restore a backup, or open it again and go on without them"
    )]
    LostCommits {
        /// The newest commit that was reported.
        promised: u64,
        /// The newest that was found.
        found: u64,
    },
    /// There are commits that this world has not made.
    #[error(
        "the newest commit that was reported as written is {promised}, and {found} was found, which this process has \
         not made; close the world, find out who else writes to its directory, and open it again"
    )]
    UnknownCommits {
        /// The newest commit that was reported.
        promised: u64,
        /// The newest that was found.
        found: u64,
    },
    /// Another writer has the world. What was accepted here and not written stays unwritten.
    #[error("{cause}; the world belongs to the other writer")]
    Fenced {
        /// What the engine said.
        #[source]
        cause: Arc<EngineError>,
    },
    /// The files could not be opened for writing. If they can be read, reads go on.
    #[error("its files could not be opened for writing ({cause}); remove the cause and call `resume` again")]
    NotReopened {
        /// What the engine said.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Somebody reads rows all the while, or is in the middle of a long iteration.
    #[error(
        "its engine was in use for all of {} ms; end long iterations and call `resume` again", waited.as_millis()
    )]
    InUse {
        /// How long was waited.
        waited: Duration,
    },
}
