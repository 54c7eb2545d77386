//! Opening a directory: what is checked, and in which order, before anything is changed.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};

use cg_format::Space;
use cg_format::frame::FrameView;
use parking_lot::Mutex;
use rocksdb::{DBRecoveryMode, Options, ReadOptions, WriteOptions};

use super::super::{COMMIT_SEQUENCE_KEY, CommitSeq, Engine as _, EngineError, Place, Reopened};
use super::floor::{self, Floor};
use super::group_sync::GroupSync;
use super::held::Held;
use super::lock::DirLock;
use super::log_scan::{LogEnd, LogProblem, Tear};
use super::{
    Access, Db, Newest, RocksEngine, RocksOptions, failure, families, held, log_scan, missing, tuning,
};

/// The file that names the current manifest.
pub(super) const CURRENT: &str = "CURRENT";

/// See [`RocksEngine::create`].
pub(super) fn create(dir: &Path, options: &RocksOptions) -> Result<RocksEngine, EngineError> {
    options.budget.check_startup()?;
    fs::create_dir_all(dir).map_err(|source| EngineError::Io { path: dir.to_path_buf(), source })?;
    let mut lock = DirLock::create(dir)?;
    if dir.join(CURRENT).exists() {
        return Err(EngineError::AlreadyExists { dir: dir.to_path_buf() });
    }
    lock.sign()?;
    let mut database = tuning::database(&options.budget);
    database.create_if_missing(true);
    database.create_missing_column_families(true);
    database.set_error_if_exists(true);
    let families = families::descriptors(&options.budget, &Held::new());
    let db =
        Db::open_cf_descriptors(&database, dir, families).map_err(|error| failure::opening(dir, error))?;
    let engine = finish(dir, options, db, Some(Floor::open(dir)?), Some(lock), Held::new())?;
    sync_dir(dir)?;
    if let Some(parent) = dir.parent() {
        sync_dir(parent)?;
    }
    Ok(engine)
}

/// See [`RocksEngine::open`].
pub(super) fn open(dir: &Path, options: &RocksOptions) -> Result<RocksEngine, EngineError> {
    match options.access {
        Access::ReadOnly => {
            let engine = open_to_read(dir, options)?;
            check_floor(dir, options, engine.last_commit())?;
            Ok(engine)
        }
        Access::ReadWrite => examine(dir, options, &Held::new())?.open(),
    }
}

/// Opens a directory again, with families that were held before. For writing if its newest commit is expected, else
/// for reading.
pub(super) fn reopen(
    dir: &Path,
    options: &RocksOptions,
    held: &Held,
    expects: &dyn Fn(CommitSeq) -> bool,
) -> Result<Reopened, EngineError> {
    let examined = examine(dir, options, held);
    let is_expected = examined.as_ref().is_ok_and(|examined| expects(examined.reader.last_commit()));
    let refused = match examined {
        Ok(examined) if is_expected => match examined.open() {
            Ok(engine) => return Ok(Reopened::Writable(Box::new(engine))),
            Err(error) => Some(error),
        },
        Ok(_) => None,
        Err(error) => Some(error),
    };
    let reading = options.clone().with_access(Access::ReadOnly);
    match (open_to_read(dir, &reading), refused) {
        (Ok(engine), None) => Ok(Reopened::Unexpected(Box::new(engine))),
        (Ok(engine), Some(cause)) => Ok(Reopened::Reader { engine: Box::new(engine), cause }),
        (Err(_), Some(cause)) | (Err(cause), None) => Err(cause),
    }
}

/// A directory that passed all checks for writing and is locked for it. No byte of it is changed yet.
///
/// Opening the database for writing replays its logs and deletes them. So a check that may refuse to write must run
/// first. Dropping the value leaves the directory unchanged.
#[derive(Debug)]
pub struct Examined {
    /// The database, open for reading.
    reader: RocksEngine,
    lock: Option<DirLock>,
    replay: Replay,
    options: RocksOptions,
    held: Held,
    has_lost_commits: bool,
}

impl Examined {
    /// The engine as it will be after it is opened for writing, since no other process can write meanwhile.
    pub const fn reader(&self) -> &RocksEngine {
        &self.reader
    }

    /// Whether synced commits are absent and the options accept that.
    pub const fn has_lost_commits(&self) -> bool {
        self.has_lost_commits
    }

    /// Opens the engine for writing. If commits are lost, the floor is lowered to those that exist.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn open(self) -> Result<RocksEngine, EngineError> {
        let Self { reader, lock, replay, options, held, has_lost_commits } = self;
        let found = reader.last_commit();
        let dir = reader.dir.clone();
        let dir = dir.as_path();
        drop(reader);
        // A directory without a lock file is a copy, which no other process has open.
        let mut lock = lock.map_or_else(|| DirLock::create(dir), Ok)?;
        lock.sign()?;
        let families = families::descriptors(&options.budget, &held);
        let opened = Db::open_cf_descriptors(&replay.database(&options), dir, families);
        let db = opened.map_err(|error| failure::opening(dir, error))?;
        if held != held::read(dir)
            && let Err(error) = held::write(dir, &held)
        {
            tracing::warn!(%error, "damaged families could not be noted");
        }
        let mut floor = Floor::open(dir)?;
        if has_lost_commits {
            floor.lower(dir, found)?;
        }
        finish(dir, &options, db, Some(floor), Some(lock), held)
    }
}

/// See [`RocksEngine::examine`]. `held` names held families in addition to those in the directory's file.
pub(super) fn examine(dir: &Path, options: &RocksOptions, held: &Held) -> Result<Examined, EngineError> {
    options.budget.check_startup()?;
    let (lock, replay) = check_files(dir, Access::ReadWrite)?;
    let reading = options.clone().with_access(Access::ReadOnly);
    let mut held = held.clone();
    held.extend(held::read(dir));
    let reader = finish(dir, &reading, read_database(dir, &reading, replay)?, None, None, held.clone())?;
    let has_lost_commits = check_floor(dir, options, reader.last_commit())?;
    let options = options.clone().with_access(Access::ReadWrite);
    Ok(Examined { reader, lock, replay, options, held, has_lost_commits })
}

/// Whether the newest commit is older than the floor, if the options accept that.
fn check_floor(dir: &Path, options: &RocksOptions, found: CommitSeq) -> Result<bool, EngineError> {
    let floor = floor::promised(dir)?;
    if found < floor && !options.accept_lost_commits {
        return Err(EngineError::LostCommits { floor, found });
    }
    Ok(found < floor)
}

/// Opens for reading. Does not compare the floor.
fn open_to_read(dir: &Path, options: &RocksOptions) -> Result<RocksEngine, EngineError> {
    options.budget.check_startup()?;
    let (lock, replay) = check_files(dir, Access::ReadOnly)?;
    finish(dir, options, read_database(dir, options, replay)?, None, lock, held::read(dir))
}

/// Takes the lock and checks what RocksDB would not notice, or not name. Changes no byte.
fn check_files(dir: &Path, access: Access) -> Result<(Option<DirLock>, Replay), EngineError> {
    let manifest = current_manifest(dir)?;
    let lock = DirLock::existing(dir, access)?;
    let replay = scan_logs(dir, &manifest)?;
    families::check(dir)?;
    Ok((lock, replay))
}

/// How far RocksDB replays the logs.
#[derive(Debug, Clone, Copy)]
enum Replay {
    /// To their end. The last record may be cut off.
    All,
    /// To the first record that fails its checks. The scan found that this is the last record, that it ends in zeros,
    /// and that nothing else is wrong. Otherwise this mode would hide damage.
    UpToTheTear,
}

impl Replay {
    fn database(self, options: &RocksOptions) -> Options {
        let mut database = tuning::database(&options.budget);
        match self {
            Self::All => {}
            Self::UpToTheTear => database.set_wal_recovery_mode(DBRecoveryMode::PointInTime),
        }
        database
    }
}

fn read_database(dir: &Path, options: &RocksOptions, replay: Replay) -> Result<Db, EngineError> {
    let families = families::descriptors(&options.budget, &Held::new());
    let opened = Db::open_cf_descriptors_read_only(&replay.database(options), dir, families, false);
    opened.map_err(|error| {
        missing::table(dir, options, error.as_ref()).unwrap_or_else(|| failure::opening(dir, error))
    })
}

/// Whether a file of the directory is a write-ahead log.
pub(super) fn is_log(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "log")
}

fn finish(
    dir: &Path,
    options: &RocksOptions,
    db: Db,
    floor: Option<Floor>,
    lock: Option<DirLock>,
    held: Held,
) -> Result<RocksEngine, EngineError> {
    let seq = stored_sequence(&db)?;
    // Commits that were read back from a log may never have been synced. Only the floor is known to be.
    let synced = floor.as_ref().map_or(CommitSeq::NONE, Floor::seq);
    let mut writes = WriteOptions::default();
    writes.set_sync(false);
    writes.disable_wal(false);
    Ok(RocksEngine {
        db,
        dir: dir.to_path_buf(),
        access: options.access,
        max_batch_bytes: options.max_batch_bytes,
        budget: options.budget.clone(),
        reads: ReadOptions::default(),
        writes,
        newest: Mutex::new(Newest::from(seq)),
        last_commit: AtomicU64::new(seq.get()),
        batch_count: AtomicU64::new(0),
        syncs: GroupSync::new(synced),
        floor: floor.map(Mutex::new),
        held: Mutex::new(held),
        damaged_table: Mutex::default(),
        failed: OnceLock::new(),
        closed: AtomicBool::new(false),
        _lock: lock,
    })
}

/// The newest commit that the database holds.
fn stored_sequence(db: &Db) -> Result<CommitSeq, EngineError> {
    let (space, key) = (Space::WorldMeta, COMMIT_SEQUENCE_KEY);
    let family = space.family();
    let handle = db.cf_handle(family.name()).expect("all families were opened");
    let found = db.get_pinned_cf(handle, key).map_err(|error| failure::reading_row(family, key, error))?;
    let Some(bytes) = found else { return Ok(CommitSeq::NONE) };
    match FrameView::open(space, key, &bytes) {
        Ok(frame) => Ok(CommitSeq::new(frame.header().version)),
        Err(error) => Err(EngineError::Corrupt {
            place: Place::Row { family, key: key.into() },
            message: error.to_string(),
        }),
    }
}

/// The name of the current manifest.
fn current_manifest(dir: &Path) -> Result<String, EngineError> {
    let path = dir.join(CURRENT);
    let name = match fs::read(&path) {
        Ok(bytes) => bytes.strip_suffix(b"\n").map(<[u8]>::to_vec).map(String::from_utf8),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let names = file_names(dir).unwrap_or_default();
            if names.iter().any(|name| is_manifest(name)) {
                return Err(missing::current(&names, "the file is missing"));
            }
            let reason = "there is no file CURRENT".into();
            return Err(EngineError::NotAnEngineDir { dir: dir.into(), reason });
        }
        Err(source) => return Err(EngineError::Io { path, source }),
    };
    match name {
        Some(Ok(name)) if is_manifest(&name) => Ok(name),
        _ => Err(missing::current(&file_names(dir)?, "it does not name a manifest")),
    }
}

pub(super) fn is_manifest(name: &str) -> bool {
    let number = name.strip_prefix("MANIFEST-").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Reads the manifest and the logs to their ends. Only the newest log that holds commits may end in an incomplete
/// record: no commit may follow a gap. The manifest is synced before anything relies on it.
fn scan_logs(dir: &Path, manifest: &str) -> Result<Replay, EngineError> {
    let end = scan(dir, manifest)?;
    if end.tear == Some(Tear::Zeros) {
        return Err(corrupt_file(manifest, end.whole_bytes, &LogProblem::Zeros));
    }
    let mut names = file_names(dir)?;
    names.retain(|name| is_log(OsStr::new(name)));
    // By number: a longer name has a higher one.
    names.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let mut torn: Option<(String, LogEnd)> = None;
    for name in names {
        let end = scan(dir, &name)?;
        if let Some((torn, torn_end)) = torn.as_ref().filter(|_| end.holds_commits) {
            return Err(corrupt_file(torn, torn_end.whole_bytes, &LogProblem::CommitsBehindTear));
        }
        if end.tear.is_some() {
            torn = Some((name, end));
        }
    }
    Ok(match torn {
        Some((name, end)) if end.tear == Some(Tear::Zeros) => {
            tracing::warn!(log = name, ?end, "the last record of the log was not written to its end");
            Replay::UpToTheTear
        }
        _ => Replay::All,
    })
}

fn scan(dir: &Path, name: &str) -> Result<LogEnd, EngineError> {
    let path = dir.join(name);
    match log_scan::scan_file(&path) {
        Ok(Ok(end)) => {
            tracing::debug!(path = %path.display(), ?end, "scanned a log");
            Ok(end)
        }
        Ok(Err(damage)) => Err(corrupt_file(name, damage.offset_bytes, &damage.problem)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_manifest(name) => {
            Err(missing::manifest(&file_names(dir)?, name))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(corrupt_file(name, 0, &"the file is missing"))
        }
        Err(source) => Err(EngineError::Io { path, source }),
    }
}

pub(super) fn corrupt_file(name: &str, offset_bytes: u64, problem: &dyn fmt::Display) -> EngineError {
    let place = Place::File { name: name.into(), offset_bytes };
    EngineError::Corrupt { place, message: problem.to_string() }
}

/// Makes the names in a directory survive a power cut.
pub(super) fn sync_dir(dir: &Path) -> Result<(), EngineError> {
    // A relative name without a directory is in the current one. Only on Unix is a directory a file; elsewhere its
    // names are synced with its files.
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    if cfg!(unix) {
        let synced = fs::File::open(dir).and_then(|dir| dir.sync_all());
        synced.map_err(|source| EngineError::Io { path: dir.to_path_buf(), source })?;
    }
    Ok(())
}

fn file_names(dir: &Path) -> Result<Vec<String>, EngineError> {
    let io = |source| EngineError::Io { path: dir.to_path_buf(), source };
    let entries = fs::read_dir(dir).map_err(io)?;
    entries.map(|entry| Ok(entry.map_err(io)?.file_name().to_string_lossy().into_owned())).collect()
}
