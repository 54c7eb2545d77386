//! The embedded engine: a RocksDB database in a directory.
//!
//! Only this module uses RocksDB. It adds:
//!
//! - a [scan of the logs](log_scan) before every open, because RocksDB treats some damage as the end of a log;
//! - a floor, a small file with the newest commit known to be synced, so that a lost log is noticed;
//! - a [lock](EngineError::Locked) that names its holder;
//! - guards and the commit sequence under one short lock, and syncs outside it, one for all waiting callers;
//! - no further writes or syncs after one has failed, until the next open;
//! - no compaction of a family with a damaged file, because that would end all writing.
//!
//! `DB::repair` is never called: it forgets every blob file, and the next open then deletes them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cg_format::Space;
use cg_format::frame::Version;
use cg_format::key::Family;
use cg_format::lineage::Lineage;
use parking_lot::Mutex;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{ColumnFamily, DBWithThreadMode, ReadOptions, SingleThreaded, WriteOptions};

use super::{
    Batch, Budget, Caps, CommitSeq, Engine, EngineError, Failure, Guard, KeyRange, Latency, Level, Reopen,
    SealedRow, Snapshot, Table, Usage,
};

mod background;
mod compact;
mod failure;
mod families;
mod floor;
mod group_sync;
mod held;
mod history;
mod listing;
mod lock;
mod log_parts;
pub mod log_scan;
mod manifest;
mod messages;
mod missing;
mod open;
mod options;
mod read;
mod reopen;
mod sync;
mod synced;
mod tear;
mod tuning;
mod usage;
mod view;
mod watch;
mod write;

pub use open::Examined;
pub use options::{Access, RocksOptions};
pub use tuning::MAX_WAL_BYTES;

use compact::Collect;
use floor::Floor;
use group_sync::GroupSync;
use held::Held;
use lock::DirLock;
use read::RocksSnapshot;
use synced::FileEnd;
use tear::LogCommits;
use view::View;
use write::Newest;

/// Families are fixed for the life of the value, so a lookup takes no lock.
type Db = DBWithThreadMode<SingleThreaded>;

/// Rows on disk.
///
/// Several may be open in one process, on different directories; they share [`Budget`].
///
/// ```
/// use cg_engine::{Batch, Engine, Level, RocksEngine, RocksOptions};
///
/// let dir = tempfile::tempdir()?;
/// let db = dir.path().join("db");
/// let engine = RocksEngine::create(&db, &RocksOptions::default())?;
/// let seq = engine.commit(Batch::new(), &[], Level::Power)?;
/// engine.close()?;
/// drop(engine);
///
/// let engine = RocksEngine::open(&db, &RocksOptions::default())?;
/// assert_eq!(engine.last_commit(), seq);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RocksEngine {
    db: Db,
    dir: PathBuf,
    access: Access,
    max_batch_bytes: u64,
    budget: Budget,
    reads: ReadOptions,
    writes: WriteOptions,
    /// Locked while the guards are confirmed and the batch is written.
    newest: Mutex<Newest>,
    /// The sequence in `newest`, for readers without the lock.
    last_commit: AtomicU64,
    batch_count: AtomicU64,
    syncs: GroupSync,
    /// How much of the newest log was synced, as far as it was measured.
    log_synced: Mutex<FileEnd>,
    floor: Option<Mutex<Floor>>,
    /// Families whose files are no longer rewritten.
    held: Mutex<Held>,
    /// The sorted file in which damage was found last.
    damaged_table: Mutex<Option<Table>>,
    /// The first write or sync that failed.
    failed: OnceLock<Failure>,
    closed: AtomicBool,
    /// The newest commit when it was opened.
    found: Version,
    /// The logs that held commits when it was opened.
    logs: Vec<LogCommits>,
    /// The history that the last batch belongs to.
    lineage: Mutex<Option<Arc<Lineage>>>,
    /// The files that are read, if they are not those of the directory.
    _view: Option<View>,
    /// The last field, so that the directory is unlocked after the database is dropped.
    lock: Option<Arc<DirLock>>,
}

impl RocksEngine {
    /// Creates an engine with all its families in a directory that holds none. Creates missing parents too.
    ///
    /// A crash during creation leaves a directory that [`open`](Self::open) refuses or finds empty.
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`], [`EngineError::Locked`], and errors of the disk.
    pub fn create(dir: &Path, options: &RocksOptions) -> Result<Self, EngineError> {
        open::create(dir, options)
    }

    /// Opens a directory that [`create`](Self::create) made. A refused open changes no byte of the directory.
    ///
    /// Reads the manifest and all write-ahead logs before RocksDB does. Then it opens the database for reading, to
    /// compare it with the floor. So an open after a crash costs twice what RocksDB alone would take. The log is
    /// never much larger than [`MAX_WAL_BYTES`], and almost empty after a clean close.
    ///
    /// # Errors
    /// [`EngineError::NotAnEngineDir`], [`EngineError::Locked`], [`EngineError::MissingFamily`],
    /// [`EngineError::UnknownFamily`], [`EngineError::Corrupt`], [`EngineError::LostCommits`], and errors of the
    /// disk.
    pub fn open(dir: &Path, options: &RocksOptions) -> Result<Self, EngineError> {
        open::open(dir, options)
    }

    /// Does the part of [`open`](Self::open) that changes nothing, for a caller that reads the rows before it decides
    /// to write. Prepares an open for writing, whatever access the options have. Both parts together cost as much as
    /// `open`: nothing is read twice that `open` would read once.
    ///
    /// ```
    /// use cg_engine::{Batch, Engine, Level, RocksEngine, RocksOptions};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let db = dir.path().join("db");
    /// let options = RocksOptions::default();
    /// RocksEngine::create(&db, &options)?.commit(Batch::new(), &[], Level::Power)?;
    ///
    /// let examined = RocksEngine::examine(&db, &options)?;
    /// assert_eq!(examined.reader().last_commit().get(), 1);
    /// let engine = examined.open()?;
    /// engine.commit(Batch::new(), &[], Level::Power)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn examine(dir: &Path, options: &RocksOptions) -> Result<Examined, EngineError> {
        open::examine(dir, options, &Held::new(), None)
    }

    /// Why the floor of a directory promises nothing: the file `DURABLE`, which says which commits were synced, is missing or
    /// damaged. A checkpoint has none.
    ///
    /// An open for reading does without it. An open for writing writes a new one, so it is to be asked before.
    pub fn floor_problem(dir: &Path) -> Option<EngineError> {
        floor::problem(dir)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn family(&self, family: Family) -> &ColumnFamily {
        self.db.cf_handle(family.name()).expect("all families were opened")
    }

    fn check_open(&self) -> Result<(), EngineError> {
        if self.closed.load(Ordering::Acquire) { Err(EngineError::Closed) } else { Ok(()) }
    }
}

impl fmt::Debug for RocksEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksEngine")
            .field("dir", &self.dir)
            .field("access", &self.access)
            .field("last_commit", &self.last_commit())
            .field("last_synced", &self.last_synced())
            .field("failed", &self.failed.get())
            .finish_non_exhaustive()
    }
}

impl Engine for RocksEngine {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        let (len_bytes, max_bytes) = (batch.len_bytes(), self.max_batch_bytes);
        if len_bytes > max_bytes {
            return Err(EngineError::TooLarge { len_bytes, max_bytes });
        }
        let seq =
            if guards.is_empty() { self.commit_plain(batch)? } else { self.commit_guarded(batch, guards)? };
        match level {
            Level::Process => Ok(seq),
            Level::Power => self.sync_to(seq).map(|()| seq),
        }
    }

    fn load(&self, rows: Vec<SealedRow>) -> Result<(), EngineError> {
        self.load_rows(rows)
    }

    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        // Uses only filters and caches.
        self.db.key_may_exist_cf(self.family(space.family()), key)
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        self.check_open()?;
        Ok(Box::new(RocksSnapshot::new(self)))
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.check_writable()?;
        let newest = self.last_commit();
        if self.syncs.synced() < newest { self.sync_to(newest) } else { self.note_idle() }
    }

    fn last_commit(&self) -> CommitSeq {
        CommitSeq::new(self.last_commit.load(Ordering::Acquire))
    }

    fn batch_count(&self) -> u64 {
        self.batch_count.load(Ordering::Acquire)
    }

    fn last_synced(&self) -> CommitSeq {
        self.syncs.synced()
    }

    fn checkpoint(&self, dir: &Path) -> Result<(), EngineError> {
        self.check_open()?;
        if self.access == Access::ReadOnly {
            return Err(EngineError::Unsupported { what: "write a checkpoint when opened for reading only" });
        }
        let operation = "write a checkpoint";
        let checkpoint = Checkpoint::new(&self.db).map_err(|error| failure::of(operation, error))?;
        if dir.exists() {
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(EngineError::Io { path: dir.to_path_buf(), source });
        }
        checkpoint.create_checkpoint(dir).map_err(|error| failure::of(operation, error))?;
        held::write(dir, &self.held.lock())?;
        // With the lock file, readers of the copy lock out its writers.
        DirLock::create(dir)?;
        open::sync_dir(dir)?;
        dir.parent().map_or(Ok(()), open::sync_dir)
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.sync()?;
        self.flush_families()
    }

    fn compact(&self, family: Family, keys: KeyRange<'_>) -> Result<(), EngineError> {
        self.compact_range(family, keys, Collect::All)
    }

    fn compact_next(&self, family: Family, keys: KeyRange<'_>) -> Result<Option<Box<[u8]>>, EngineError> {
        self.compact_slice(family, keys)
    }

    fn close(&self) -> Result<(), EngineError> {
        // While this lock is held, no commit runs. None begins after the close.
        let newest = self.newest.lock();
        if self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let flushed = match self.check_writable() {
            Err(EngineError::OpenedReadOnly) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => self.sync_before_close(newest.seq).and_then(|()| self.flush_families()),
        };
        self.closed.store(true, Ordering::Release);
        self.db.cancel_all_background_work(true);
        self.note_closed();
        flushed
    }

    fn failure(&self) -> Option<Failure> {
        self.failed.get().cloned()
    }

    fn reopening(&self) -> Reopen {
        let dir = self.dir.clone();
        let options = RocksOptions::new(self.budget.clone()).with_max_batch_bytes(self.max_batch_bytes);
        // Includes families that could not be written to the file.
        let held = self.held.lock().clone();
        let lock = self.lock.clone().filter(|_| self.access == Access::ReadWrite);
        Box::new(move |expects| reopen::reopen(&dir, &options, &held, lock.as_ref(), expects))
    }

    fn free_bytes(&self) -> Option<u64> {
        usage::free_bytes(&self.dir)
    }

    fn disk_bytes(&self) -> Option<u64> {
        usage::all_bytes(&self.dir)
    }

    fn address(&self) -> String {
        self.dir.display().to_string()
    }

    fn caps(&self) -> Caps {
        let read_only = self.access == Access::ReadOnly;
        Caps {
            durable: true,
            checkpoint: !read_only,
            read_only,
            latency: Latency::Disk,
            ..Caps::new(self.max_batch_bytes)
        }
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        self.usage_now()
    }
}
