//! The engine.

mod again;
mod columns;
mod commit;
mod inspect;
mod open;
mod read;
mod reopen;
mod scan;
mod slices;
mod snapshot;
mod usage;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cg_engine::{
    Batch, Caps, ColumnsVisitor, CommitSeq, Engine, EngineError, Failure, Family, Fence, Guard, KeyRange,
    Latency, Level, Place, Readable, Reopen, RowSlice, RowVisitor, Scan, SealedRow, Snapshot, Space, Usage,
    Value, check_load,
};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::error::{Failed, Refusal, ServerError, refused};
use crate::fold::{Folded, fold, fold_rows};
use crate::pool::Pool;
use crate::schema::UNLOCK;
use again::{Head, Unknown};
use commit::{Call, Ended, Owner};
use read::Source;
use reopen::reopen;
use scan::ranges_at_once;
use snapshot::Kept;

/// The rows of a world in a database.
///
/// Each call costs one round trip, a commit also the servers' disks. The threads that call it may be tasks of tokio. If
/// the server is lost, a call waits until another one takes writes, at most for [`Options::patience`](crate::Options).
pub struct PostgresEngine {
    source: Source,
    /// `None` if it is open for reading only.
    owner: Option<Arc<Mutex<Owner>>>,
    epoch: i64,
    last_commit: AtomicU64,
    batches: AtomicU64,
    rows_put: AtomicI64,
    failed: OnceLock<Failure>,
}

impl PostgresEngine {
    fn new(pool: Arc<Pool>, head: &Head, owner: Option<Owner>) -> Self {
        Self {
            source: Source::new(pool),
            epoch: head.epoch,
            owner: owner.map(|owner| Arc::new(Mutex::new(owner))),
            last_commit: AtomicU64::new(head.seq as u64),
            batches: AtomicU64::new(0),
            rows_put: AtomicI64::new(0),
            failed: OnceLock::new(),
        }
    }

    fn check_writable(&self) -> Result<&Arc<Mutex<Owner>>, EngineError> {
        self.source.check_open()?;
        match self.failed.get() {
            Some(failure) => Err(EngineError::ReadOnly { cause: Arc::clone(failure.cause()) }),
            None => self.owner.as_ref().ok_or(EngineError::OpenedReadOnly),
        }
    }

    /// Commits batches as the commits from `first` on, or from the next one on.
    fn send(
        &self,
        first: Option<CommitSeq>,
        batches: Vec<Batch>,
        guards: &[Guard],
    ) -> Result<CommitSeq, EngineError> {
        let len_bytes = batches.iter().map(Batch::len_bytes).max().unwrap_or_default();
        let max_bytes = self.source.pool.options.batch_limit();
        if len_bytes > max_bytes {
            return Err(EngineError::TooLarge { len_bytes, max_bytes });
        }
        let mut owner = self.check_writable()?.lock();
        self.check_writable()?;
        let last = self.last_commit();
        let next = last.next();
        if let Some(given) = first.filter(|first| *first != next) {
            return Err(EngineError::Fenced { why: Fence::Number { given, next } });
        }
        let (count, len_bytes) = (batches.len() as i64, batches.iter().map(Batch::len_bytes).sum());
        let (folded, seq) = fold(last, batches, guards)?;
        self.store(&mut owner, folded, (seq, count, len_bytes), guards)
    }

    /// Sends rows as some batches, of these bytes in all, up to a commit.
    fn store(
        &self,
        owner: &mut Owner,
        folded: Folded,
        (seq, count, len_bytes): (CommitSeq, i64, u64),
        guards: &[Guard],
    ) -> Result<CommitSeq, EngineError> {
        let rows = folded.row_count() as i64;
        let token = Uuid::new_v4();
        let call = Arc::new(Call { folded, seq: seq.get() as i64, count, token, len_bytes });
        let (pool, sent) = (Arc::clone(&self.source.pool), owner.clone());
        let committed = self.source.pool.wait(async move { Ok(commit::commit(pool, sent, call).await) });
        let ended = match committed {
            Ok((after, ended)) => {
                *owner = after;
                ended
            }
            Err(failed) => Ended::InDoubt(failed),
        };
        if !matches!(ended, Ended::Stored) {
            return Err(self.refuse(ended, guards));
        }
        self.last_commit.store(seq.get(), Ordering::Release);
        self.batches.fetch_add(count as u64, Ordering::AcqRel);
        self.rows_put.fetch_add(rows, Ordering::Relaxed);
        Ok(seq)
    }

    /// The error of a commit that is not stored, or perhaps not.
    fn refuse(&self, ended: Ended, guards: &[Guard]) -> EngineError {
        match ended {
            Ended::Conflict { guard, len_bytes, version } => {
                let Some(Guard { space, key, expected, .. }) = guards.get(guard).cloned() else {
                    return self.fail_refused(refused("commit", Refusal::Refused(ServerError::default())));
                };
                let found = u64::from_str_radix(&version, 16).ok().map(u64::swap_bytes);
                if len_bytes >= 0 && version.len() < 16 {
                    let place = Place::Row { family: space.family(), key };
                    let message = format!("{len_bytes} bytes are too few for a frame");
                    return EngineError::Corrupt { place, message };
                }
                EngineError::Conflict { space, key, expected, found }
            }
            Ended::Fenced { who, in_doubt } => {
                let fenced = || EngineError::Fenced { why: Fence::Owner { who: who.clone() } };
                let cause = self.fail(fenced());
                if in_doubt { EngineError::WriteFailed { cause } } else { fenced() }
            }
            Ended::Refused(error) if error.code() == "53100" => {
                let no_space = || EngineError::NoSpace { message: error.to_string() };
                self.fail(no_space());
                no_space()
            }
            Ended::Refused(error) => self.fail_refused(Failed::Refused(error).into_engine_error("commit")),
            Ended::NotStored(failed) => self.fail_refused(failed.into_engine_error("commit")),
            Ended::InDoubt(failed) => {
                EngineError::WriteFailed { cause: self.fail(failed.into_engine_error("commit")) }
            }
            Ended::WentBack(refusal) => {
                EngineError::WriteFailed { cause: self.fail(refused("commit", refusal)) }
            }
            Ended::Stored => EngineError::Closed,
        }
    }

    /// Ends writing after a commit that is certainly not stored.
    fn fail_refused(&self, error: EngineError) -> EngineError {
        EngineError::ReadOnly { cause: self.fail(error) }
    }

    /// Ends writing. The first failure stays the cause.
    fn fail(&self, error: EngineError) -> Arc<EngineError> {
        let cause = Arc::new(error);
        let _first = self.failed.get_or_init(|| Failure::Write(Arc::clone(&cause)));
        tracing::warn!(%cause, "writing ended");
        cause
    }

    /// Finds out whether this engine still is the owner. Every acknowledged commit is durable, so nothing else is to
    /// be done. An owner that cannot ask finds out at its next commit.
    fn look(&self) -> Result<(), EngineError> {
        let mut owner = self.check_writable()?.lock();
        self.check_writable()?;
        let Some(connection) = owner.connection.clone() else { return Ok(()) };
        let (pool, epoch) = (Arc::clone(&self.source.pool), self.epoch);
        let looked = self.source.pool.wait(async move { Ok(again::look(&pool, connection, epoch).await) });
        match looked.unwrap_or_else(|failed| Err(failed.into())) {
            Ok(None) => Ok(()),
            Ok(Some((connection, head))) => {
                (owner.connection, owner.session) = (Some(connection), head.session);
                Ok(())
            }
            Err(Unknown::Fenced { who }) => {
                let fenced = || EngineError::Fenced { why: Fence::Owner { who: who.clone() } };
                self.fail(fenced());
                Err(fenced())
            }
            Err(Unknown::Failed(failed)) => {
                tracing::debug!(%failed, "the owner of the rows is not known now");
                Ok(())
            }
        }
    }

    /// Gives the lock back that tells other processes of this one.
    fn unlock(&self) {
        if let Some(owner) = &self.owner
            && let Some(connection) = &owner.lock().connection
            && connection.is_open()
        {
            connection.send(UNLOCK);
        }
    }
}

impl std::fmt::Debug for PostgresEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresEngine")
            .field("address", self.source.pool.connector.address())
            .field("epoch", &self.epoch)
            .field("last_commit", &self.last_commit())
            .finish_non_exhaustive()
    }
}

impl Readable for PostgresEngine {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.source.get(None, space, key)
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.source.get_many(None, keys)
    }

    fn get_slices(&self, slices: &[RowSlice<'_>]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.source.get_slices(None, slices)
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.source.scan(None, scan, visit)
    }

    fn scan_ranges(
        &self,
        family: Family,
        ranges: &[Range<Vec<u8>>],
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), EngineError> {
        self.source.scan_ranges(None, family, ranges, visit)
    }

    fn ranges_at_once(&self, family: Family) -> usize {
        ranges_at_once(family)
    }

    fn is_empty(&self) -> Result<bool, EngineError> {
        self.source.is_empty(None)
    }

    fn check_columns(&self, visit: &mut ColumnsVisitor<'_>) -> Result<(), EngineError> {
        self.source.check_columns(None, visit)
    }
}

impl Engine for PostgresEngine {
    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        !matches!(self.source.has(space, key), Ok(false))
    }

    fn commit(&self, batch: Batch, guards: &[Guard], _: Level) -> Result<CommitSeq, EngineError> {
        self.send(None, vec![batch], guards)
    }

    fn commit_run(&self, first: CommitSeq, batches: Vec<Batch>, _: Level) -> Result<CommitSeq, EngineError> {
        self.send(Some(first), batches, &[])
    }

    fn load(&self, rows: Vec<SealedRow>) -> Result<(), EngineError> {
        let mut owner = self.check_writable()?.lock();
        self.check_writable()?;
        let seq = check_load(&rows, self.last_commit(), self.source.pool.options.batch_limit())?;
        let len_bytes = rows.iter().map(SealedRow::len_bytes).sum();
        self.store(&mut owner, fold_rows(rows)?, (seq, 1, len_bytes), &[]).map(drop)
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        self.follow()
    }

    fn follow(&self) -> Result<Snapshot<'static>, EngineError> {
        let kept = Kept::new(&self.source)?;
        if self.owner.is_none() {
            self.last_commit.fetch_max(kept.at.seq.get(), Ordering::AcqRel);
        }
        Ok(Box::new(kept))
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.look()
    }

    fn last_commit(&self) -> CommitSeq {
        CommitSeq::new(self.last_commit.load(Ordering::Acquire))
    }

    fn batch_count(&self) -> u64 {
        self.batches.load(Ordering::Acquire)
    }

    fn last_synced(&self) -> CommitSeq {
        self.last_commit()
    }

    fn checkpoint(&self, _: &Path) -> Result<(), EngineError> {
        Err(EngineError::Unsupported { what: "write a checkpoint" })
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.look()?;
        self.analyze();
        Ok(())
    }

    fn compact(&self, _: Family, _: KeyRange<'_>) -> Result<(), EngineError> {
        self.check_writable().map(drop)
    }

    fn close(&self) -> Result<(), EngineError> {
        if self.source.check_open().is_err() {
            return Ok(());
        }
        let looked = if self.check_writable().is_ok() { self.look() } else { Ok(()) };
        if self.source.close() {
            self.unlock();
        }
        looked
    }

    fn failure(&self) -> Option<Failure> {
        self.failed.get().cloned()
    }

    fn reopening(&self) -> Reopen {
        let (pool, epoch) = (Arc::clone(&self.source.pool), self.epoch);
        let owner = self.owner.clone();
        Box::new(move |expects| {
            let Some(owner) = &owner else { return Err(EngineError::OpenedReadOnly) };
            reopen(&pool, epoch, owner, expects)
        })
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn address(&self) -> String {
        self.source.pool.connector.address().to_string()
    }

    fn caps(&self) -> Caps {
        let mut caps = Caps::new(self.source.pool.options.batch_limit());
        (caps.durable, caps.is_shared, caps.latency) = (true, true, Latency::Network);
        (caps.levels_apart, caps.stages, caps.read_only) = (false, true, self.owner.is_none());
        caps
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        self.source.usage()
    }
}
