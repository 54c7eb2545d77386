//! Holds the engine of a world. Threads borrow it to read or write, and it is replaced when no thread has borrowed it.
//!
//! A world that became read-only because of a full disk continues with another engine value over the same files. The
//! old value must be dropped first, because a directory never has two writers. So every thread borrows the engine while
//! it uses it, and a replacement waits until all guards are returned.
//!
//! Borrowing takes the read lock of one [`Shard`] out of a few. Threads are spread over the shards, so that two threads
//! that read at once usually write to different cache lines. A replacement takes the locks of all shards.
//!
//! The engine of a world that follows another writer is one state of shared rows. A borrower keeps the state that it got,
//! so that a replacement by a newer one waits for no reader.
//!
//! **Invariants**.
//! - All shards hold the same engine, or none does.
//! - A borrower waits at most for the time slice given to [`EngineCell::vacate`], unless the replacement takes place.
//!   So a thread that borrows a second time cannot block for ever.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::engine::{CommitSeq, Engine, EngineError, Snapshot};
use crate::rt::lock_order::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, rank};
use crate::storage::apply_latch::{ApplyGuard, ApplyLatch};

/// The number of threads that can borrow without contention.
const SHARDS: usize = 16;

/// The place of a world's engine.
pub(crate) struct EngineCell {
    shards: [Shard; SHARDS],
    /// The newest commits that were written and synced, for readers that must not wait for a replacement.
    reached: [AtomicU64; 2],
    /// Why there is no engine.
    gone: Mutex<Option<Arc<EngineError>>, rank::EngineGone>,
    /// Whether borrowers keep the engine that they got while another one is installed.
    is_followed: bool,
    apply_latch: ApplyLatch,
}

/// One of the locks, on cache lines of its own.
#[repr(align(128))]
struct Shard(RwLock<Option<Arc<dyn Engine>>, rank::EngineGuard>);

/// A borrowed engine.
pub(crate) struct EngineGuard<'s> {
    engine: Borrowed<'s>,
    apply_latch: &'s ApplyLatch,
}

enum Borrowed<'s> {
    /// No other one is installed meanwhile.
    Locked(MappedRwLockReadGuard<'s, dyn Engine>),
    /// A state of shared rows.
    Kept(Arc<dyn Engine>),
}

/// An engine that no other thread has borrowed.
pub(crate) struct Vacant<'s> {
    slot: &'s EngineCell,
    shards: Vec<RwLockWriteGuard<'s, Option<Arc<dyn Engine>>>>,
}

impl EngineCell {
    pub(crate) fn new(engine: Box<dyn Engine>) -> Self {
        let engine: Arc<dyn Engine> = Arc::from(engine);
        let caps = engine.caps();
        Self {
            is_followed: caps.read_only && caps.is_shared,
            shards: std::array::from_fn(|_| Shard(RwLock::new(Some(Arc::clone(&engine))))),
            reached: [AtomicU64::new(0), AtomicU64::new(0)],
            gone: Mutex::default(),
            apply_latch: ApplyLatch::default(),
        }
    }

    /// Borrows the engine; waits while it is being replaced.
    ///
    /// # Errors
    /// [`EngineError::NotReopened`] if a replacement failed so that there is none.
    #[inline]
    pub(crate) fn guard(&self) -> Result<EngineGuard<'_>, EngineError> {
        Ok(self.guard_with(|| ())?.0)
    }

    /// As [`guard`](Self::guard), with the value of a function that looks at what is replaced together with the engine.
    ///
    /// # Errors
    /// As [`guard`](Self::guard).
    #[inline]
    pub(crate) fn guard_with<T>(
        &self,
        look: impl FnOnce() -> T,
    ) -> Result<(EngineGuard<'_>, T), EngineError> {
        let shard = self.shard().read();
        let (engine, value) = if self.is_followed {
            let engine = shard.as_ref().map(Arc::clone).ok_or_else(|| self.gone())?;
            (Borrowed::Kept(engine), look())
        } else {
            let engine = RwLockReadGuard::try_map(shard, Option::as_deref).map_err(|_| self.gone())?;
            (Borrowed::Locked(engine), look())
        };
        Ok((EngineGuard { engine, apply_latch: &self.apply_latch }, value))
    }

    /// The newest commit that was written, and the newest that was synced. Never waits.
    pub(crate) fn reached(&self) -> [CommitSeq; 2] {
        let shard = self.shard().try_read();
        match shard.as_ref().and_then(|shard| shard.as_deref()) {
            Some(engine) => [engine.last_commit(), engine.last_synced()],
            None => self.reached.each_ref().map(|reached| CommitSeq::new(reached.load(Ordering::Acquire))),
        }
    }

    /// Waits until no thread has borrowed the engine, and keeps new borrowers out. Returns `None` after `at_most`.
    pub(crate) fn vacate(&self, at_most: Duration) -> Option<Vacant<'_>> {
        for (kept, now) in self.reached.iter().zip(self.reached()) {
            kept.store(now.get(), Ordering::Release);
        }
        let deadline = Instant::now() + at_most;
        let shards: Option<_> = self.shards.iter().map(|shard| shard.0.try_write_until(deadline)).collect();
        Some(Vacant { slot: self, shards: shards? })
    }

    /// The latch that keeps readers of many rows out while a commit is rolled forward.
    pub(crate) const fn apply_latch(&self) -> &ApplyLatch {
        &self.apply_latch
    }

    fn shard(&self) -> &RwLock<Option<Arc<dyn Engine>>, rank::EngineGuard> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
        }
        // The number may be gone in a thread that is ending.
        let mine = MINE.try_with(|mine| *mine).unwrap_or(0);
        let shard = self.shards.get(mine).expect("it is the rest of a division by their number");
        &shard.0
    }

    fn gone(&self) -> EngineError {
        let nobody_said =
            || Arc::new(EngineError::Unsupported { what: "be used after opening it again was cut off" });
        EngineError::NotReopened { cause: self.gone.lock().clone().unwrap_or_else(nobody_said) }
    }
}

impl Vacant<'_> {
    /// The engine, if there is one.
    pub(crate) fn engine(&self) -> Option<&dyn Engine> {
        self.shards.first().and_then(|shard| shard.as_deref())
    }

    /// Drops the engine.
    pub(crate) fn empty(&mut self) {
        self.shards.iter_mut().for_each(|shard| drop(shard.take()));
    }

    /// Installs another engine, and lets threads borrow it.
    pub(crate) fn fill(mut self, engine: Box<dyn Engine>) {
        let engine: Arc<dyn Engine> = Arc::from(engine);
        *self.slot.gone.lock() = None;
        for shard in &mut self.shards {
            **shard = Some(Arc::clone(&engine));
        }
    }

    /// Leaves the cell without an engine. Later borrowers get the cause.
    pub(crate) fn leave(self, cause: Arc<EngineError>) {
        *self.slot.gone.lock() = Some(cause);
    }
}

impl EngineGuard<'_> {
    /// A snapshot in which each commit is completely present or absent. Waits while a staged commit is rolled forward.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if rolling forward failed.
    pub(crate) fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        let _guard = self.hold_apply()?;
        (**self).snapshot()
    }

    /// A snapshot of the engine as it is now. For reads of a single chunk or record, or together with the queue. Never
    /// waits.
    pub(crate) fn snapshot_of_now(&self) -> Result<Snapshot<'_>, EngineError> {
        (**self).snapshot()
    }

    /// Keeps staged commits from being rolled forward while the value is held.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub(crate) fn hold_apply(&self) -> Result<ApplyGuard<'_>, EngineError> {
        self.apply_latch.lock_shared()
    }
}

impl Deref for EngineGuard<'_> {
    type Target = dyn Engine;

    #[inline]
    fn deref(&self) -> &dyn Engine {
        match &self.engine {
            Borrowed::Locked(engine) => &**engine,
            Borrowed::Kept(engine) => &**engine,
        }
    }
}

impl fmt::Debug for EngineGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Batch, Level, MemEngine};
    use std::thread;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    fn with_commits(count: usize) -> Box<dyn Engine> {
        let engine = MemEngine::new();
        for _ in 0..count {
            engine.commit(Batch::new(), &[], Level::Process).unwrap();
        }
        Box::new(engine)
    }

    #[test]
    fn nobody_gets_the_place_while_the_engine_is_borrowed_and_nobody_waits_for_good() {
        let slot = EngineCell::new(with_commits(1));
        let guard = slot.guard().unwrap();
        assert!(slot.vacate(SHORT).is_none());
        thread::scope(|scope| {
            let other = scope.spawn(|| slot.vacate(SHORT).is_none());
            // While the other thread waits for the cell, a thread that has borrowed borrows again. It waits no longer
            // than the other.
            let again = slot.guard().unwrap();
            assert_eq!(again.last_commit(), guard.last_commit());
            assert!(other.join().unwrap());
        });
        drop(guard);
        assert!(slot.vacate(SHORT).is_some());
    }

    #[test]
    fn who_comes_while_it_is_replaced_gets_the_new_one_and_who_must_not_wait_hears_of_the_old() {
        let slot = EngineCell::new(with_commits(1));
        let mut vacant = slot.vacate(LONG).unwrap();
        assert_eq!(vacant.engine().unwrap().last_commit(), CommitSeq::new(1));
        vacant.empty();
        assert!(vacant.engine().is_none());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| slot.guard().unwrap().last_commit());
            assert_eq!(slot.reached(), [CommitSeq::new(1), CommitSeq::NONE]);
            vacant.fill(with_commits(2));
            assert_eq!(waiting.join().unwrap(), CommitSeq::new(2));
        });
        assert_eq!(slot.reached(), [CommitSeq::new(2), CommitSeq::NONE]);
    }

    #[test]
    fn an_empty_place_says_why_it_is_empty_until_it_is_filled() {
        let slot = EngineCell::new(with_commits(1));
        let mut vacant = slot.vacate(LONG).unwrap();
        vacant.empty();
        vacant.leave(Arc::new(EngineError::OpenedReadOnly));
        let error = slot.guard().unwrap_err();
        let EngineError::NotReopened { cause } = &error else { panic!("{error}") };
        assert!(matches!(**cause, EngineError::OpenedReadOnly), "{cause}");
        assert_eq!(slot.reached(), [CommitSeq::new(1), CommitSeq::NONE]);
        slot.vacate(LONG).unwrap().fill(with_commits(3));
        assert_eq!(slot.guard().unwrap().last_commit(), CommitSeq::new(3));
    }
}
