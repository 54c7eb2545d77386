//! The root's places of deleted entities. They are deleted once the deletion of the entity can no longer be lost.
//!
//! Root and segment are two databases: after a crash, the state of one does not imply that of the other. A place
//! without its entity is harmless, and free when the entity is put again. An entity without its place could not be
//! found, and could be put into a second segment.

use std::collections::BTreeMap;

use cg_format::EntityId;
use cg_store::Error;

use super::{SegmentHome, SegmentPos, SegmentedWorld};

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
