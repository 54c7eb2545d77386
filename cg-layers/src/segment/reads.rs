//! A segment's world, as a transaction reads it.

use std::fmt;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, RecordId};
use cg_registry::Catalog;
use cg_store::error::ConflictKey;
use cg_store::layer::kind::{Kind as _, Objects};
use cg_store::layer::{TxStore, ValueStore, store_of_mut};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Property, Transaction};

use super::error::SegmentError;
use super::pos::SegmentPos;

/// Finds an object that another segment or the root has deleted, and refuses a key that one of them contains.
pub(super) type Elsewhere<'t> = &'t (dyn Fn(&ConflictKey) -> Result<Option<StoredObject>, Error> + Sync);

/// A segment's world, as a transaction reads it: through a transaction of that world, which guards the reads.
pub struct SegmentReads<'t, 'w> {
    pub(super) tx: &'t mut Transaction<'w>,
    pub(super) segment: SegmentPos,
    pub(super) side_chunks: u32,
    pub(super) elsewhere: Elsewhere<'t>,
    /// The segment may have dead copies of records, which are the root's.
    pub(super) has_dead: bool,
}

impl TxStore for SegmentReads<'_, '_> {
    fn current_catalog(&self, _: &Arc<Catalog>) -> Arc<Catalog> {
        self.tx.current_catalog()
    }

    fn chunk(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        self.check(at)?;
        self.tx.load(at)
    }

    fn chunks(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        if at.iter().any(|at| self.check(*at).is_err()) {
            return at.iter().map(|at| self.chunk(*at)).collect();
        }
        self.tx.load_many(at)
    }

    /// Reads this segment only; another segment may contain the entity.
    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.tx.entity(id)
    }

    fn entities(&mut self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        self.tx.entities(ids)
    }
}

/// What this segment lacks is looked for elsewhere, as it may be there.
impl ValueStore for SegmentReads<'_, '_> {
    fn property(&mut self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        let found = self.tx.property(property)?;
        if found.is_none() {
            (self.elsewhere)(&ConflictKey::Property(property.to_string()))?;
        }
        Ok(found)
    }

    fn object(&mut self, key: &ObjectKey) -> Result<Option<StoredObject>, Error> {
        let found = store_of_mut(self.tx).object(key)?;
        if found.as_ref().is_some_and(Objects::is_live) {
            return Ok(found);
        }
        let deleted = (self.elsewhere)(&ConflictKey::Object(key.clone()))?;
        Ok([found, deleted].into_iter().flatten().max_by_key(|object| object.version))
    }

    fn record(&mut self, id: RecordId) -> Result<Option<Arc<Record>>, Error> {
        let found = store_of_mut(self.tx).record(id)?;
        if found.is_none() || self.has_dead {
            (self.elsewhere)(&ConflictKey::Record(id))?;
        }
        Ok(found)
    }
}

impl SegmentReads<'_, '_> {
    /// Refuses a chunk of another segment.
    pub(super) fn check(&self, at: ChunkAt) -> Result<(), SegmentError> {
        let second = SegmentPos::of(at, self.side_chunks);
        let first = self.segment;
        if second == first { Ok(()) } else { Err(SegmentError::TwoSegments { first, second }) }
    }
}

impl fmt::Debug for SegmentReads<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentReads")
            .field("tx", &self.tx)
            .field("segment", &self.segment)
            .finish_non_exhaustive()
    }
}
