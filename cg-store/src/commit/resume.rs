//! Resuming after a failed write, such as on a full disk: the engine is opened again under the same handle.
//!
//! The library does not guess what reached the disk. It drops the old engine and checks the files as at any open. The
//! newest commit found must be the last one that was reported as written, or one of those whose write failed.
//!
//! | newest commit found | meaning |
//! |---|---|
//! | the last that was reported | the failed write left nothing; it is repeated if it was queued |
//! | a later one that the engine was given | the failed write got as far as this commit; the rest is repeated |
//! | an older one | reported commits are gone: the world stays read-only |
//! | one that the engine was not given | another process wrote: the world stays read-only |
//! | a commit of another opening, or rows of another owner | the world is fenced: it never writes again |
//!
//! **Invariant**: no commit, no write of the queue and no read runs while the engine is replaced. The commit lock, the
//! rights to encode and to write, and the engine are held, in [their order](crate::rt::lock_order).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::commit::commit_log::Committing;
use crate::commit::state::CommitState;
use crate::engine::{CommitSeq, Engine, EngineError, Failure, Reopen, Reopened};
use crate::read::delta::DeltaIndex;
use crate::storage::change_log::{BEGINNING, KeptLog};
use crate::storage::engine_cell::Vacant;
use crate::storage::error::{ConflictKey, Error, NotResumed};
use crate::storage::meta::WorldRows;
use crate::storage::recovery;

/// How long one try waits for all borrowed engine guards to return, while it keeps new borrowers out.
const SLICE: Duration = Duration::from_millis(50);
/// The pause after such a try, in which other threads may use the engine.
const PAUSE: Duration = Duration::from_millis(10);
/// How long tries are repeated at least.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of replacing an engine, from the first try to the one that succeeds.
pub(crate) struct Resumption {
    pub(super) begun: Option<Begun>,
    /// A commit past the queue whose write failed, with its number and the keys that it changes. It may be on the disk.
    pub(super) in_doubt: Option<(u64, Vec<ConflictKey>)>,
    /// The cause, once another writer has the world.
    pub(super) fenced: Option<Arc<EngineError>>,
}

impl Resumption {
    /// Nothing failed.
    pub(crate) const NONE: Self = Self { begun: None, in_doubt: None, fenced: None };
}

pub(super) struct Begun {
    /// Why the world is read-only.
    cause: Arc<EngineError>,
    /// The newest commit that was reported as written.
    pub(super) promised: u64,
    /// Set when the engine has been vacated for the first time.
    reopen: Option<Reopen>,
}

impl CommitState {
    /// Stores which keys a failed commit past the queue changes: it may be on the disk. The caller holds the commit
    /// lock.
    ///
    /// No commit may be queued after it, because that would get the same number.
    pub(crate) fn note_failure(&self, error: &EngineError, written: impl IntoIterator<Item = ConflictKey>) {
        if let Some(why) = error.fence().filter(|_| error.wrote_nothing()) {
            self.queue.fail(Arc::new(EngineError::Fenced { why: why.clone() }));
            return;
        }
        let is_first = !error.wrote_nothing() || matches!(error, EngineError::NoSpace { .. });
        let failure = self.shared.engine().ok().and_then(|engine| engine.failure());
        if let Some(failure) = failure.filter(|_| is_first) {
            let seq = self.log.published() + 1;
            // The commit lock excludes other callers. This does not wait, because locks that come later in the order
            // may be held.
            if let Some(mut resumption) = self.resumption.try_lock() {
                resumption.in_doubt = Some((seq, written.into_iter().collect()));
            }
            self.queue.fail(Arc::clone(failure.cause()));
        }
    }

    /// Opens the engine again if it takes no commits. Returns whether that was necessary.
    fn resume_within(&self, patience: Duration) -> Result<bool, Error> {
        let begun = Instant::now();
        loop {
            if let Some(resumed) = self.try_to_resume()? {
                return Ok(resumed);
            }
            let waited = begun.elapsed();
            if waited >= patience {
                return Err(NotResumed::InUse { waited }.into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// As [`resume_within`](Self::resume_within). Returns `None` if other threads still borrow the engine.
    fn try_to_resume(&self) -> Result<Option<bool>, Error> {
        let mut committing = self.log.commit();
        let _nothing_is_written = self.queue.stop_writing();
        self.shared.check_open()?;
        let mut resumption = self.resumption.lock();
        let resumption = &mut *resumption;
        if let Some(cause) = resumption.fenced.clone() {
            return Err(self.fenced_by(cause, resumption));
        }
        if resumption.begun.is_none() {
            let engine = self.shared.engine()?;
            if engine.caps().read_only {
                return Err(EngineError::OpenedReadOnly.into());
            }
            let cause = match engine.failure() {
                Some(failure) if failure.cause().fence().is_some() => Arc::clone(failure.cause()),
                Some(Failure::Sync(cause)) => return Err(NotResumed::SyncFailed { cause }.into()),
                Some(Failure::Write(cause)) => cause,
                None => match self.queue.failure() {
                    Some(cause) => cause,
                    None => return Ok(Some(false)),
                },
            };
            let promised = engine.last_commit().get();
            if cause.fence().is_some() {
                return Err(self.fenced_by(cause, resumption));
            }
            resumption.begun = Some(Begun { cause, promised, reopen: None });
        }
        if let Ok(engine) = self.shared.engine() {
            self.disk_guard.check_now(&*engine)?;
        }
        let Some(vacant) = self.shared.slot.vacate(SLICE) else { return Ok(None) };
        let Some(begun) = &mut resumption.begun else { return Ok(None) };
        // From here on the engine may take commits before the world does.
        self.queue.fail(Arc::clone(&begun.cause));
        match self.reopen(vacant, begun, &mut committing, &mut resumption.in_doubt) {
            Err(Error::NotResumed(NotResumed::NotReopened { cause })) if cause.fence().is_some() => {
                return Err(self.fenced_by(cause, resumption));
            }
            // While a staged commit was rolled forward.
            Err(Error::Engine(error)) if error.fence().is_some() => {
                return Err(self.fenced_by(Arc::new(error), resumption));
            }
            reopened => reopened?,
        }
        let engine = self.shared.engine()?;
        if let Err(error) = engine.sync() {
            let cause = Arc::new(error);
            self.queue.fail(Arc::clone(&cause));
            resumption.begun = None;
            return Err(match engine.failure() {
                _ if cause.fence().is_some() => self.fenced_by(cause, resumption),
                Some(Failure::Write(_)) => NotResumed::NotReopened { cause }.into(),
                Some(Failure::Sync(_)) | None => NotResumed::SyncFailed { cause }.into(),
            });
        }
        drop(engine);
        *resumption = Resumption::NONE;
        tracing::info!(world = ?self, commit = self.shared.slot.reached()[0].get(), "the world is writable again");
        self.queue.go_on();
        Ok(Some(true))
    }

    /// Replaces the engine by one that is opened anew, and updates the state in memory to what it holds.
    fn reopen(
        &self,
        mut vacant: Vacant<'_>,
        begun: &mut Begun,
        committing: &mut Committing<'_>,
        in_doubt: &mut Option<(u64, Vec<ConflictKey>)>,
    ) -> Result<(), Error> {
        let promised = begun.promised;
        if let Some(engine) = vacant.engine().filter(|_| begun.reopen.is_none()) {
            begun.reopen = Some(engine.reopening());
        }
        let Some(reopen) = &begun.reopen else { return Ok(()) };
        vacant.empty();
        let newest = self.queue.given_up_to().max(promised + 1);
        let engine = match reopen(&|found| Ok((promised..=newest).contains(&found.last_commit.get()))) {
            Ok(Reopened::Writable(engine)) => engine,
            Ok(Reopened::Unexpected(reader)) => {
                let (promised, found) = (CommitSeq::new(promised), reader.last_commit());
                self.put_back(vacant, reader, &begun.cause);
                return Err(if found < promised {
                    NotResumed::LostCommits { promised, found }.into()
                } else {
                    NotResumed::UnknownCommits { promised, found }.into()
                });
            }
            Ok(Reopened::Reader { engine, cause }) => {
                self.put_back(vacant, engine, &begun.cause);
                return Err(NotResumed::NotReopened { cause: Arc::new(cause) }.into());
            }
            Err(cause) => {
                let cause = Arc::new(cause);
                vacant.leave(Arc::clone(&cause));
                return Err(NotResumed::NotReopened { cause }.into());
            }
        };
        let found = engine.last_commit().get();
        let learnt = self.learn(&*engine, found, committing, in_doubt);
        self.put_back(vacant, engine, &begun.cause);
        learnt
    }

    /// Publishes an engine that was opened anew. Readers of one state are refused if the engine still holds a staged
    /// commit that is committed but not completely rolled forward.
    fn put_back(&self, vacant: Vacant<'_>, engine: Box<dyn Engine>, cause: &Arc<EngineError>) {
        // No thread borrows the engine, so no thread holds the apply latch.
        if recovery::is_left(&*engine).unwrap_or(true) {
            self.shared.slot.apply_latch().close().stuck(Arc::clone(cause));
        } else {
            self.shared.slot.apply_latch().open();
        }
        vacant.fill(engine);
    }

    /// Updates the state in memory to what an engine holds that was opened anew.
    fn learn(
        &self,
        engine: &dyn Engine,
        found: u64,
        committing: &mut Committing<'_>,
        in_doubt: &mut Option<(u64, Vec<ConflictKey>)>,
    ) -> Result<(), Error> {
        recovery::finish(engine)?;
        // The index may contain deltas of the failed write that are not stored.
        self.read.deltas.replace(DeltaIndex::read(engine)?);
        self.observer.reopened();
        if self.queue.was_written(found) || found <= self.log.published() {
            return Ok(());
        }
        // A commit past the queue. Its caller got an error, and readers have seen nothing of it.
        let mut rows = WorldRows::read(engine)?;
        rows.catalog.keep_declared(&self.shared.registry.catalog());
        self.shared.registry.replace(Arc::new(rows.catalog));
        if let Some(limits) = rows.limits {
            *self.shared.limits.write() = limits;
        }
        self.shared.tombstone_horizon.store(rows.tombstone_horizon, Ordering::Relaxed);
        self.shared.change_log.replace(&KeptLog::at_open(BEGINNING.get(&rows.view)));
        self.read.cache.clear();
        let written = in_doubt.take().filter(|(seq, _)| *seq == found).map(|(_, written)| written);
        committing.publish(found, written.unwrap_or_default());
        // If the keys of the commit were not recorded, the changed chunks are unknown.
        committing.forget_recent();
        Ok(())
    }

    /// Gives up what is held to open the rows again, because the world is closed.
    pub(crate) fn end_resumption(&self) {
        self.resumption.lock().begun = None;
    }

    /// See [`World::resume`](crate::World::resume).
    pub(crate) fn resume(&self) -> Result<(), Error> {
        if self.resume_within(PATIENCE)? {
            self.apply_submitted()?;
            let engine = self.drained_engine()?;
            Ok(engine.sync()?)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Batch, Fault, Level, MemEngine, Stamp};
    use crate::view::Area;
    use crate::{Durability, Property, World, WorldOptions};
    use cg_format::chunk::Chunk;
    use cg_format::frame::{Codec, Draft};
    use cg_format::staged::{Intent, PartWriter};
    use cg_format::{ChunkAt, ChunkPos, Dimension, Space, key};
    use std::ops::ControlFlow;
    use std::sync::atomic::AtomicU64;

    fn set(world: &World, token: u8) -> Result<(), Error> {
        let set = world.transaction_at(Durability::Process, |tx| {
            tx.set_property(Property::Time, Some(vec![token]));
            tx.save(
                at(),
                Chunk::filled(
                    tx.catalog().block_id(":air").expect("is registered"),
                    &tx.catalog().current_schema(),
                )?,
            );
            Ok::<_, Error>(())
        });
        set.map(drop)
    }

    fn at() -> ChunkAt {
        ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0))
    }

    /// Returns a world whose next write fails, and the number that selects this write.
    fn about_to_fail(free: &Arc<AtomicU64>) -> (World, Arc<AtomicU64>) {
        let fails_at = Arc::new(AtomicU64::new(0));
        let engine = MemEngine::new().with_fault({
            let fails_at = Arc::clone(&fails_at);
            move |seq| (seq.get() == fails_at.load(Ordering::Relaxed)).then_some(Fault::NoSpace)
        });
        let engine = engine.with_free_bytes({
            let free = Arc::clone(free);
            move || free.load(Ordering::Relaxed)
        });
        let options = WorldOptions { min_free_bytes: Some(DEMANDED), ..WorldOptions::default() };
        let world = World::builder().options(&options).over(engine).unwrap();
        world.registry().register_blocks([":air"]).unwrap();
        world.registry().register_dimension("game:overworld").unwrap();
        set(&world, 1).unwrap();
        fails_at.store(world.last_commit().get() + 1, Ordering::Relaxed);
        (world, fails_at)
    }

    const DEMANDED: u64 = 1 << 20;

    #[test]
    fn a_wait_for_the_engine_holds_no_lock_that_replacing_it_takes() {
        let world = World::builder().in_memory().unwrap();
        let rooms = world.rooms();
        let vacant = rooms.shared.slot.vacate(PATIENCE).unwrap();
        std::thread::scope(|threads| {
            let asks = threads.spawn(|| world.metrics().tiles_waiting);
            let commits = threads.spawn(|| rooms.shared.batch_limit().is_ok());
            // Until both wait.
            std::thread::sleep(SLICE);
            let is_free = [
                rooms.maintain.activity.dirty_tiles.try_lock().is_some(),
                rooms.shared.limits.try_write().is_some(),
            ];
            drop(vacant);
            assert_eq!((asks.join().unwrap(), commits.join().unwrap()), (0, true));
            assert_eq!(is_free, [true; 2]);
        });
    }

    #[test]
    fn who_reads_without_end_keeps_the_world_from_being_resumed_and_is_named() {
        let (world, fails_at) = about_to_fail(&Arc::new(AtomicU64::new(u64::MAX)));
        set(&world, 2).unwrap_err();
        fails_at.store(0, Ordering::Relaxed);
        let walked = world.read_view(|view| {
            view.for_each_chunk(Area::World, |_| {
                let error = world.rooms().commit.resume_within(Duration::ZERO).unwrap_err();
                assert!(matches!(error, Error::NotResumed(NotResumed::InUse { .. })), "{error}");
                ControlFlow::Break(())
            })
        });
        assert_eq!(walked.unwrap(), Some(()), "there is a chunk");
        set(&world, 2).unwrap_err();
        assert!(world.rooms().commit.resume_within(Duration::ZERO).unwrap());
        set(&world, 3).unwrap();
        assert_eq!(world.property(&Property::Time).unwrap(), Some(vec![3]));
    }

    /// The rows of a staged commit after its commit point, before any of it is rolled forward.
    #[test]
    fn what_cannot_be_carried_out_is_told_to_who_wants_one_state() {
        let (world, fails_at) = about_to_fail(&Arc::new(AtomicU64::new(u64::MAX)));
        let seq = world.last_commit().get();
        let (mut intent, part) = (Intent::default(), PartWriter::new().into_bytes());
        intent.add(&part);
        let mut batch = Batch::new();
        let draft = Draft::plain(Codec::None, 0, |out| out.extend(&part));
        batch.put(Space::Intent, key::staged(seq, 0), draft, Stamp::Commit);
        let draft = Draft::plain(Codec::None, 0, |out| intent.encode(out));
        batch.put(Space::Intent, key::intent(seq), draft, Stamp::Commit);
        world.engine().commit(batch.maintenance(), &[], Level::Process).unwrap();
        set(&world, 2).unwrap_err();
        let walk =
            || world.read_view(|view| view.for_each_chunk(Area::World, |_| ControlFlow::<()>::Continue(())));
        assert_eq!(walk().unwrap(), None, "it is not known yet");
        fails_at.store(seq, Ordering::Relaxed);
        for _ in 0..2 {
            let error = world.resume().unwrap_err();
            assert!(matches!(error, Error::Engine(EngineError::NoSpace { .. })), "{error}");
            let error = walk().unwrap_err();
            let Error::Engine(EngineError::ReadOnly { cause }) = &error else { panic!("{error}") };
            assert!(matches!(**cause, EngineError::NoSpace { .. }), "{cause}");
        }
        fails_at.store(0, Ordering::Relaxed);
        world.resume().unwrap();
        assert_eq!(walk().unwrap(), None);
    }

    #[test]
    fn without_room_a_world_is_not_opened_again() {
        let free = Arc::new(AtomicU64::new(u64::MAX));
        let (world, fails_at) = about_to_fail(&free);
        set(&world, 2).unwrap_err();
        fails_at.store(0, Ordering::Relaxed);
        free.store(DEMANDED - 1, Ordering::Relaxed);
        for _ in 0..2 {
            let error = world.resume().unwrap_err();
            let Error::LowDiskSpace { free_bytes, min_free_bytes: DEMANDED } = error else {
                panic!("{error}")
            };
            assert_eq!(free_bytes, DEMANDED - 1);
        }
        free.store(DEMANDED, Ordering::Relaxed);
        world.resume().unwrap();
        assert_eq!(world.property(&Property::Time).unwrap(), Some(vec![1]), "what was refused was not made");
    }
}
