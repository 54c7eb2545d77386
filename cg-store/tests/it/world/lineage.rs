//! Which opening made which commit, and files of a copy that went on by itself.

use cg_format::Space;
use cg_format::lineage::{Lineage, Opening};
use cg_store::engine::{EngineError, Fault};
use cg_store::layer::lineage;
use cg_store::{OpenError, StoreLimits};
use expect_test::{Expect, expect};

use super::*;

const ROW: &[u8] = b"lineage/00000000";

fn openings(world: &World) -> Vec<Opening> {
    lineage(world).openings().to_vec()
}

/// The openings that are stored.
fn stored(world: &World) -> Vec<Opening> {
    let mut stored = Lineage::default();
    if let Some(row) = world.engine().get(Space::WorldMeta, ROW).expect("reads") {
        let frame = cg_format::frame::FrameView::open(Space::WorldMeta, ROW, &row).expect("sound");
        stored.decode_row(frame.payload()).expect("sound");
    }
    stored.openings().to_vec()
}

fn set_time(world: &World, time: u8) -> u64 {
    let set = world.transaction(|tx| {
        tx.set_property(Property::Time, Some(vec![time]));
        Ok::<_, Error>(())
    });
    set.expect("commits").seq.get()
}

#[test]
fn each_opening_with_a_commit_is_stored_once() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let first = openings(&world);
    assert_eq!((first.len(), first[0].first_commit), (1, 1));
    assert_eq!(stored(&world), first);
    set_time(&world, 1);
    assert_eq!(stored(&world), first, "it is stored with the first commit alone");
    world.close().expect("closes");
    drop(world);

    let idle = disk.open(&[]);
    let last = idle.last_commit().get();
    assert_eq!(openings(&idle).len(), 2, "it has a number");
    assert_eq!(stored(&idle), first, "and stores nothing without a commit");
    idle.close().expect("closes");
    drop(idle);
    let reader = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    assert_eq!(openings(&reader), first);
    drop(reader);

    let world = disk.open(&[]);
    assert_eq!(set_time(&world, 2), last + 1);
    let second = stored(&world);
    assert_eq!((&second[..1], second[1].first_commit), (&first[..], last + 1));
    assert_eq!(second, openings(&world));
    assert_sound(&world);

    let copy = Disk::new();
    world.checkpoint(copy.path(), cg_store::CheckpointFiles::Linked).expect("copies");
    let copy = copy.open(&[]);
    set_time(&copy, 3);
    assert_eq!(stored(&copy)[..2], second, "a copy continues the list");
    assert_eq!(stored(&copy).len(), 3);
    assert_sound(&copy);
}

#[test]
fn a_resumed_world_is_the_same_opening() {
    let fails = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let engine = MemEngine::new().with_fault({
        let fails = std::sync::Arc::clone(&fails);
        move |_| fails.load(std::sync::atomic::Ordering::Relaxed).then_some(Fault::NoSpace)
    });
    let world = World::builder().options(&options()).over(engine).expect("opens");
    let before = stored(&world);
    fails.store(true, std::sync::atomic::Ordering::Relaxed);
    let refused = world.transaction_at(Durability::Process, |tx| {
        tx.set_property(Property::Time, Some(vec![1]));
        Ok::<_, Error>(())
    });
    refused.expect_err("the disk is full");
    fails.store(false, std::sync::atomic::Ordering::Relaxed);
    world.resume().expect("resumes");
    set_time(&world, 2);
    assert_eq!((stored(&world), openings(&world)), (before.clone(), before));
    assert_sound(&world);
}

#[test]
fn a_first_commit_in_parts_and_rows_that_move_carry_their_opening() {
    let disk = Disk::new();
    let limits = StoreLimits { batch_bytes: 6000, ..StoreLimits::default() };
    let small = WorldOptions { limits, ..options() };
    let world = World::builder().options(&small).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    let at: Vec<_> = (0..8).map(|x| ids.at(x, 0, 0)).collect();
    save(&world, at.iter().map(|at| (*at, filled(&world, ids.stone))));
    world.close().expect("closes");
    drop(world);
    let world = World::builder().options(&small).open(disk.path()).expect("opens");
    // Rows of an earlier opening are moved before this one has a commit.
    demote(&world, cg_format::ClusterTier::L1, &at, false);
    assert_sound(&world);
    let new: Vec<_> = (0..80).map(|x| ids.at(x, 4, 0)).collect();
    save(&world, new.iter().map(|at| (*at, filled(&world, ids.glass))));
    assert_eq!(world.metrics().stats.commits_staged, 1);
    demote(&world, cg_format::ClusterTier::L2, &new, false);
    assert_sound(&world);
    assert_eq!(stored(&world).len(), 2);
}

#[test]
fn a_damaged_list_of_openings_is_refused() {
    let disk = Disk::new();
    drop(disk.create(&[]));
    disk.raw().flip(Family::WorldMeta, ROW, 30);
    let error = World::builder().options(&options()).open(disk.path()).expect_err("is refused");
    let Error::Corrupt(damage) = &error else { panic!("{error}") };
    assert_eq!((damage.space, &damage.key[..]), (Space::WorldMeta, ROW));
}

/// A world, and a copy of it that went on by itself: both as if their processes were killed. Each step is taken in both.
fn two_histories(steps: impl Fn(&World, u8)) -> [Disk; 2] {
    let original = Disk::new();
    let world = original.create(&[]);
    set_time(&world, 0);
    world.close().expect("closes");
    drop(world);
    let copy = Disk::copy_of(&original);
    [(original, 10), (copy, 20)].map(|(disk, fill)| {
        let world = disk.open(&[]);
        steps(&world, fill);
        world.flush().expect("syncs");
        Disk::copy_of(&disk)
    })
}

fn newest(disk: &Disk, ending: &str) -> String {
    let names = fs::read_dir(disk.path().join("db")).expect("lists");
    let names = names.map(|entry| entry.expect("lists").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(ending)).max().expect("it has one")
}

/// Puts a file of the copy in the place of the file of that name, and returns the name.
fn put_file_of_copy(original: &Disk, copy: &Disk, ending: &str) -> String {
    let name = newest(original, ending);
    let path = |disk: &Disk| disk.path().join("db").join(&name);
    fs::copy(path(copy), path(original)).expect("both have one of that name");
    name
}

/// The message with the numbers of openings hidden.
#[track_caller]
fn refused(disk: &Disk, log: &str, expected: Expect) {
    let before = disk.files();
    let reading = World::builder().options(&options()).open_read_only(disk.path()).expect_err("is refused");
    let error = World::builder().options(&options()).open(disk.path()).expect_err("is refused");
    assert_eq!(error.to_string(), reading.to_string());
    let Error::Open(OpenError::Engine {
        source: EngineError::OtherHistory { file, found, expected: other, .. },
        ..
    }) = &error
    else {
        panic!("{error}")
    };
    assert_eq!(file, log);
    assert!(before == disk.files(), "nothing was changed");
    let text =
        error.to_string().replace(&format!("{found:08x}"), "FOUND").replace(&format!("{other:08x}"), "OTHER");
    expected.assert_eq(&text.replace(&*disk.root().to_string_lossy(), "DIR").replace(log, "LOG"));
}

#[test]
fn a_log_of_a_copy_that_went_on_is_refused_by_name() {
    // The log has the first commit of the opening, and so the list of openings.
    let [original, copy] = two_histories(|world, time| {
        set_time(world, time);
    });
    let log = put_file_of_copy(&original, &copy, ".log");
    refused(
        &original,
        &log,
        expect![
            "DIR/world: file LOG is of another history of this world: commit 4 is of opening FOUND there, and of opening OTHER in the other files; move it away and put the file of this world back, or restore a checkpoint"
        ],
    );
    // Without it, the world has lost its log and says so.
    fs::remove_file(original.path().join("db").join(&log)).expect("removes");
    let error = World::builder().options(&options()).open(original.path()).expect_err("is refused");
    assert!(
        matches!(&error, Error::Open(OpenError::Engine { source: EngineError::LostCommits { .. }, .. })),
        "{error}"
    );
}

#[test]
fn a_later_log_of_a_copy_that_went_on_is_refused_by_name() {
    // The first commit of the opening is in a table.
    let [original, copy] = two_histories(|world, time| {
        set_time(world, time);
        world.engine().flush().expect("flushes");
        set_time(world, time + 1);
    });
    let log = put_file_of_copy(&original, &copy, ".log");
    refused(
        &original,
        &log,
        expect![
            "DIR/world: file LOG is of another history of this world: commit 5 is of opening FOUND there, and of opening OTHER in the other files; move it away and put the file of this world back, or restore a checkpoint"
        ],
    );
}

#[test]
fn rows_of_a_copy_that_went_on_are_found() {
    // Bytes that do not compress: RocksDB refuses a blob of another length.
    let object = |seed: u8| {
        let next =
            |bits: &u64| Some(bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f));
        let bits = std::iter::successors(Some(u64::from(seed)), next);
        bits.skip(1).map(|bits| (bits >> 56) as u8).take(100_000).collect::<Vec<u8>>()
    };
    let [original, copy] = two_histories(|world, fill| {
        let put = world.transaction(|tx| tx.put_object(&b"town/hall"[..], object(fill)));
        put.expect("commits");
        world.engine().flush().expect("flushes");
    });
    let there = World::builder().options(&options()).open_read_only(original.path()).expect("opens");
    let own = there.objects().get(&b"town/hall"[..]).expect("reads").expect("is there").bytes;
    assert_eq!(findings(&there), Vec::<String>::new());
    drop(there);
    put_file_of_copy(&original, &copy, ".blob");
    let there = World::builder().options(&options()).open_read_only(original.path()).expect("opens");
    let found = there.objects().get(&b"town/hall"[..]).expect("reads").expect("is there").bytes;
    assert_ne!(found, own, "the row of the copy is read");
    let findings = findings(&there);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains("it is of another history of this world: commit "), "{findings:?}");
}
