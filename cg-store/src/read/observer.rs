//! Who else learns of reads.

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;

/// Learns which chunks a host asks for, and which of them memory did not have.
pub(crate) trait ReadObserver: Send + Sync {
    /// A host asked for a chunk, and memory had it or not. Called for every chunk of every load.
    fn asked(&self, at: ChunkAt, in_memory: bool);

    /// Chunks are asked of the engine.
    fn missed(&self, at: &[ChunkAt]);

    /// A chunk came from the engine or the queue; `None` if there is none.
    fn loaded(&self, at: ChunkAt, chunk: Option<&Chunk>);
}
