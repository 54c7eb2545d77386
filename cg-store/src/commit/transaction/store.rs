//! What a transaction is of: where it reads, and how what it read is guarded.

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

/// A world, an overlay or a segment, as the transactions of it read chunks and entities. Every read is noted: the commit
/// is built on it.
///
/// Implemented by this crate only: nothing else can make a [`Tx`](super::Tx).
pub trait TxStore {
    /// The names as they are now, `begun` being those of the transaction's beginning. Ids never move, so a name that
    /// was registered since may be used.
    fn current_catalog(&self, begun: &Arc<Catalog>) -> Arc<Catalog> {
        Arc::clone(begun)
    }

    /// What a call is refused with: another error if what was committed since the transaction began may have led to it.
    fn refused(&self, error: Error) -> Error {
        error
    }

    /// A chunk, or `None` if it is not stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged; what the store refuses.
    fn chunk(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error>;

    /// Many chunks, one result per position in the order asked.
    fn chunks(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>>;

    /// An entity, or `None` if it is not stored.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error>;
}

/// A store that has properties, objects and records too. Those of a segmented world are its root's.
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
