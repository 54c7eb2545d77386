//! Records in memory which keys the latest commits wrote. Transactions are checked for conflicts against it.
//!
//! A transaction stores the number of the last published commit when it begins. When it commits, every key that it read
//! is looked up here: a newer write is a conflict. A transaction that depends on *which* chunks a box holds asks for
//! the chunks that were written in the box since it began.
//!
//! The entry of a key is dropped when no running transaction began before it. So the length of the log depends on the
//! age of the oldest running transaction. Nothing is recorded for a commit during which no other transaction runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cg_format::{ChunkAt, ChunkBox, Dimension};
use foldhash::{HashMap, HashMapExt as _};

use crate::commit::recent_changes::RecentChanges;
use crate::rt::arrivals::Arrivals;
use crate::rt::lock_order::{Mutex, MutexGuard, rank};
use crate::rt::reentry::{Doing, ReentryGuard};
use crate::storage::error::ConflictKey;

/// The recent writes of a world, and the lock under which it commits.
#[derive(Debug)]
pub(crate) struct CommitLog {
    writes: Mutex<Writes, rank::Commit>,
    /// The number of running transactions that began at each commit.
    running: Mutex<BTreeMap<u64, usize>, rank::Running>,
    published: AtomicU64,
    recent: RecentChanges,
    /// Those who wait until a commit is published.
    arrivals: Arrivals,
}

/// The place of a running transaction in the log. Dropping it lets older writes be forgotten.
#[derive(Debug)]
pub(crate) struct Begun<'a> {
    log: &'a CommitLog,
    /// The last commit that is certainly visible to the transaction.
    pub(crate) at: u64,
}

/// The right to commit: one holder at a time.
pub(crate) struct Committing<'a> {
    log: &'a CommitLog,
    writes: MutexGuard<'a, Writes>,
    /// Code that this thread calls while it holds the right must not commit.
    _inside: ReentryGuard,
}

#[derive(Debug)]
struct Writes {
    /// The last commit that wrote each key.
    by_key: HashMap<ConflictKey, u64>,
    /// The chunks among the keys, in the order of commits. A chunk that was written again has several entries. Only the
    /// entry of the commit in `by_key` is valid.
    chunks: Vec<(u64, ChunkAt)>,
    /// The length at which old entries are dropped. That costs a pass over the log, so it happens only when the log has
    /// doubled.
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 4096;

impl CommitLog {
    /// Creates a log that begins after a commit.
    pub(crate) fn new(last_commit: u64) -> Self {
        let writes = Writes { by_key: HashMap::new(), chunks: Vec::new(), sweep_at: SWEEP_AT_LEAST };
        Self {
            writes: Mutex::new(writes),
            running: Mutex::default(),
            published: AtomicU64::new(last_commit),
            recent: RecentChanges::default(),
            arrivals: Arrivals::default(),
        }
    }

    /// The chunks that the latest commits changed. Recording starts with the first call.
    fn recent(&self) -> &RecentChanges {
        if !self.recent.is_kept() {
            self.commit().forget_recent();
        }
        &self.recent
    }

    /// Returns the chunks that commits after `since` changed and that `wants` selects, each with the last such commit.
    /// Returns `None` if the changes of all commits up to `commit` are not known.
    pub(crate) fn changed_since(
        &self,
        since: u64,
        commit: u64,
        wants: impl Fn(ChunkAt) -> bool,
    ) -> Option<Vec<(ChunkAt, u64)>> {
        let recent = self.recent();
        // Checked first: a commit records its changes before it is published, so every published commit is in `recent`.
        if self.published() < commit {
            return None;
        }
        recent.since(since, wants)
    }

    /// The last commit whose effects are visible to every load.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Waits until a commit after this one is published, but no longer than a time.
    pub(crate) fn wait_after(&self, commit: u64, at_most: Duration) {
        self.arrivals.wait_while(at_most, || self.published() <= commit);
    }

    /// Registers a running transaction.
    pub(crate) fn begin(&self) -> Begun<'_> {
        let mut running = self.running.lock();
        let at = self.published();
        *running.entry(at).or_default() += 1;
        Begun { log: self, at }
    }

    /// Waits for the right to commit.
    pub(crate) fn commit(&self) -> Committing<'_> {
        Committing {
            log: self,
            writes: self.writes.lock(),
            _inside: ReentryGuard::enter(Doing::Commit, self),
        }
    }
}

impl Committing<'_> {
    /// Returns the first of some keys that a commit after `since` has written.
    pub(crate) fn written_since<'k>(
        &self,
        since: u64,
        keys: impl IntoIterator<Item = &'k ConflictKey>,
    ) -> Option<&'k ConflictKey> {
        if self.log.published() <= since {
            return None;
        }
        keys.into_iter().find(|key| self.writes.by_key.get(*key).is_some_and(|at| *at > since))
    }

    /// Returns the chunks of a box that commits after `since` have written. The cost grows with the number of chunks
    /// written since.
    pub(crate) fn chunks_written_since(
        &self,
        since: u64,
        dimension: Dimension,
        area: ChunkBox,
    ) -> impl Iterator<Item = ChunkAt> {
        let older = self.writes.chunks.partition_point(|(commit, _)| *commit <= since);
        let newer = self.writes.chunks.iter().skip(older);
        let inside = newer.filter(move |(_, at)| at.dimension == dimension && area.contains(at.pos));
        inside.filter(|entry| self.writes.is_last(entry)).map(|(_, at)| *at)
    }

    /// Forgets which chunks the latest commits changed. Used when the changes of the next commit may be unknown.
    pub(crate) fn forget_recent(&self) {
        self.log.recent.begin(self.log.published());
    }

    /// Records what a commit wrote, and lets transactions begin after it. Everything that it wrote must be visible
    /// already.
    pub(crate) fn publish(&mut self, commit: u64, keys: impl IntoIterator<Item = ConflictKey>) {
        self.publish_last_of(None, commit, keys);
    }

    /// As [`publish`](Self::publish), for the commit of a transaction that is still registered but reads nothing more.
    /// `begun` is `None` for a commit without a transaction.
    pub(crate) fn publish_last_of(
        &mut self,
        begun: Option<&Begun<'_>>,
        commit: u64,
        keys: impl IntoIterator<Item = ConflictKey>,
    ) {
        let own = usize::from(begun.is_some());
        let writes = &mut *self.writes;
        // Held until the commit is published: a transaction that begins later begins after the commit.
        let running = self.log.running.lock();
        if running.values().sum::<usize>() == own {
            writes.clear();
            let chunk = |key| if let ConflictKey::Chunk(at) = key { Some(at) } else { None };
            self.log.recent.add(commit, keys.into_iter().filter_map(chunk));
            self.log.published.store(commit, Ordering::Release);
            self.log.arrivals.tell();
            return;
        }
        drop(running);
        let first = writes.chunks.len();
        for key in keys {
            if let ConflictKey::Chunk(at) = key {
                writes.chunks.push((commit, at));
            }
            writes.by_key.insert(key, commit);
        }
        self.log.recent.add(commit, writes.chunks.iter().skip(first).map(|(_, at)| *at));
        self.log.published.store(commit, Ordering::Release);
        self.log.arrivals.tell();
        if writes.len() >= writes.sweep_at {
            let oldest = self.log.running.lock().keys().next().copied().unwrap_or(commit);
            writes.forget_up_to(oldest);
            writes.sweep_at = SWEEP_AT_LEAST.max(2 * writes.len());
        }
    }
}

impl Writes {
    fn clear(&mut self) {
        self.by_key.clear();
        self.chunks.clear();
    }

    fn len(&self) -> usize {
        self.by_key.len().max(self.chunks.len())
    }

    /// Whether the commit is the last one that wrote the chunk.
    fn is_last(&self, (commit, at): &(u64, ChunkAt)) -> bool {
        self.by_key.get(&ConflictKey::Chunk(*at)) == Some(commit)
    }

    fn forget_up_to(&mut self, commit: u64) {
        self.by_key.retain(|_, at| *at > commit);
        let mut chunks = std::mem::take(&mut self.chunks);
        chunks.retain(|entry| self.is_last(entry));
        self.chunks = chunks;
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut running = self.log.running.lock();
        if let Some(count) = running.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::ChunkPos;

    fn key(name: &str) -> ConflictKey {
        ConflictKey::Property(name.into())
    }

    #[test]
    fn a_write_since_the_beginning_is_a_conflict() {
        let log = CommitLog::new(7);
        let begun = log.begin();
        assert_eq!(begun.at, 7);
        log.commit().publish(8, [key("a")]);
        let keys = [key("b"), key("a")];
        assert_eq!(log.commit().written_since(begun.at, &keys), Some(&keys[1]));
        assert_eq!(log.commit().written_since(log.begin().at, &keys), None, "it began after the write");
    }

    #[test]
    fn what_nobody_can_ask_for_is_not_noted() {
        let log = CommitLog::new(0);
        let (own, other) = (log.begin(), log.begin());
        log.commit().publish_last_of(Some(&own), 1, [key("a")]);
        assert_eq!(log.commit().written_since(other.at, &[key("a")]), Some(&key("a")), "the other may ask");
        drop(own);
        let own = log.begin();
        log.commit().publish(2, [key("b")]);
        assert_eq!(log.commit().written_since(own.at, &[key("b")]), Some(&key("b")));
        drop(other);
        log.commit().publish(3, [key("c")]);
        assert_eq!(log.commit().written_since(own.at, &[key("c")]), Some(&key("c")), "no commit of its own");
        log.commit().publish_last_of(Some(&own), 4, [key("d"), ConflictKey::Chunk(ChunkAt::default())]);
        assert_eq!((log.commit().writes.len(), log.published()), (0, 4), "it was the last that ran");
        drop(own);
        log.commit().publish(5, [key("e")]);
        assert_eq!((log.commit().writes.len(), log.published()), (0, 5));
    }

    #[test]
    fn what_is_published_while_the_changes_are_looked_through_is_not_taken_for_known() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
        let log = CommitLog::new(4);
        assert_eq!(log.changed_since(4, 4, |_| true), Some(vec![]));
        log.commit().publish(5, [ConflictKey::Chunk(at(1))]);
        // The sixth commit is in the engine. It is published while the lookup runs, and recorded after it.
        let publishes = |_| {
            log.published.store(6, Ordering::Release);
            true
        };
        assert_eq!(log.changed_since(4, 6, publishes), None);
        assert_eq!(log.changed_since(4, 5, publishes), Some(vec![(at(1), 5)]));
    }

    #[test]
    fn what_a_running_transaction_may_ask_is_not_forgotten() {
        let log = CommitLog::new(0);
        let begun = log.begin();
        for commit in 1..=10_000 {
            log.commit().publish(commit, [key(&commit.to_string())]);
        }
        assert_eq!(log.commit().written_since(begun.at, &[key("1")]), Some(&key("1")));
        drop(begun);
        for commit in 10_001..=20_000 {
            log.commit().publish(commit, [key("last")]);
        }
        log.commit().writes.sweep_at = 0;
        log.commit().publish(20_001, []);
        assert_eq!(log.commit().writes.by_key.len(), 0, "nobody can ask for them");
    }

    #[test]
    fn the_chunks_written_in_a_box_are_told_by_the_last_commit_that_wrote_each() {
        let at = |dimension, x| ChunkAt::new(Dimension::new(dimension), ChunkPos::constant(x, 0, 0));
        let log = CommitLog::new(4);
        let begun = log.begin();
        log.commit().publish(5, [key("a"), ConflictKey::Chunk(at(0, 1)), ConflictKey::Chunk(at(0, 2))]);
        log.commit().publish(6, [ConflictKey::Chunk(at(0, 2)), ConflictKey::Chunk(at(1, 2))]);
        log.commit().publish(7, [ConflictKey::Chunk(at(0, 9))]);
        let area = ChunkBox::new(ChunkPos::constant(-5, 0, 0), ChunkPos::constant(5, 0, 0));
        let written =
            |since| -> Vec<_> { log.commit().chunks_written_since(since, Dimension::new(0), area).collect() };
        assert_eq!(written(4), [at(0, 1), at(0, 2)], "neither another dimension's nor one outside");
        assert_eq!(written(5), [at(0, 2)]);
        assert_eq!((written(6), written(u64::MAX)), (vec![], vec![]));
        drop(begun);
        log.commit().writes.sweep_at = 0;
        log.commit().publish(8, [ConflictKey::Chunk(at(0, 3))]);
        assert_eq!(written(0), [], "nobody runs who could ask");
    }

    #[test]
    fn a_chunk_that_is_written_over_and_over_takes_no_more_memory() {
        let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(1, 2, 3));
        let log = CommitLog::new(0);
        let _begun = log.begin();
        for commit in 1..=100_000 {
            log.commit().publish(commit, [ConflictKey::Chunk(at)]);
        }
        assert!(log.commit().writes.chunks.len() <= SWEEP_AT_LEAST);
    }
}
