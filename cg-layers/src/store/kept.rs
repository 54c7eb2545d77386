//! Which of the batches that were submitted survive a power cut.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the batches that were accepted, and those of them that are synced with all that they rely on: rows of the
/// overlay, and values of the base that they refer to or are equal to.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    accepted: AtomicU64,
    synced: AtomicU64,
}

impl Kept {
    /// The mark of a batch that is synced already.
    pub(crate) const SYNCED: u64 = 0;

    /// Counts a batch. Its rows are written, and what it relies on was read. Returns its mark.
    pub(crate) fn accept(&self) -> u64 {
        self.accepted.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The newest mark: a sync that begins after this call covers it.
    pub(super) fn newest(&self) -> u64 {
        self.accepted.load(Ordering::Acquire)
    }

    /// Records that the base and the overlay were synced after a mark was the newest.
    pub(super) fn note_synced(&self, mark: u64) {
        self.synced.fetch_max(mark, Ordering::AcqRel);
    }

    /// Whether a batch is synced.
    pub(crate) fn has(&self, mark: u64) -> bool {
        self.synced.load(Ordering::Acquire) >= mark
    }
}
