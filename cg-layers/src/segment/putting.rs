//! Entities that transactions are about to put into their segments.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use cg_format::EntityId;
use cg_store::Error;
use cg_store::error::ConflictKey;
use cg_store::layer::{Mutex, rank};

use super::pos::SegmentPos;

/// The segment that each entity is being put into, and how many transactions put it.
///
/// The root's place of an entity may be outdated, so no other segment may put it until the transaction has committed.
#[derive(Debug, Default)]
pub(super) struct Putting(Mutex<HashMap<EntityId, (SegmentPos, usize)>, rank::SegmentPutting>);

/// Entities are being put until this is dropped.
pub(super) struct PuttingGuard<'p> {
    all: &'p Putting,
    ids: BTreeSet<EntityId>,
}

impl Putting {
    /// # Errors
    /// [`Error::Conflict`] if another segment is about to put one of them.
    pub(super) fn begin(&self, segment: SegmentPos, put: &[EntityId]) -> Result<PuttingGuard<'_>, Error> {
        let ids: BTreeSet<_> = put.iter().copied().collect();
        let mut putting = self.0.lock();
        let elsewhere = |id: &&EntityId| putting.get(id).is_some_and(|(other, _)| *other != segment);
        if let Some(id) = ids.iter().find(elsewhere) {
            return Err(Error::Conflict { key: ConflictKey::Entity(*id) });
        }
        for id in &ids {
            putting.entry(*id).or_insert((segment, 0)).1 += 1;
        }
        drop(putting);
        Ok(PuttingGuard { all: self, ids })
    }
}

impl Drop for PuttingGuard<'_> {
    fn drop(&mut self) {
        let mut putting = self.all.0.lock();
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
