//! The boundary under which rows are kept: one small trait, and the engines that implement it.
//!
//! An engine keeps rows in [families](cg_format::key::Family) sorted by key bytes, applies batches whole or not at
//! all, and gives every batch the next number of one sequence. It knows frames only as far as that number goes:
//! it writes it into the frames of a batch, and compares it for [`Guard`]s. What a row means is decided above.
//!
//! [`MemEngine`] keeps rows in memory, for tests, fuzzing and throw-away worlds. `RocksEngine` (feature `rocks`)
//! keeps them on disk. [`conformance`] is the suite that every engine passes; it is the precise form of the
//! promises on this page:
//!
//! - Keys sort as unsigned bytes. The operations of a batch apply in order.
//! - A batch is seen whole or not at all, by every reader. A read after an acknowledged commit sees it.
//! - [`EngineError::Conflict`], [`TooLarge`](EngineError::TooLarge) and [`NoSpace`](EngineError::NoSpace) mean that
//!   nothing was written. After a full disk and any other failure to write, the engine refuses further commits until it is opened
//!   again ([`Engine::reopening`]): what reached the disk is then read back instead of guessed. Reads go on.
//! - A commit is never tried again by the engine, nor is a failed sync.
//! - In [`get_many`](Readable::get_many) a damaged row fails its own key and no other.
//!
//! ```
//! use std::ops::{Bound, ControlFlow};
//! use cg_format::Space;
//! use cg_format::frame::{Codec, Draft, FrameView};
//! use cg_format::key::Family;
//! use cg_engine::{Batch, Engine, Guard, Level, MemEngine, Readable, ReadableExt, Stamp};
//!
//! let engine = MemEngine::new();
//! let mut batch = Batch::new();
//! batch.put(Space::Object, b"spawn", Draft::plain(Codec::None, 0, |out| out.extend(b"north")), Stamp::Commit);
//! let seq = engine.commit(batch, &[Guard::absent(Space::Object, b"spawn")], Level::Process)?;
//!
//! let stored = engine.get(Space::Object, b"spawn")?.expect("was just committed");
//! let frame = FrameView::open(Space::Object, b"spawn", &stored)?;
//! assert_eq!((frame.header().version, frame.payload()), (seq.get(), &b"north"[..]));
//!
//! let mut names = Vec::new();
//! engine.scan(Family::Object, (Bound::Unbounded, Bound::Unbounded), |key, _| {
//!     names.push(key.to_vec());
//!     ControlFlow::<()>::Continue(())
//! })?;
//! assert_eq!(names, [b"spawn"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

mod batch;
mod budget;
#[cfg(feature = "conformance")]
pub mod conformance;
mod damage;
mod delegate;
mod error;
mod mem;
mod range;
mod read;
#[cfg(feature = "rocks")]
pub mod rocks;
mod value;

pub use batch::{Batch, Guard, Op};
pub use budget::{Budget, DEFAULT_MEMORY_BYTES};
pub use cg_format::Space;
pub use cg_format::frame::Stamp;
pub use cg_format::key::Family;
pub use damage::{Gaps, Met, Uncached, scan_skipping_damage};
pub use error::{EngineError, Place, Table, row_in_words};
pub use mem::{Fault, MemEngine};
pub use read::{Readable, ReadableExt, RowVisitor, Scan};
#[cfg(feature = "rocks")]
pub use rocks::{Access, Examined, RocksEngine, RocksOptions};
pub use value::Value;

/// A lower and an upper end of a range of keys.
pub type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Every key of a family.
pub const ALL_KEYS: KeyRange<'static> = (Bound::Unbounded, Bound::Unbounded);

/// The key, in [`Space::WorldMeta`], of the row that carries the newest commit's sequence.
///
/// The row's payload is empty: its frame's version is the sequence. Every commit writes it last, so no batch can
/// set it to anything else.
pub const COMMIT_SEQUENCE_KEY: &[u8] = b"commitSequence";

/// The largest batch that an engine takes unless it was opened with another limit: 64 MiB.
pub const DEFAULT_MAX_BATCH_BYTES: u64 = 64 << 20;

/// A state of an engine that later commits do not change; see [`Engine::snapshot`].
pub type Snapshot<'e> = Box<dyn Readable + 'e>;

/// Where rows are kept. See the [module](self) for what every engine promises.
pub trait Engine: Readable + fmt::Debug + 'static {
    /// Whether there may be a row, for callers to whom a large one is not worth reading to know. `false` is certain where nothing is
    /// damaged.
    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        !matches!(self.get(space, key), Ok(None))
    }

    /// Applies a batch whole, if every guard holds, and gives it the next commit sequence.
    ///
    /// Guards hold when the sequence is given, under one short lock; syncing happens outside it, once for
    /// all commits that wait for it, and so may comparing guards, as long as what is written meanwhile is compared again. An empty batch is a commit like any other. Returns when `level` is reached.
    ///
    /// A [rearrangement](Batch::rearranging) takes no sequence: the newest commit's is returned, and no level but
    /// [`Level::Process`] is promised.
    ///
    /// # Errors
    /// [`Conflict`](EngineError::Conflict), [`TooLarge`](EngineError::TooLarge), [`NoSpace`](EngineError::NoSpace),
    /// [`ReadOnly`](EngineError::ReadOnly) and [`Closed`](EngineError::Closed): nothing was written.
    /// [`SyncFailed`](EngineError::SyncFailed): the batch is applied and seen, but may not survive a power cut.
    /// [`WriteFailed`](EngineError::WriteFailed): whether the batch survives is known after the next open.
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError>;

    /// The state after the newest commit, unmoved by later ones. Cheap to take; holding one keeps old rows alive.
    ///
    /// # Errors
    /// [`EngineError::Closed`], which a snapshot taken before the engine was closed answers too.
    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError>;

    /// Brings every commit made so far to [`Level::Power`]. Callers that come together share one sync.
    ///
    /// # Errors
    /// [`EngineError::SyncFailed`] for those who waited on the sync that failed, [`EngineError::ReadOnly`] for all
    /// later ones: a sync is never tried again. [`EngineError::Closed`].
    fn sync(&self) -> Result<(), EngineError>;

    /// The newest commit, or [`CommitSeq::NONE`] before the first.
    fn last_commit(&self) -> CommitSeq;

    /// How many batches were applied since the engine was opened, rearrangements included. Two reads with the same number
    /// before and behind them saw one state, or two of which the second has one batch more than the first: a batch may be
    /// seen a moment before it is counted.
    fn batch_count(&self) -> u64;

    /// The newest commit known to have reached [`Level::Power`].
    fn last_synced(&self) -> CommitSeq;

    /// A copy of the engine as it is now in a new directory, which opens like the original.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if [`Caps::checkpoint`] is unset; [`EngineError::Io`] if the directory exists.
    fn checkpoint(&self, dir: &Path) -> Result<(), EngineError>;

    /// Moves what is only in memory and log into sorted files, so that the next open is quick.
    ///
    /// # Errors
    /// As [`sync`](Self::sync); [`EngineError::NoSpace`] and [`EngineError::WriteFailed`] if the files cannot be
    /// written, after which the engine takes no commits. Nothing is lost: the log still holds it.
    fn flush(&self) -> Result<(), EngineError>;

    /// Rewrites a range of a family without what was overwritten or deleted there. May take minutes. A family in which
    /// something is known to be damaged may be left as it is; whether it still is, is looked at first, for an empty range too.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], [`EngineError::OpenedReadOnly`] and [`EngineError::Closed`].
    fn compact(&self, family: Family, range: KeyRange<'_>) -> Result<(), EngineError>;

    /// Flushes, syncs and refuses everything afterwards, except what is being read. A second call does nothing.
    ///
    /// The directory can be opened again once the value itself is dropped.
    ///
    /// # Errors
    /// As [`flush`](Self::flush); the engine is closed all the same.
    fn close(&self) -> Result<(), EngineError>;

    /// Why the engine takes no commits any more; `None` if it does, and if it never did.
    fn failure(&self) -> Option<Failure>;

    /// How to open again what this engine has open. To be called once the engine, its snapshots and its values are
    /// dropped, and again if it fails.
    fn reopening(&self) -> Reopen;

    /// What the system says is free where the engine writes; `None` if it cannot say.
    fn free_bytes(&self) -> Option<u64>;

    /// How large the disk is on which the engine writes; `None` if nobody can say.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    /// What the engine can do.
    fn caps(&self) -> Caps;

    /// How much the engine holds, by family. Costs no read of any row.
    ///
    /// # Errors
    /// [`EngineError::Closed`], and what the disk says.
    fn usage(&self) -> Result<Usage, EngineError>;
}

/// What ended an engine's writing.
#[derive(Debug, Clone)]
pub enum Failure {
    /// A write was refused. The next open shows what reached the system.
    Write(Arc<EngineError>),
    /// A sync failed. What is on the disk is known to nobody, an engine that is opened again included: the system may
    /// show what it has and could not write.
    Sync(Arc<EngineError>),
}

impl Failure {
    /// What failed.
    pub const fn cause(&self) -> &Arc<EngineError> {
        match self {
            Self::Write(cause) | Self::Sync(cause) => cause,
        }
    }
}

/// Opens an engine again, for writing if its newest commit is one that the caller expects.
///
/// # Errors
/// What the disk says, if it cannot even be read.
pub type Reopen = Box<dyn Fn(&dyn Fn(CommitSeq) -> bool) -> Result<Reopened, EngineError> + Send>;

/// An engine that was opened again.
#[derive(Debug)]
pub enum Reopened {
    /// For writing.
    Writable(Box<dyn Engine>),
    /// For reading only: its newest commit is none that was expected.
    Unexpected(Box<dyn Engine>),
    /// For reading only: it cannot be opened for writing.
    Reader {
        /// The engine.
        engine: Box<dyn Engine>,
        /// Why it can only be read.
        cause: EngineError,
    },
}

impl Reopened {
    /// The same for an engine around this one.
    #[must_use]
    pub fn map<E: Engine>(self, wrap: impl FnOnce(Box<dyn Engine>) -> E) -> Self {
        match self {
            Self::Writable(engine) => Self::Writable(Box::new(wrap(engine))),
            Self::Unexpected(engine) => Self::Unexpected(Box::new(wrap(engine))),
            Self::Reader { engine, cause } => Self::Reader { engine: Box::new(wrap(engine)), cause },
        }
    }
}

/// How safe a commit is when it returns.
///
/// | level | a killed process | a power cut |
/// |---|---|---|
/// | `Process` | survives | may be lost with all later commits, never in part |
/// | `Power` | survives | survives |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Handed to the operating system.
    Process,
    /// Synced to the disk.
    Power,
}

/// The number of a commit: strictly increasing over the life of a world, starting with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CommitSeq(u64);

impl CommitSeq {
    /// Before the first commit.
    pub const NONE: Self = Self(0);

    /// The commit with this number.
    pub const fn new(seq: u64) -> Self {
        Self(seq)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The commit after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for CommitSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an engine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caps {
    /// Rows outlive the engine value.
    pub durable: bool,
    /// [`Engine::checkpoint`] works.
    pub checkpoint: bool,
    /// Opened for reading only: every commit is refused.
    pub read_only: bool,
    /// The largest batch, in bytes of its keys and frames.
    pub max_batch_bytes: u64,
}

/// How much an engine holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// One entry per family, in the order of [`Family::ALL`].
    pub families: Vec<FamilyUsage>,
    /// Bytes of write-ahead log on disk.
    pub log_bytes: u64,
    /// Bytes of memory that the engine holds for rows, over all caches and buffers that it shares with others.
    pub memory_bytes: u64,
}

/// How much an engine holds of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyUsage {
    /// Which family.
    pub family: Family,
    /// Roughly how many rows; overwritten and deleted ones may still count.
    pub row_count: u64,
    /// Bytes of sorted files on disk.
    pub table_bytes: u64,
    /// Bytes of blob files on disk, of which [`garbage_bytes`](Self::garbage_bytes) are dead.
    pub blob_bytes: u64,
    /// Bytes of blob files that no row refers to any more.
    pub garbage_bytes: u64,
    /// Bytes in memory that are not yet in a file.
    pub buffered_bytes: u64,
    /// Whether its files are rewritten no more because one of them is damaged.
    pub is_held: bool,
}
