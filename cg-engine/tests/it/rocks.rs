//! The embedded engine: the shared promises, and what only a disk can break.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cg_engine::{
    ALL_KEYS, Access, Batch, Budget, CommitSeq, Engine, EngineError, Level, Readable, ReadableExt as _,
    RocksEngine, RocksOptions, conformance,
};
use cg_format::Space;
use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::Family;
use expect_test::{Expect, expect};
use tempfile::TempDir;

mod blob_cache;
mod compact;
mod damage;
mod failures;
mod listing;
mod options;
mod reopening;
mod torn;

/// One for all tests of the process, as in a host with several worlds.
static SHARED: LazyLock<Budget> = LazyLock::new(|| Budget::new(64 << 20, 2));

fn options() -> RocksOptions {
    RocksOptions::new(SHARED.clone()).with_max_batch_bytes(1 << 20)
}

fn reading() -> RocksOptions {
    options().with_access(Access::ReadOnly)
}

/// A directory for an engine that goes when the value does.
struct Dir(TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory for the test"))
    }

    fn db(&self) -> PathBuf {
        self.0.path().join("db")
    }

    /// The error of opening, without the path of the test's directory.
    #[track_caller]
    fn refused(&self, options: &RocksOptions, expected: Expect) {
        let error = RocksEngine::open(&self.db(), options).expect_err("is refused");
        let process = std::process::id().to_string();
        let text = error.to_string().replace(&*self.0.path().to_string_lossy(), "DIR");
        expected.assert_eq(&text.replace(&process, "PID"));
    }

    /// Every file with its bytes, except one that a thread of RocksDB deletes meanwhile.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.db()).expect("lists");
        let one = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.expect("lists");
            let name = entry.file_name().to_string_lossy().into_owned();
            match fs::read(entry.path()) {
                Err(gone) if gone.kind() == std::io::ErrorKind::NotFound => None,
                bytes => Some((name, bytes.expect("reads"))),
            }
        };
        entries.filter_map(one).collect()
    }

    /// The files whose names begin or end so.
    fn names(&self, part: &str) -> Vec<String> {
        self.files().into_keys().filter(|name| name.starts_with(part) || name.ends_with(part)).collect()
    }

    /// The only file whose name begins or ends so.
    #[track_caller]
    fn file(&self, part: &str) -> PathBuf {
        let names = self.names(part);
        assert_eq!(names.len(), 1, "{names:?}");
        self.db().join(&names[0])
    }
}

#[track_caller]
fn create(dir: &Path) -> RocksEngine {
    RocksEngine::create(dir, &options()).expect("is made")
}

#[track_caller]
fn open(dir: &Path) -> RocksEngine {
    RocksEngine::open(dir, &options()).expect("opens")
}

#[track_caller]
fn put(engine: &RocksEngine, key: &[u8], payload: &[u8], level: Level) -> CommitSeq {
    let mut batch = Batch::new();
    let draft = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(payload));
    batch.put(Space::Object, key, draft, Stamp::Commit);
    engine.commit(batch, &[], level).expect("commits")
}

/// Syncs all, and raises the floor to it. A length of the manifest counts once a later sync has succeeded.
#[track_caller]
fn sync_idle(engine: &RocksEngine) {
    for _ in 0..3 {
        // The floor is written at most that often.
        std::thread::sleep(std::time::Duration::from_millis(110));
        engine.sync().expect("syncs");
    }
}

/// Writes a floor: a commit, and number and synced bytes of the newest log and of the manifest.
#[track_caller]
fn promise(dir: &Dir, seq: u64, files: [[u64; 2]; 2]) {
    let slot = |write_count: u64| {
        let numbers = [&[write_count, seq][..], &files.concat()].concat();
        let mut slot = b"cgfloor1".to_vec();
        slot.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        slot.resize(60, 0);
        let sum = crc32c::crc32c(&slot);
        slot.extend(sum.to_le_bytes());
        slot
    };
    fs::write(dir.db().join("DURABLE"), [slot(8), slot(9)].concat()).expect("writes");
}

type Rows = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

/// Every row of every family.
fn rows(view: &dyn Readable) -> Result<Rows, EngineError> {
    let mut rows = BTreeMap::new();
    for family in Family::ALL {
        view.scan(family, ALL_KEYS, |key, value| {
            rows.insert((family, key.to_vec()), value.to_vec());
            ControlFlow::<()>::Continue(())
        })?;
    }
    Ok(rows)
}

#[test]
fn the_disk_keeps_the_promises() {
    let dirs = Dir::new();
    let next = std::cell::Cell::new(0);
    conformance::run_all(|| {
        next.set(next.get() + 1);
        create(&dirs.0.path().join(next.get().to_string()))
    });
}

#[test]
fn what_was_committed_is_there_after_a_reopen() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    put(&engine, b"a", b"1", Level::Process);
    put(&engine, b"b", b"2", Level::Power);
    let expected = rows(&engine).expect("reads");
    engine.close().expect("closes");
    drop(engine);

    // After a close, and then after a drop without one, as when the process ends.
    for _ in 0..2 {
        let engine = open(&dir.db());
        assert_eq!(rows(&engine).expect("reads"), expected);
        assert_eq!((engine.last_commit(), engine.last_synced()), (CommitSeq::new(2), CommitSeq::new(2)));
    }
    let engine = open(&dir.db());
    assert_eq!(put(&engine, b"c", b"3", Level::Process), CommitSeq::new(3));
    drop(engine);
    let engine = open(&dir.db());
    assert_eq!(engine.last_commit(), CommitSeq::new(3));
    assert_eq!(engine.last_synced(), CommitSeq::new(2), "what a log gave back was not synced for that");
    assert_eq!(rows(&engine).expect("reads").len(), 4);
}

#[test]
fn a_clean_close_leaves_no_log_to_replay() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    put(&engine, b"a", &vec![7; 100_000], Level::Process);
    assert!(engine.usage().expect("is open").log_bytes >= 100_000);
    engine.close().expect("closes");
    drop(engine);
    let engine = open(&dir.db());
    assert!(engine.usage().expect("is open").log_bytes < 1_000);
}

#[test]
fn one_writer_or_many_readers() {
    let dir = Dir::new();
    let refused = |options: &RocksOptions| {
        dir.refused(
            options,
            expect![
                "DIR/db is open already: this process has it; use that handle, or drop all handles to it first"
            ],
        );
    };
    let writer = create(&dir.db());
    refused(&options());
    refused(&reading());
    drop(writer);
    let readers = [(); 2].map(|()| RocksEngine::open(&dir.db(), &reading()).expect("opens"));
    refused(&options());
    drop(readers);
    drop(open(&dir.db()));
    let error = RocksEngine::create(&dir.db(), &options()).expect_err("is there already");
    assert!(matches!(error, EngineError::AlreadyExists { .. }), "{error}");
}

#[test]
fn reading_only_changes_no_byte() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    put(&engine, b"in a file", b"1", Level::Process);
    engine.flush().expect("flushes");
    put(&engine, b"in the log", b"2", Level::Process);
    let expected = rows(&engine).expect("reads");
    drop(engine);

    let before = dir.files();
    let engine = RocksEngine::open(&dir.db(), &reading()).expect("opens");
    assert_eq!(rows(&engine).expect("reads"), expected);
    assert_eq!(engine.last_commit(), CommitSeq::new(2));
    assert!(engine.caps().read_only);
    for result in [engine.commit(Batch::new(), &[], Level::Process).map(drop), engine.sync(), engine.flush()]
    {
        assert!(matches!(result, Err(EngineError::OpenedReadOnly)), "{result:?}");
    }
    let result = engine.checkpoint(&dir.0.path().join("copy"));
    assert!(matches!(result, Err(EngineError::Unsupported { .. })), "{result:?}");
    engine.close().expect("closes");
    drop(engine);
    assert!(dir.files() == before, "reading changed the directory");
}

#[test]
fn a_checkpoint_opens_and_is_equal() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    for index in 0..50_u8 {
        put(&engine, &[index], &vec![index; 1000 * usize::from(index)], Level::Process);
    }
    let copy_dir = dir.0.path().join("copy");
    engine.checkpoint(&copy_dir).expect("copies");
    let expected = rows(&engine).expect("reads");
    put(&engine, b"later", b"", Level::Process);

    let copy = open(&copy_dir);
    assert!(rows(&copy).expect("reads") == expected, "the copy differs");
    assert_eq!(copy.last_commit(), CommitSeq::new(50));
    put(&copy, b"apart", b"", Level::Power);
    assert!(engine.get(Space::Object, b"apart").expect("reads").is_none());
    let error = engine.checkpoint(&copy_dir).expect_err("is there already");
    assert!(matches!(error, EngineError::Io { .. }), "{error}");
}

#[test]
fn rewriting_does_not_grow_the_disk() {
    const ROWS: u8 = 40;
    const ROW_BYTES: usize = 80_000;
    let dir = Dir::new();
    let engine = create(&dir.db());
    for round in 0..20_u8 {
        // Each round leaves two more rows alone, so that every blob file keeps some that are alive.
        for index in 2 * round..ROWS {
            let mut batch = Batch::new();
            // Does not compress, and is another one each round.
            let mut byte = u32::from(index) << 8 | u32::from(round) | 1;
            let draft = Draft::plain(Codec::None, 0, |out| {
                out.extend((0..ROW_BYTES).map(|_| {
                    byte = byte.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (byte >> 24) as u8
                }));
            });
            batch.put(Space::ClusterL1, [index], draft, Stamp::Commit);
            engine.commit(batch, &[], Level::Process).expect("commits");
        }
        engine.flush().expect("flushes");
    }
    engine.compact(Family::ChunkL1, ALL_KEYS).expect("compacts");
    let usage = engine.usage().expect("is open");
    let family = usage.families.iter().find(|usage| usage.family == Family::ChunkL1).expect("is listed");
    let content_bytes = u64::from(ROWS) * ROW_BYTES as u64;
    let disk_bytes = family.table_bytes + family.blob_bytes;
    assert!(family.blob_bytes > content_bytes, "clusters are in blob files: {family:?}");
    assert!(disk_bytes <= content_bytes * 11 / 10, "{disk_bytes} bytes for {content_bytes}: {family:?}");
}
