//! The store of a transaction: where it reads, and how its reads are guarded.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, RecordId};
use cg_registry::Catalog;

use crate::kinds::object::StoredObject;
use crate::kinds::property::Property;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

/// A world, an overlay or a segment, from which its transactions read chunks and entities. Every read is recorded,
/// because the commit depends on it.
///
/// Implemented by this crate only: no other code can create a [`Tx`](super::Tx).
pub trait TxStore {
    /// The current names. `begun` are those at the beginning of the transaction. Ids never change, so a name that was
    /// registered since may be used.
    fn current_catalog(&self, begun: &Arc<Catalog>) -> Arc<Catalog> {
        Arc::clone(begun)
    }

    /// The error with which a call is refused. It is another error if a commit since the beginning of the transaction
    /// may have caused it.
    fn refused(&self, error: Error) -> Error {
        error
    }

    /// A chunk, or `None` if it is not stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged; the errors of the store.
    fn chunk(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error>;

    /// Many chunks, one result per position in the order asked.
    fn chunks(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>>;

    /// An entity, or `None` if it is not stored.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error>;

    /// Many entities, one result per id in the order asked.
    fn entities(&mut self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        ids.iter().map(|id| self.entity(*id)).collect()
    }
}

/// A store that also has properties, objects and records. Those of a segmented world are in its root.
pub trait ValueStore: TxStore {
    /// A property, or `None` if it was never set.
    ///
    /// # Errors
    /// As [`chunk`](TxStore::chunk).
    fn property(&mut self, property: &Property) -> Result<Option<Vec<u8>>, Error>;

    /// What is stored of an object, deleted or not.
    ///
    /// # Errors
    /// As [`chunk`](TxStore::chunk).
    fn object(&mut self, key: &ObjectKey) -> Result<Option<StoredObject>, Error>;

    /// A record, or `None` if it is not stored.
    ///
    /// # Errors
    /// As [`chunk`](TxStore::chunk).
    fn record(&mut self, id: RecordId) -> Result<Option<Arc<Record>>, Error>;
}
