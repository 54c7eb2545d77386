//! Transactions of a segmented world: each in one segment.
//!
//! Where entities are is stored in the root, see [`places`](super::places).

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, EntityId};
use cg_registry::Catalog;
use cg_store::layer::{TxStore, begin, end, replace_writes};
use cg_store::{Durability, Error, Transaction, Tx};

use super::error::SegmentError;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::world::SegmentedWorld;

/// A running transaction in one segment. Access to another is [`SegmentError::TwoSegments`]: a read fails at once, a
/// write when the closure has ended. An entity that another segment contains is [`SegmentError::EntityElsewhere`]
/// then.
///
/// An entity without a chunk stays in this segment. The root deletes the place of a deleted entity in a commit of its
/// own, after the segment's commit is on disk.
pub type SegmentTransaction<'t, 'w> = Tx<SegmentReads<'t, 'w>>;

/// A segment's world, as a transaction reads it: through a transaction of that world, which guards the reads.
#[derive(Debug)]
pub struct SegmentReads<'t, 'w> {
    tx: &'t mut Transaction<'w>,
    segment: SegmentPos,
    side_chunks: u32,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Runs a closure once, as [`World::transaction`](cg_store::World::transaction) does, in the segment of a chunk. A
    /// segment that is not stored yet is created.
    ///
    /// Costs a world's transaction if the segment is open. A transaction that puts entities also looks them up in the
    /// root. It commits there first if any of them is new to the segment.
    ///
    /// # Errors
    /// As [`World::transaction`](cg_store::World::transaction); [`SegmentError::TwoSegments`] and
    /// [`SegmentError::EntityElsewhere`]; the errors of opening the segment.
    pub fn transaction<T, X: From<Error>>(
        &self,
        at: ChunkAt,
        body: impl FnOnce(&mut SegmentTransaction<'_, '_>) -> Result<T, X>,
    ) -> Result<T, X> {
        self.transaction_at(self.parts.root.durability(), self.segment_of(at), body)
    }

    pub(super) fn transaction_at<T, X: From<Error>>(
        &self,
        durability: Durability,
        segment: SegmentPos,
        body: impl FnOnce(&mut SegmentTransaction<'_, '_>) -> Result<T, X>,
    ) -> Result<T, X> {
        let parts = &*self.parts;
        parts.submissions.apply(segment)?;
        parts.submissions.apply_entities();
        parts.transfers.try_to_resolve();
        let (mut putting, mut deleted) = (None, Vec::new());
        let committed = parts.open.with_made(segment, |world| {
            let committed = world.transaction_at(durability, |tx| {
                let catalog = tx.current_catalog();
                let side_chunks = parts.root.side_chunks();
                let mut inner = begin(SegmentReads { tx, segment, side_chunks }, catalog);
                let value = parts.open.inside(|| body(&mut inner))?;
                let put;
                [put, deleted] = write_to_segment(inner)?;
                // Held until the segment has committed.
                if !put.is_empty() {
                    putting = Some(parts.borders.put(segment, &put)?);
                }
                if durability == Durability::Safe && parts.root.level() != Durability::Safe {
                    // The root's places of entities must be as durable as the segment.
                    parts.root.world().flush()?;
                }
                Ok::<_, X>(value)
            })?;
            drop(putting.take());
            Ok::<_, X>(committed)
        })?;
        if !deleted.is_empty() {
            parts.borders.purge_later(segment, deleted);
        }
        Ok(committed.value)
    }
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

impl SegmentReads<'_, '_> {
    fn check(&self, at: ChunkAt) -> Result<(), SegmentError> {
        let second = SegmentPos::of(at, self.side_chunks);
        let first = self.segment;
        if second == first { Ok(()) } else { Err(SegmentError::TwoSegments { first, second }) }
    }
}

/// Writes the closure's writes to the segment's world. Returns the entities that are put, and those that are deleted.
fn write_to_segment(tx: SegmentTransaction<'_, '_>) -> Result<[Vec<EntityId>; 2], Error> {
    let (store, _, writes) = end(tx);
    for at in writes.chunks.keys() {
        store.check(*at)?;
    }
    let (mut put, mut deleted) = (Vec::new(), Vec::new());
    for (id, entity) in &writes.entities {
        match entity {
            Some(entity) => {
                if let Owner::Chunk(at) = entity.owner {
                    store.check(at)?;
                }
                put.push(*id);
            }
            None => deleted.push(*id),
        }
    }
    replace_writes(store.tx, writes);
    Ok([put, deleted])
}
