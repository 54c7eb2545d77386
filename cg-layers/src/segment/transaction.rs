//! Transactions of a segmented world: each in one segment.
//!
//! Which segment has an entity stands in the root before the segment has it. So an entity that is in a segment is always
//! found, and one that is put into a second segment is refused; a place in the root without the entity is a transaction
//! that came to nothing, or an entity that is gone since, and is free.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, EntityId};
use cg_registry::Catalog;
use cg_store::error::ConflictKey;
use cg_store::layer::TxStore;
use cg_store::layer::{Mutex, begin, end, rank, replace_writes};
use cg_store::{Durability, Error, Transaction, Tx};

use super::place::entity_property;
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};

/// A running transaction in one segment. What touches another is [`SegmentError::TwoSegments`]: a read at once, a write
/// when the closure has ended. So is [`SegmentError::EntityElsewhere`], for an entity that another segment has.
///
/// An entity without a chunk stays in this segment. The root forgets the place of a deleted one with a commit of its own,
/// after that of the segment is on the disk.
pub type SegmentTransaction<'t, 'w> = Tx<SegmentReads<'t, 'w>>;

/// A segment's world, as a transaction reads it: through one of the world itself, which guards what it reads.
#[derive(Debug)]
pub struct SegmentReads<'t, 'w> {
    tx: &'t mut Transaction<'w>,
    segment: SegmentPos,
    side_chunks: u32,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Runs a closure once, as [`World::transaction`](cg_store::World::transaction) does, in the segment that a chunk lies in. A
    /// segment that is not stored yet is created.
    ///
    /// Costs what a world's transaction costs, if the segment is open; a transaction that puts entities also looks for
    /// them in the root, and commits there first if any is new to the segment.
    ///
    /// # Errors
    /// As [`World::transaction`](cg_store::World::transaction); [`SegmentError::TwoSegments`] and
    /// [`SegmentError::EntityElsewhere`]; what opening the segment says.
    pub fn transaction<T, X: From<Error>>(
        &self,
        at: ChunkAt,
        body: impl FnOnce(&mut SegmentTransaction<'_, '_>) -> Result<T, X>,
    ) -> Result<T, X> {
        self.transaction_at(self.shared.options.durability, self.segment_of(at), body)
    }

    pub(super) fn transaction_at<T, X: From<Error>>(
        &self,
        durability: Durability,
        segment: SegmentPos,
        body: impl FnOnce(&mut SegmentTransaction<'_, '_>) -> Result<T, X>,
    ) -> Result<T, X> {
        self.try_to_resolve();
        let (mut none_crosses, mut deleted) = (None, Vec::new());
        let committed = self.with_made(segment, |world| {
            let committed = world.transaction_at(durability, |tx| {
                let catalog = tx.current_catalog();
                let side_chunks = self.shared.side_chunks;
                let mut inner = begin(SegmentReads { tx, segment, side_chunks }, catalog);
                let value = self.inside(|| body(&mut inner))?;
                let put;
                [put, deleted] = write_to_segment(inner)?;
                // Until the segment has committed.
                if !put.is_empty() {
                    let border = self.shared.borders.read_recursive();
                    none_crosses = Some((Putting::begin(&self.shared.putting, segment, &put)?, border));
                    self.claim(segment, &put)?;
                }
                if durability == Durability::Safe && self.level() != Durability::Safe {
                    // What the root notes of the segment must not be lost where the segment is not.
                    self.root().flush()?;
                }
                Ok::<_, X>(value)
            })?;
            drop(none_crosses.take());
            Ok::<_, X>(committed)
        })?;
        if !deleted.is_empty() {
            self.purge_later(segment, deleted);
        }
        Ok(committed.value)
    }

    /// Forgets in the root that a segment has entities, those that it has not, for good. The caller keeps others from putting
    /// any. A crash before this leaves places in the root that mean nothing.
    pub(super) fn unclaim(&self, segment: SegmentPos, ids: &[EntityId]) -> Result<(), Error> {
        let mut gone = Vec::new();
        for id in ids {
            let is_here = self.with_stored(segment, |world| world.entity(*id))?.flatten().is_some();
            if !is_here && self.claimed(*id)? == Some(segment) {
                gone.push(entity_property(*id)?);
            }
        }
        if !gone.is_empty() {
            self.shared.root.transaction_at(Durability::Process, |tx| {
                for place in gone {
                    tx.set_property(place, None);
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    /// Notes in the root that a segment is about to have entities, if no other has them.
    fn claim(&self, segment: SegmentPos, put: &[EntityId]) -> Result<(), Error> {
        let mut free = BTreeMap::new();
        for id in put {
            self.refuse_in_transit(*id)?;
            let claimed = self.claimed(*id)?;
            if claimed == Some(segment) {
                continue;
            }
            if let Some(other) = claimed
                && self.with_stored(other, |world| world.entity(*id))?.flatten().is_some()
            {
                return Err(SegmentError::EntityElsewhere { id: *id, segment: other }.into());
            }
            free.insert(*id, claimed);
        }
        if free.is_empty() {
            return Ok(());
        }
        self.shared.root.transaction_at(self.level(), |tx| {
            for (id, claimed) in &free {
                let property = entity_property(*id)?;
                let encoded = claimed.map(encode);
                // Another transaction claimed it first.
                if tx.property(&property)? != encoded {
                    return Err(Error::Conflict { key: ConflictKey::Entity(*id) });
                }
                tx.set_property(property, Some(encode(segment)));
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Entities that a transaction is about to put into its segment: what the root says of them may be older, so until it
/// has committed no other segment may have them.
struct Putting<'a> {
    all: &'a Mutex<HashMap<EntityId, (SegmentPos, usize)>, rank::SegmentPutting>,
    ids: BTreeSet<EntityId>,
}

impl<'a> Putting<'a> {
    fn begin(
        all: &'a Mutex<HashMap<EntityId, (SegmentPos, usize)>, rank::SegmentPutting>,
        segment: SegmentPos,
        put: &[EntityId],
    ) -> Result<Self, Error> {
        let ids: BTreeSet<_> = put.iter().copied().collect();
        let mut putting = all.lock();
        let elsewhere = |id: &&EntityId| putting.get(id).is_some_and(|(other, _)| *other != segment);
        if let Some(id) = ids.iter().find(elsewhere) {
            return Err(Error::Conflict { key: ConflictKey::Entity(*id) });
        }
        for id in &ids {
            putting.entry(*id).or_insert((segment, 0)).1 += 1;
        }
        drop(putting);
        Ok(Self { all, ids })
    }
}

impl Drop for Putting<'_> {
    fn drop(&mut self) {
        let mut putting = self.all.lock();
        for id in &self.ids {
            if let Entry::Occupied(mut entry) = putting.entry(*id) {
                entry.get_mut().1 -= 1;
                if entry.get().1 == 0 {
                    entry.remove();
                }
            }
        }
    }
}

pub(super) fn encode(segment: SegmentPos) -> Vec<u8> {
    let mut bytes = Vec::new();
    segment.encode(&mut bytes);
    bytes
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

    /// One of this segment: another segment may have it.
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

/// Writes to the segment's world what the closure wrote. Returns the entities that are put, and those that are
/// deleted.
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
