//! An index in memory of the chunks with deltas, of the world as it is now or of one view. The lookup of a chunk
//! without deltas stays one read. The index also contains the deltas themselves, within a bound, so that the lookup of
//! a chunk with deltas is one read as well.
//!
//! **Invariant**: a reader takes the deltas of a chunk from here, and reads the chunk's row afterwards. It gets a state
//! that the chunk had at some moment since. A delta is added before it is written and is visible after it is written.
//! It is removed after a row is written that contains it. The version of such a row is at least the commit of the
//! delta, so a reader skips the delta.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cg_format::{ChunkAt, Space, key};
use foldhash::{HashMap, HashSet};

use super::fold::{CachedDeltas, Gaps, each_delta};
use super::{MAX_CHUNKS, MAX_DELTAS, fold};
use crate::engine::{Batch, Readable};
use crate::rt::lock_order::{Mutex, rank};
use crate::storage::error::Error;

/// The maximum size of all cached deltas, not counting the commit numbers: the deltas of 80,000 chunks with one changed
/// block.
const MAX_CACHED_BYTES: usize = 8 << 20;

/// The commits of every chunk's deltas, ascending, and the cached deltas.
#[derive(Debug, Default)]
pub(crate) struct DeltaIndex {
    chunks: Mutex<Chunks, rank::Deltas>,
    /// The number of chunks, readable without the lock.
    len: AtomicUsize,
    /// Whether deltas may be in an unreadable gap, readable without the lock.
    has_gaps: AtomicBool,
}

/// The deltas of a chunk.
#[derive(Debug, Clone)]
pub(crate) enum Deltas {
    /// It has none.
    None,
    /// All written deltas, in memory.
    Cached(CachedDeltas),
    /// The deltas must be read in one view with the chunk's row: they are too large, being written, or damaged.
    Stored,
}

#[derive(Debug, Default)]
struct OfChunk {
    commits: Vec<u64>,
    /// All deltas of the chunk, or none.
    cached: CachedDeltas,
}

#[derive(Debug, Default)]
struct Chunks {
    deltas: HashMap<ChunkAt, OfChunk>,
    said_bytes: usize,
    /// The last commit that is known to be written.
    written: u64,
    /// Every chunk with deltas once, in the order in which maintenance considers them; and some without.
    waiting: VecDeque<ChunkAt>,
    /// The same chunks, for lookups.
    waits: HashSet<ChunkAt>,
    gaps: Gaps,
    /// Chunks in gaps whose rows were replaced since, so that deltas in the gap have no effect.
    replaced: HashSet<ChunkAt>,
}

impl Chunks {
    fn add(&mut self, at: ChunkAt, seq: u64, says: Option<Arc<[u8]>>) {
        let OfChunk { commits, cached } = self.deltas.entry(at).or_default();
        match says {
            Some(says)
                if cached.len() == commits.len()
                    && self.said_bytes + fold::bytes(&says) <= MAX_CACHED_BYTES =>
            {
                self.said_bytes += fold::bytes(&says);
                cached.push(seq, says);
            }
            // An incomplete set of deltas is useless.
            _ => self.said_bytes -= std::mem::take(cached).bytes(),
        }
        commits.push(seq);
        self.wait(at);
        if self.waiting.len() > 2 * MAX_CHUNKS {
            // Maintenance does not run, and most of the chunks have no deltas any more.
            let Self { waiting, waits, deltas, .. } = self;
            waiting.retain(|at| deltas.contains_key(at));
            waits.retain(|at| deltas.contains_key(at));
        }
    }

    /// Whether deltas of a chunk may be in an unreadable gap.
    fn may_be_hidden(&self, at: ChunkAt) -> bool {
        !self.gaps.is_empty() && self.gaps.may_hide(at) && !self.replaced.contains(&at)
    }

    fn wait(&mut self, at: ChunkAt) {
        if self.waits.insert(at) {
            self.waiting.push_back(at);
        }
    }
}

impl DeltaIndex {
    /// Reads all deltas. A load of the chunk reports damage.
    pub(crate) fn read(view: &dyn Readable) -> Result<Self, Error> {
        let mut chunks = Chunks::default();
        chunks.gaps = each_delta(view, |at, seq, row| {
            let says = fold::read(&key::delta(at, seq), row).map(|(_, _, says)| says.into());
            chunks.add(at, seq, says.ok());
            chunks.written = chunks.written.max(seq);
        })?;
        let (len, has_gaps) = (chunks.deltas.len(), !chunks.gaps.is_empty());
        Ok(Self {
            chunks: Mutex::new(chunks),
            len: AtomicUsize::new(len),
            has_gaps: AtomicBool::new(has_gaps),
        })
    }

    /// Replaces the content by deltas that were read again.
    pub(crate) fn replace(&self, read: Self) {
        let mut chunks = self.chunks.lock();
        // Rows are never rolled back, so replaced rows stay replaced.
        let replaced = std::mem::take(&mut chunks.replaced);
        *chunks = Chunks { replaced, ..read.chunks.into_inner() };
        self.len.store(chunks.deltas.len(), Ordering::Release);
        self.has_gaps.store(!chunks.gaps.is_empty(), Ordering::Release);
    }

    /// Whether any chunk may have deltas.
    fn has_any(&self) -> bool {
        self.len() > 0 || self.has_gaps.load(Ordering::Acquire)
    }

    /// The deltas of a chunk, for a reader that reads its row afterwards.
    pub(crate) fn of(&self, at: ChunkAt) -> Deltas {
        if !self.has_any() {
            return Deltas::None;
        }
        let chunks = self.chunks.lock();
        if chunks.may_be_hidden(at) {
            return Deltas::Stored;
        }
        match chunks.deltas.get(&at) {
            None => Deltas::None,
            Some(OfChunk { commits, cached })
                if cached.len() == commits.len() && cached.last() <= Some(chunks.written) =>
            {
                Deltas::Cached(cached.clone())
            }
            Some(_) => Deltas::Stored,
        }
    }

    /// The deltas of those of some chunks that have any, for a reader that reads their rows afterwards.
    pub(crate) fn list(&self, at: &[ChunkAt]) -> HashMap<ChunkAt, Deltas> {
        let deltas = at.iter().map(|at| (*at, self.of(*at)));
        deltas.filter(|(_, deltas)| !matches!(deltas, Deltas::None)).collect()
    }

    /// The number of chunks with deltas.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether a chunk may get another delta. A chunk in an unreadable gap gets none, because the read of it would
    /// fail.
    pub(crate) fn has_room(&self, at: ChunkAt) -> bool {
        let chunks = self.chunks.lock();
        let has_room = match chunks.deltas.get(&at) {
            Some(deltas) => deltas.commits.len() < MAX_DELTAS,
            None => chunks.deltas.len() < MAX_CHUNKS,
        };
        has_room && !chunks.gaps.may_hide(at)
    }

    /// The commits of a chunk's deltas, ascending.
    pub(crate) fn commits(&self, at: ChunkAt) -> Vec<u64> {
        if self.len() == 0 {
            return Vec::new();
        }
        self.chunks.lock().deltas.get(&at).map(|deltas| deltas.commits.clone()).unwrap_or_default()
    }

    /// The version of a chunk, given the version of its row.
    pub(crate) fn version(&self, at: ChunkAt, of_row: u64) -> u64 {
        self.commits(at).last().map_or(of_row, |last| of_row.max(*last))
    }

    /// Adds the deletion of a chunk's deltas to a batch that saves or deletes it as a whole. After the write they must
    /// be [forgotten](Self::forget_up_to).
    pub(crate) fn delete_rows(&self, batch: &mut Batch, at: ChunkAt) {
        for seq in self.commits(at) {
            batch.delete(Space::ChunkDelta, key::delta(at, seq));
        }
    }

    /// Adds a delta before it is written.
    pub(crate) fn add(&self, at: ChunkAt, seq: u64, says: &[u8]) {
        let mut chunks = self.chunks.lock();
        chunks.add(at, seq, Some(says.into()));
        self.len.store(chunks.deltas.len(), Ordering::Release);
    }

    /// Records that a commit and all before it were written. Their deltas are visible from now on.
    pub(crate) fn wrote(&self, seq: u64) {
        if self.len() > 0 {
            let mut chunks = self.chunks.lock();
            chunks.written = chunks.written.max(seq);
        }
    }

    /// Removes a chunk's deltas up to a commit, after a row that replaces them was written.
    pub(crate) fn forget_up_to(&self, at: ChunkAt, seq: u64) {
        if self.has_gaps.load(Ordering::Acquire) {
            let mut chunks = self.chunks.lock();
            if chunks.gaps.may_hide(at) {
                chunks.replaced.insert(at);
            }
        }
        self.retain(at, |delta| delta > seq);
    }

    /// Removes one delta, after its deletion was written.
    pub(crate) fn forget(&self, at: ChunkAt, seq: u64) {
        self.retain(at, |delta| delta != seq);
    }

    /// The next chunk for maintenance, with the commits of its deltas. Unless they are folded, it must
    /// [wait](Self::wait_again) again.
    pub(crate) fn next_waiting(&self) -> Option<(ChunkAt, Vec<u64>)> {
        if self.len() == 0 {
            return None;
        }
        let mut chunks = self.chunks.lock();
        loop {
            let at = chunks.waiting.pop_front()?;
            chunks.waits.remove(&at);
            if let Some(deltas) = chunks.deltas.get(&at) {
                return Some((at, deltas.commits.clone()));
            }
        }
    }

    /// Puts a chunk at the end of the waiting ones.
    pub(crate) fn wait_again(&self, at: ChunkAt) {
        let mut chunks = self.chunks.lock();
        if chunks.deltas.contains_key(&at) {
            chunks.wait(at);
        }
    }

    fn retain(&self, at: ChunkAt, keep: impl Fn(u64) -> bool) {
        if self.len() == 0 {
            return;
        }
        let mut chunks = self.chunks.lock();
        let Chunks { deltas, said_bytes, .. } = &mut *chunks;
        if let Some(OfChunk { commits, cached }) = deltas.get_mut(&at) {
            *said_bytes -= cached.bytes();
            commits.retain(|seq| keep(*seq));
            cached.retain(&keep);
            *said_bytes += cached.bytes();
            if commits.is_empty() {
                deltas.remove(&at);
            }
        }
        self.len.store(chunks.deltas.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, Dimension};

    fn has(index: &DeltaIndex, at: ChunkAt) -> bool {
        !matches!(index.of(at), Deltas::None)
    }

    #[test]
    fn it_knows_what_was_added_and_not_yet_forgotten() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let index = DeltaIndex::default();
        assert!(!has(&index, at(1)) && index.has_room(at(1)));
        for seq in 0..MAX_DELTAS as u64 {
            assert!(index.has_room(at(1)));
            index.add(at(1), seq, b"");
        }
        index.add(at(2), 3, b"");
        assert!(has(&index, at(1)) && !index.has_room(at(1)), "it is full");
        index.forget(at(1), 3);
        assert!(index.has_room(at(1)) && has(&index, at(2)));
        index.forget_up_to(at(1), MAX_DELTAS as u64 - 2);
        assert_eq!((index.commits(at(1)), index.len()), (vec![MAX_DELTAS as u64 - 1], 2));
        index.forget_up_to(at(1), u64::MAX);
        index.forget_up_to(at(2), 2);
        assert_eq!((has(&index, at(1)), index.commits(at(2)), index.len()), (false, vec![3], 1));
    }

    #[test]
    fn chunks_with_deltas_wait_one_after_the_other() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let index = DeltaIndex::default();
        assert_eq!(index.next_waiting(), None);
        for (x, seq) in [(1, 1), (2, 2), (1, 3), (3, 4)] {
            index.add(at(x), seq, b"");
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
            index.add(at, seq, b"");
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
            index.add(at(1), seq, b"");
            index.forget_up_to(at(1), seq);
        }
        index.add(at(1), 100, b"");
        index.add(at(2), 101, b"");
        assert_eq!(index.next_waiting(), Some((at(1), vec![100])));
        index.wait_again(at(1));
        assert_eq!(index.next_waiting(), Some((at(2), vec![101])), "it keeps nobody waiting");
        assert_eq!(index.next_waiting(), Some((at(1), vec![100])));
        assert_eq!(index.next_waiting(), None);
    }

    /// The deltas of a chunk: those in memory by commit, or that they must be read.
    fn told(index: &DeltaIndex, at: ChunkAt) -> Result<Vec<(u64, Vec<u8>)>, &'static str> {
        match index.of(at) {
            Deltas::None => Ok(Vec::new()),
            Deltas::Cached(cached) => Ok(cached.iter().map(|(seq, says)| (seq, says.to_vec())).collect()),
            Deltas::Stored => Err("stored"),
        }
    }

    #[test]
    fn what_deltas_say_is_told_once_they_are_written() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let index = DeltaIndex::default();
        let says = |seqs: &[u64]| Ok(seqs.iter().map(|seq| (*seq, vec![*seq as u8])).collect());
        assert_eq!(told(&index, at(1)), says(&[]));
        index.add(at(1), 1, &[1]);
        assert_eq!(told(&index, at(1)), Err("stored"), "it may not be there yet");
        index.wrote(1);
        assert_eq!((told(&index, at(1)), told(&index, at(2))), (says(&[1]), says(&[])));
        index.add(at(1), 2, &[2]);
        index.add(at(2), 2, &[2]);
        assert_eq!((told(&index, at(1)), told(&index, at(2))), (Err("stored"), Err("stored")));
        index.wrote(2);
        assert_eq!((told(&index, at(1)), told(&index, at(2))), (says(&[1, 2]), says(&[2])));
        index.forget_up_to(at(1), 1);
        assert_eq!(told(&index, at(1)), says(&[2]));
        index.forget(at(1), 2);
        assert_eq!((told(&index, at(1)), index.len()), (says(&[]), 1));
        index.forget_up_to(at(2), 9);
        assert_eq!(index.chunks.lock().said_bytes, 0);
    }

    #[test]
    fn what_deltas_say_is_bounded() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let index = DeltaIndex::default();
        let long = vec![0; MAX_CACHED_BYTES / 4];
        for x in 0..5 {
            index.add(at(x), 1, &long);
        }
        index.wrote(9);
        let told_of = |x| told(&index, at(x)).is_ok();
        assert_eq!([0, 1, 2, 3, 4].map(told_of), [true, true, true, false, false]);
        assert!(index.chunks.lock().said_bytes <= MAX_CACHED_BYTES);
        // If one delta of a chunk is not cached, the others are useless.
        index.add(at(0), 2, &long);
        assert_eq!([0, 1, 3].map(told_of), [false, true, false]);
        index.add(at(3), 3, &[3]);
        assert!(!told_of(3), "the first is not here");
        index.forget_up_to(at(3), 3);
        index.add(at(3), 4, &long);
        assert_eq!([0, 1, 2, 3].map(told_of), [false, true, true, true]);
        for x in 0..5 {
            index.forget_up_to(at(x), 9);
        }
        assert_eq!((index.chunks.lock().said_bytes, index.len()), (0, 0));
    }
}
