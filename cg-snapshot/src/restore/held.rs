//! The memory of a transaction around a restore, until it is committed.

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;

use crate::snapshot::entity_bytes;

/// Memory of a section that was read: its key, and its guard against other operations.
const READ_BYTES: usize = 96;
/// Memory of a changed chunk or entity beside its values: list entries, flags, an outline.
const CHANGE_BYTES: usize = 800;

/// A number of bytes, estimated from what is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held(u64);

impl Held {
    pub(super) const fn bytes(self) -> u64 {
        self.0
    }

    /// A section is read.
    pub(super) const fn read(&mut self) {
        self.add(READ_BYTES);
    }

    /// A chunk is replaced. The transaction holds both chunks and the row of the new one.
    pub(super) fn change(&mut self, old: Option<&Chunk>, new: Option<&Chunk>) {
        let old = old.map_or(0, Chunk::memory_bytes);
        let new = new.map_or(0, |new| new.memory_bytes() + new.max_len_bytes());
        self.add(old + new + CHANGE_BYTES);
    }

    /// An entity is deleted or put. The transaction holds its value and its row.
    pub(super) fn entity(&mut self, put: Option<&Entity>) {
        self.add(put.map_or(0, |entity| 2 * entity_bytes(entity)) + CHANGE_BYTES);
    }

    const fn add(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes as u64);
    }
}
