//! The apply latch: keeps readers of many rows out while a staged commit is rolled forward.
//!
//! A staged commit is written to the rows in several batches. A reader of one chunk, one entity or one record finds its
//! new value in the queue until all batches are written. In the rows each of these is always whole. A reader that needs
//! many rows of one state passes this latch to take its snapshot, and may keep the snapshot as long as it needs.
//!
//! **Invariant**: while the latch is open, and while an [`ApplyGuard`] is held, the engine holds each commit completely
//! or not at all.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::{Batch, CommitSeq, Engine, EngineError};
use crate::rt::lock_order::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, rank};
use crate::storage::staged::Staged;

/// The latch of one engine.
#[derive(Default)]
pub struct ApplyLatch {
    lock: RwLock<(), rank::ApplyLatch>,
    /// A commit is being rolled forward, or its rolling forward failed.
    closed: AtomicBool,
    /// The error with which it failed.
    stuck: Mutex<Option<Arc<EngineError>>, rank::ApplyStuck>,
}

/// No commit is rolled forward while this is held.
pub type ApplyGuard<'g> = RwLockReadGuard<'g, ()>;

/// A commit is being rolled forward. If this is dropped without [`open`](Self::open), the latch stays closed.
#[derive(Debug)]
pub struct Applying<'g> {
    apply_latch: &'g ApplyLatch,
    _exclusive: RwLockWriteGuard<'g, ()>,
}

impl ApplyLatch {
    /// Closes the latch. Waits until no guard is held.
    pub fn close(&self) -> Applying<'_> {
        let exclusive = self.lock.write();
        self.closed.store(true, Ordering::Release);
        Applying { apply_latch: self, _exclusive: exclusive }
    }

    /// Writes the rows of a commit through staged parts, with no batch over a limit. `seq` must be the engine's next
    /// number. The latch is closed from before the commit point until the returned value is opened.
    ///
    /// # Errors
    /// The errors of the engine. After [`EngineError::WriteFailed`] the latch stays closed if the commit point was
    /// reached and rolling forward failed. Until it is rolled forward, every other staged commit is refused with
    /// [`EngineError::ReadOnly`].
    pub fn write_in_parts(
        &self,
        engine: &dyn Engine,
        rows: Batch,
        seq: CommitSeq,
        limit_bytes: u64,
    ) -> Result<Applying<'_>, EngineError> {
        // Otherwise a later successful commit would open the latch of one that is not rolled forward.
        drop(self.lock_shared()?);
        let staged = Staged::stage(engine, rows, seq.get(), limit_bytes)?;
        let closed = self.close();
        if let Err(error) = staged.commit(engine) {
            // Nothing of the commit is in the rows. If the intent was written after all, the next open of the engine
            // finds it.
            closed.open();
            return Err(error);
        }
        if let Err(error) = staged.roll_forward(engine) {
            let cause = Arc::new(error);
            closed.stuck(Arc::clone(&cause));
            return Err(EngineError::WriteFailed { cause });
        }
        Ok(closed)
    }

    /// Waits until no commit is being rolled forward.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if rolling forward failed: a part of the commit is in the rows.
    pub fn lock_shared(&self) -> Result<ApplyGuard<'_>, EngineError> {
        let guard = self.lock.read();
        if self.is_closed() { Err(EngineError::ReadOnly { cause: self.why() }) } else { Ok(guard) }
    }

    /// Whether a commit is being rolled forward, or its rolling forward failed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Opens the latch: the commit was rolled forward.
    pub fn open(&self) {
        *self.stuck.lock() = None;
        self.closed.store(false, Ordering::Release);
    }

    fn why(&self) -> Arc<EngineError> {
        let nobody_said = || {
            let message = "it was cut off".into();
            Arc::new(EngineError::Panicked { operation: "rolling a commit forward", message })
        };
        self.stuck.lock().clone().unwrap_or_else(nobody_said)
    }
}

impl Applying<'_> {
    /// Opens the latch.
    pub fn open(self) {
        self.apply_latch.open();
    }

    /// Leaves the latch closed. Later readers get the cause.
    pub fn stuck(self, cause: Arc<EngineError>) {
        *self.apply_latch.stuck.lock() = Some(cause);
    }
}

impl fmt::Debug for ApplyLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyLatch").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{MemEngine, Readable};
    use crate::{Durability, Error, Property, StoreLimits, World, WorldOptions};
    use cg_format::key;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn who_comes_while_it_is_closed_waits_and_who_passed_keeps_it_open() {
        let apply_latch = ApplyLatch::default();
        let guard = apply_latch.lock_shared().unwrap();
        thread::scope(|scope| {
            let ((sender, receiver), (open, opened)) = (channel(), channel::<()>());
            let apply_latch = &apply_latch;
            let closing = scope.spawn(move || {
                let closed = apply_latch.close();
                sender.send(()).unwrap();
                opened.recv().unwrap();
                closed.open();
            });
            assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err(), "somebody is passing");
            assert!(!apply_latch.is_closed());
            drop(guard);
            receiver.recv().unwrap();
            assert!(apply_latch.is_closed());
            open.send(()).unwrap();
            closing.join().unwrap();
            assert!(apply_latch.lock_shared().is_ok());
        });
    }

    /// Reads through a borrowed engine while half of a commit is in it.
    #[test]
    fn a_snapshot_waits_for_the_commit_that_is_being_carried_out() {
        type Steps = Arc<parking_lot::Mutex<Option<Receiver<()>>>>;
        let steps: Steps = Arc::default();
        let engine = MemEngine::new().with_fault({
            let steps = Arc::clone(&steps);
            move |_| {
                let _next = steps.lock().as_ref().map(Receiver::recv);
                None
            }
        });
        let limits = StoreLimits { batch_bytes: 4096, ..StoreLimits::default() };
        let options = WorldOptions { limits, durability: Durability::Fast, ..WorldOptions::default() };
        let world = World::builder().options(&options).over(engine).unwrap();
        let (step, next) = channel();
        *steps.lock() = Some(next);
        let names: Vec<String> = (0..100_u8).map(|n| format!("game:{n}")).collect();
        let write = world.transaction(|tx| {
            for name in &names {
                tx.set_property(Property::Named(cg_registry::Name::new(name)?), Some(vec![7; 200]));
            }
            Ok::<_, Error>(())
        });
        write.unwrap();
        let rooms = world.rooms();
        while !rooms.shared.slot.apply_latch().is_closed() {
            step.send(()).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        // The intent, and three parts.
        (0..4).for_each(|_| step.send(()).unwrap());
        let guard = rooms.shared.engine().unwrap();
        let written = |view: &dyn Readable| {
            let is_there = |name: &&String| {
                view.get(cg_format::Space::WorldProperty, name.as_bytes()).unwrap().is_some()
            };
            names.iter().filter(is_there).count()
        };
        while written(&guard.snapshot_of_now().unwrap()) == 0 {
            thread::yield_now();
        }
        assert!(written(&guard.snapshot_of_now().unwrap()) < 100, "half of it is there");
        thread::scope(|scope| {
            let (sender, seen) = channel();
            scope.spawn(move || {
                let guard = rooms.shared.engine().unwrap();
                sender.send(written(&guard.snapshot().unwrap())).unwrap();
            });
            assert!(seen.recv_timeout(Duration::from_millis(50)).is_err(), "it waits");
            drop(step);
            assert_eq!(seen.recv().unwrap(), 100);
        });
        let intent = key::intent(world.last_commit().get());
        world.flush().unwrap();
        assert!(guard.get(cg_format::Space::Intent, &intent).unwrap().is_none());
        assert_eq!(world.metrics().stats.commits_staged, 1);
    }

    #[test]
    fn what_got_stuck_is_told_until_it_is_carried_out() {
        let apply_latch = ApplyLatch::default();
        let cause = |apply_latch: &ApplyLatch| match apply_latch.lock_shared() {
            Err(EngineError::ReadOnly { cause }) => cause.to_string(),
            guard => panic!("{guard:?}"),
        };
        drop(apply_latch.close());
        assert_eq!(
            cause(&apply_latch),
            "rolling a commit forward panicked: it was cut off; the log of the process says where"
        );
        apply_latch.open();
        apply_latch.close().stuck(Arc::new(EngineError::OpenedReadOnly));
        assert_eq!(cause(&apply_latch), EngineError::OpenedReadOnly.to_string());
        assert!(apply_latch.is_closed());
        apply_latch.open();
        assert!(apply_latch.lock_shared().is_ok());
    }

    #[test]
    fn what_comes_behind_a_stuck_commit_does_not_open_the_gate() {
        let (apply_latch, engine) = (ApplyLatch::default(), MemEngine::new());
        let write = |seq| apply_latch.write_in_parts(&engine, Batch::new(), seq, 4096).map(Applying::open);
        write(CommitSeq::new(1)).unwrap();
        apply_latch.close().stuck(Arc::new(EngineError::OpenedReadOnly));
        let error = write(CommitSeq::new(2)).unwrap_err();
        assert!(matches!(error, EngineError::ReadOnly { .. }), "{error}");
        assert!(apply_latch.is_closed() && engine.last_commit().get() == 1);
        apply_latch.open();
        write(CommitSeq::new(2)).unwrap();
    }
}
