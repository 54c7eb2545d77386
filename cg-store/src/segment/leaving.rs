//! Places in the root of entities that a segment has deleted: forgotten once the deletion can no longer be lost.
//!
//! Root and segment are two databases: what one has written says nothing of the other after a crash. A place in the root without
//! the entity is harmless, and free for who puts the entity anew. An entity without its place would be one that nobody finds, and
//! that a second segment might get as well.

use std::collections::VecDeque;

use cg_format::EntityId;

use super::{SegmentHome, SegmentPos, SegmentedWorld};
use crate::engine::Engine;
use crate::error::Error;
use crate::transaction::Durable;

/// So many deletions are remembered; the places of older ones stay.
const REMEMBERED: usize = 4096;

/// Deletions whose places the root still has.
#[derive(Debug)]
pub(super) struct Leaving<E: Engine>(VecDeque<(SegmentPos, Durable<E>, Vec<EntityId>)>);

impl<E: Engine> Default for Leaving<E> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<E: Engine> Leaving<E> {
    fn add(&mut self, segment: SegmentPos, deletion: Durable<E>, ids: Vec<EntityId>) {
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((segment, deletion, ids));
    }

    /// The oldest deletions, as far as a power cut cannot take them back.
    fn take_durable(&mut self) -> Vec<(SegmentPos, Vec<EntityId>)> {
        let count = self.0.iter().take_while(|(_, deletion, _)| deletion.is_durable()).count();
        self.0.drain(..count).map(|(segment, _, ids)| (segment, ids)).collect()
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Remembers what a segment has deleted, and forgets the places of all whose deletions are on the disk.
    pub(super) fn forget_later(
        &self,
        segment: SegmentPos,
        deletion: Durable<H::Engine>,
        ids: Vec<EntityId>,
    ) -> Result<(), Error> {
        self.shared.leaving.lock().add(segment, deletion, ids);
        self.forget_left()
    }

    /// Forgets the places of entities whose deletions are on the disk.
    pub(super) fn forget_left(&self) -> Result<(), Error> {
        let left = self.shared.leaving.lock().take_durable();
        if left.is_empty() {
            return Ok(());
        }
        let _nobody_puts = self.shared.borders.write();
        left.into_iter().try_for_each(|(segment, ids)| self.unclaim(segment, &ids))
    }
}
