//! Until when what was read of a place may be remembered: epochs, each shared by a few places.
//!
//! An epoch is even while nothing changes and odd while a commit is under way. Who reads after memory takes the
//! epoch first, and remembers what it found only if the epoch is the same even number still. A commit makes the
//! epochs of its places odd before the engine or the queue has any of it, and even again when memory shows all of it.
//!
//! **Invariants**.
//! - What is remembered is what was true at some moment of an epoch, and nothing of its places changed in that epoch.
//! - While an epoch is odd nothing is remembered but what the commit itself shows. So memory never goes back from what
//!   a commit showed to what was before it, and an entry with the same epoch before and after a look is of that epoch.
//!
//! The file is compiled twice: for use, and in tests over loom's model of threads and memory (`cg-bench/tests/epochs.rs`).

use super::primitives::{AtomicU64, ChangeLock, LockGuard, Ordering, PlaceLock};

/// The state of a few places when it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl Epoch {
    /// Whether no commit was under way.
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
    /// Held while something is remembered, and while an epoch becomes odd. A lock is shared by many slots.
    locks: Box<[PlaceLock]>,
    /// Held by the change under way.
    changing: ChangeLock,
}

impl Epochs {
    /// So many epochs, and so many locks for them.
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

    /// The epoch of now. What is read afterwards is at least as new.
    #[inline]
    pub(crate) fn now(&self, slot: Slot) -> Epoch {
        Epoch(self.now[slot.0 as usize].load(Ordering::Acquire))
    }

    /// Remembers what was read since an epoch was taken, unless a commit has begun since; says whether it did.
    pub(crate) fn keep_if_unchanged(&self, slot: Slot, since: Epoch, keep: impl FnOnce()) -> bool {
        let _no_change_begins = self.lock(slot);
        let is_unchanged = since.is_calm() && self.now(slot) == since;
        if is_unchanged {
            keep();
        }
        is_unchanged
    }

    /// Begins a change of some places, after the one under way has ended. Nothing that is read of them is remembered
    /// until the change is dropped.
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

    /// Waits until everything that is being remembered is.
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

/// A commit under way, from before it is in the engine until memory shows all of it, or until it has failed.
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
