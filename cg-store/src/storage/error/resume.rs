//! Why a read-only world cannot be resumed.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{CommitSeq, EngineError};

/// Why a world stays read-only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotResumed {
    /// A sync failed. The operating system may have dropped what it could not write and may report success for the next
    /// sync. So the content of the disk is unknown.
    #[error(
        "a sync failed, and nobody knows what is on the disk now ({cause}); close the world, check the disk, open the \
         world again and run `cg verify`, or restore a backup"
    )]
    SyncFailed {
        /// The error of the engine.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Commits that were reported as written are gone. The rest can be read.
    #[error(
        "commits up to {promised} were reported as written, and the newest that was found is {found}; close the world \
         and restore a backup, or open it again and go on without them"
    )]
    LostCommits {
        /// The newest commit that was reported.
        promised: CommitSeq,
        /// The newest that was found.
        found: CommitSeq,
    },
    /// There are commits that this world has not made.
    #[error(
        "the newest commit that was reported as written is {promised}, and {found} was found, which this process has \
         not made; close the world, find out who else writes to its directory, and open it again"
    )]
    UnknownCommits {
        /// The newest commit that was reported.
        promised: CommitSeq,
        /// The newest that was found.
        found: CommitSeq,
    },
    /// Another writer has the world. Commits that were accepted here and not written stay unwritten.
    #[error("{cause}; the world belongs to the other writer")]
    Fenced {
        /// The error of the engine.
        #[source]
        cause: Arc<EngineError>,
    },
    /// The files could not be opened for writing. If they can be read, reads continue.
    #[error("its files could not be opened for writing ({cause}); remove the cause and call `resume` again")]
    NotReopened {
        /// The error of the engine.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Other threads read rows all the time, or one runs a long iteration.
    #[error(
        "its engine was in use for all of {} ms; end long iterations and call `resume` again", waited.as_millis()
    )]
    InUse {
        /// The time that was waited.
        waited: Duration,
    },
}
