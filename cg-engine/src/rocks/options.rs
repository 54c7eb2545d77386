//! The options with which an engine is opened.

use super::super::{Budget, DEFAULT_MAX_BATCH_BYTES};

/// The options with which an engine is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RocksOptions {
    /// Memory and threads. Default: [those of the process](Budget::of_process), created with 256 MiB if absent.
    pub budget: Budget,
    /// Default: read and write.
    pub access: Access,
    /// The largest batch. Default: 64 MiB. A batch takes twice its size in memory while it is written.
    pub max_batch_bytes: u64,
    /// Whether to open although [synced commits are missing](super::super::EngineError::LostCommits). An open for
    /// writing makes the loss permanent. Default: no.
    pub accept_lost_commits: bool,
}

impl Default for RocksOptions {
    fn default() -> Self {
        Self::new(Budget::default())
    }
}

impl RocksOptions {
    /// The default options with this memory and these threads.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            access: Access::ReadWrite,
            max_batch_bytes: DEFAULT_MAX_BATCH_BYTES,
            accept_lost_commits: false,
        }
    }

    /// Sets the access.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Sets the limit on batches.
    #[must_use]
    pub fn with_max_batch_bytes(self, max_batch_bytes: u64) -> Self {
        Self { max_batch_bytes, ..self }
    }

    /// Sets whether lost commits are accepted.
    #[must_use]
    pub fn with_accept_lost_commits(self, accept_lost_commits: bool) -> Self {
        Self { accept_lost_commits, ..self }
    }
}

/// Whether an engine is opened to write or only to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// One engine at a time, without readers.
    ReadWrite,
    /// Any number of engines, without a writer. Changes no byte of the directory. Rows that are still in logs are
    /// read into memory.
    ReadOnly,
}
