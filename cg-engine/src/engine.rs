//! The trait of engines, and the types of its calls.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use cg_format::Space;
use cg_format::key::Family;

use super::{Batch, CommitSeq, EngineError, Fence, Guard, KeyRange, Readable, SealedRow};

/// A state of an engine that later commits do not change; see [`Engine::snapshot`].
pub type Snapshot<'e> = Box<dyn Readable + 'e>;

/// A transactional store of rows. See the [crate](crate) for what every engine promises.
pub trait Engine: Readable + fmt::Debug + 'static {
    /// Whether the row may exist. For callers that only need to know that, and not read a large row. `false` is
    /// certain unless something is damaged.
    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        !matches!(self.get(space, key), Ok(None))
    }

    /// Applies a batch whole if every guard holds, and gives it the next commit sequence. Returns when `level` is
    /// reached.
    ///
    /// Guards hold when the sequence is assigned, under one short lock. Syncing happens outside the lock, once for
    /// all commits that wait for it. An engine may also compare guards outside the lock if it compares again what is
    /// written meanwhile. An empty batch is a commit like any other.
    ///
    /// A [maintenance batch](Batch::maintenance) takes no sequence: the newest commit's is returned, and only
    /// [`Level::Process`] is promised.
    ///
    /// # Errors
    /// [`Conflict`](EngineError::Conflict), [`TooLarge`](EngineError::TooLarge), [`NoSpace`](EngineError::NoSpace),
    /// [`ReadOnly`](EngineError::ReadOnly), [`Fenced`](EngineError::Fenced) and [`Closed`](EngineError::Closed): nothing
    /// was written. [`SyncFailed`](EngineError::SyncFailed): the batch is applied and visible, but may not survive a
    /// power cut; or another engine took the rows after it was applied.
    /// [`WriteFailed`](EngineError::WriteFailed): the next open finds out whether the batch survives.
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError>;

    /// Applies batches in order as the commits from `first` on, each whole or not at all. Returns the number of the
    /// last one when `level` is reached.
    ///
    /// For commits that are numbered before they are written. An engine over a network sends them in one call, and
    /// may send the call again: the numbers identify the batches that are already applied.
    ///
    /// # Errors
    /// [`Fenced`](EngineError::Fenced) if `first` is not the next number: nothing was written. Else as
    /// [`commit`](Self::commit): the batches before the one that failed are applied, up to
    /// [`last_commit`](Self::last_commit).
    fn commit_run(
        &self,
        first: CommitSeq,
        batches: Vec<Batch>,
        level: Level,
    ) -> Result<CommitSeq, EngineError> {
        if let Some(failure) = self.failure() {
            return Err(EngineError::ReadOnly { cause: Arc::clone(failure.cause()) });
        }
        let next = self.last_commit().next();
        if first != next {
            return Err(EngineError::Fenced { why: Fence::Number { given: first, next } });
        }
        for (index, batch) in batches.into_iter().enumerate() {
            match self.commit(batch, &[], Level::Process) {
                // The batches before it are applied.
                Err(error @ EngineError::Fenced { .. }) if index > 0 => {
                    return Err(EngineError::WriteFailed { cause: Arc::new(error) });
                }
                committed => committed?,
            };
        }
        let seq = self.last_commit();
        if level == Level::Power {
            self.sync().map_err(|error| error.of_applied(seq))?;
        }
        Ok(seq)
    }

    /// Stores rows as they are, with the frames that they have: the rows of a copy, before the first commit. Rows of one
    /// call become visible together; a row replaces one of the same key. The row under
    /// [`COMMIT_SEQUENCE_KEY`](crate::COMMIT_SEQUENCE_KEY) ends the copy: its version is the newest commit from then on.
    /// Call [`sync`](Self::sync) after it.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if the engine has no such call; [`EngineError::Fenced`] if there is a commit;
    /// [`EngineError::Corrupt`] if the row that ends the copy is no frame; otherwise as [`commit`](Self::commit).
    fn load(&self, rows: Vec<SealedRow>) -> Result<(), EngineError> {
        drop(rows);
        Err(EngineError::Unsupported { what: "load rows" })
    }

    /// The state after the newest commit. Later commits do not change it. Cheap to take, but it keeps old rows alive.
    ///
    /// # Errors
    /// [`EngineError::Closed`], also for reads of a snapshot that was taken before the engine was closed.
    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError>;

    /// As [`snapshot`](Self::snapshot), as a value that does not borrow the engine: for readers that follow the commits of
    /// another engine over the same rows. After [`close`](Self::close) its reads fail.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if [`Caps::is_shared`] is unset; otherwise as [`snapshot`](Self::snapshot).
    fn follow(&self) -> Result<Snapshot<'static>, EngineError> {
        Err(EngineError::Unsupported { what: "be followed" })
    }

    /// Brings every commit made so far to [`Level::Power`]. Concurrent callers share one sync. If all are synced already,
    /// an engine may note so durably.
    ///
    /// # Errors
    /// [`EngineError::SyncFailed`] for the callers that waited for the failed sync. [`EngineError::ReadOnly`] for all
    /// later callers: a sync is never tried again. [`EngineError::Closed`].
    fn sync(&self) -> Result<(), EngineError>;

    /// The newest commit, or [`CommitSeq::NONE`] before the first.
    fn last_commit(&self) -> CommitSeq;

    /// The number of batches applied since the engine was opened, including maintenance batches. If two reads have
    /// the same number before and after them, both saw one state, or the second saw one batch more. A batch may be
    /// visible shortly before it is counted.
    fn batch_count(&self) -> u64;

    /// The newest commit known to have reached [`Level::Power`].
    fn last_synced(&self) -> CommitSeq;

    /// Copies the current state of the engine to a new directory, which opens like the original.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if [`Caps::checkpoint`] is unset; [`EngineError::Io`] if the directory exists.
    fn checkpoint(&self, dir: &Path) -> Result<(), EngineError>;

    /// Writes rows that are only in memory and in the log to sorted files, so that the next open is fast.
    ///
    /// # Errors
    /// As [`sync`](Self::sync). [`EngineError::NoSpace`] and [`EngineError::WriteFailed`] if the files cannot be
    /// written, after which the engine refuses commits. Nothing is lost: the rows are still in the log.
    fn flush(&self) -> Result<(), EngineError>;

    /// Rewrites a range of a family without its overwritten and deleted rows. May take minutes. An engine may skip a
    /// family that is known to be damaged. It first checks whether the damage still exists, also for an empty range.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], [`EngineError::OpenedReadOnly`] and [`EngineError::Closed`].
    fn compact(&self, family: Family, range: KeyRange<'_>) -> Result<(), EngineError>;

    /// As [`compact`](Self::compact), for the first part of a range in which there is something to gain: about one file.
    /// Returns the last key of the part; the rest begins after it. `None` if nothing was to be gained in the range.
    ///
    /// # Errors
    /// As [`compact`](Self::compact).
    fn compact_next(&self, family: Family, range: KeyRange<'_>) -> Result<Option<Box<[u8]>>, EngineError> {
        self.compact(family, range).map(|()| None)
    }

    /// Flushes, syncs, and then refuses everything except running reads. A second call does nothing.
    ///
    /// The directory can be opened again after the value itself is dropped.
    ///
    /// # Errors
    /// As [`flush`](Self::flush). The engine is closed even then.
    fn close(&self) -> Result<(), EngineError>;

    /// Why the engine no longer accepts commits. `None` if it accepts them, or never did.
    fn failure(&self) -> Option<Failure>;

    /// Returns a function that opens the same rows again, for the same owner. Call it after the engine, its snapshots
    /// and its values are dropped; if it fails, it can be called again.
    ///
    /// The engine that it returns is [`Writable`](Reopened::Writable) only if no other engine took the rows for writing
    /// since this one was opened. So the caller may take commits that it finds for its own. The function holds what
    /// excludes other writers: a lock, or the owner's number. It never takes a new number.
    fn reopening(&self) -> Reopen;

    /// The free bytes where the engine writes, from the operating system; `None` if unknown. Threads that must not
    /// wait call this, so an engine over a network does not ask its server.
    fn free_bytes(&self) -> Option<u64>;

    /// The size of the disk on which the engine writes; `None` if it is unknown.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    /// The address of the rows, for errors and logs: without a password.
    fn address(&self) -> String {
        "the engine".into()
    }

    /// The capabilities of the engine.
    fn caps(&self) -> Caps;

    /// The size of the engine's data, by family. Reads no row.
    ///
    /// # Errors
    /// [`EngineError::Closed`], and errors of the disk.
    fn usage(&self) -> Result<Usage, EngineError>;
}

/// How durable a commit is when it returns.
///
/// | level | a killed process | a power cut |
/// |---|---|---|
/// | `Process` | survives | may be lost with all later commits, never in part |
/// | `Power` | survives | survives |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Written to the operating system.
    Process,
    /// Synced to the disk.
    Power,
}

/// The capabilities of an engine, and the latency of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing that an engine can or cannot do")]
pub struct Caps {
    /// Rows outlive the engine value.
    pub durable: bool,
    /// [`Engine::checkpoint`](crate::Engine::checkpoint) works.
    pub checkpoint: bool,
    /// Opened for reading only: every commit is refused.
    pub read_only: bool,
    /// The largest batch, in bytes of its keys and frames.
    pub max_batch_bytes: u64,
    /// The resource that a call waits for.
    pub latency: Latency,
    /// Other processes may have the same rows open. One engine writes at a time: commits of the others fail with
    /// [`Fenced`](crate::EngineError::Fenced), and [`Engine::follow`](crate::Engine::follow) works.
    pub is_shared: bool,
    /// A power cut may still lose a commit at [`Level::Process`](crate::Level::Process). It reaches
    /// [`Level::Power`](crate::Level::Power) later, or with [`sync`](crate::Engine::sync). If unset, both levels are
    /// the same, and no thread syncs.
    pub levels_apart: bool,
    /// The engine writes a large batch in stages. A batch of any size up to
    /// [`max_batch_bytes`](Self::max_batch_bytes) costs it no more memory than a small one. If unset, `cg-store`
    /// stages batches above a limit of its own.
    pub stages: bool,
}

/// The resource that a call of an engine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Latency {
    /// Only memory: less than a microsecond for a row.
    Memory,
    /// Sometimes a disk of this machine.
    Disk,
    /// A network round trip per call. Methods of [`Readable`](crate::Readable) and [`Engine`](crate::Engine) that do
    /// not return a `Result` use only memory.
    Network,
}

impl Caps {
    /// An engine in memory whose rows end with it, open for writing, without checkpoints. Set the fields that differ.
    pub const fn new(max_batch_bytes: u64) -> Self {
        Self {
            durable: false,
            checkpoint: false,
            read_only: false,
            max_batch_bytes,
            latency: Latency::Memory,
            is_shared: false,
            levels_apart: true,
            stages: false,
        }
    }
}

/// The size of an engine's data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// One entry per family, in the order of [`Family::ALL`].
    pub families: Vec<FamilyUsage>,
    /// Bytes of write-ahead log on disk.
    pub log_bytes: u64,
    /// Bytes of memory that the engine uses for rows, including all caches and buffers that it shares with other
    /// engines.
    pub memory_bytes: u64,
    /// Files in the engine's directory that look like its own and that it does not use, by name. They may be moved
    /// away. Empty if the engine is open for writing.
    pub stray_files: Vec<String>,
}

/// The size of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyUsage {
    /// Which family.
    pub family: Family,
    /// The approximate number of rows. Overwritten and deleted rows may still be counted.
    pub row_count: u64,
    /// Bytes of sorted files on disk.
    pub table_bytes: u64,
    /// Bytes of blob files on disk, including [`garbage_bytes`](Self::garbage_bytes).
    pub blob_bytes: u64,
    /// Bytes of blob files that no row refers to.
    pub garbage_bytes: u64,
    /// Bytes in memory that are not in a file yet.
    pub buffered_bytes: u64,
    /// Sorted files above the last level of the tree, where rows are compressed most. A compaction leaves none.
    pub upper_file_count: u64,
    /// Whether its files are no longer rewritten because one of them is damaged.
    pub is_held: bool,
}

impl FamilyUsage {
    /// The usage of an empty family. Set the fields that differ.
    pub const fn new(family: Family) -> Self {
        Self {
            family,
            row_count: 0,
            table_bytes: 0,
            blob_bytes: 0,
            garbage_bytes: 0,
            buffered_bytes: 0,
            upper_file_count: 0,
            is_held: false,
        }
    }
}

/// The failure that ended an engine's writing.
#[derive(Debug, Clone)]
pub enum Failure {
    /// A write was refused. The next open shows what reached the operating system.
    Write(Arc<EngineError>),
    /// A sync failed. It is unknown what is on the disk, even after the engine is opened again. The operating system
    /// may return data that it holds but could not write.
    Sync(Arc<EngineError>),
}

impl Failure {
    /// The error.
    pub const fn cause(&self) -> &Arc<EngineError> {
        match self {
            Self::Write(cause) | Self::Sync(cause) => cause,
        }
    }
}

/// The rows that an engine finds when it is opened again, before it is open for writing.
#[derive(Clone, Copy)]
pub struct Found<'r> {
    /// The newest commit.
    pub last_commit: CommitSeq,
    /// The rows.
    pub rows: &'r dyn Readable,
}

impl fmt::Debug for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found").field("last_commit", &self.last_commit).finish_non_exhaustive()
    }
}

/// Whether the caller of [`Reopen`] expects what is found. Its error is that of the call.
pub type Expects<'e> = dyn Fn(&Found<'_>) -> Result<bool, EngineError> + 'e;

/// Opens an engine again. It is writable if the caller expects what is found, which is asked before anything is
/// written.
///
/// # Errors
/// [`EngineError::Fenced`] if another engine took the rows for writing meanwhile. Errors of the disk or the network, if
/// the engine cannot even be read. The error of [`Expects`].
pub type Reopen = Box<dyn Fn(&Expects<'_>) -> Result<Reopened, EngineError> + Send>;

/// An engine that was opened again.
#[derive(Debug)]
pub enum Reopened {
    /// Open for writing.
    Writable(Box<dyn Engine>),
    /// Open for reading only: its newest commit is not one that the caller expects.
    Unexpected(Box<dyn Engine>),
    /// Open for reading only: it cannot be opened for writing.
    Reader {
        /// The engine.
        engine: Box<dyn Engine>,
        /// Why it cannot be written.
        cause: EngineError,
    },
}

impl Reopened {
    /// Wraps the engine in another one.
    #[must_use]
    pub fn map<E: Engine>(self, wrap: impl FnOnce(Box<dyn Engine>) -> E) -> Self {
        match self {
            Self::Writable(engine) => Self::Writable(Box::new(wrap(engine))),
            Self::Unexpected(engine) => Self::Unexpected(Box::new(wrap(engine))),
            Self::Reader { engine, cause } => Self::Reader { engine: Box::new(wrap(engine)), cause },
        }
    }
}
