//! The content of a chunk's deltas in memory: a load then reads only the chunk's row.

use std::sync::Arc;

/// The cached deltas of one chunk, ascending by their commits. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedDeltas(Arc<Vec<(u64, Arc<[u8]>)>>);

impl CachedDeltas {
    /// The commit and the payload of each delta. The payload is sound.
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

    /// Keeps the deltas whose commits `keep` selects.
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

/// The memory of a delta: its payload, its entry and the allocator's overhead.
pub(super) fn bytes(says: &[u8]) -> usize {
    const ENTRY_BYTES: usize = 72;
    ENTRY_BYTES + says.len()
}
