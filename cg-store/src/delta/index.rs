//! Which chunks have deltas, in memory: a look-up of a chunk without any stays one read.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use cg_format::key::{self, Family};
use cg_format::{ChunkAt, Space};
use foldhash::{HashMap, HashMapExt as _};
use parking_lot::Mutex;

use super::{MAX_CHUNKS, MAX_DELTAS};
use crate::engine::{ALL_KEYS, Batch, ReadView};
use crate::error::Error;

/// The commits of every chunk's deltas, ascending.
#[derive(Debug, Default)]
pub(crate) struct DeltaIndex {
    chunks: Mutex<HashMap<ChunkAt, Vec<u64>>>,
    /// How many chunks, for those who only look.
    len: AtomicUsize,
}

impl DeltaIndex {
    /// Reads the keys of all deltas.
    pub(crate) fn read<V: ReadView>(view: &V) -> Result<Self, Error> {
        let mut chunks: HashMap<ChunkAt, Vec<u64>> = HashMap::new();
        view.scan(Family::ChunkDelta, ALL_KEYS, |key, _| {
            // A key that nobody can read belongs to no chunk; verification reports it.
            if let Ok((at, seq)) = key::decode_delta(key) {
                chunks.entry(at).or_default().push(seq);
            }
            ControlFlow::<()>::Continue(())
        })?;
        let len = AtomicUsize::new(chunks.len());
        Ok(Self { chunks: Mutex::new(chunks), len })
    }

    /// Takes what was read again in place of everything that was noted.
    pub(crate) fn replace(&self, read: Self) {
        let mut chunks = self.chunks.lock();
        *chunks = read.chunks.into_inner();
        self.len.store(chunks.len(), Ordering::Release);
    }

    /// Whether a chunk may have deltas.
    pub(crate) fn has(&self, at: ChunkAt) -> bool {
        self.len() > 0 && self.chunks.lock().contains_key(&at)
    }

    /// How many chunks have deltas.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether a chunk may get another delta.
    pub(crate) fn has_room(&self, at: ChunkAt) -> bool {
        let chunks = self.chunks.lock();
        chunks.get(&at).map_or(chunks.len() < MAX_CHUNKS, |seqs| seqs.len() < MAX_DELTAS)
    }

    /// The commits of a chunk's deltas, ascending.
    pub(crate) fn commits(&self, at: ChunkAt) -> Vec<u64> {
        if self.len() == 0 { Vec::new() } else { self.chunks.lock().get(&at).cloned().unwrap_or_default() }
    }

    /// Adds the deletion of a chunk's deltas to a batch that saves or deletes it as a whole. Once that is written, they are
    /// to be [forgotten](Self::forget_up_to).
    pub(crate) fn delete_rows(&self, batch: &mut Batch, at: ChunkAt) {
        for seq in self.commits(at) {
            batch.delete(Space::ChunkDelta, key::delta(at, seq));
        }
    }

    /// Notes a delta, before it is written.
    pub(crate) fn add(&self, at: ChunkAt, seq: u64) {
        let mut chunks = self.chunks.lock();
        chunks.entry(at).or_default().push(seq);
        self.len.store(chunks.len(), Ordering::Release);
    }

    /// Notes that a chunk's deltas up to a commit are gone, after their deletion was written.
    pub(crate) fn forget_up_to(&self, at: ChunkAt, seq: u64) {
        self.retain(at, |delta| delta > seq);
    }

    /// Notes that one delta is gone, after its deletion was written.
    pub(crate) fn forget(&self, at: ChunkAt, seq: u64) {
        self.retain(at, |delta| delta != seq);
    }

    fn retain(&self, at: ChunkAt, keep: impl Fn(u64) -> bool) {
        if self.len() == 0 {
            return;
        }
        let mut chunks = self.chunks.lock();
        if let Some(seqs) = chunks.get_mut(&at) {
            seqs.retain(|seq| keep(*seq));
            if seqs.is_empty() {
                chunks.remove(&at);
            }
        }
        self.len.store(chunks.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, Dimension};

    #[test]
    fn it_knows_what_was_added_and_not_yet_forgotten() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let index = DeltaIndex::default();
        assert!(!index.has(at(1)) && index.has_room(at(1)));
        for seq in 0..MAX_DELTAS as u64 {
            assert!(index.has_room(at(1)));
            index.add(at(1), seq);
        }
        index.add(at(2), 3);
        assert!(index.has(at(1)) && !index.has_room(at(1)), "it is full");
        index.forget(at(1), 3);
        assert!(index.has_room(at(1)) && index.has(at(2)));
        index.forget_up_to(at(1), MAX_DELTAS as u64 - 2);
        assert_eq!((index.commits(at(1)), index.len()), (vec![MAX_DELTAS as u64 - 1], 2));
        index.forget_up_to(at(1), u64::MAX);
        index.forget_up_to(at(2), 2);
        assert_eq!((index.has(at(1)), index.commits(at(2)), index.len()), (false, vec![3], 1));
    }
}
