//! Transactions of a segmented world: each in one segment.
//!
//! The root stores the segment of an entity before the segment stores the entity. So an entity in a segment is always
//! found, and putting it into a second segment is refused. A place in the root without its entity is free: its
//! transaction failed, or the entity was deleted since.
//!
//! Root and segment are two databases: after a crash, the state of one does not imply that of the other. So the root
//! keeps the place of a deleted entity until the deletion can no longer be lost. An entity without its place could not
//! be found, and could be put into a second segment.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, EntityId};
use cg_registry::Catalog;
use cg_store::error::ConflictKey;
use cg_store::layer::{Mutex, TxStore, begin, end, rank, replace_writes};
use cg_store::{Durability, Error, Transaction, Tx};

use super::place::entity_property;
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};

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
                // Held until the segment has committed.
                if !put.is_empty() {
                    let border = self.shared.borders.read_recursive();
                    none_crosses = Some((Putting::begin(&self.shared.putting, segment, &put)?, border));
                    self.claim(segment, &put)?;
                }
                if durability == Durability::Safe && self.level() != Durability::Safe {
                    // The root's places of entities must be as durable as the segment.
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

    /// Deletes the places of entities from the root, unless the segment contains them. Their deletion must be durable,
    /// and the caller keeps others from putting any. After a crash before this, places stay in the root and mean
    /// nothing.
    pub(super) fn unclaim(&self, segment: SegmentPos, ids: &[EntityId]) -> Result<(), Error> {
        let mut gone = Vec::new();
        for id in ids {
            if !self.contains(segment, *id)? && self.claimed(*id)? == Some(segment) {
                gone.push((entity_property(*id)?, None));
            }
        }
        if gone.is_empty() { Ok(()) } else { self.set_in_root(Durability::Process, gone) }
    }

    /// Stores in the root that a segment will contain entities, unless another segment contains them.
    fn claim(&self, segment: SegmentPos, put: &[EntityId]) -> Result<(), Error> {
        let mut free = BTreeMap::new();
        for id in put {
            self.refuse_in_transit(*id)?;
            let claimed = self.claimed(*id)?;
            if claimed == Some(segment) {
                continue;
            }
            if let Some(other) = claimed
                && self.contains(other, *id)?
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
                // Another transaction has claimed it first.
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

/// Entities that a transaction is about to put into its segment. The root's place of an entity may be outdated, so no
/// other segment may put it until the transaction has committed.
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

/// At most this many places are remembered for each segment; the others stay in the root.
const REMEMBERED: usize = 4096;

/// Entities that segments have deleted and whose places the root still stores.
#[derive(Debug, Default)]
pub(super) struct DeletedEntities(BTreeMap<SegmentPos, Vec<EntityId>>);

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Remembers entities that a segment has deleted, and deletes the places that can be deleted now.
    pub(super) fn purge_later(&self, segment: SegmentPos, ids: Vec<EntityId>) {
        let mut deleted_entities = self.shared.deleted_entities.lock();
        let of_segment = deleted_entities.0.entry(segment).or_default();
        of_segment.extend(ids);
        of_segment.truncate(REMEMBERED);
        drop(deleted_entities);
        self.forget_left();
    }

    /// Deletes the places of deleted entities in segments that can lose no commit any more. Places that stay are
    /// harmless.
    pub(super) fn forget_left(&self) {
        let left = std::mem::take(&mut self.shared.deleted_entities.lock().0);
        for (segment, ids) in left {
            match self.forget_left_of(segment, &ids) {
                Ok(true) => {}
                Ok(false) => {
                    self.shared.deleted_entities.lock().0.entry(segment).or_default().extend(ids);
                }
                Err(error) => {
                    tracing::debug!(%error, %segment, "places of deleted entities stay in the root");
                }
            }
        }
    }

    /// Whether the places were deleted.
    fn forget_left_of(&self, segment: SegmentPos, ids: &[EntityId]) -> Result<bool, Error> {
        // A closed segment is not opened for this: it can lose nothing, and is checked when it is used again.
        let Some(slot) = self.shared.open.find(segment) else { return Ok(false) };
        let _nobody_puts = self.shared.borders.write();
        let world = slot.world.read_recursive();
        let Some(world) = &*world else { return Ok(false) };
        let mut gone = Vec::new();
        for id in ids {
            if world.entity(*id)?.is_none() {
                gone.push(*id);
            }
        }
        let metrics = world.metrics();
        // Checked after the reads: if all commits are synced, no deletion that was read can be lost.
        if metrics.last_synced < metrics.last_commit {
            return Ok(false);
        }
        self.unclaim(segment, &gone)?;
        Ok(true)
    }
}
