//! The traits through which chunks are read and written, so that layers compose without flags.
//!
//! A world, an overlay and a segmented world are all sources and sinks: an overlay over a segmented world is two
//! values. Absence, deletion and damage are three different answers. Only the outermost layer turns the first two
//! into "generate it"; damage is always an error, so that a generator never overwrites it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::chunk::Chunk;
use crate::{ChunkAt, SchemaView};

/// What a layer knows about a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lookup<T> {
    /// This layer holds it.
    Here(T),
    /// This layer says that it was deleted; layers below are not asked.
    Deleted,
    /// This layer knows nothing of it; the layer below is asked.
    NotHere,
}

impl<T> Lookup<T> {
    /// What the outermost layer answers: deleted and unknown chunks are both absent.
    pub fn here(self) -> Option<T> {
        match self {
            Self::Here(value) => Some(value),
            Self::Deleted | Self::NotHere => None,
        }
    }

    /// The same answer about another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Here(value) => Lookup::Here(f(value)),
            Self::Deleted => Lookup::Deleted,
            Self::NotHere => Lookup::NotHere,
        }
    }
}

/// Something that chunks can be read from.
///
/// Ids in the chunks mean something only with the source's own registry.
pub trait ChunkSource {
    /// Why a chunk could not be read. Damage is an error, never [`Lookup::NotHere`].
    type Error;

    /// Reads one chunk.
    ///
    /// # Errors
    /// If the chunk is damaged or the storage fails.
    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Self::Error>;

    /// Reads many chunks; one result per position, in the order asked. One bad chunk fails alone.
    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Self::Error>> {
        at.iter().map(|at| self.lookup(*at)).collect()
    }

    /// The schema that the chunks handed out conform to.
    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync>;
}

/// Something that chunks can be written to. What is put between two commits of the host becomes visible as the
/// implementation says; a world's sink is its transaction.
pub trait ChunkSink {
    /// Why a chunk was not accepted.
    type Error;

    /// Writes a chunk, replacing what was there.
    ///
    /// # Errors
    /// If the chunk breaks a limit, or the place holds damage that must not be overwritten blindly.
    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Self::Error>;

    /// Deletes a chunk; deleting an absent one is no error.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    fn delete(&mut self, at: ChunkAt) -> Result<(), Self::Error>;
}
