//! An engine over another that fails at the nth call: of those that write, sync or read.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::*;
use cg_format::Space;
use cg_store::engine::{
    CommitSeq, EngineError, Failure, Found, Guard, Place, Readable, Reopen, Reopened, RowVisitor, Scan,
    Snapshot, Value,
};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The disk is full.
    NoSpace,
    /// The write fails and leaves nothing.
    Lost,
    /// The write fails and is there all the same.
    Whole,
    /// The sync fails.
    Sync,
    /// A sync of somebody else fails after the commit, which is there.
    SyncBehind,
}

/// Which call fails how; shared by all engines that come one after the other.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) next: Mutex<Option<(u64, Fault)>>,
    /// Commits that were reported and are to be missing at the next open.
    pub(super) forget_commits: AtomicBool,
    /// Whether the next opens are for reading only.
    pub(super) only_reads: AtomicBool,
    /// A hot row that no scan gets past.
    pub(super) unreadable: Mutex<Option<Vec<u8>>>,
    /// Scans that were made.
    pub(super) scans: AtomicU64,
    reads: Mutex<Reads>,
}

/// Which read fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reads {
    #[default]
    AreWell,
    /// The nth from now on, and all after it if it stays so.
    WillFail { nth: u64, stays: bool },
    /// One has failed.
    Failed { stays: bool },
}

impl Plan {
    pub(super) fn fail(&self, nth: u64, fault: Fault) {
        *self.next.lock().expect("no panic") = Some((nth, fault));
    }

    pub(super) fn fail_no_more(&self) {
        *self.next.lock().expect("no panic") = None;
    }

    /// Has the nth read fail, and all after it if it is to stay so.
    pub(super) fn fail_read(&self, nth: u64, stays: bool) {
        *self.reads.lock().expect("no panic") = Reads::WillFail { nth, stays };
    }

    /// Has no read fail any more; whether one has.
    pub(super) fn read_again(&self) -> bool {
        let reads = std::mem::take(&mut *self.reads.lock().expect("no panic"));
        matches!(reads, Reads::Failed { .. })
    }

    fn read(&self) -> Result<(), EngineError> {
        let mut reads = self.reads.lock().expect("no panic");
        match &mut *reads {
            Reads::AreWell | Reads::Failed { stays: false } => return Ok(()),
            Reads::WillFail { nth, .. } if *nth > 1 => {
                *nth -= 1;
                return Ok(());
            }
            Reads::WillFail { stays, .. } => *reads = Reads::Failed { stays: *stays },
            Reads::Failed { stays: true } => {}
        }
        let source = std::io::Error::other("read failed by request");
        Err(EngineError::Io { path: "the disk".into(), source })
    }

    /// Many reads at once, of which the first may fail.
    fn read_many<V>(
        &self,
        read: impl FnOnce() -> Vec<Result<V, EngineError>>,
    ) -> Vec<Result<V, EngineError>> {
        let mut found = read();
        if let Some(first) = found.first_mut()
            && let Err(error) = self.read()
        {
            *first = Err(error);
        }
        found
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
#[derive(Debug)]
pub(super) struct Faulty {
    engine: Box<dyn Engine>,
    plan: Arc<Plan>,
    failed: OnceLock<Failure>,
    /// The newest commit that was reported.
    reported: AtomicU64,
}

impl Faulty {
    pub(super) fn new(engine: impl Engine, plan: Arc<Plan>) -> Self {
        Self::around(Box::new(engine), plan)
    }

    fn around(engine: Box<dyn Engine>, plan: Arc<Plan>) -> Self {
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

impl Readable for Faulty {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.plan.read()?;
        self.engine.get(space, key)
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.plan.read_many(|| self.engine.get_many(keys))
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.plan.scans.fetch_add(1, Ordering::Relaxed);
        self.plan.read()?;
        let unreadable = self.plan.unreadable.lock().expect("no panic").clone();
        let unreadable = unreadable.filter(|_| scan.family == Family::ChunkL0);
        let mut is_damaged = false;
        self.engine.scan_rows(scan, &mut |key, row| {
            is_damaged = unreadable.as_deref() == Some(key);
            if is_damaged { ControlFlow::Break(()) } else { visit(key, row) }
        })?;
        let message = "a damaged block by request".into();
        let damaged = || EngineError::Corrupt { place: Place::Family(scan.family), message };
        if is_damaged { Err(damaged()) } else { Ok(()) }
    }
}

/// A state of it, whose reads fail as it is planned.
struct FaultySnapshot<'e> {
    snapshot: Snapshot<'e>,
    plan: Arc<Plan>,
}

impl Readable for FaultySnapshot<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.plan.read()?;
        self.snapshot.get(space, key)
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.plan.read_many(|| self.snapshot.get_many(keys))
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.plan.read()?;
        self.snapshot.scan_rows(scan, visit)
    }
}

impl Engine for Faulty {
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

    cg_store::engine::delegate! {
        engine => batch_count last_synced checkpoint flush compact close free_bytes caps usage
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        Ok(Box::new(FaultySnapshot { snapshot: self.engine.snapshot()?, plan: Arc::clone(&self.plan) }))
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

    fn failure(&self) -> Option<Failure> {
        self.failed.get().cloned()
    }

    fn reopening(&self) -> Reopen {
        let (reopen, plan) = (self.engine.reopening(), Arc::clone(&self.plan));
        Box::new(move |expects| {
            let forgotten = u64::from(plan.forget_commits.load(Ordering::Relaxed));
            let wrap = |engine: Box<dyn Engine>| {
                let engine = Self::around(engine, Arc::clone(&plan));
                engine.reported.fetch_sub(forgotten, Ordering::Relaxed);
                engine
            };
            let reopened = reopen(&|found| {
                let last_commit = CommitSeq::new(found.last_commit.get() - forgotten);
                expects(&Found { last_commit, ..*found })
            })?
            .map(wrap);
            Ok(match reopened {
                Reopened::Writable(engine) if plan.only_reads.load(Ordering::Relaxed) => {
                    Reopened::Reader { engine, cause: EngineError::OpenedReadOnly }
                }
                reopened => reopened,
            })
        })
    }
}
