//! What moves did, in numbers.

use crate::maintain::move_tier::Moved;

/// What moves did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MoveCounts {
    /// Chunks that got rows of their own.
    pub promoted: u64,
    /// Chunks that went into warm clusters.
    pub warmed: u64,
    /// Chunks that went into cold clusters.
    pub cooled: u64,
    /// Slots dropped from clusters because a hotter tier shadowed them.
    pub shadows_dropped: u64,
    /// Tombstones that were dropped because nobody needs them any more.
    pub tombstones_purged: u64,
    /// Bytes of the rows that were read for it.
    pub bytes_read: u64,
    /// Bytes of the rows that were written for it.
    pub bytes_written: u64,
    /// Moves that gave up because a commit came in between; they are tried again.
    pub conflicts: u64,
    /// Moves that left chunks where they are because a row is damaged, or a cluster would be too large.
    pub refused: u64,
}

impl MoveCounts {
    /// Chunks, slots and marks that were moved or dropped in any way.
    pub const fn moved(&self) -> u64 {
        self.promoted + self.warmed + self.cooled + self.shadows_dropped + self.tombstones_purged
    }

    /// Counts the bytes of a move and returns its chunks.
    pub(super) fn add(&mut self, moved: Moved) -> u64 {
        self.bytes_read += moved.bytes_read;
        self.bytes_written += moved.bytes_written;
        moved.chunks
    }
}
