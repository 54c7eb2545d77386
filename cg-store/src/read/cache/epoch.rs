//! Epochs: how long a cached value of a place is valid. A few places share one epoch.
//!
//! An epoch is even while nothing changes and odd while a commit is in progress. A reader that misses the cache takes
//! the epoch before it reads, and caches the value only if the epoch is still the same even number. A commit makes the
//! epochs of its places odd before the engine or the queue has any of it. It makes them even again when the cache
//! contains all of it.
//!
//! **Invariants**.
//! - A cached value was current at some moment of an epoch, and nothing of its places changed in that epoch.
//! - While an epoch is odd, only the commit itself changes the cache. So the cache never goes back from a commit to the
//!   state before it. An entry with the same epoch before and after a lookup belongs to that epoch.
//!
//! The file is compiled twice: for use, and in tests with loom's model of threads and memory
//! (`cg-bench/tests/epochs.rs`).

use super::primitives::{AtomicU64, ChangeLock, LockGuard, Ordering, PlaceLock};

/// The state of a few places at the time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl Epoch {
    /// Whether no commit was in progress.
    pub(crate) const fn is_calm(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

/// The places that share an epoch, as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(super) u32);

/// The epochs of all places.
#[derive(Debug)]
pub(crate) struct Epochs {
    now: Box<[AtomicU64]>,
    /// Held while a value is cached, and while an epoch becomes odd. Many slots share one lock.
    locks: Box<[PlaceLock]>,
    /// Held by the change in progress.
    changing: ChangeLock,
}

impl Epochs {
    /// Creates this many epochs, and this many locks for them.
    pub(crate) fn new(slots: u32, locks: u32) -> Self {
        Self {
            now: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            locks: (0..locks).map(|_| PlaceLock::default()).collect(),
            changing: ChangeLock::default(),
        }
    }

    pub(crate) fn slots(&self) -> u32 {
        self.now.len() as u32
    }

    /// The current epoch. What is read afterwards is at least as new.
    #[inline]
    pub(crate) fn now(&self, slot: Slot) -> Epoch {
        Epoch(self.now[slot.0 as usize].load(Ordering::Acquire))
    }

    /// Calls `keep` to cache a value that was read since an epoch was taken, unless a commit has begun since. Returns
    /// whether it did.
    pub(crate) fn keep_if_unchanged(&self, slot: Slot, since: Epoch, keep: impl FnOnce()) -> bool {
        let _no_change_begins = self.lock(slot);
        let is_unchanged = since.is_calm() && self.now(slot) == since;
        if is_unchanged {
            keep();
        }
        is_unchanged
    }

    /// Begins a change of some places, after the one in progress has ended. Nothing read from them is cached until the
    /// change is dropped.
    pub(crate) fn begin_change(&self, mut slots: Vec<Slot>) -> Change<'_> {
        let changing = self.changing.lock();
        slots.sort_unstable();
        slots.dedup();
        for slot in &slots {
            let _nothing_is_kept = self.lock(*slot);
            self.advance(*slot);
        }
        Change { epochs: self, slots, _changing: changing }
    }

    /// Waits until all running calls that cache a value have ended.
    pub(crate) fn wait_for_keepers(&self) {
        for lock in &self.locks {
            drop(lock.lock());
        }
    }

    fn lock(&self, slot: Slot) -> LockGuard<'_> {
        self.locks[slot.0 as usize % self.locks.len()].lock()
    }

    fn advance(&self, slot: Slot) {
        // Only the holder of `changing` writes.
        let epoch = &self.now[slot.0 as usize];
        epoch.store(epoch.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// A commit in progress: from before it is in the engine until the cache contains all of it, or it has failed.
#[derive(Debug)]
pub(crate) struct Change<'e> {
    epochs: &'e Epochs,
    slots: Vec<Slot>,
    _changing: LockGuard<'e>,
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        for slot in &self.slots {
            self.epochs.advance(*slot);
        }
    }
}
