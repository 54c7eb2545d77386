//! An engine over another that fails at the nth call, and worlds that go on behind it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::moves::{play, player, tiers};
use super::*;
use cg_format::Space;
use cg_store::engine::{
    Caps, CommitSeq, EngineError, Failure, Guard, KeyRange, Place, ReadView, Reopen, Reopened, RocksOptions,
    Usage,
};
use cg_store::{Area, Durable, NotResumed, StoreLimits};
use cg_tiering::GameTick;
use std::time::Duration;

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The disk is full.
    NoSpace,
    /// The write fails and leaves nothing.
    Lost,
    /// The write fails and is there all the same.
    Whole,
    /// The sync fails.
    Sync,
    /// A sync of somebody else fails behind the commit, which is there.
    SyncBehind,
}

/// Which call fails how; shared by all engines that come one after the other.
#[derive(Debug, Default)]
struct Plan {
    next: Mutex<Option<(u64, Fault)>>,
    /// Commits that were reported and are to be missing at the next open.
    forget_commits: AtomicBool,
    /// Whether the next opens are for reading only.
    only_reads: AtomicBool,
    /// A hot row that no scan gets past.
    unreadable: Mutex<Option<Vec<u8>>>,
    /// Scans that were made.
    scans: AtomicU64,
}

impl Plan {
    fn fail(&self, nth: u64, fault: Fault) {
        *self.next.lock().expect("no panic") = Some((nth, fault));
    }

    fn fail_no_more(&self) {
        *self.next.lock().expect("no panic") = None;
    }

    /// The fault of a call, if it is its turn.
    fn call(&self, is_sync: bool) -> Option<Fault> {
        let mut next = self.next.lock().expect("no panic");
        let (left, fault) = next.as_mut()?;
        if is_sync != (*fault == Fault::Sync) {
            return None;
        }
        *left -= 1;
        if *left > 0 { None } else { next.take().map(|(_, fault)| fault) }
    }
}

/// An engine that fails as it is planned.
struct Faulty<E> {
    engine: E,
    plan: Arc<Plan>,
    failed: OnceLock<Failure>,
    /// The newest commit that was reported.
    reported: AtomicU64,
}

impl<E: Engine> Faulty<E> {
    fn new(engine: E, plan: Arc<Plan>) -> Self {
        let reported = AtomicU64::new(engine.last_commit().get());
        Self { engine, plan, failed: OnceLock::new(), reported }
    }

    fn check(&self) -> Result<(), EngineError> {
        match self.failed.get() {
            Some(failure) => Err(EngineError::ReadOnly { cause: Arc::clone(failure.cause()) }),
            None => Ok(()),
        }
    }

    fn fail(&self, what: &str, failure: impl FnOnce(Arc<EngineError>) -> Failure) -> Arc<EngineError> {
        let source = std::io::Error::other(format!("{what} by request"));
        let cause = Arc::new(EngineError::Io { path: "the disk".into(), source });
        assert!(self.failed.set(failure(Arc::clone(&cause))).is_ok(), "an engine that failed goes on");
        cause
    }
}

impl<E: Engine> ReadView for Faulty<E> {
    type Val<'a> = E::Val<'a>;

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Self::Val<'_>>, EngineError> {
        self.engine.get(space, key)
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Self::Val<'_>>, EngineError>> {
        self.engine.get_many(keys)
    }

    fn scan<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        self.plan.scans.fetch_add(1, Ordering::Relaxed);
        let unreadable = self.plan.unreadable.lock().expect("no panic").clone();
        let unreadable = unreadable.filter(|_| family == Family::ChunkL0);
        let stopped = self.engine.scan(family, range, |key, row| {
            if unreadable.as_deref() == Some(key) {
                return ControlFlow::Break(None);
            }
            visit(key, row).map_break(Some)
        })?;
        match stopped {
            Some(None) => Err(EngineError::Corrupt {
                place: Place::Family(family),
                message: "a damaged block by request".into(),
            }),
            stopped => Ok(stopped.flatten()),
        }
    }
}

impl<E: Engine> Engine for Faulty<E> {
    type Snapshot<'a> = E::Snapshot<'a>;

    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.check()?;
        match self.plan.call(false) {
            Some(Fault::NoSpace) => {
                let cause = self.fail("no space", Failure::Write);
                return Err(EngineError::NoSpace { message: cause.to_string() });
            }
            Some(Fault::SyncBehind) => {
                let seq = self.engine.commit(batch, guards, level)?;
                self.reported.store(seq.get(), Ordering::Release);
                self.fail("sync failed", Failure::Sync);
                return Ok(seq);
            }
            Some(Fault::Whole) => {
                self.engine.commit(batch, guards, level)?;
                return Err(EngineError::WriteFailed { cause: self.fail("write failed", Failure::Write) });
            }
            Some(_) => {
                return Err(EngineError::WriteFailed { cause: self.fail("write failed", Failure::Write) });
            }
            None => {}
        }
        let seq = self.engine.commit(batch, guards, level)?;
        self.reported.store(seq.get(), Ordering::Release);
        Ok(seq)
    }

    fn snapshot(&self) -> Self::Snapshot<'_> {
        self.engine.snapshot()
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.check()?;
        if self.plan.call(true).is_some() {
            let cause = self.fail("sync failed", Failure::Sync);
            return Err(EngineError::SyncFailed { seq: self.last_commit(), cause });
        }
        self.engine.sync()
    }

    fn last_commit(&self) -> CommitSeq {
        CommitSeq::new(self.reported.load(Ordering::Acquire))
    }

    fn batch_count(&self) -> u64 {
        self.engine.batch_count()
    }

    fn last_synced(&self) -> CommitSeq {
        self.engine.last_synced()
    }

    fn checkpoint(&self, dir: &Path) -> Result<(), EngineError> {
        self.engine.checkpoint(dir)
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.engine.flush()
    }

    fn compact(&self, family: Family, range: KeyRange<'_>) -> Result<(), EngineError> {
        self.engine.compact(family, range)
    }

    fn close(&self) -> Result<(), EngineError> {
        self.engine.close()
    }

    fn failure(&self) -> Option<Failure> {
        self.failed.get().cloned()
    }

    fn reopening(&self) -> Reopen<Self> {
        let (reopen, plan) = (self.engine.reopening(), Arc::clone(&self.plan));
        Box::new(move |expects| {
            let forgotten = u64::from(plan.forget_commits.load(Ordering::Relaxed));
            let wrap = |engine: E| {
                let engine = Self::new(engine, Arc::clone(&plan));
                engine.reported.fetch_sub(forgotten, Ordering::Relaxed);
                engine
            };
            let reopened = reopen(&|found| expects(CommitSeq::new(found.get() - forgotten)))?.map(wrap);
            Ok(match reopened {
                Reopened::Writable(engine) if plan.only_reads.load(Ordering::Relaxed) => {
                    Reopened::Reader { engine, cause: EngineError::OpenedReadOnly }
                }
                reopened => reopened,
            })
        })
    }

    fn free_bytes(&self) -> Option<u64> {
        self.engine.free_bytes()
    }

    fn caps(&self) -> Caps {
        self.engine.caps()
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        self.engine.usage()
    }
}

/// A world over an engine that fails as it is planned, with no memory of chunks.
struct Failing<E: Engine> {
    world: World<Faulty<E>>,
    plan: Arc<Plan>,
    ids: Ids,
}

impl<E: Engine> Failing<E> {
    fn over(engine: E) -> Self {
        Self::in_batches_of(StoreLimits::default().batch_bytes, engine)
    }

    /// A world whose batches are no larger than this.
    fn in_batches_of(batch_bytes: u64, engine: E) -> Self {
        let plan = Arc::new(Plan::default());
        let limits = StoreLimits { batch_bytes, ..StoreLimits::default() };
        let options = WorldOptions { cache_bytes: 0, durability: Durability::Fast, limits, ..options() };
        let engine = Faulty::new(engine, Arc::clone(&plan));
        let world = World::temporary_over(engine, &[], &options).expect("begins");
        let ids = Ids::register(&world);
        Self { world, plan, ids }
    }

    /// The chunk, the entity and the property of a step.
    fn put(&self, durability: Durability, step: i64) -> Result<Durable<Faulty<E>>, Error> {
        let Self { world, ids, .. } = self;
        let committed = world.transaction_at(durability, |tx| {
            let at = ids.at(step, 0, 0);
            tx.save(at, filled(world, ids.stone));
            tx.put_entity(uuid(step as u128), ids.cow_in(at));
            tx.set_property(Property::Named(name(&format!("game:step/{step}"))), Some(vec![step as u8]));
            Ok::<_, Error>(())
        });
        Ok(committed?.durable())
    }

    /// Whether a step is there, which it is wholly or not at all.
    #[track_caller]
    fn has(&self, step: i64) -> bool {
        let (world, at) = (&self.world, self.ids.at(step, 0, 0));
        let parts = [
            world.load(at).expect("loads").is_some(),
            world.entity(uuid(step as u128)).expect("reads").is_some(),
            world.property(&Property::Named(name(&format!("game:step/{step}")))).expect("reads").is_some(),
        ];
        assert!(parts == [parts[0]; 3], "step {step} is torn: {parts:?}");
        parts[0]
    }
}

/// Steps of a script: what is done, and what is to be found if it succeeded.
const SCRIPT: [Durability; 7] = [
    Durability::Process,
    Durability::Fast,
    Durability::Balanced,
    Durability::Safe,
    Durability::Fast,
    Durability::SafeBatch,
    Durability::Process,
];

/// Runs the script with a failing nth commit, resumes, and looks for every step.
fn fails_and_goes_on(failing: &Failing<impl Engine>, nth: u64, fault: Fault) {
    let Failing { world, plan, .. } = failing;
    let context = format!("{fault:?} at commit {nth}");
    plan.fail(nth, fault);
    let mut tickets = Vec::new();
    let mut ends = Vec::new();
    for (step, durability) in SCRIPT.into_iter().enumerate() {
        let end = failing.put(durability, step as i64);
        // A name between two steps is a commit past the queue.
        let name = format!("game:dimension{step}");
        ends.push((name.clone(), end.as_ref().err().map(cant_be_there), world.register_dimension(&name)));
        tickets.extend(end);
    }
    assert!(world.engine().failure().is_some(), "{context}: nothing failed");
    for ticket in &tickets {
        match ticket.wait_for(Level::Process) {
            Ok(()) | Err(Error::Engine(EngineError::ReadOnly { .. })) => {}
            Err(error) => panic!("{context}: {error}"),
        }
    }
    let last = world.last_commit();
    world.resume().unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(world.last_commit() >= last, "{context}: promised commits are gone");
    assert!(tickets.iter().all(Durable::is_durable), "{context}: a ticket was forgotten");
    for (step, (name, end, named)) in ends.iter().enumerate() {
        let (is_there, is_named) = (failing.has(step as i64), world.dimension(name).is_some());
        match end {
            None => assert!(is_there, "{context}: step {step} was accepted and is gone"),
            Some(true) => assert!(!is_there, "{context}: step {step} wrote nothing and is there"),
            Some(false) => {}
        }
        match named {
            Ok(_) => assert!(is_named, "{context}: a name was given and is gone"),
            Err(error) if cant_be_there(error) => {
                assert!(!is_named, "{context}: a name was refused: {error}");
            }
            Err(_) => assert_eq!(is_named, fault == Fault::Whole, "{context}: {name}"),
        }
    }
    // Everything goes on, in the memory that was brought up to the disk.
    for (step, (name, ..)) in ends.iter().enumerate() {
        failing.put(Durability::Safe, step as i64).unwrap_or_else(|error| panic!("{context}: {error}"));
        world.register_dimension(name).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(failing.has(step as i64), "{context}");
    }
    assert_sound(world);
    world.close().unwrap_or_else(|error| panic!("{context}: {error}"));
}

/// Whether an error says that nothing was written, and is one that a failed disk may give.
#[track_caller]
fn cant_be_there(error: &Error) -> bool {
    match error {
        Error::Engine(error @ (EngineError::NoSpace { .. } | EngineError::ReadOnly { .. })) => {
            error.wrote_nothing()
        }
        Error::Engine(EngineError::WriteFailed { .. }) => false,
        error => panic!("{error}"),
    }
}

fn every_commit_fails_once<E: Engine>(every: usize, over: impl Fn() -> E) {
    for fault in [Fault::NoSpace, Fault::Lost, Fault::Whole] {
        for nth in (1..=2 * SCRIPT.len() as u64).step_by(every) {
            fails_and_goes_on(&Failing::over(over()), nth, fault);
        }
    }
}

/// Chunks whose moves are cut off by a failed write, which left nothing or all of it, still grow cold in time.
#[test]
fn moves_that_failed_are_looked_at_again() {
    const MINUTE: u64 = 60 * cg_tiering::GameTick::PER_SECOND;
    for fault in [Fault::Whole, Fault::Lost] {
        for nth in 1..=6 {
            let Failing { world, plan, ids } = Failing::over(MemEngine::new());
            // What comes behind the round that looks for rows is known from commits alone.
            play(&world, 1, &[]);
            let all: Vec<_> = (0..8).map(|n| ids.at(4 * (n % 4), 4 * (n / 4), 0)).collect();
            save(&world, all.iter().map(|at| (*at, filled(&world, ids.stone))));
            // Somebody is neither near nor far.
            let watcher = [player(1, ids.overworld, -200, 60, 100)];
            play(&world, 2, &watcher);
            world.flush().expect("is written");
            plan.fail(nth, fault);
            let mut failed = 0;
            for tick in 0..700 {
                let now = cg_tiering::GameTick::new(5 * MINUTE + 10 + tick);
                if world.tick(now, &watcher, std::time::Duration::from_secs(600)).is_err() {
                    failed += 1;
                    world.resume().expect("goes on");
                }
            }
            assert_eq!(failed, 1, "{fault:?} at move {nth}");
            assert_eq!(tiers(&world), [0, 8, 0], "{fault:?} at move {nth}");
            play(&world, 8 * 60 * MINUTE, &[]);
            assert_eq!(tiers(&world), [0, 0, 8], "{fault:?} at move {nth}");
        }
    }
}

#[test]
fn rows_that_cannot_be_read_keep_no_tick_from_moving_others() {
    let Failing { world, plan, ids } = Failing::over(MemEngine::new());
    play(&world, 1, &[]);
    let chunk = || filled(&world, ids.stone);
    save(&world, [0, 4, 8, 40].map(|x| (ids.at(x, 0, 0), chunk())));
    world.flush().expect("is written");
    let hide = |row: Option<ChunkAt>| {
        *plan.unreadable.lock().expect("no panic") = row.map(|at| cg_format::key::chunk(at).into());
    };
    hide(Some(ids.at(4, 0, 0)));
    let day = 24 * 60 * 60 * cg_tiering::GameTick::PER_SECOND;
    play(&world, day, &[]);
    play(&world, day + 1, &[]);
    hide(None);
    assert_eq!(tiers(&world), [1, 0, 3], "known from commits");
    hide(Some(ids.at(4, 0, 0)));
    // Now all rows are looked for again.
    plan.fail(1, Fault::Lost);
    save(&world, [(ids.at(12, 0, 0), chunk())]);
    world.flush().expect_err("the write fails");
    world.resume().expect("goes on");
    for tick in 0..20 {
        play(&world, 2 * day + tick, &[]);
    }
    hide(None);
    assert_eq!(tiers(&world), [1, 0, 4], "found by the round");
}

#[test]
fn whichever_commit_fails_all_that_was_promised_is_there_when_the_world_goes_on() {
    every_commit_fails_once(1, MemEngine::new);
}

#[test]
fn whichever_commit_fails_on_disk_all_that_was_promised_is_there_when_the_world_goes_on() {
    let disk = Disk::new();
    let number = AtomicU64::new(0);
    every_commit_fails_once(3, || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let db = disk.root().join(format!("db{number}"));
        RocksEngine::create(&db, &RocksOptions::default()).expect("is created")
    });
}

/// Every step takes about twelve batches.
fn every_batch_of_large_commits_fails_once<E: Engine>(every: usize, over: impl Fn() -> E) {
    const BATCH_BYTES: u64 = 200;
    for fault in [Fault::NoSpace, Fault::Lost, Fault::Whole] {
        for nth in (1..=60).step_by(every) {
            let failing = Failing::in_batches_of(BATCH_BYTES, over());
            fails_and_goes_on(&failing, nth, fault);
        }
    }
    let failing = Failing::in_batches_of(BATCH_BYTES, over());
    let before = failing.world.engine().batch_count();
    failing.put(Durability::Process, 0).expect("commits");
    assert!(failing.world.engine().batch_count() - before > 8, "it takes many batches");
}

#[test]
fn whichever_batch_of_a_large_commit_fails_it_is_there_when_the_world_goes_on() {
    every_batch_of_large_commits_fails_once(1, MemEngine::new);
}

#[test]
fn whichever_batch_of_a_large_commit_fails_on_disk_it_is_there_when_the_world_goes_on() {
    let disk = Disk::new();
    let number = AtomicU64::new(0);
    every_batch_of_large_commits_fails_once(11, || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let db = disk.root().join(format!("db{number}"));
        RocksEngine::create(&db, &RocksOptions::default()).expect("is created")
    });
}

fn count_chunks(world: &World<impl Engine>) -> Result<i64, Error> {
    let mut count = 0;
    let walked = world.for_each_chunk(Area::World, |_| {
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    walked.map(|_| count)
}

/// So many chunks take some twenty batches of 200 bytes.
const LARGE: i64 = 12;

fn put_large<E: Engine>(Failing { world, ids, .. }: &Failing<E>) -> Result<(), Error> {
    let large = world.transaction_at(Durability::Process, |tx| {
        for x in 0..LARGE {
            tx.save(ids.at(x, 0, 0), filled(world, ids.stone));
        }
        Ok::<_, Error>(())
    });
    large.map(drop)
}

#[test]
fn a_sync_that_fails_beside_a_large_commit_leaves_all_of_it_or_nothing() {
    let mut found = Vec::new();
    for nth in 1.. {
        let failing = Failing::in_batches_of(200, MemEngine::new());
        let Failing { world, plan, ids } = &failing;
        plan.fail(nth, Fault::SyncBehind);
        let large = put_large(&failing);
        let has_failed = world.engine().failure().is_some();
        match &large {
            Ok(()) | Err(Error::Engine(EngineError::WriteFailed { .. })) => {}
            Err(error) => panic!("batch {nth}: {error}"),
        }
        // Memory has what was accepted; the rows are shown with all of it or not at all.
        assert!(world.load(ids.at(LARGE - 1, 0, 0)).expect("loads").is_some());
        match count_chunks(world) {
            Ok(count) => assert_eq!((count, large.is_ok()), (LARGE, true), "batch {nth}"),
            Err(Error::Engine(EngineError::ReadOnly { .. })) => assert!(large.is_err(), "batch {nth}"),
            Err(error) => panic!("batch {nth}: {error}"),
        }
        if !has_failed {
            break;
        }
        let error = world.resume().expect_err("nobody knows what is on the disk");
        assert!(matches!(error, Error::NotResumed(NotResumed::SyncFailed { .. })), "{error}");
        let reopen = world.engine().reopening();
        drop(failing);
        let Reopened::Writable(engine) = reopen(&|_| true).expect("opens") else { panic!("writable") };
        let world = World::over(engine, uuid::Uuid::from_u128(5), |_| Ok(()), &options()).expect("opens");
        found.push(count_chunks(&world).expect("walks"));
        assert_sound(&world);
    }
    assert!(found.is_sorted() && found.iter().all(|count| [0, LARGE].contains(count)), "{found:?}");
    assert!(found[5] == 0 && found[found.len() - 5] == LARGE, "{found:?}");
}

/// A commit that counts although the write that said so failed, and that fails again while the world is resumed: nobody
/// who wants one state sees it in part, or a state without it.
fn nobody_sees_half_while_the_world_is_not_resumed<E: Engine>(every: usize, over: impl Fn() -> E) {
    let (mut told, mut nth) = (0, 1);
    loop {
        let mut failed = 0;
        for only_reads in [false, true] {
            let context = format!("batch {nth}, only reads: {only_reads}");
            let failing = Failing::in_batches_of(200, over());
            let Failing { world, plan, ids } = &failing;
            plan.fail(nth, Fault::Whole);
            if put_large(&failing).is_ok() {
                continue;
            }
            failed += 1;
            plan.only_reads.store(only_reads, Ordering::Relaxed);
            if !only_reads {
                plan.fail(3, Fault::Lost);
            }
            let resumed = world.resume();
            assert!(resumed.is_err() || !only_reads, "{context}");
            match count_chunks(world) {
                Ok(count) => assert_eq!(count, LARGE, "{context}"),
                Err(Error::Engine(EngineError::ReadOnly { .. })) => told += 1,
                Err(error) => panic!("{context}: {error}"),
            }
            for x in 0..LARGE {
                assert!(world.load(ids.at(x, 0, 0)).expect("memory serves on").is_some(), "{context}");
            }
            plan.only_reads.store(false, Ordering::Relaxed);
            plan.fail_no_more();
            world.resume().unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(count_chunks(world).expect("walks"), LARGE, "{context}");
            assert_sound(world);
        }
        if failed == 0 {
            break;
        }
        nth += every as u64;
    }
    assert!(told > 4, "{told} of {nth}");
}

#[test]
fn nobody_sees_half_of_a_commit_while_the_world_is_not_resumed() {
    nobody_sees_half_while_the_world_is_not_resumed(1, MemEngine::new);
}

#[test]
fn nobody_sees_half_of_a_commit_on_disk_while_the_world_is_not_resumed() {
    let disk = Disk::new();
    let number = AtomicU64::new(0);
    nobody_sees_half_while_the_world_is_not_resumed(7, || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let db = disk.root().join(format!("db{number}"));
        RocksEngine::create(&db, &RocksOptions::default()).expect("is created")
    });
}

fn a_failed_sync_is_never_resumed(failing: &Failing<impl Engine>) {
    let Failing { world, plan, .. } = failing;
    failing.put(Durability::Safe, 0).expect("commits");
    plan.fail(1, Fault::Sync);
    let error = failing.put(Durability::Safe, 1).expect_err("the sync fails");
    assert!(matches!(error, Error::Engine(EngineError::SyncFailed { .. })), "{error}");
    for _ in 0..2 {
        let error = world.resume().expect_err("nobody knows what is on the disk");
        let Error::NotResumed(NotResumed::SyncFailed { .. }) = error else { panic!("{error}") };
        assert_eq!(
            error.to_string(),
            "the world stays read-only: a sync failed, and nobody knows what is on the disk now \
             (the disk: sync failed by request); close the world, check the disk, open the world again and run \
             `cg verify`, or restore a backup"
        );
    }
    let error = failing.put(Durability::Process, 2).expect_err("takes nothing");
    assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
    assert!(failing.has(0) && failing.has(1) && !failing.has(2), "reads go on");
}

#[test]
fn a_failed_sync_is_never_resumed_in_memory() {
    a_failed_sync_is_never_resumed(&Failing::over(MemEngine::new()));
}

#[test]
fn a_failed_sync_is_never_resumed_on_disk() {
    let disk = Disk::new();
    let engine = RocksEngine::create(&disk.root().join("db"), &RocksOptions::default()).expect("is created");
    a_failed_sync_is_never_resumed(&Failing::over(engine));
}

#[test]
fn a_sync_that_fails_while_resuming_is_told_and_ends_it() {
    let failing = Failing::over(MemEngine::new());
    failing.plan.fail(1, Fault::Lost);
    failing.put(Durability::Process, 0).expect_err("fails");
    failing.plan.fail(1, Fault::Sync);
    for _ in 0..2 {
        let error = failing.world.resume().expect_err("cannot be synced");
        assert!(matches!(error, Error::NotResumed(NotResumed::SyncFailed { .. })), "{error}");
    }
    failing.put(Durability::Process, 1).expect_err("takes nothing");
    assert!(!failing.has(0) && !failing.has(1));
}

#[test]
fn promised_commits_that_are_gone_keep_the_world_read_only_and_what_is_left_is_read() {
    let failing = Failing::over(MemEngine::new());
    let Failing { world, plan, .. } = &failing;
    failing.put(Durability::Process, 0).expect("commits");
    let promised = world.last_commit();
    plan.fail(1, Fault::NoSpace);
    failing.put(Durability::Process, 1).expect_err("fails");
    plan.forget_commits.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let error = world.resume().expect_err("commits are gone");
        let Error::NotResumed(NotResumed::LostCommits { promised: told, found }) = error else {
            panic!("{error}")
        };
        assert_eq!((told, found), (promised, promised - 1));
        let error = failing.put(Durability::Process, 2).expect_err("takes nothing");
        assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
        assert!(failing.has(0));
    }
    // The disk that was not there is there again.
    plan.forget_commits.store(false, Ordering::Relaxed);
    world.resume().expect("all are there");
    failing.put(Durability::Safe, 2).expect("commits");
    assert!(failing.has(0) && !failing.has(1) && failing.has(2));
    assert_sound(world);
}

#[test]
fn a_world_that_is_writable_or_read_only_by_choice_has_nothing_to_resume() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    world.resume().expect("there is nothing to do");
    world.close().expect("closes");
    let error = world.resume().expect_err("is closed");
    assert!(matches!(error, Error::Closed), "{error}");
    drop(world);
    let world = World::open_read_only(disk.path(), &options()).expect("opens");
    let error = world.resume().expect_err("was opened for reading");
    assert!(matches!(error, Error::Engine(EngineError::OpenedReadOnly)), "{error}");
}

/// To find the end of what cannot be read takes some hundred scans.
fn the_end_of_a_gap_is_looked_for_once(engine: impl Engine) {
    let failing = Failing::over(engine);
    let Failing { world, plan, ids } = &failing;
    // Cubes with heat and without hot rows, each in a cold cluster of its own, in front of a row that nobody can read.
    let warm: Vec<_> = (0..40).map(|n| ids.at(16 * n, 0, 0)).collect();
    save(world, warm.iter().map(|at| (*at, filled(world, ids.stone))));
    for now in 1..=21 {
        world.tick(GameTick::new(now), &[], Duration::from_secs(60)).expect("ticks");
    }
    world.flush().expect("flushes");
    super::tier::demote(world, cg_format::ClusterTier::L1, &warm, false);
    let far = ids.at(16 * 500, 0, 0);
    save(world, [(far, filled(world, ids.stone))]);
    world.flush().expect("flushes");
    // A failure and what follows from it makes ticks search the world anew.
    plan.fail(1, Fault::Lost);
    world.register_dimension("game:lost").expect_err("is not written");
    world.resume().expect("goes on");
    *plan.unreadable.lock().expect("no panic") = Some(cg_format::key::chunk(far).into());
    let before = plan.scans.load(Ordering::Relaxed);
    let mut told = Vec::new();
    for now in 22..=42 {
        told.extend(world.tick(GameTick::new(now), &[], Duration::from_secs(60)).expect("ticks").damaged);
    }
    let scans = plan.scans.load(Ordering::Relaxed) - before;
    assert_eq!(told.len(), 1, "{told:?}");
    // Three for each cluster, and the others once.
    assert!(scans < 3 * 40 + 2000, "{scans} scans");
}

#[test]
fn the_end_of_a_gap_is_looked_for_once_in_memory() {
    the_end_of_a_gap_is_looked_for_once(MemEngine::new());
}

#[test]
fn the_end_of_a_gap_is_looked_for_once_on_disk() {
    let disk = Disk::new();
    let engine = RocksEngine::create(&disk.root().join("db"), &RocksOptions::default());
    the_end_of_a_gap_is_looked_for_once(engine.expect("is created"));
}

#[test]
fn files_that_cannot_be_opened_are_tried_again_when_they_can() {
    let disk = Disk::new();
    let db = disk.root().join("db");
    let failing = Failing::over(RocksEngine::create(&db, &RocksOptions::default()).expect("is created"));
    let Failing { world, plan, ids } = &failing;
    failing.put(Durability::Safe, 0).expect("commits");
    plan.fail(1, Fault::NoSpace);
    let queued = failing.put(Durability::Fast, 1).expect("is accepted");
    queued.wait_for(Level::Process).expect_err("is not written");
    let away = disk.root().join("away");
    fs::rename(&db, &away).expect("renames");
    for _ in 0..2 {
        let error = world.resume().expect_err("there is nothing to open");
        let Error::NotResumed(NotResumed::NotReopened { cause }) = &error else { panic!("{error}") };
        assert!(matches!(**cause, EngineError::NotAnEngineDir { .. } | EngineError::Io { .. }), "{cause}");
        let error = world.load(ids.at(0, 0, 0)).expect_err("there is no engine");
        assert!(matches!(error, Error::Engine(EngineError::NotReopened { .. })), "{error}");
        assert!(world.load(ids.at(1, 0, 0)).expect("the queue has it").is_some());
        let error = failing.put(Durability::Fast, 2).expect_err("takes nothing");
        assert!(matches!(error, Error::Engine(_)), "{error}");
    }
    fs::rename(&away, &db).expect("renames");
    world.resume().expect("all is there again");
    assert!(queued.is_durable() && failing.has(0) && failing.has(1) && !failing.has(2));
    assert_sound(world);
}

#[test]
fn readers_go_on_while_a_world_is_resumed_again_and_again() {
    let disk = Disk::new();
    let engine = RocksEngine::create(&disk.root().join("db"), &RocksOptions::default()).expect("is created");
    let failing = Failing::over(engine);
    let Failing { world, plan, ids } = &failing;
    failing.put(Durability::Safe, 0).expect("commits");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reads = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    assert!(failing.has(0));
                    // A walk that reads inside.
                    let walked = world.for_each_chunk(cg_store::Area::World, |stored| {
                        assert!(stored.is_ok() && world.load(ids.at(0, 0, 0)).expect("loads").is_some());
                        ControlFlow::<()>::Continue(())
                    });
                    // What is queued cannot be settled while the world is read-only.
                    assert!(matches!(walked, Ok(None) | Err(Error::Engine(EngineError::ReadOnly { .. }))));
                    reads += 1;
                }
                assert!(reads > 0);
            });
        }
        for step in 1..=6 {
            plan.fail(1, if step % 2 == 0 { Fault::Lost } else { Fault::Whole });
            let ticket = failing.put(Durability::Fast, step).expect("is accepted");
            ticket.wait_for(Level::Process).expect_err("is not written");
            assert!(failing.has(step), "memory has the last word");
            world.resume().expect("goes on");
            assert!(ticket.is_durable() && failing.has(step));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_sound(world);
}
