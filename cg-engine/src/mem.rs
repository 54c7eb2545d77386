//! An engine in memory that makes the same promises without a disk.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::Space;
use cg_format::key::Family;
use parking_lot::{RwLock, RwLockUpgradableReadGuard};

use super::batch::Op;
use super::{
    Batch, Caps, CommitSeq, DEFAULT_MAX_BATCH_BYTES, Engine, EngineError, Failure, FamilyUsage, Found, Guard,
    KeyRange, Level, Readable, Reopen, Reopened, RowVisitor, Scan, SealedRow, Snapshot, Usage, Value,
    check_load, range,
};

/// Rows in memory, for tests, fuzzing and temporary worlds.
///
/// A read clones a reference count. A snapshot clones twelve. The first commit into a family after a snapshot, or
/// during a scan of the family, copies the family's map but not its values.
///
/// With a [`Fault`] it fails like a disk, to test the layers above.
///
/// ```
/// use cg_engine::{Batch, Engine, EngineError, Fault, Level, MemEngine};
///
/// let engine = MemEngine::new().with_fault(|seq| (seq.get() == 2).then_some(Fault::Write));
/// assert!(engine.commit(Batch::new(), &[], Level::Power).is_ok());
/// assert!(matches!(engine.commit(Batch::new(), &[], Level::Power), Err(EngineError::WriteFailed { .. })));
/// assert!(matches!(engine.commit(Batch::new(), &[], Level::Power), Err(EngineError::ReadOnly { .. })));
/// ```
pub struct MemEngine {
    state: RwLock<State>,
    closed: Arc<AtomicBool>,
    max_batch_bytes: u64,
    fault: Arc<dyn Fn(CommitSeq) -> Option<Fault> + Send + Sync>,
    free_bytes: Option<Arc<dyn Fn() -> u64 + Send + Sync>>,
}

/// How a commit fails in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The disk is full: nothing is written.
    NoSpace,
    /// The system refuses the write. Nothing is written here; on a disk that would be unknown.
    Write,
    /// The sync fails: that of the commit itself at [`Level::Power`], otherwise that of any later [`Engine::sync`].
    Sync,
}

/// The rows of a [`MemEngine`] at one commit.
struct MemSnapshot {
    rows: [Arc<Rows>; Family::ALL.len()],
    closed: Arc<AtomicBool>,
}

impl MemEngine {
    /// An engine without rows.
    pub fn new() -> Self {
        Self {
            state: RwLock::default(),
            closed: Arc::default(),
            max_batch_bytes: DEFAULT_MAX_BATCH_BYTES,
            fault: Arc::new(|_| None),
            free_bytes: None,
        }
    }

    /// Sets the limit on batches.
    #[must_use]
    pub fn with_max_batch_bytes(self, max_batch_bytes: u64) -> Self {
        Self { max_batch_bytes, ..self }
    }

    /// Sets a function that chooses which commits fail, and how.
    #[must_use]
    pub fn with_fault(self, fault: impl Fn(CommitSeq) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self { fault: Arc::new(fault), ..self }
    }

    /// Sets a function that returns the free bytes.
    #[must_use]
    pub fn with_free_bytes(self, free_bytes: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { free_bytes: Some(Arc::new(free_bytes)), ..self }
    }
}

impl Default for MemEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl Readable for MemEngine {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        check_open(&self.closed)?;
        Ok(lookup(&self.state.read().rows, space, key).map(Value::from))
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        let state = self.state.read();
        let one = |(space, key): &(Space, &[u8])| {
            check_open(&self.closed)?;
            Ok(lookup(&state.rows, *space, key).map(Value::from))
        };
        keys.iter().map(one).collect()
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        check_open(&self.closed)?;
        // The lock is released first: `visit` may commit.
        let rows = Arc::clone(&self.state.read().rows[scan.family as usize]);
        visit_range(&rows, scan, visit);
        Ok(())
    }
}

impl Engine for MemEngine {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        let (len_bytes, max_bytes) = (batch.len_bytes(), self.max_batch_bytes);
        if len_bytes > max_bytes {
            return Err(EngineError::TooLarge { len_bytes, max_bytes });
        }
        // Commits run one at a time. A slow fault does not block readers.
        let state = self.state.upgradable_read();
        check_open(&self.closed)?;
        state.check_writable()?;
        for guard in guards {
            guard.check(lookup(&state.rows, guard.space, &guard.key).as_deref())?;
        }
        let seq = if batch.is_maintenance() { state.last_commit } else { state.last_commit.next() };
        let fault = (self.fault)(seq);
        let mut state = RwLockUpgradableReadGuard::upgrade(state);
        match fault {
            Some(Fault::NoSpace) => {
                let no_space = || EngineError::NoSpace { message: "by request".into() };
                state.fail(no_space());
                return Err(no_space());
            }
            Some(Fault::Write) => {
                let cause = state.fail(io_error("write"));
                return Err(EngineError::WriteFailed { cause });
            }
            Some(Fault::Sync) => state.sync_fails = true,
            None => {}
        }
        batch.drain(seq, |op| state.apply(op));
        state.last_commit = seq;
        state.batch_count += 1;
        match level {
            Level::Process => Ok(seq),
            Level::Power => state.sync().map(|()| seq),
        }
    }

    fn load(&self, rows: Vec<SealedRow>) -> Result<(), EngineError> {
        check_open(&self.closed)?;
        let mut state = self.state.write();
        state.check_writable()?;
        let seq = check_load(&rows, state.last_commit, self.max_batch_bytes)?;
        for SealedRow { family, key, bytes } in rows {
            Arc::make_mut(&mut state.rows[family as usize]).insert(key, bytes.into());
        }
        state.last_commit = seq;
        state.batch_count += 1;
        Ok(())
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        check_open(&self.closed)?;
        let rows = self.state.read().rows.clone();
        Ok(Box::new(MemSnapshot { rows, closed: Arc::clone(&self.closed) }))
    }

    fn sync(&self) -> Result<(), EngineError> {
        check_open(&self.closed)?;
        self.state.write().sync()
    }

    fn last_commit(&self) -> CommitSeq {
        self.state.read().last_commit
    }

    fn batch_count(&self) -> u64 {
        self.state.read().batch_count
    }

    fn last_synced(&self) -> CommitSeq {
        self.state.read().last_synced
    }

    fn checkpoint(&self, _dir: &Path) -> Result<(), EngineError> {
        Err(EngineError::Unsupported { what: "write a checkpoint" })
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.sync()
    }

    fn compact(&self, _family: Family, _range: KeyRange<'_>) -> Result<(), EngineError> {
        check_open(&self.closed)?;
        self.state.read().check_writable()
    }

    fn close(&self) -> Result<(), EngineError> {
        let mut state = self.state.write();
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        state.sync()
    }

    fn failure(&self) -> Option<Failure> {
        self.state.read().failed.clone()
    }

    fn reopening(&self) -> Reopen {
        let state = self.state.read();
        let (rows, last_commit, last_synced) = (state.rows.clone(), state.last_commit, state.last_synced);
        let (fault, free_bytes) = (Arc::clone(&self.fault), self.free_bytes.clone());
        let max_batch_bytes = self.max_batch_bytes;
        Box::new(move |expects| {
            let rows_found = MemSnapshot { rows: rows.clone(), closed: Arc::default() };
            let is_expected = expects(&Found { last_commit, rows: &rows_found })?;
            let failed = (!is_expected).then(|| Failure::Write(Arc::new(EngineError::OpenedReadOnly)));
            let state = State { rows: rows.clone(), last_commit, last_synced, failed, ..State::default() };
            let engine = Box::new(Self {
                state: RwLock::new(state),
                closed: Arc::default(),
                max_batch_bytes,
                fault: Arc::clone(&fault),
                free_bytes: free_bytes.clone(),
            });
            Ok(if is_expected { Reopened::Writable(engine) } else { Reopened::Unexpected(engine) })
        })
    }

    fn free_bytes(&self) -> Option<u64> {
        self.free_bytes.as_ref().map(|free_bytes| free_bytes())
    }

    fn address(&self) -> String {
        "memory".into()
    }

    fn caps(&self) -> Caps {
        Caps::new(self.max_batch_bytes)
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        check_open(&self.closed)?;
        let rows = self.state.read().rows.clone();
        let families: Vec<_> = Family::ALL.into_iter().zip(&rows).map(usage_of).collect();
        let memory_bytes = families.iter().map(|family| family.buffered_bytes).sum();
        Ok(Usage { families, memory_bytes, ..Usage::default() })
    }
}

impl fmt::Debug for MemEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemEngine").field("last_commit", &self.last_commit()).finish_non_exhaustive()
    }
}

impl Readable for MemSnapshot {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        check_open(&self.closed)?;
        Ok(lookup(&self.rows, space, key).map(Value::from))
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        keys.iter().map(|(space, key)| self.get(*space, key)).collect()
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        check_open(&self.closed)?;
        visit_range(&self.rows[scan.family as usize], scan, visit);
        Ok(())
    }
}

/// The rows of one family. It is stored in an [`Arc`]: a reader keeps its version and a commit copies on write.
type Rows = BTreeMap<Box<[u8]>, Arc<[u8]>>;

#[derive(Debug, Default)]
struct State {
    rows: [Arc<Rows>; Family::ALL.len()],
    last_commit: CommitSeq,
    last_synced: CommitSeq,
    batch_count: u64,
    /// Whether the next sync fails.
    sync_fails: bool,
    failed: Option<Failure>,
}

impl State {
    fn check_writable(&self) -> Result<(), EngineError> {
        match &self.failed {
            Some(failure) => Err(EngineError::ReadOnly { cause: Arc::clone(failure.cause()) }),
            None => Ok(()),
        }
    }

    fn apply(&mut self, op: Op<'_>) {
        match op {
            Op::Put { space, key, draft, version } => {
                let sealed = draft.seal(space, key, version);
                self.family(space).insert(key.into(), sealed.into());
            }
            Op::Delete { space, key } => {
                self.family(space).remove(key);
            }
            Op::DeleteRange { space, from, to } => {
                let rows = self.family(space);
                let range = (Bound::Included(from), Bound::Excluded(to));
                let keys: Vec<_> = rows.range::<[u8], _>(range).map(|(key, _)| key.clone()).collect();
                for key in keys {
                    rows.remove(&key);
                }
            }
        }
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.check_writable()?;
        if self.sync_fails {
            let cause = Arc::new(io_error("sync"));
            self.failed = Some(Failure::Sync(Arc::clone(&cause)));
            return Err(EngineError::SyncFailed { seq: self.last_commit, cause });
        }
        self.last_synced = self.last_commit;
        Ok(())
    }

    fn fail(&mut self, cause: EngineError) -> Arc<EngineError> {
        let cause = Arc::new(cause);
        self.failed = Some(Failure::Write(Arc::clone(&cause)));
        cause
    }

    fn family(&mut self, space: Space) -> &mut Rows {
        Arc::make_mut(&mut self.rows[space.family() as usize])
    }
}

fn check_open(closed: &AtomicBool) -> Result<(), EngineError> {
    if closed.load(Ordering::Acquire) { Err(EngineError::Closed) } else { Ok(()) }
}

fn lookup(rows: &[Arc<Rows>; Family::ALL.len()], space: Space, key: &[u8]) -> Option<Arc<[u8]>> {
    rows[space.family() as usize].get(key).map(Arc::clone)
}

fn visit_range(rows: &Rows, scan: Scan<'_>, visit: &mut RowVisitor<'_>) {
    if !range::is_empty(scan.range) {
        let mut rows = rows.range::<[u8], _>(scan.range).take(scan.max_rows);
        let _broken = rows.try_for_each(|(key, value)| visit(key, value));
    }
}

fn usage_of((family, rows): (Family, &Arc<Rows>)) -> FamilyUsage {
    let buffered_bytes = rows.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
    FamilyUsage { row_count: rows.len() as u64, buffered_bytes, ..FamilyUsage::new(family) }
}

fn io_error(operation: &str) -> EngineError {
    let source = std::io::Error::other(format!("{operation} failed by request"));
    EngineError::Io { path: "memory".into(), source }
}
