//! Room on a disk that was full: RocksDB would go on by itself five seconds later, and is kept from it.
//!
//! A round fills a small file system, makes room, waits and looks at what was written meanwhile. The test starts itself again for
//! it, in a namespace of its own where file systems can be mounted.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cg_format::frame::{Codec, Draft};
use cg_format::key::{Family, Space};
use rocksdb::{FlushOptions, WriteBatch};

use super::super::super::{
    Batch, Budget, CommitSeq, Engine as _, EngineError, Failure, Level, Readable as _, Stamp,
};
use super::super::tuning::GOES_ON;
use super::super::{RocksEngine, RocksOptions, usage};

/// Tells the test that it is the one inside, and where its disk is.
const INSIDE: &str = "CG_TEST_ROUND_DISK";
/// The number of the round.
const ROUND: &str = "CG_TEST_ROUND";
/// Longer than RocksDB waits before it looks for room again.
const WAIT: Duration = Duration::from_secs(7);
/// RocksDB goes on where a write buffer has room. These are of 4 MiB.
const MEMORY_BYTES: usize = 64 << 20;
const FREE_BYTES: u64 = 12 << 20;
const ROW_BYTES: usize = 2 << 10;
/// Rounds that wait at once.
const AT_ONCE: usize = 10;

/// The file systems, and how each is mounted at `$0`.
const SYSTEMS: [(&str, &str); 4] = [
    ("tmpfs", "mount -t tmpfs -o size=40m small \"$0\""),
    ("ext4", "truncate -s 64M \"$0.img\" && mkfs.ext4 -q \"$0.img\" && mount -o loop \"$0.img\" \"$0\""),
    ("xfs", "truncate -s 320M \"$0.img\" && mkfs.xfs -q \"$0.img\" && mount -o loop \"$0.img\" \"$0\""),
    ("btrfs", "truncate -s 160M \"$0.img\" && mkfs.btrfs -q \"$0.img\" && mount -o loop \"$0.img\" \"$0\""),
];

/// Runs that number of rounds of a test on each of these file systems; `run` is called with the disk and the number of the round
/// in the process inside.
fn rounds(test: &str, systems: &[(&str, &str)], count: usize, run: impl FnOnce(&Path, usize)) {
    if let Ok(disk) = std::env::var(INSIDE) {
        let round = std::env::var(ROUND).expect("is set with it").parse().expect("a number");
        return run(Path::new(&disk), round);
    }
    let test = format!("rocks::background::full_disk::{test}");
    for (system, mount) in systems {
        let next = AtomicUsize::new(0);
        let one = || {
            let mut skipped = None;
            while skipped.is_none() {
                let round = next.fetch_add(1, Ordering::Relaxed);
                if round >= count {
                    break;
                }
                skipped = inside(&test, mount, round);
            }
            skipped
        };
        let skipped = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..AT_ONCE.min(count)).map(|_| scope.spawn(one)).collect();
            let ended = threads.into_iter().map(|thread| thread.join().expect("a round failed"));
            ended.fold(None, Option::or)
        });
        if let Some(why) = skipped {
            // Past the harness, which shows what a test prints only if it fails.
            let told = writeln!(std::io::stderr(), "SKIPPED {test}: no {system} can be mounted here: {why}");
            told.expect("somebody reads");
            let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
            assert!(!is_ci || *system != "tmpfs", "{test} was skipped: {why}");
        }
    }
}

/// One round in a process of its own; why not, if its disk cannot be mounted.
fn inside(test: &str, mount: &str, round: usize) -> Option<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = dir.path().join("disk");
    fs::create_dir(&disk).expect("creates");
    let program = std::env::current_exe().expect("has a path");
    let script = format!("{mount} && exec \"$@\"");
    let mut why = String::new();
    // As a user of one's own namespace, or as root, who may also where there are none.
    for namespaces in [&["-rm"][..], &["-m", "--propagation", "unchanged"]] {
        let inside = Command::new("unshare")
            .args(namespaces)
            .args(["sh", "-c", &script])
            .arg(&disk)
            .arg(&program)
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, &disk)
            .env(ROUND, round.to_string())
            .output();
        let inside = match inside {
            Ok(inside) => inside,
            Err(error) => return Some(error.to_string()),
        };
        let (said, cried) =
            (String::from_utf8_lossy(&inside.stdout), String::from_utf8_lossy(&inside.stderr));
        if said.contains("running 1 test") {
            assert!(inside.status.success() && said.contains("1 passed"), "round {round}: {said}\n{cried}");
            return None;
        }
        why.push_str(cried.trim());
    }
    Some(why)
}

/// A batch with a row in every family.
fn batch(number: u64) -> Batch {
    let mut batch = Batch::new();
    for family in Family::ALL {
        let space = Space::ALL.into_iter().find(|space| space.family() == family).expect("each has one");
        let mut noise = (number << 8 | u64::from(space.byte())) | 1 << 60;
        let row: Vec<_> = (0..ROW_BYTES)
            .map(|_| {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                noise as u8
            })
            .collect();
        let draft = Draft::plain(Codec::None, 0, |out| out.extend(&row));
        batch.put(space, key(number), draft, Stamp::Commit);
    }
    batch
}

fn key(number: u64) -> Vec<u8> {
    format!("row {number}").into_bytes()
}

/// An engine on a disk that was full and has room again.
struct Round {
    engine: RocksEngine,
    db: PathBuf,
    /// Batches that were taken.
    taken: u64,
    /// Of those, the newest that was synced.
    synced: u64,
    /// The sorted files right after the failure.
    tables: BTreeSet<OsString>,
}

impl Round {
    /// Writes until the disk is full, in a log or in a flush; and makes room.
    fn fill(
        disk: &Path,
        in_flush: bool,
        write: impl Fn(&RocksEngine, u64) -> Result<(), EngineError>,
    ) -> Self {
        let db = disk.join("db");
        let options = RocksOptions::new(Budget::new(MEMORY_BYTES, 2));
        let engine = RocksEngine::create(&db, &options).expect("creates");
        let ballast = disk.join("ballast");
        let free = || usage::free_bytes(disk).expect("the disk says so");
        let fallocate = rustix::fs::fallocate(
            File::create(&ballast).expect("creates"),
            rustix::fs::FallocateFlags::empty(),
            0,
            free() - FREE_BYTES,
        );
        fallocate.expect("is free");
        let (mut taken, mut synced) = (0, 0);
        let failed = loop {
            let written =
                if in_flush && free() < FREE_BYTES / 4 { engine.flush() } else { write(&engine, taken + 1) };
            match written {
                Ok(()) => taken += 1,
                Err(failed) => break failed,
            }
            synced = synced.max(engine.last_synced().get());
            assert!(taken < 10_000, "the disk is never full");
        };
        assert!(format!("{failed:?}").contains("No space left on device"), "{failed:?}");
        let tables = tables(&db);
        fs::remove_file(ballast).expect("removes");
        Self { engine, db, taken, synced, tables }
    }

    /// Waits; what RocksDB did by itself.
    fn by_itself(&self) -> Vec<String> {
        std::thread::sleep(WAIT);
        let tables = tables(&self.db);
        let new = tables.difference(&self.tables).map(|name| format!("wrote {}", name.display()));
        let mut done: Vec<_> = new.collect();
        let mut probe = WriteBatch::default();
        probe.put_cf(self.engine.family(Family::Object), b"probe", b"");
        if self.engine.db.write_opt(probe, &self.engine.writes).is_ok() {
            done.push("took a write".to_owned());
        }
        done
    }

    /// A copy as a killed process leaves it.
    fn killed(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().expect("a directory");
        for entry in fs::read_dir(&self.db).expect("lists") {
            let entry = entry.expect("lists");
            fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copies");
        }
        copy
    }
}

fn tables(db: &Path) -> BTreeSet<OsString> {
    let names = fs::read_dir(db).expect("lists").map(|entry| entry.expect("lists").file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".sst")).collect()
}

/// Whether each batch up to `taken` is whole, and each other whole or absent; then that a commit is taken.
fn check(dir: &Path, taken: u64) -> Result<(), String> {
    let options = RocksOptions::new(Budget::new(MEMORY_BYTES, 2));
    let engine = RocksEngine::open(dir, &options).map_err(|error| format!("does not open: {error}"))?;
    for number in 1..=taken + 1 {
        let is_there = Family::ALL.map(|family| {
            let space = Space::ALL.into_iter().find(|space| space.family() == family).expect("each has one");
            engine.get(space, &key(number)).expect("reads").is_some()
        });
        let is_whole = is_there.iter().all(|is_there| *is_there);
        if !is_whole && (number <= taken || is_there.contains(&true)) {
            return Err(format!("batch {number} of {taken}: {is_there:?}"));
        }
    }
    engine.commit(batch(taken + 2), &[], Level::Power).expect("is taken");
    Ok(())
}

fn commit(engine: &RocksEngine, number: u64) -> Result<(), EngineError> {
    let level = if number.is_multiple_of(8) { Level::Power } else { Level::Process };
    engine.commit(batch(number), &[], level).map(drop)
}

/// Writes as the engine does, and does not tell it of a failure.
fn write_untold(engine: &RocksEngine, number: u64) -> Result<(), EngineError> {
    let sealed = engine.seal(batch(number), CommitSeq::new(number));
    let written = engine.db.write_opt(sealed, &engine.writes);
    written.map_err(|error| engine.writing("write the log", error))
}

/// Each second round is one that RocksDB's own wait for room does not end: it is stopped.
#[test]
fn room_on_a_full_disk_changes_nothing_until_the_world_is_opened_again() {
    let test = "room_on_a_full_disk_changes_nothing_until_the_world_is_opened_again";
    let is_long = std::env::var_os("CG_LONG_TESTS").is_some();
    let (systems, count) = if is_long { (&SYSTEMS[..], 50) } else { (&SYSTEMS[..1], 1) };
    rounds(test, systems, count, |disk, round| {
        GOES_ON.set(round % 2 == 0);
        let round = Round::fill(disk, round % 4 > 1, commit);
        assert!(matches!(round.engine.failure(), Some(Failure::Write(_))));
        assert_eq!(round.by_itself(), Vec::<String>::new());
        assert!(round.engine.get(Space::Object, &key(1)).expect("reads go on").is_some());
        assert!(matches!(commit(&round.engine, 1), Err(EngineError::ReadOnly { .. })));
        assert!(round.synced > 0 && round.synced <= round.taken);
        GOES_ON.set(false);
        assert_eq!(check(round.killed().path(), round.taken), Ok(()));
    });
}

/// What stops RocksDB comes after the failure; this is there before it.
#[test]
fn rocksdb_finds_no_room_before_it_is_stopped() {
    rounds("rocksdb_finds_no_room_before_it_is_stopped", &SYSTEMS[..1], 1, |disk, _| {
        let round = Round::fill(disk, false, write_untold);
        assert!(round.engine.failure().is_none(), "the engine was not told");
        assert_eq!(round.by_itself(), Vec::<String>::new());
    });
}

/// The control: RocksDB that is not told of the failure, and finds room.
#[test]
fn rocksdb_that_is_not_stopped_goes_on_when_a_disk_has_room_again() {
    let test = "rocksdb_that_is_not_stopped_goes_on_when_a_disk_has_room_again";
    rounds(test, &SYSTEMS[..1], 1, |disk, _| {
        GOES_ON.set(true);
        let round = Round::fill(disk, false, write_untold);
        assert!(round.engine.failure().is_none(), "the engine was not told");
        let done = round.by_itself();
        assert!(done.iter().any(|what| what == "took a write"), "{done:?}");
        assert!(done.iter().any(|what| what.starts_with("wrote ")), "{done:?}");
        // Families that are flushed one by one, and whose log is lost, are half of each batch.
        write_untold(&round.engine, round.taken + 1).expect("is taken");
        let flushed = round.engine.family(Family::Object);
        round.engine.db.flush_cf_opt(flushed, &FlushOptions::default()).expect("flushes");
        let copy = round.killed();
        for entry in fs::read_dir(copy.path()).expect("lists") {
            let path = entry.expect("lists").path();
            if path.extension().is_some_and(|extension| extension == "log") {
                fs::remove_file(path).expect("removes");
            }
        }
        let caught = check(copy.path(), round.taken + 1).expect_err("half of the last batch is gone");
        assert!(caught.contains("does not open"), "{caught}");
    });
}
