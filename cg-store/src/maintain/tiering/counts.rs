//! Counts of the work of moves.

use crate::maintain::move_tier::Moved;

/// The work of moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MoveCounts {
    /// Chunks that got rows of their own.
    pub promoted: u64,
    /// Chunks that were moved into warm clusters.
    pub warmed: u64,
    /// Chunks that were moved into cold clusters.
    pub cooled: u64,
    /// Slots dropped from clusters because a hotter tier shadowed them.
    pub shadows_dropped: u64,
    /// Tombstones that were purged.
    pub tombstones_purged: u64,
    /// Bytes of the rows that these moves read.
    pub bytes_read: u64,
    /// Bytes of the rows that these moves wrote.
    pub bytes_written: u64,
    /// Moves that failed because of a commit in between; they are tried again.
    pub conflicts: u64,
    /// Moves that left chunks where they are because a row is damaged, or a cluster would be too large.
    pub refused: u64,
}

impl MoveCounts {
    /// Chunks, slots and tombstones that were moved or dropped in any way.
    pub const fn moved(&self) -> u64 {
        self.promoted + self.warmed + self.cooled + self.shadows_dropped + self.tombstones_purged
    }

    /// Adds the bytes of a move and returns its chunks.
    pub(super) fn add(&mut self, moved: Moved) -> u64 {
        self.bytes_read += moved.bytes_read;
        self.bytes_written += moved.bytes_written;
        moved.chunks
    }
}
