//! How much work the overlays of a store did.

use std::sync::atomic::{AtomicU64, Ordering};

/// How much work the arenas of one store did since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OverlayStats {
    /// Chunks, entities, properties, objects and records that were read from the overlay's own rows.
    pub reads_here: u64,
    /// Those that were read from the base.
    pub reads_below: u64,
    /// Resets and releases of arenas.
    pub resets: u64,
    /// Rows of values that were written.
    pub rows_written: u64,
    /// Rows of expired leases that were deleted.
    pub rows_swept: u64,
    /// Chunks that were decoded from rows.
    pub chunks_decoded: u64,
    /// Damaged rows of arenas that opening skipped, and ranges of rows that opening and sweeps could not read.
    pub damage_met: u64,
}

/// The counters of a store.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) here: AtomicU64,
    pub(crate) below: AtomicU64,
    pub(crate) resets: AtomicU64,
    pub(crate) rows_written: AtomicU64,
    pub(crate) rows_swept: AtomicU64,
    pub(crate) chunks_decoded: AtomicU64,
    pub(crate) damage_met: AtomicU64,
}

impl Counts {
    pub(crate) fn stats(&self) -> OverlayStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        OverlayStats {
            reads_here: read(&self.here),
            reads_below: read(&self.below),
            resets: read(&self.resets),
            rows_written: read(&self.rows_written),
            rows_swept: read(&self.rows_swept),
            chunks_decoded: read(&self.chunks_decoded),
            damage_met: read(&self.damage_met),
        }
    }
}
