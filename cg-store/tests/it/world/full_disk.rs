//! A disk that is really full: worlds on a small file system in memory, filled in the middle of commits, flushes and
//! compactions.
//!
//! Each test starts itself again in a namespace of its own, where a file system can be mounted without being root.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use super::moves::tiers;
use super::*;
use cg_store::engine::{EngineError, Failure};
use cg_tiering::GameTick;

/// Tells the test that it is the one inside, and where the file system is.
const INSIDE: &str = "CG_TEST_SMALL_DISK";
const DISK_BYTES: u64 = 32 << 20;

/// Runs a test on a small disk of its own: `true` to whoever is inside.
fn on_a_small_disk(test: &str, run: impl FnOnce(&Path)) {
    if let Ok(disk) = std::env::var(INSIDE) {
        return run(Path::new(&disk));
    }
    let disk = tempfile::tempdir().expect("a directory for the disk");
    let program = std::env::current_exe().expect("has a path");
    let script =
        format!("mount -t tmpfs -o size={DISK_BYTES} small \"$0\" && touch \"$0/mounted\" && exec \"$@\"");
    let mut why = String::new();
    // As a user of one's own namespace, or as root, who may also where there are none: below a changed root, for one.
    for namespaces in [&["-rm"][..], &["-m", "--propagation", "unchanged"]] {
        let inside = Command::new("unshare")
            .args(namespaces)
            .args(["sh", "-c", &script])
            .arg(disk.path())
            .arg(&program)
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, disk.path())
            .output();
        let inside = match inside {
            Ok(inside) => inside,
            Err(error) => return skipped(test, &error.to_string()),
        };
        let (said, cried) =
            (String::from_utf8_lossy(&inside.stdout), String::from_utf8_lossy(&inside.stderr));
        if said.contains("running 1 test") {
            assert!(inside.status.success() && said.contains("1 passed"), "{said}\n{cried}");
            return;
        }
        why.push_str(&cried);
    }
    skipped(test, &why);
}

fn skipped(test: &str, why: &str) {
    // Past the harness, which shows what a test prints only if it fails.
    let told = writeln!(std::io::stderr(), "SKIPPED {test}: no small disk can be mounted here: {why}");
    told.expect("somebody reads");
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{test} was skipped: {why}");
}

/// A file that leaves only so much of the disk to others.
struct Ballast(PathBuf);

impl Ballast {
    fn leaving(disk: &Path, free_bytes: u64) -> Self {
        let path = disk.join("ballast");
        let mut file = File::create(&path).expect("creates");
        let block = vec![1; 64 << 10];
        let blocks = free(disk).saturating_sub(free_bytes) / block.len() as u64;
        for _ in 0..blocks {
            // What the engine writes meanwhile may take the rest.
            if file.write_all(&block).is_err() {
                break;
            }
        }
        Self(path)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        fs::remove_file(&self.0).expect("removes");
    }
}

/// Free bytes, as the system answers the question that an engine asks.
fn free(disk: &Path) -> u64 {
    let said = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(disk).output().expect("runs");
    let said = String::from_utf8(said.stdout).expect("is text");
    let (blocks, block_bytes) = said.trim().split_once(' ').expect("two numbers");
    blocks.parse::<u64>().expect("a number") * block_bytes.parse::<u64>().expect("a number")
}

/// Numbers from a seed.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn bytes(&mut self, count: usize, values: u64) -> Vec<u8> {
        (0..count).map(|_| self.below(values) as u8).collect()
    }
}

const PLACES: i64 = 24;
/// Each chunk, which does not compress where it is hot.
const CHUNK_BYTES: usize = 24 << 10;

/// A world on a small disk, and what it must hold: each place twice, in chunks that are always saved together.
struct Small {
    world: World,
    ids: Ids,
    seeded: Seeded,
    /// How many values a byte may have. With 16, cold chunks take half of what hot ones take.
    values: u64,
    /// The token of each place.
    expected: BTreeMap<i64, u64>,
    token: u64,
}

impl Small {
    fn options() -> WorldOptions {
        WorldOptions {
            min_free_bytes: Some(0),
            queue_bytes: 1 << 20,
            durability: Durability::Process,
            ..options()
        }
    }

    fn on(disk: &Path, seed: u64) -> Self {
        Self::with(disk, seed, &Self::options())
    }

    fn with(disk: &Path, seed: u64, options: &WorldOptions) -> Self {
        let world = World::builder().options(options).create(disk.join("world")).expect("is created");
        let ids = Ids::register(&world);
        Self { world, ids, seeded: Seeded(seed), values: 256, expected: BTreeMap::new(), token: 0 }
    }

    fn at(&self, place: i64, half: i64) -> ChunkAt {
        self.ids.at(place, half * 100, 0)
    }

    /// Saves a place; `Ok` is a promise.
    fn save(&mut self, durability: Durability) -> Result<(), Error> {
        self.token += 1;
        let (token, place) = (self.token, self.seeded.below(PLACES as u64) as i64);
        let mut bytes = token.to_le_bytes().to_vec();
        bytes.extend(self.seeded.bytes(CHUNK_BYTES, self.values));
        let mut chunk = filled(&self.world, self.ids.stone);
        chunk.set_side(self.ids.light, bytes);
        let halves = [self.at(place, 0), self.at(place, 1)];
        let saved = self.world.transaction_at(durability, |tx| {
            for at in halves {
                tx.save(at, chunk.clone());
            }
            Ok::<_, Error>(())
        });
        match saved {
            Ok(_) => {
                self.expected.insert(place, token);
                Ok(())
            }
            // It may be there or not, and says so itself afterwards.
            Err(error @ Error::Engine(EngineError::WriteFailed { .. })) => {
                self.expected.remove(&place);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Saves until the disk is full. Nothing else may go wrong.
    fn save_until_full(&mut self, durability: Durability) {
        for _ in 0..2000 {
            match self.save(durability) {
                Ok(()) => {}
                Err(Error::Busy { .. }) => drop(self.world.wait_for_room()),
                Err(error) => return assert_full(&error),
            }
        }
        panic!("the disk is never full");
    }

    /// Saves while there is room, and goes on after what a full disk broke before; how often that was.
    #[track_caller]
    fn save_on(&mut self, saves: u32, context: &str) -> u32 {
        let mut failures = 0;
        for save in 0..saves {
            if let Err(error) = self.save(Durability::Process) {
                assert_full(&error);
                failures += 1;
                self.world.resume().unwrap_or_else(|error| panic!("{context}, save {save}: {error}"));
            }
        }
        failures
    }

    #[track_caller]
    fn check(&mut self, context: &str) {
        self.world.cache().clear();
        for place in 0..PLACES {
            let token = |half| {
                let chunk = self.world.load(self.at(place, half)).expect("loads");
                chunk.map(|chunk| {
                    let bytes = chunk.side(self.ids.light).expect("has bytes");
                    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
                })
            };
            let (left, right) = (token(0), token(1));
            assert_eq!(left, right, "{context}: place {place} is torn");
            match (self.expected.get(&place), left) {
                (Some(expected), found) => {
                    assert_eq!(found, Some(*expected), "{context}: place {place} lost what was promised");
                }
                (None, Some(found)) => drop(self.expected.insert(place, found)),
                (None, None) => {}
            }
        }
        assert_eq!(findings(&self.world), Vec::<String>::new(), "{context}");
    }
}

/// That an error says that the disk is full, in one of the ways in which that is said.
#[track_caller]
fn assert_full(error: &Error) {
    let said = match error {
        Error::Engine(EngineError::NoSpace { message }) => message.clone(),
        Error::Engine(EngineError::ReadOnly { cause } | EngineError::WriteFailed { cause }) => match &**cause
        {
            EngineError::NoSpace { message } => message.clone(),
            cause => panic!("{cause:?}"),
        },
        error => panic!("{error:?}"),
    };
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn a_disk_that_fills_in_the_middle_of_commits_loses_nothing_that_was_promised() {
    let test = "world::full_disk::a_disk_that_fills_in_the_middle_of_commits_loses_nothing_that_was_promised";
    on_a_small_disk(test, |disk| {
        let mut small = Small::on(disk, 0x9e37_79b9);
        for fill in 0..12 {
            let durability = [Durability::Process, Durability::Safe, Durability::Balanced][fill % 3];
            let context = format!("fill {fill}, {durability:?}");
            let ballast = Ballast::leaving(disk, small.seeded.below(8 << 20));
            small.save_until_full(durability);
            assert!(matches!(small.world.engine().failure(), Some(Failure::Write(_))), "{context}");
            // Reads go on.
            let place = *small.expected.keys().next().expect("something was saved");
            assert!(small.world.load(small.at(place, 0)).expect("reads go on").is_some(), "{context}");
            assert_full(&small.save(durability).expect_err("takes nothing"));
            if fill % 2 == 0 {
                // Without room it fails again, in the same words, or finds that little is needed.
                if let Err(error) = small.world.resume() {
                    let is_full = error.to_string().contains("No space left on device");
                    assert!(is_full, "{context}: {error}");
                }
            }
            drop(ballast);
            if fill % 4 == 3 && durability != Durability::Balanced {
                // Closing and opening does the same for what was written.
                drop(small.world.close());
                drop(small.world);
                small.world =
                    World::builder().options(&Small::options()).open(disk.join("world")).expect("opens");
            } else {
                small.world.resume().unwrap_or_else(|error| panic!("{context}: {error}"));
            }
            small.check(&context);
            small.save(Durability::Safe).unwrap_or_else(|error| panic!("{context}: {error}"));
            small.check(&context);
        }
        assert!(disk.join("mounted").exists(), "this is the small disk");
        small.world.close().expect("closes");
    });
}

#[test]
fn a_disk_that_fills_while_files_are_rewritten_loses_nothing_that_was_promised() {
    let test =
        "world::full_disk::a_disk_that_fills_while_files_are_rewritten_loses_nothing_that_was_promised";
    on_a_small_disk(test, |disk| {
        let mut small = Small::on(disk, 0x7f4a_7c15);
        let mut failures = 0;
        for fill in 0..8 {
            // What the fill before this one broke in the background may show as late as here.
            failures += small.save_on(60, &format!("before fill {fill}"));
            let what = ["a flush", "a compaction", "moves between tiers", "a checkpoint"][fill % 4];
            let context = format!("fill {fill}, {what}");
            let ballast = Ballast::leaving(disk, if fill < 4 { 0 } else { small.seeded.below(1 << 20) });
            let copy = disk.join("copy");
            let rewritten = match what {
                "a flush" => small.world.engine().flush().map_err(Error::from),
                "a compaction" => {
                    small.world.engine().compact(Family::ChunkL0, engine::ALL_KEYS).map_err(Error::from)
                }
                "moves between tiers" => small.world.tiers().demote_all(1 << 40, |_| {}).map(drop),
                _ => small.world.checkpoint(&copy, cg_store::CheckpointFiles::Linked),
            };
            match &rewritten {
                Ok(()) => {}
                Err(Error::Open(OpenError::Io { source, .. })) => {
                    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{context}");
                }
                Err(error) => assert!(error.to_string().contains("No space left"), "{context}: {error}"),
            }
            if fill % 3 == 0 {
                small.save_until_full(Durability::Process);
            }
            drop(ballast);
            if copy.exists() {
                fs::remove_dir_all(copy).expect("removes");
            }
            failures += small.save_on(100, &context);
            small.check(&context);
        }
        assert!(failures >= 2, "the disk was full only {failures} times");
        small.world.close().expect("closes");
    });
}

/// Lets the engine delete old logs and replaced chunks now, not after the rest of the disk is taken, and waits until the
/// free bytes stay the same.
fn finish_background_work(world: &World, disk: &Path) {
    world.engine().flush().expect("there is room");
    world.engine().compact(Family::ChunkL0, engine::ALL_KEYS).expect("there is room");
    let mut before = [0; 4];
    for _ in 0..50 {
        before.rotate_left(1);
        before[3] = free(disk);
        if before.iter().all(|bytes| *bytes == before[3]) {
            return;
        }
        std::thread::sleep(Duration::from_millis(600));
    }
}

#[test]
fn below_what_is_to_stay_free_a_world_grows_smaller_and_nothing_else_is_written() {
    let test =
        "world::full_disk::below_what_is_to_stay_free_a_world_grows_smaller_and_nothing_else_is_written";
    on_a_small_disk(test, |disk| {
        const DEMANDED: u64 = 12 << 20;
        let options = WorldOptions { min_free_bytes: Some(DEMANDED), ..Small::options() };
        let mut small = Small::with(disk, 0x1234_5678, &options);
        small.values = 16;
        for _ in 0..100 {
            small.save(Durability::Process).expect("there is room");
        }
        let stored = tiers(&small.world);
        let refused = |error: Error, demanded: u64| {
            let Error::LowDiskSpace { min_free_bytes, .. } = error else { panic!("{error:?}") };
            assert_eq!(min_free_bytes, demanded);
        };
        // What the world asked before may still count.
        let wait = || std::thread::sleep(Duration::from_millis(600));
        finish_background_work(&small.world, disk);
        let ballast = Ballast::leaving(disk, DEMANDED / 5);
        wait();
        refused(small.save(Durability::Process).expect_err("takes nothing"), DEMANDED);
        let free_bytes = free(disk);
        for n in 0..20 {
            let report =
                small.world.tick(GameTick::new((1 << 30) + n), &[], Duration::from_secs(60)).expect("ticks");
            assert!(report.skipped_low_disk && report.moves == MoveCounts::default(), "{report:?}");
        }
        assert!(free(disk) < DEMANDED / 4, "the engine made room");
        refused(small.world.tiers().demote_all(1 << 30, |_| {}).expect_err("is refused"), DEMANDED / 4);
        // Before `tiers`, after which a block more was seen to be taken.
        assert_eq!(free(disk), free_bytes, "nothing was written");
        assert_eq!(tiers(&small.world), stored);
        assert!(small.world.engine().failure().is_none());
        drop(ballast);

        for _ in 0..100 {
            small.save(Durability::Process).expect("there is room");
        }
        finish_background_work(&small.world, disk);
        let ballast = Ballast::leaving(disk, DEMANDED / 2);
        wait();
        let free_bytes = free(disk);
        refused(small.save(Durability::Process).expect_err("takes nothing"), DEMANDED);
        small.world.tiers().demote_all(1 << 30, |_| {}).expect("makes the world smaller");
        assert_eq!(tiers(&small.world), [0, 0, stored[0]]);
        assert!(free(disk) > free_bytes, "{} of {free_bytes} bytes are free", free(disk));
        refused(small.save(Durability::Process).expect_err("takes nothing"), DEMANDED);
        drop(ballast);
        small.check("with room again");
        small.save(Durability::Safe).expect("there is room");
        small.world.close().expect("closes");
    });
}

#[test]
fn without_a_demand_a_twentieth_of_the_disk_stays_free() {
    let test = "world::full_disk::without_a_demand_a_twentieth_of_the_disk_stays_free";
    on_a_small_disk(test, |disk| {
        let options = WorldOptions { min_free_bytes: None, ..Small::options() };
        let mut small = Small::with(disk, 7, &options);
        small.save(Durability::Process).expect("31 MiB are free");
        let ballast = Ballast::leaving(disk, DISK_BYTES / 25);
        std::thread::sleep(Duration::from_millis(600));
        let error = small.save(Durability::Process).expect_err("takes nothing");
        let Error::LowDiskSpace { min_free_bytes, .. } = error else { panic!("{error:?}") };
        assert_eq!(min_free_bytes, DISK_BYTES / 20);
        drop(ballast);
        let ballast = Ballast::leaving(disk, DISK_BYTES / 10);
        small.save(Durability::Process).expect("there is room again");
        drop(ballast);
        small.check("with room again");
        small.world.close().expect("closes");
    });
}
