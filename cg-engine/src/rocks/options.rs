//! How an engine is opened, and what for.

use super::super::{Budget, DEFAULT_MAX_BATCH_BYTES};

/// How an engine is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RocksOptions {
    /// Memory and threads. Default: [those of the process](Budget::of_process), of 256 MiB if it has none yet.
    pub budget: Budget,
    /// Default: reading and writing.
    pub access: Access,
    /// The largest batch. Default: 64 MiB; a larger one costs as much memory twice while it is written.
    pub max_batch_bytes: u64,
    /// Whether to open although [synced commits are missing](super::super::EngineError::LostCommits). Opened for
    /// writing, the loss is accepted for good. Default: no.
    pub accept_lost_commits: bool,
}

impl Default for RocksOptions {
    fn default() -> Self {
        Self::new(Budget::default())
    }
}

impl RocksOptions {
    /// The defaults, with shared memory and threads.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            access: Access::ReadWrite,
            max_batch_bytes: DEFAULT_MAX_BATCH_BYTES,
            accept_lost_commits: false,
        }
    }

    /// The same for another access.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// The same with another limit on batches.
    #[must_use]
    pub fn with_max_batch_bytes(self, max_batch_bytes: u64) -> Self {
        Self { max_batch_bytes, ..self }
    }

    /// The same with another answer to lost commits.
    #[must_use]
    pub fn with_accept_lost_commits(self, accept_lost_commits: bool) -> Self {
        Self { accept_lost_commits, ..self }
    }
}

/// What an engine is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// One at a time, and no reader beside it.
    ReadWrite,
    /// Any number at a time, and no writer beside them. Changes no byte of the directory. What logs still hold is read into
    /// memory.
    ReadOnly,
}
