//! Which chunks have deltas, in memory: a look-up of a chunk without any stays one read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cg_format::{ChunkAt, Space, key};
use foldhash::{HashMap, HashSet};
use parking_lot::Mutex;

use super::known::{Gaps, each_delta};
use super::{MAX_CHUNKS, MAX_DELTAS};
use crate::engine::{Batch, ReadView};
use crate::error::Error;

/// The commits of every chunk's deltas, ascending.
#[derive(Debug, Default)]
pub(crate) struct DeltaIndex {
    chunks: Mutex<Chunks>,
    /// How many chunks, for those who only look.
    len: AtomicUsize,
    /// Whether deltas may lie where nobody can read, for those who only look.
    has_gaps: AtomicBool,
}

#[derive(Debug, Default)]
struct Chunks {
    commits: HashMap<ChunkAt, Vec<u64>>,
    /// Every chunk with deltas once, in the order in which maintenance looks at them; and some without.
    waiting: VecDeque<ChunkAt>,
    /// What waits, to be looked up.
    waits: HashSet<ChunkAt>,
    gaps: Gaps,
    /// Chunks in gaps whose rows were replaced since, so that whatever lies there says nothing.
    replaced: HashSet<ChunkAt>,
}

impl Chunks {
    fn add(&mut self, at: ChunkAt, seq: u64) {
        let commits = self.commits.entry(at).or_default();
        commits.push(seq);
        self.wait(at);
        if self.waiting.len() > 2 * MAX_CHUNKS {
            // Nobody looks, and most have no deltas any more.
            let Self { waiting, waits, commits, .. } = self;
            waiting.retain(|at| commits.contains_key(at));
            waits.retain(|at| commits.contains_key(at));
        }
    }

    fn wait(&mut self, at: ChunkAt) {
        if self.waits.insert(at) {
            self.waiting.push_back(at);
        }
    }
}

impl DeltaIndex {
    /// Reads the keys of all deltas.
    pub(crate) fn read<V: ReadView>(view: &V) -> Result<Self, Error> {
        let mut chunks = Chunks::default();
        chunks.gaps = each_delta(view, |at, seq| chunks.add(at, seq))?;
        let (len, has_gaps) = (chunks.commits.len(), !chunks.gaps.is_empty());
        Ok(Self {
            chunks: Mutex::new(chunks),
            len: AtomicUsize::new(len),
            has_gaps: AtomicBool::new(has_gaps),
        })
    }

    /// Takes what was read again in place of everything that was noted.
    pub(crate) fn replace(&self, read: Self) {
        let mut chunks = self.chunks.lock();
        // Rows are never taken back, so what was replaced stays so.
        let replaced = std::mem::take(&mut chunks.replaced);
        *chunks = Chunks { replaced, ..read.chunks.into_inner() };
        self.len.store(chunks.commits.len(), Ordering::Release);
        self.has_gaps.store(!chunks.gaps.is_empty(), Ordering::Release);
    }

    /// Whether a chunk may have deltas.
    pub(crate) fn has(&self, at: ChunkAt) -> bool {
        if self.len() == 0 && !self.has_gaps.load(Ordering::Acquire) {
            return false;
        }
        let chunks = self.chunks.lock();
        chunks.commits.contains_key(&at) || (chunks.gaps.may_hide(at) && !chunks.replaced.contains(&at))
    }

    /// How many chunks have deltas.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether a chunk may get another delta. None goes where some cannot be read: looking for it would meet them.
    pub(crate) fn has_room(&self, at: ChunkAt) -> bool {
        let chunks = self.chunks.lock();
        let has_room =
            chunks.commits.get(&at).map_or(chunks.commits.len() < MAX_CHUNKS, |seqs| seqs.len() < MAX_DELTAS);
        has_room && !chunks.gaps.may_hide(at)
    }

    /// The commits of a chunk's deltas, ascending.
    pub(crate) fn commits(&self, at: ChunkAt) -> Vec<u64> {
        let none = Vec::new;
        if self.len() == 0 {
            none()
        } else {
            self.chunks.lock().commits.get(&at).cloned().unwrap_or_default()
        }
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
        chunks.add(at, seq);
        self.len.store(chunks.commits.len(), Ordering::Release);
    }

    /// Notes that a chunk's deltas up to a commit are gone or say nothing, after a row that replaces them was written.
    pub(crate) fn forget_up_to(&self, at: ChunkAt, seq: u64) {
        if self.has_gaps.load(Ordering::Acquire) {
            let mut chunks = self.chunks.lock();
            if chunks.gaps.may_hide(at) {
                chunks.replaced.insert(at);
            }
        }
        self.retain(at, |delta| delta > seq);
    }

    /// Notes that one delta is gone, after its deletion was written.
    pub(crate) fn forget(&self, at: ChunkAt, seq: u64) {
        self.retain(at, |delta| delta != seq);
    }

    /// The next chunk for maintenance to look at, with the commits of its deltas. Unless they are folded, it is to
    /// [wait](Self::wait_again) again.
    pub(crate) fn next_waiting(&self) -> Option<(ChunkAt, Vec<u64>)> {
        if self.len() == 0 {
            return None;
        }
        let mut chunks = self.chunks.lock();
        loop {
            let at = chunks.waiting.pop_front()?;
            chunks.waits.remove(&at);
            if let Some(commits) = chunks.commits.get(&at) {
                return Some((at, commits.clone()));
            }
        }
    }

    /// Has a chunk wait behind all others.
    pub(crate) fn wait_again(&self, at: ChunkAt) {
        let mut chunks = self.chunks.lock();
        if chunks.commits.contains_key(&at) {
            chunks.wait(at);
        }
    }

    fn retain(&self, at: ChunkAt, keep: impl Fn(u64) -> bool) {
        if self.len() == 0 {
            return;
        }
        let mut chunks = self.chunks.lock();
        if let Some(seqs) = chunks.commits.get_mut(&at) {
            seqs.retain(|seq| keep(*seq));
            if seqs.is_empty() {
                chunks.commits.remove(&at);
            }
        }
        self.len.store(chunks.commits.len(), Ordering::Release);
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

    #[test]
    fn chunks_with_deltas_wait_one_after_the_other() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let index = DeltaIndex::default();
        assert_eq!(index.next_waiting(), None);
        for (x, seq) in [(1, 1), (2, 2), (1, 3), (3, 4)] {
            index.add(at(x), seq);
        }
        index.forget(at(2), 2);
        assert_eq!(index.next_waiting(), Some((at(1), vec![1, 3])));
        index.wait_again(at(1));
        assert_eq!(index.next_waiting(), Some((at(3), vec![4])));
        index.forget_up_to(at(3), 4);
        index.wait_again(at(3));
        assert_eq!(index.next_waiting(), Some((at(1), vec![1, 3])));
        assert_eq!(index.next_waiting(), None);
        for seq in 0..5 * MAX_CHUNKS as u64 {
            let at = at(5 + seq as i64);
            index.add(at, seq);
            index.forget(at, seq);
        }
        let waiting = index.chunks.lock().waiting.len();
        assert!(waiting <= 2 * MAX_CHUNKS, "{waiting} wait for nobody");
    }

    #[test]
    fn a_chunk_that_is_saved_whole_again_and_again_waits_once() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let index = DeltaIndex::default();
        for seq in 0..100 {
            index.add(at(1), seq);
            index.forget_up_to(at(1), seq);
        }
        index.add(at(1), 100);
        index.add(at(2), 101);
        assert_eq!(index.next_waiting(), Some((at(1), vec![100])));
        index.wait_again(at(1));
        assert_eq!(index.next_waiting(), Some((at(2), vec![101])), "it keeps nobody waiting");
        assert_eq!(index.next_waiting(), Some((at(1), vec![100])));
        assert_eq!(index.next_waiting(), None);
    }
}
