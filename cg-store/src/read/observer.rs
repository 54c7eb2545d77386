//! The observer of reads.

use cg_format::{ChunkAt, Lookup};

use crate::read::cache::Stored;
use crate::storage::error::Error;

/// Is told which chunks a host requests, and which of them were not in memory.
pub(crate) trait ReadObserver: Send + Sync {
    /// A host requested a chunk. Called for every chunk of every load.
    fn asked(&self, at: ChunkAt, in_memory: bool);

    /// Chunks that neither the cache nor the queue had were read, with these results.
    fn loaded(&self, at: &[ChunkAt], found: &[Result<Lookup<Stored>, Error>]);
}
