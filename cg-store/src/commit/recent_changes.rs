//! Records in memory which chunks the latest commits changed. So the changes since a commit are found without reading
//! unchanged neighbours.
//!
//! A changed chunk is one row, but its change mark covers a 4³ cube. Without this record all rows of the cube must be
//! read. Recording starts with the first question.

use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::ChunkAt;
use foldhash::{HashMap, HashMapExt as _};

use crate::rt::lock_order::{Mutex, rank};

/// The maximum number of recorded chunks, about 64 bytes each. Above it, the older half is forgotten.
const MAX_CHUNKS: usize = 1 << 16;

/// The chunks that the latest commits changed.
#[derive(Debug)]
pub(crate) struct RecentChanges {
    chunks: Mutex<Chunks, rank::Recent>,
    is_kept: AtomicBool,
    max_chunks: usize,
}

#[derive(Debug)]
struct Chunks {
    /// Every change of a commit after this one is recorded.
    behind: u64,
    /// The last commit that changed each chunk.
    last: HashMap<ChunkAt, u64>,
}

impl Default for RecentChanges {
    fn default() -> Self {
        Self::of_at_most(MAX_CHUNKS)
    }
}

impl RecentChanges {
    fn of_at_most(max_chunks: usize) -> Self {
        let chunks = Chunks { behind: 0, last: HashMap::new() };
        Self { chunks: Mutex::new(chunks), is_kept: AtomicBool::new(false), max_chunks }
    }

    /// Whether changes are recorded.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Acquire)
    }

    /// Starts to record the commits after `behind`, and forgets all earlier ones. The caller holds the commit lock.
    pub(crate) fn begin(&self, behind: u64) {
        let mut chunks = self.chunks.lock();
        chunks.last.clear();
        chunks.behind = behind;
        self.is_kept.store(true, Ordering::Release);
    }

    /// Records what a commit changed. Called before the commit is published.
    pub(crate) fn add(&self, commit: u64, changed: impl IntoIterator<Item = ChunkAt>) {
        if !self.is_kept() {
            return;
        }
        let mut chunks = self.chunks.lock();
        chunks.last.extend(changed.into_iter().map(|at| (at, commit)));
        if chunks.last.len() > self.max_chunks {
            let mut commits: Vec<_> = chunks.last.values().copied().collect();
            let middle = commits.len() / 2;
            let (_, newest_forgotten, _) = commits.select_nth_unstable(middle);
            chunks.behind = *newest_forgotten;
            chunks.last.retain(|_, commit| *commit > *newest_forgotten);
            // One commit may have contained many more chunks than the limit.
            chunks.last.shrink_to(self.max_chunks);
        }
    }

    /// Returns the chunks that commits after `since` changed and that `wants` selects, each with the last such commit.
    /// Returns `None` if some of these changes are not recorded. Visits every recorded chunk.
    pub(crate) fn since(&self, since: u64, wants: impl Fn(ChunkAt) -> bool) -> Option<Vec<(ChunkAt, u64)>> {
        let chunks = self.chunks.lock();
        if !self.is_kept() || since < chunks.behind {
            return None;
        }
        let changed = chunks.last.iter().filter(|(at, commit)| **commit > since && wants(**at));
        Some(changed.map(|(at, commit)| (*at, *commit)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, Dimension};

    fn at(x: i64) -> ChunkAt {
        ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))
    }

    fn since(recent: &RecentChanges, commit: u64) -> Option<Vec<(i64, u64)>> {
        let changed = recent.since(commit, |at| at.pos.x() < 100)?;
        let mut changed: Vec<_> = changed.into_iter().map(|(at, commit)| (at.pos.x(), commit)).collect();
        changed.sort_unstable();
        Some(changed)
    }

    #[test]
    fn what_changed_behind_a_commit_is_told_by_the_last_that_changed_it() {
        let recent = RecentChanges::default();
        recent.add(1, [at(1)]);
        assert_eq!(since(&recent, 1), None, "nobody has asked");
        recent.begin(7);
        recent.add(8, [at(1), at(2)]);
        recent.add(9, [at(2), at(200)]);
        recent.add(10, []);
        assert_eq!(since(&recent, 6), None);
        assert_eq!(since(&recent, 7), Some(vec![(1, 8), (2, 9)]));
        assert_eq!(since(&recent, 8), Some(vec![(2, 9)]));
        assert_eq!(since(&recent, 9), Some(vec![]));
        recent.begin(10);
        assert_eq!((since(&recent, 9), since(&recent, 10)), (None, Some(vec![])));
    }

    #[test]
    fn of_too_many_the_older_are_forgotten_and_are_not_taken_for_unchanged() {
        let recent = RecentChanges::of_at_most(10);
        recent.begin(0);
        for commit in 1..=11 {
            recent.add(commit, [at(commit as i64)]);
        }
        assert_eq!(since(&recent, 5), None);
        assert_eq!(since(&recent, 6), Some((7..=11).map(|n| (n as i64, n)).collect()));
        recent.add(12, (20..40).map(at));
        assert_eq!(since(&recent, 11), None, "one commit of too many is forgotten whole");
        assert_eq!(since(&recent, 12), Some(vec![]));
        recent.add(13, (0..10_000).map(at));
        assert!(recent.chunks.lock().last.capacity() < 100, "and takes no memory afterwards");
    }
}
