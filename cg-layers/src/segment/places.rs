//! Where entities are, in the root and in segments.
//!
//! The root stores the segment of an entity before the segment stores the entity. So an entity in a segment is always
//! found, and putting it into a second segment is refused. A place in the root without its entity is free: its
//! transaction failed, or the entity was deleted since.
//!
//! Root and segment are two databases: after a crash, the state of one does not imply that of the other. So the root
//! keeps the place of a deleted entity until the deletion can no longer be lost. An entity without its place could not
//! be found, and could be put into a second segment.

use std::collections::BTreeMap;

use cg_format::EntityId;
use cg_store::layer::RwLockReadGuard;
use cg_store::{Durability, Error};

use super::borders::Borders;
use super::error::SegmentError;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::putting::PuttingGuard;
use super::rows::entity_property;

/// At most this many places are remembered for each segment; the others stay in the root.
const REMEMBERED: usize = 4096;

/// A transaction puts entities until this is dropped: none is transferred, and no other segment puts them.
pub(super) struct Put<'b> {
    _putting: PuttingGuard<'b>,
    _none_crosses: RwLockReadGuard<'b, ()>,
}

impl<H: SegmentHome> Borders<H> {
    /// Begins to put entities into a segment: stores in the root that it will contain them.
    ///
    /// # Errors
    /// [`SegmentError::EntityElsewhere`] if another segment contains one of them, [`Error::Conflict`] if another is
    /// about to, [`SegmentError::InTransit`].
    pub(super) fn put(&self, segment: SegmentPos, ids: &[EntityId]) -> Result<Put<'_>, Error> {
        let border = self.shared();
        let put = Put { _putting: self.putting.begin(segment, ids)?, _none_crosses: border };
        self.claim(segment, ids)?;
        Ok(put)
    }

    /// Stores in the root that a segment will contain entities, unless another segment contains them.
    fn claim(&self, segment: SegmentPos, put: &[EntityId]) -> Result<(), Error> {
        let root = self.open().root();
        let mut free = BTreeMap::new();
        for id in put {
            self.refuse_in_transit(*id)?;
            let claimed = root.place_of(*id)?;
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
        if free.is_empty() { Ok(()) } else { root.claim(segment, &free) }
    }

    /// Deletes the places of entities from the root, unless the segment contains them. Their deletion must be durable,
    /// and the caller keeps others from putting any. After a crash before this, places stay in the root and mean
    /// nothing.
    fn unclaim(&self, segment: SegmentPos, ids: &[EntityId]) -> Result<(), Error> {
        let root = self.open().root();
        let mut gone = Vec::new();
        for id in ids {
            if !self.contains(segment, *id)? && root.place_of(*id)? == Some(segment) {
                gone.push((entity_property(*id)?, None));
            }
        }
        if gone.is_empty() { Ok(()) } else { root.set(Durability::Process, gone) }
    }

    /// Deletes the places of a deleted segment's entities from the root. Costs a scan of all places.
    pub(super) fn forget_entities_of(&self, segment: SegmentPos) -> Result<(), Error> {
        let _no_thread_puts = self.close();
        let ids = self.open().root().entities_of(segment)?;
        self.unclaim(segment, &ids)
    }

    /// Remembers entities that a segment has deleted, and deletes the places that can be deleted now.
    pub(super) fn purge_later(&self, segment: SegmentPos, ids: Vec<EntityId>) {
        let mut deleted = self.deleted.lock();
        let of_segment = deleted.entry(segment).or_default();
        of_segment.extend(ids);
        of_segment.truncate(REMEMBERED);
        drop(deleted);
        self.forget_left();
    }

    /// Deletes the places of deleted entities in segments that can lose no commit any more. Places that stay are
    /// harmless.
    pub(super) fn forget_left(&self) {
        let left = std::mem::take(&mut *self.deleted.lock());
        for (segment, ids) in left {
            match self.forget_left_of(segment, &ids) {
                Ok(true) => {}
                Ok(false) => self.deleted.lock().entry(segment).or_default().extend(ids),
                Err(error) => {
                    tracing::debug!(%error, %segment, "places of deleted entities stay in the root");
                }
            }
        }
    }

    /// Whether the places were deleted.
    fn forget_left_of(&self, segment: SegmentPos, ids: &[EntityId]) -> Result<bool, Error> {
        // A closed segment is not opened for this: it can lose nothing, and is checked when it is used again.
        let Some(slot) = self.open().find(segment) else { return Ok(false) };
        let _no_thread_puts = self.close();
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
