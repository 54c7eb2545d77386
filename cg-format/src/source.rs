//! The traits for reading and writing chunks. Layers compose through them without flags.
//!
//! A world, an overlay and a segmented world are all sources and sinks: an overlay over a segmented world is two
//! values. Absence, deletion and damage are three different results. Only the outermost layer treats absence and
//! deletion in the same way: the chunk must be generated. Damage is always an error, so that a generator never
//! overwrites it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::chunk::Chunk;
use crate::entity::Entity;
use crate::{ChunkAt, EntityId, SchemaView};

/// The result of looking up a chunk in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lookup<T> {
    /// This layer has the chunk.
    Found(T),
    /// This layer has a tombstone; layers below are not searched.
    Tombstone,
    /// This layer has no entry; the layer below is searched.
    NotFound,
}

impl<T> Lookup<T> {
    /// The result of the outermost layer: deleted and unknown chunks are both absent.
    pub fn here(self) -> Option<T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Tombstone | Self::NotFound => None,
        }
    }

    /// The same result with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Found(value) => Lookup::Found(f(value)),
            Self::Tombstone => Lookup::Tombstone,
            Self::NotFound => Lookup::NotFound,
        }
    }
}

/// A source of chunks.
///
/// Ids in the chunks have a meaning only with the source's own registry.
pub trait ChunkSource {
    /// Why a chunk could not be read. Damage is an error, never [`Lookup::NotFound`].
    type Error;

    /// Reads one chunk.
    ///
    /// # Errors
    /// If the chunk is damaged or the storage fails.
    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Self::Error>;

    /// Reads many chunks; one result per position, in the given order. A damaged chunk fails only its own result.
    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Self::Error>> {
        at.iter().map(|at| self.lookup(*at)).collect()
    }

    /// The schema of the returned chunks.
    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync>;
}

/// A sink for chunks. The implementation defines when writes become visible; a world's sink is its transaction.
pub trait ChunkSink {
    /// Why a chunk was not accepted.
    type Error;

    /// Writes a chunk, replacing the old one.
    ///
    /// # Errors
    /// If the chunk exceeds a limit, or the place is damaged and must not be overwritten blindly.
    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Self::Error>;

    /// Deletes a chunk; an absent one is not an error.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    fn delete(&mut self, at: ChunkAt) -> Result<(), Self::Error>;
}

/// A source of entities.
pub trait EntitySource {
    /// Why an entity could not be read. Damage is an error, never `None`.
    type Error;

    /// Reads one entity; `None` if the id has none.
    ///
    /// # Errors
    /// If the entity is damaged or the storage fails.
    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Self::Error>;
}

/// A sink that can be read while it is written: reads return what was written before. Examples are a world's
/// transaction and a host's live memory.
///
/// References to entities are updated automatically, as in a transaction: a caller that puts or deletes an entity need
/// not edit the chunks that refer to it.
pub trait Editor: ChunkSink {
    /// Reads one chunk in its present state; `None` if there is none.
    ///
    /// # Errors
    /// If the chunk is damaged or the storage fails.
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Self::Error>;

    /// Reads many chunks; one result per position, in the given order.
    fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Self::Error>> {
        at.iter().map(|at| self.load(*at)).collect()
    }

    /// The schema of its chunks.
    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync>;

    /// Reads one entity in its present state.
    ///
    /// # Errors
    /// If the entity is damaged or the storage fails.
    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Self::Error>;

    /// Stores an entity under its id, replacing the old one.
    ///
    /// # Errors
    /// If it is not accepted.
    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Self::Error>;

    /// Deletes an entity; an absent one is not an error.
    ///
    /// # Errors
    /// If it is not accepted.
    fn delete_entity(&mut self, id: EntityId) -> Result<(), Self::Error>;
}
