//! Which keys the latest commits wrote: what transactions are checked against, in memory.
//!
//! A transaction notes the last published commit when it begins. When it commits, every key it read is looked up
//! here: a newer write is a conflict. A key's entry is forgotten when no running transaction began before it, so the
//! log is as long as the oldest running transaction is old.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::error::ConflictKey;

/// The recent writes of a world, and the lock under which it commits.
#[derive(Debug)]
pub(crate) struct CommitLog {
    writes: Mutex<Writes>,
    /// How many running transactions began at each commit.
    running: Mutex<BTreeMap<u64, usize>>,
    published: AtomicU64,
}

/// A running transaction's place in the log; leaving it lets older writes be forgotten.
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
}

#[derive(Debug)]
struct Writes {
    /// The last commit that wrote each key.
    by_key: HashMap<ConflictKey, u64>,
    /// Forgetting costs a pass over the log, so it waits until the log has doubled.
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 4096;

impl CommitLog {
    /// A log that begins behind a commit.
    pub(crate) fn new(last_commit: u64) -> Self {
        let writes = Writes { by_key: HashMap::new(), sweep_at: SWEEP_AT_LEAST };
        Self { writes: Mutex::new(writes), running: Mutex::default(), published: AtomicU64::new(last_commit) }
    }

    /// The last commit whose effects every load sees.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Notes that a transaction runs.
    pub(crate) fn begin(&self) -> Begun<'_> {
        let mut running = self.running.lock();
        let at = self.published();
        *running.entry(at).or_default() += 1;
        Begun { log: self, at }
    }

    /// Waits for the right to commit.
    pub(crate) fn commit(&self) -> Committing<'_> {
        Committing { log: self, writes: self.writes.lock() }
    }
}

impl Committing<'_> {
    /// The first of some keys that a commit after `since` has written.
    pub(crate) fn written_since<'k>(
        &self,
        since: u64,
        keys: impl IntoIterator<Item = &'k ConflictKey>,
    ) -> Option<&'k ConflictKey> {
        keys.into_iter().find(|key| self.writes.by_key.get(*key).is_some_and(|at| *at > since))
    }

    /// Notes what a commit wrote and lets transactions begin behind it. Everything it wrote is visible already.
    pub(crate) fn publish(&mut self, commit: u64, keys: impl IntoIterator<Item = ConflictKey>) {
        self.writes.by_key.extend(keys.into_iter().map(|key| (key, commit)));
        self.log.published.store(commit, Ordering::Release);
        if self.writes.by_key.len() >= self.writes.sweep_at {
            let oldest = self.log.running.lock().keys().next().copied().unwrap_or(commit);
            self.writes.by_key.retain(|_, at| *at > oldest);
            self.writes.sweep_at = SWEEP_AT_LEAST.max(2 * self.writes.by_key.len());
        }
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
        assert_eq!(log.commit().written_since(log.begin().at, &keys), None, "it began behind the write");
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
}
