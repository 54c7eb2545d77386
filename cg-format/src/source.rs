//! The traits through which chunks are read and written, so that layers compose without flags.
//!
//! A world, an overlay and a segmented world are all sources and sinks: an overlay over a segmented world is two
//! values. Absence, deletion and damage are three different answers. Only the outermost layer turns the first two
//! into "generate it"; damage is always an error, so that a generator never overwrites it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::chunk::Chunk;
use crate::entity::Entity;
use crate::{ChunkAt, EntityId, SchemaView};

/// What a layer knows about a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lookup<T> {
    /// This layer holds it.
    Found(T),
    /// This layer says that it was deleted; layers below are not asked.
    Tombstone,
    /// This layer knows nothing of it; the layer below is asked.
    NotFound,
}

impl<T> Lookup<T> {
    /// What the outermost layer answers: deleted and unknown chunks are both absent.
    pub fn here(self) -> Option<T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Tombstone | Self::NotFound => None,
        }
    }

    /// The same answer about another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Found(value) => Lookup::Found(f(value)),
            Self::Tombstone => Lookup::Tombstone,
            Self::NotFound => Lookup::NotFound,
        }
    }
}

/// Something that chunks can be read from.
///
/// Ids in the chunks mean something only with the source's own registry.
pub trait ChunkSource {
    /// Why a chunk could not be read. Damage is an error, never [`Lookup::NotFound`].
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

/// Something that entities can be read from.
pub trait EntitySource {
    /// Why an entity could not be read. Damage is an error, never `None`.
    type Error;

    /// Reads one entity; `None` if there is none of that id.
    ///
    /// # Errors
    /// If the entity is damaged or the storage fails.
    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Self::Error>;
}

/// A sink that is also read while it is written: reads see what was written before. A world's transaction is one, and so
/// is a host's live memory.
///
/// References to entities follow by themselves, as in a transaction: a caller that puts or deletes an entity need not touch the
/// chunks that refer to it.
pub trait Editor: ChunkSink {
    /// Reads one chunk as it is now; `None` if there is none.
    ///
    /// # Errors
    /// If the chunk is damaged or the storage fails.
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Self::Error>;

    /// Reads many chunks; one result per position, in the order asked.
    fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Self::Error>> {
        at.iter().map(|at| self.load(*at)).collect()
    }

    /// The schema that its chunks conform to.
    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync>;

    /// Reads one entity as it is now.
    ///
    /// # Errors
    /// If the entity is damaged or the storage fails.
    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Self::Error>;

    /// Stores an entity under its id, replacing what was there.
    ///
    /// # Errors
    /// If it is not accepted.
    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Self::Error>;

    /// Deletes an entity; deleting an absent one is no error.
    ///
    /// # Errors
    /// If it is not accepted.
    fn delete_entity(&mut self, id: EntityId) -> Result<(), Self::Error>;
}
