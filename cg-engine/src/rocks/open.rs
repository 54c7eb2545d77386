//! Opening a directory: what is checked, and in which order, before anything is changed.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use cg_format::Space;
use cg_format::frame::{FrameView, Version};
use parking_lot::Mutex;
use rocksdb::{ReadOptions, WriteOptions, properties};

use super::super::{COMMIT_SEQUENCE_KEY, CommitSeq, Engine as _, EngineError, Place};
use super::floor::{self, Floor};
use super::group_sync::GroupSync;
use super::held::Held;
use super::listing::{self, Listing, number_of};
use super::lock::DirLock;
use super::log_scan::LogEnd;
use super::tear::{LogCommits, Tears};
use super::view::View;
use super::{
    Access, Db, Newest, RocksEngine, RocksOptions, failure, families, held, log_parts, log_scan, missing,
    tuning,
};

/// The file that names the current manifest.
pub(super) const CURRENT: &str = "CURRENT";

/// See [`RocksEngine::create`].
pub(super) fn create(dir: &Path, options: &RocksOptions) -> Result<RocksEngine, EngineError> {
    let dir = &*absolute(dir)?;
    options.budget.check_startup()?;
    fs::create_dir_all(dir).map_err(|source| EngineError::Io { path: dir.to_path_buf(), source })?;
    Listing::look(dir)?;
    let lock = Arc::new(DirLock::create(dir)?);
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
    let mut floor = Floor::open(dir)?;
    floor.begin(dir);
    let engine = finish(dir, options, (db, None, Vec::new()), Some(floor), Some(lock), Held::new())?;
    sync_dir(dir)?;
    if let Some(parent) = dir.parent() {
        sync_dir(parent)?;
    }
    Ok(engine)
}

/// See [`RocksEngine::open`].
pub(super) fn open(dir: &Path, options: &RocksOptions) -> Result<RocksEngine, EngineError> {
    let dir = &*absolute(dir)?;
    match options.access {
        Access::ReadOnly => {
            let engine = open_to_read(dir, options, None)?;
            check_floor(dir, options, engine.last_commit())?;
            Ok(engine)
        }
        Access::ReadWrite => examine(dir, options, &Held::new(), None)?.open(),
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
    pub(super) lock: Option<Arc<DirLock>>,
    tears: Tears,
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
        let Self { reader, lock, tears, options, held, has_lost_commits } = self;
        let found = reader.found;
        let dir = reader.dir.clone();
        let dir = dir.as_path();
        drop(reader);
        // A directory without a lock file is a copy, which no other process has open.
        let lock = lock.map_or_else(|| DirLock::create(dir).map(Arc::new), Ok)?;
        lock.sign()?;
        let families = families::descriptors(&options.budget, &held);
        tears.cut_files(dir)?;
        let before = Listing::look(dir)?;
        let opened = Db::open_cf_descriptors(&tuning::database(&options.budget), dir, families);
        let db = opened.map_err(|error| {
            before.remove_later_empty_logs(dir);
            failure::opening(dir, error)
        })?;
        if held != held::read(dir)
            && let Err(error) = held::write(dir, &held)
        {
            tracing::warn!(%error, "damaged families could not be noted");
        }
        let mut floor = Floor::open(dir)?;
        if has_lost_commits {
            floor.lower(dir, found)?;
        }
        floor.begin(dir);
        finish(dir, &options, (db, None, Vec::new()), Some(floor), Some(lock), held)
    }
}

/// See [`RocksEngine::examine`]. `held` names held families in addition to those in the directory's file. Without a
/// `lock` it is taken.
pub(super) fn examine(
    dir: &Path,
    options: &RocksOptions,
    held: &Held,
    lock: Option<&Arc<DirLock>>,
) -> Result<Examined, EngineError> {
    let dir = &*absolute(dir)?;
    options.budget.check_startup()?;
    let (lock, manifest, tears) = check_files(dir, Access::ReadWrite, lock)?;
    let reading = options.clone().with_access(Access::ReadOnly);
    let mut held = held.clone();
    held.extend(held::read(dir));
    let Opened { db, view, tears } = read_database(dir, &reading, &manifest, tears)?;
    let logs = tears.logs.clone();
    let reader = finish(dir, &reading, (db, view, logs), None, None, held.clone())?;
    if !options.accept_lost_commits {
        // What it says must be known before it is written anew.
        floor::promised(dir)?;
    }
    let has_lost_commits = check_floor(dir, options, reader.last_commit())?;
    let options = options.clone().with_access(Access::ReadWrite);
    Ok(Examined { reader, lock, tears, options, held, has_lost_commits })
}

/// Whether the newest commit is older than the floor, if the options accept that.
fn check_floor(dir: &Path, options: &RocksOptions, found: CommitSeq) -> Result<bool, EngineError> {
    let floor = floor::known(dir)?.seq;
    if found < floor && !options.accept_lost_commits {
        return Err(EngineError::LostCommits { floor, found });
    }
    Ok(found < floor)
}

/// Opens for reading. Does not compare the floor.
pub(super) fn open_to_read(
    dir: &Path,
    options: &RocksOptions,
    lock: Option<&Arc<DirLock>>,
) -> Result<RocksEngine, EngineError> {
    options.budget.check_startup()?;
    let (lock, manifest, tears) = check_files(dir, Access::ReadOnly, lock)?;
    let Opened { db, view, tears } = read_database(dir, options, &manifest, tears)?;
    finish(dir, options, (db, view, tears.logs), None, lock, held::read(dir))
}

/// Takes the lock, unless it is given, and checks what RocksDB would not notice, or not name. Changes no byte.
fn check_files(
    dir: &Path,
    access: Access,
    lock: Option<&Arc<DirLock>>,
) -> Result<(Option<Arc<DirLock>>, String, Tears), EngineError> {
    // Before any file is opened. The files are listed again below, once no writer changes them any more.
    Listing::look(dir)?;
    let manifest = current_manifest(dir)?;
    let lock = match lock {
        Some(lock) => Some(Arc::clone(lock)),
        None => DirLock::existing(dir, access)?.map(Arc::new),
    };
    let tears = Tears::find(dir, &manifest, floor::known(dir)?.synced)?;
    Ok((lock, manifest, tears))
}

/// A database that is open for reading, and what of its files it does not read.
struct Opened {
    db: Db,
    view: Option<View>,
    tears: Tears,
}

/// Opens the database for reading, without what a power cut left torn.
///
/// If a table is missing, the change that names it may be one that was never synced.
fn read_database(
    dir: &Path,
    options: &RocksOptions,
    manifest: &str,
    tears: Tears,
) -> Result<Opened, EngineError> {
    let missing = match read_cut(dir, options, manifest, tears.clone()) {
        Err(error) if is_missing_table(dir, &error) => error,
        opened => return opened,
    };
    let synced = floor::known(dir)?.synced;
    let mut shorter = tears.with_shorter_manifests(dir, manifest, synced).into_iter();
    let Some(opened) = shorter.find_map(|tears| read_cut(dir, options, manifest, tears).ok()) else {
        return Err(missing);
    };
    tracing::warn!(error = %missing, "the change of the manifest that names the file was never synced; it is cut");
    Ok(opened)
}

fn is_missing_table(dir: &Path, error: &EngineError) -> bool {
    let EngineError::Corrupt { place: Place::File { name, .. }, .. } = error else { return false };
    held::table_in(name).is_some() && !dir.join(name).exists()
}

fn read_cut(dir: &Path, options: &RocksOptions, manifest: &str, tears: Tears) -> Result<Opened, EngineError> {
    let view = if tears.is_none() { None } else { Some(View::new(dir, &tears)?) };
    let from = view.as_ref().map_or(dir, View::path);
    families::check(from, dir).map_err(|error| missing::or_cut_manifest(dir, error))?;
    let families = families::descriptors(&options.budget, &Held::new());
    let database = tuning::database(&options.budget);
    let opened = Db::open_cf_descriptors_read_only(&database, from, families, false);
    let db = opened.map_err(|error| {
        let table = missing::table(dir, options, error.as_ref());
        missing::or_cut_manifest(dir, table.unwrap_or_else(|| failure::opening(dir, error)))
    })?;
    if let Some(end) = tears.end_of(manifest)
        && !has_oldest_log(&db, dir, manifest, end)?
    {
        let problem = "a change is not whole, and the log with its rows is not there any more";
        return Err(corrupt_file(manifest, end, &problem));
    }
    Ok(Opened { db, view, tears })
}

/// Whether the oldest log is there with rows that are in no table. RocksDB deletes it once a change of the manifest says
/// that they are.
fn has_oldest_log(db: &Db, dir: &Path, manifest: &str, end: u64) -> Result<bool, EngineError> {
    let number = db.property_int_value(properties::MIN_LOG_NUMBER_TO_KEEP);
    let number = number.map_err(|error| failure::of("read a property", error))?.unwrap_or(0);
    if number > 0 {
        if dir.join(format!("{number:06}.log")).is_file() {
            return Ok(true);
        }
        // An opening states the number after that of its newest log, which another file gets.
        let Some(named) = listing::named(dir, manifest, end) else { return Ok(false) };
        let logs = Listing::look(dir)?.logs(None);
        let mut needed = logs.iter().filter(|name| number_of(name) >= number);
        let first = needed.next().and_then(|name| log_parts::first_sequence(&dir.join(name)));
        return Ok(first.is_some_and(|first| named.begins_after_opening(number, first)));
    }
    // The world was never opened again since it was made, and all is in logs.
    let logs = Listing::look(dir)?.logs(None);
    let mut sequences = logs.iter().filter_map(|name| log_parts::first_sequence(&dir.join(name)));
    Ok(sequences.next().is_none_or(|first| first <= 1))
}

fn finish(
    dir: &Path,
    options: &RocksOptions,
    (db, view, logs): (Db, Option<View>, Vec<LogCommits>),
    floor: Option<Floor>,
    lock: Option<Arc<DirLock>>,
    held: Held,
) -> Result<RocksEngine, EngineError> {
    let found = stored_sequence(&db)?;
    let seq = CommitSeq::new(found.commit);
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
        log_synced: Mutex::default(),
        floor: floor.map(Mutex::new),
        held: Mutex::new(held),
        damaged_table: Mutex::default(),
        failed: OnceLock::new(),
        closed: AtomicBool::new(false),
        found,
        logs,
        lineage: Mutex::default(),
        _view: view,
        lock,
    })
}

/// The newest commit that the database holds.
fn stored_sequence(db: &Db) -> Result<Version, EngineError> {
    let (space, key) = (Space::WorldMeta, COMMIT_SEQUENCE_KEY);
    let family = space.family();
    let handle = db.cf_handle(family.name()).expect("all families were opened");
    let found = db.get_pinned_cf(handle, key).map_err(|error| failure::reading_row(family, key, error))?;
    let Some(bytes) = found else { return Ok(Version::default()) };
    match FrameView::open(space, key, &bytes) {
        Ok(frame) => Ok(Version { commit: frame.header().version, lineage: frame.header().lineage }),
        Err(error) => Err(EngineError::Corrupt {
            place: Place::Row { family, key: key.into() },
            message: error.to_string(),
        }),
    }
}

/// The directory whatever the process's current directory becomes: files are opened and made as long as the engine is
/// open.
fn absolute(dir: &Path) -> Result<PathBuf, EngineError> {
    std::path::absolute(dir).map_err(|source| EngineError::Io { path: dir.to_path_buf(), source })
}

/// The name of the current manifest.
pub(super) fn current_manifest(dir: &Path) -> Result<String, EngineError> {
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

/// Reads a log or a manifest to its end, of which `synced_bytes` are known to be synced.
pub(super) fn scan(dir: &Path, name: &str, synced_bytes: u64) -> Result<LogEnd, EngineError> {
    let path = dir.join(name);
    match log_scan::scan_file(&path, synced_bytes) {
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

pub(super) fn file_names(dir: &Path) -> Result<Vec<String>, EngineError> {
    let io = |source| EngineError::Io { path: dir.to_path_buf(), source };
    let entries = fs::read_dir(dir).map_err(io)?;
    entries.map(|entry| Ok(entry.map_err(io)?.file_name().to_string_lossy().into_owned())).collect()
}
