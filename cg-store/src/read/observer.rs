//! The observer of reads.

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;

/// Is told which chunks a host requests, and which of them were not in memory.
pub(crate) trait ReadObserver: Send + Sync {
    /// A host requested a chunk. Called for every chunk of every load.
    fn asked(&self, at: ChunkAt, in_memory: bool);

    /// Chunks were not in memory and will be read.
    fn missed(&self, at: &[ChunkAt]);

    /// A chunk was read from the engine or the queue; `None` if it is not stored.
    fn loaded(&self, at: ChunkAt, chunk: Option<&Chunk>);
}
