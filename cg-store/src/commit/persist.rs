//! Persisting accepted commits: writing the queue, in order, and syncing.
//!
//! **Group commit**: callers that commit at about the same time wait for each other and share one sync.
//!
//! **The periodic sync**: a commit that did not wait for the disk is synced about a second later. So a power cut loses
//! at most the last second of commits at [`Durability::Process`](crate::Durability::Process).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::commit::commit_log::Committing;
use crate::commit::state::CommitState;
use crate::engine::{Engine, EngineError, Level};
use crate::rt::lock_order::{Condvar, Mutex, rank};
use crate::rt::pool::lower_priority;
use crate::rt::weak_world::WeakWorld;
use crate::storage::engine_cell::EngineGuard;
use crate::storage::error::Error;
use crate::storage::options::Durability;

impl CommitState {
    /// Waits until a commit survives the event of a level. Before a sync it waits a moment for the members of `group`.
    ///
    /// # Errors
    /// The error of a failed write or sync; the world is read-only from then on.
    pub(crate) fn persist(
        &self,
        seq: u64,
        level: Level,
        group: Option<GroupMember<'_>>,
    ) -> Result<(), Error> {
        // The engine reaches the number of a staged commit before all its rows are in place. So the queue is asked
        // instead.
        while self.queue.holds_up_to(seq) {
            self.write_next(seq)?;
        }
        if level == Level::Power && self.shared.slot.reached()[1].get() < seq {
            if let Some(group) = group {
                group.wait(Durability::GROUP_COMMIT_WAIT);
            }
            self.shared.engine()?.sync()?;
        }
        Ok(())
    }

    /// As [`persist`](Self::persist), for the caller of the commit, who must know whether it may be written.
    pub(super) fn persist_own(
        &self,
        seq: u64,
        level: Level,
        group: Option<GroupMember<'_>>,
    ) -> Result<(), Error> {
        self.persist(seq, level, group).map_err(|error| in_doubt(self.fenced(seq, error)))
    }

    /// Encodes and writes the oldest queued commits up to a number, if there are any.
    ///
    /// While this thread writes, another one may encode the next commits.
    ///
    /// # Errors
    /// The error of this write, or of an earlier one.
    pub(super) fn write_next(&self, up_to: u64) -> Result<(), Error> {
        let encoding = self.queue.begin_encoding();
        // Other threads may have written it meanwhile.
        if !self.queue.holds_up_to(up_to) {
            return Ok(());
        }
        let taken = self.queue.take_run(up_to)?;
        if taken.is_empty() {
            // Another thread writes it. That thread took the right to write before it gave up the right to encode.
            drop(encoding);
            drop(self.queue.begin_writing());
            return Ok(());
        }
        let run = self.encode_run(taken);
        let _in_order = self.queue.begin_writing();
        // The next commits are numbered after a commit in parts, and that is numbered when it is written.
        let _encoding = run.is_in_parts().then_some(encoding);
        self.write_run(run)
    }

    /// Writes everything that was accepted before this call.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub(crate) fn drain(&self) -> Result<(), Error> {
        self.persist(self.log.published(), Level::Process, None)
    }

    /// Returns the engine when it holds everything that was accepted.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub(crate) fn drained_engine(&self) -> Result<EngineGuard<'_>, Error> {
        self.drain()?;
        Ok(self.shared.engine()?)
    }

    /// Returns the right to commit past the queue. The queue is empty, and stays empty while the right is held.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub(crate) fn commit_alone(&self) -> Result<Committing<'_>, Error> {
        let committing = self.hold_commits()?;
        self.queue.check()?;
        Ok(committing)
    }

    /// Keeps other commits out while the queue is empty. A world that takes no commits any more can be read under it.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub(crate) fn hold_commits(&self) -> Result<Committing<'_>, Error> {
        // Writes most of the queue before other commits have to wait for it.
        self.drain()?;
        let committing = self.log.commit();
        self.drain()?;
        Ok(committing)
    }
}

/// Converts an error of a commit that was accepted before. The result never states that nothing was written, unless
/// another writer has the world and the commit was never sent.
fn in_doubt(error: Error) -> Error {
    match error {
        Error::Engine(EngineError::ReadOnly { cause }) => EngineError::WriteFailed { cause }.into(),
        // The engine could not be opened again while the commit was being written.
        Error::Engine(error @ EngineError::NotReopened { .. }) => {
            EngineError::WriteFailed { cause: Arc::new(error) }.into()
        }
        error => error,
    }
}

/// The number of callers that are going to sync.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    coming: Mutex<usize, rank::GroupCommit>,
    all_here: Condvar,
}

/// A caller that is going to sync. Dropping the value reports that it has arrived, or has given up.
#[derive(Debug)]
pub(crate) struct GroupMember<'g>(&'g GroupCommit);

impl GroupCommit {
    /// Registers a caller that is going to commit and sync.
    pub(crate) fn join(&self) -> GroupMember<'_> {
        *self.coming.lock() += 1;
        GroupMember(self)
    }
}

impl GroupMember<'_> {
    /// Reports that the caller has committed. Waits at most `at_most` for the other registered callers.
    pub(crate) fn wait(self, at_most: Duration) {
        let group_commit = self.0;
        drop(self);
        let mut coming = group_commit.coming.lock();
        group_commit.all_here.wait_while_for(&mut coming, |coming| *coming > 0, at_most);
    }
}

impl Drop for GroupMember<'_> {
    fn drop(&mut self) {
        let mut coming = self.0.coming.lock();
        *coming -= 1;
        if *coming == 0 {
            self.0.all_here.notify_all();
        }
    }
}

/// A world is synced at most this often by itself.
const LEAST: Duration = Duration::from_millis(10);

impl CommitState {
    /// Starts the thread that syncs, unless nothing survives the process, nothing is written, or the host wants no
    /// syncs.
    pub(crate) fn start_syncing(&self) -> Result<(), Error> {
        let caps = self.shared.engine()?.caps();
        let can_sync = caps.durable && caps.levels_apart && !caps.read_only;
        if !can_sync || self.shared.options.durability == Durability::Fast {
            return Ok(());
        }
        let work = |_: &_, world: &_| sync_periodically(world);
        self.start_thread(|threads| &mut threads.syncing, "cg-store-sync", work)
    }
}

/// Syncs until the world ends. A commit waits at most for this time, without the time of the sync itself.
fn sync_periodically(world: &WeakWorld<CommitState>) {
    lower_priority();
    let Ok(every) = world.with_world(|world| world.shared.options.sync_every.max(LEAST)) else { return };
    let (mut has_told, mut idle) = (false, IdleSyncs::default());
    loop {
        // Waking early only makes the sync earlier.
        thread::park_timeout(every);
        let synced = world.with_world(|world| {
            let synced = step(&*world.shared.engine()?, &mut idle);
            world.keep_settings_file();
            synced
        });
        match synced {
            Ok(Ok(())) => has_told = false,
            // The engine never retries a failed sync, and refuses commits from now on. Resuming may replace the engine.
            Ok(Err(error)) if !has_told => {
                tracing::error!(%error, "no sync comes by itself until the world is resumed");
                has_told = true;
            }
            Ok(Err(_)) => {}
            Err(_) => return,
        }
    }
}

/// Syncs of an engine since its last batch, when all was synced already.
#[derive(Debug, Default)]
struct IdleSyncs {
    batch_count: u64,
    count: u32,
}

/// Idle syncs after each batch. In one of them the engine notes durably that all is synced: it ignores one that comes just
/// after it noted something else.
const IDLE_SYNCS: u32 = 2;

/// Syncs if there are commits that are not synced, and a few times after the last batch.
fn step(engine: &dyn Engine, idle: &mut IdleSyncs) -> Result<(), EngineError> {
    let batch_count = engine.batch_count();
    if idle.batch_count != batch_count {
        *idle = IdleSyncs { batch_count, count: 0 };
    }
    let is_synced = engine.last_commit() <= engine.last_synced();
    if is_synced && idle.count == IDLE_SYNCS {
        return Ok(());
    }
    match engine.sync() {
        // The host closed the world, and closing has synced it.
        Err(EngineError::Closed) => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            idle.count += u32::from(is_synced);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Batch, Fault, Level, MemEngine};
    use crate::{Property, World};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::Instant;

    #[test]
    fn what_was_accepted_is_never_said_to_have_left_nothing() {
        let cause = Arc::new(EngineError::OpenedReadOnly);
        let not_reopened = EngineError::NotReopened { cause: Arc::clone(&cause) };
        for error in [EngineError::ReadOnly { cause }, not_reopened] {
            assert!(error.wrote_nothing(), "{error}");
            let Error::Engine(told) = in_doubt(error.into()) else { panic!("it is the engine's") };
            assert!(matches!(told, EngineError::WriteFailed { .. }), "{told}");
        }
    }

    const FOR_EVER: Duration = Duration::from_secs(600);

    #[test]
    fn alone_nobody_waits() {
        let group_commit = GroupCommit::default();
        group_commit.join().wait(FOR_EVER);
    }

    #[test]
    fn all_leave_together_when_the_last_has_come() {
        let group_commit = GroupCommit::default();
        thread::scope(|scope| {
            let (first, last) = (group_commit.join(), group_commit.join());
            let waiting = scope.spawn(move || first.wait(FOR_EVER));
            last.wait(FOR_EVER);
            waiting.join().unwrap();
        });
    }

    #[test]
    fn nobody_waits_for_ever_for_one_who_does_not_come() {
        let group_commit = GroupCommit::default();
        let (_late, other) = (group_commit.join(), group_commit.join());
        let (begun, at_most) = (Instant::now(), Duration::from_millis(1));
        other.wait(at_most);
        assert!(begun.elapsed() >= at_most);
    }

    #[test]
    fn a_step_syncs_what_was_committed() {
        let engine = MemEngine::new();
        let seq = engine.commit(Batch::new(), &[], Level::Process).unwrap();
        assert!(engine.last_synced() < seq);
        let mut idle = IdleSyncs::default();
        step(&engine, &mut idle).unwrap();
        assert_eq!((engine.last_synced(), idle.count), (seq, 0));
        for expected in [1, 2, 2] {
            step(&engine, &mut idle).unwrap();
            assert_eq!(idle.count, expected);
        }
        engine.commit(Batch::new(), &[], Level::Process).unwrap();
        step(&engine, &mut idle).unwrap();
        assert_eq!(idle.count, 0, "there is something new");
        engine.close().unwrap();
        assert!(step(&engine, &mut idle).is_ok(), "a closed engine has nothing left to sync");
    }

    #[test]
    #[cfg(feature = "rocks")]
    fn a_commit_at_process_level_becomes_durable_without_being_asked() {
        use crate::WorldOptions;
        let home = tempfile::tempdir().unwrap();
        let options = WorldOptions { durability: Durability::Process, ..WorldOptions::default() };
        let world = World::builder().options(&options).create(home.path().join("world")).unwrap();
        let committed = world
            .transaction(|tx| {
                tx.set_property(Property::Time, Some(vec![7; 8]));
                Ok::<_, Error>(())
            })
            .unwrap();
        let ticket = committed.durable();
        let polls = (0..600).take_while(|_| {
            thread::sleep(Duration::from_millis(50));
            !ticket.is_durable()
        });
        assert!(polls.count() < 600, "it is synced within a second, and this waits for thirty");
    }

    /// Two commits, of which the first waits in the engine until a thread has taken the second and encoded it.
    fn overlapping(first: Option<Fault>) {
        let (at, [is_writing, may_end]) =
            (Arc::new(AtomicU64::new(0)), [(); 2].map(|()| Arc::new(Barrier::new(2))));
        let engine = MemEngine::new().with_fault({
            let (at, is_writing, may_end) = (Arc::clone(&at), Arc::clone(&is_writing), Arc::clone(&may_end));
            move |seq| {
                if seq.get() != at.load(Ordering::Relaxed) {
                    return None;
                }
                at.store(0, Ordering::Relaxed);
                is_writing.wait();
                may_end.wait();
                first
            }
        });
        let world = World::builder().over(engine).unwrap();
        let set = |token| {
            let set = world.transaction_at(Durability::Fast, |tx| {
                tx.set_property(Property::Time, Some(vec![token]));
                Ok::<_, Error>(())
            });
            set.unwrap().seq.get()
        };
        at.store(world.last_commit().get() + 1, Ordering::Relaxed);
        let (commit, seq) = (&world.rooms().commit, set(1));
        is_writing.wait();
        let second = set(2);
        thread::scope(|threads| {
            // A caller that has nothing to encode keeps nobody from it.
            let waits_for_first = threads.spawn(|| commit.persist(seq, Level::Process, None));
            thread::sleep(Duration::from_millis(50));
            let waits = threads.spawn(|| commit.persist(second, Level::Process, None));
            let is_encoded = || commit.queue.taken() == 2;
            let polls = (0..600).take_while(|_| {
                thread::sleep(Duration::from_millis(10));
                !is_encoded()
            });
            let polls = polls.count();
            may_end.wait();
            assert!(polls < 600, "the second commit is encoded while the first is written");
            let waited = waits.join().unwrap();
            assert_eq!(waits_for_first.join().unwrap().is_ok(), first.is_none());
            if first.is_none() {
                return waited.unwrap();
            }
            let Err(Error::Engine(EngineError::ReadOnly { cause })) = waited else { panic!("{waited:?}") };
            assert!(matches!(*cause, EngineError::NoSpace { .. }), "{cause}");
            assert_eq!(commit.queue.given_up_to(), seq, "the engine was not given the second");
            world.resume().unwrap();
        });
        assert!(commit.queue.is_empty());
        assert_eq!(world.last_commit().get(), second);
        assert_eq!(world.property(&Property::Time).unwrap(), Some(vec![2]), "the second was written last");
    }

    #[test]
    fn a_commit_is_encoded_while_the_one_before_it_is_written() {
        overlapping(None);
    }

    #[test]
    fn a_commit_that_was_encoded_when_the_one_before_it_failed_is_written_after_it() {
        overlapping(Some(Fault::NoSpace));
    }
}
