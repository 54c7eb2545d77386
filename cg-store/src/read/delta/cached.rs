//! What the deltas of a chunk say, in memory: a load then reads the chunk's row and nothing else.

use std::sync::Arc;

/// The deltas of one chunk that say something in memory, ascending by their commits. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedDeltas(Arc<Vec<(u64, Arc<[u8]>)>>);

impl CachedDeltas {
    /// The commits, and what a delta of each says: its stored form without a frame, which is sound.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.0.iter().map(|(seq, says)| (*seq, &**says))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The commit of the last one.
    pub(super) fn last(&self) -> Option<u64> {
        self.0.last().map(|(seq, _)| *seq)
    }

    pub(super) fn push(&mut self, seq: u64, says: Arc<[u8]>) {
        Arc::make_mut(&mut self.0).push((seq, says));
    }

    /// Leaves out deltas by their commits.
    pub(super) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        if !self.0.iter().all(|(seq, _)| keep(*seq)) {
            Arc::make_mut(&mut self.0).retain(|(seq, _)| keep(*seq));
        }
    }

    /// The memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, says)| bytes(says)).sum()
    }
}

/// The memory that a delta takes: what it says, its entry and the allocator's part.
pub(super) fn bytes(says: &[u8]) -> usize {
    const ENTRY_BYTES: usize = 72;
    ENTRY_BYTES + says.len()
}
