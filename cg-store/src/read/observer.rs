//! The observer of reads.

use cg_format::{ChunkAt, Lookup};

use crate::read::cache::Stored;
use crate::storage::error::Error;

/// Is told which chunks a host requests, and which of them were not in memory.
pub(crate) trait ReadObserver: Send + Sync {
    /// A host requested a chunk. Called for every chunk of every load.
    fn asked(&self, at: ChunkAt, in_memory: bool);

    /// Neither the cache nor the queue has some chunks, so they are read. Called once for all chunks of a load.
    fn missed(&self, at: &[ChunkAt]);

    /// A missed chunk was read, with this result.
    fn loaded(&self, at: ChunkAt, found: &Result<Lookup<Stored>, Error>);
}
