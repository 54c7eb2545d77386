//! Places in the root of entities that a segment has deleted: forgotten once the deletion can no longer be lost.
//!
//! Root and segment are two databases: what one has written says nothing of the other after a crash. A place in the root without
//! the entity is harmless, and free when the entity is put anew. An entity without its place would be one that no look-up finds, and
//! that a second segment might get as well.

use std::collections::BTreeMap;

use cg_format::EntityId;
use cg_store::Error;

use super::{SegmentHome, SegmentPos, SegmentedWorld};

/// At most this many places are remembered of each segment; the others stay.
const REMEMBERED: usize = 4096;

/// Entities that segments have deleted and whose places the root still has.
#[derive(Debug, Default)]
pub(super) struct DeletedEntities(BTreeMap<SegmentPos, Vec<EntityId>>);

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Remembers what a segment has deleted, and forgets places.
    pub(super) fn purge_later(&self, segment: SegmentPos, ids: Vec<EntityId>) {
        let mut deleted_entities = self.shared.deleted_entities.lock();
        let of_segment = deleted_entities.0.entry(segment).or_default();
        of_segment.extend(ids);
        of_segment.truncate(REMEMBERED);
        drop(deleted_entities);
        self.forget_left();
    }

    /// Forgets the places of deleted entities in segments of which nothing can be lost any more. What stays for whatever reason
    /// is no loss.
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

    /// Whether the places are forgotten.
    fn forget_left_of(&self, segment: SegmentPos, ids: &[EntityId]) -> Result<bool, Error> {
        // Not opened for this: one that was closed has nothing left to lose, and is looked at when it is used again.
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
        // After the look: nothing that was gone then can come back, whatever has deleted it.
        if metrics.last_synced < metrics.last_commit {
            return Ok(false);
        }
        self.unclaim(segment, &gone)?;
        Ok(true)
    }
}
