//! Transactions that are too large for one batch.

mod damage;
mod readers;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::*;
use crate::surviving::{Fuse, Surviving};
use cg_format::RecordId;
use cg_format::entity::EntityPos;
use cg_format::record::Record;
use cg_store::StoreLimits;
use cg_store::engine::EngineError;
use cg_store::verify::ContentHash;
use cg_store::view::Area;

/// Chunks that the transactions below write.
const CHUNKS: i64 = 60;
/// A batch takes this much, and a transaction below about ten times as much.
const SMALL: StoreLimits = StoreLimits {
    chunk_bytes: 1 << 20,
    entity_bytes: 1 << 20,
    property_bytes: 1 << 20,
    object_bytes: 1 << 20,
    record_bytes: 1 << 20,
    batch_bytes: 6000,
};

fn limited(batch_bytes: u64) -> WorldOptions {
    let limits = StoreLimits { batch_bytes, ..SMALL };
    WorldOptions { limits, deltas: true, cache_bytes: 0, ..options() }
}

/// Writes the content before a large transaction: chunks that will be changed in every way, one with a delta.
fn begin(world: &World) -> Ids {
    let ids = Ids::register(world);
    save(world, (0..CHUNKS / 2).map(|x| (ids.at(x, 0, 0), marked(world, &ids, x as u16))));
    for x in [3, 9] {
        let pos = ids.at(x, 0, 0).pos.block(LocalPos::new(1, 2, 3));
        world.transaction(|tx| tx.set_block(ids.overworld, pos, ids.glass)).expect("sets");
    }
    let begun = world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(ids.at(0, 0, 0)));
        tx.put_object(b"gone", vec![1])?;
        tx.put_record(record(1).0, record_at(&ids, 5));
        Ok::<_, Error>(())
    });
    begun.expect("commits");
    ids
}

fn record(n: u128) -> (RecordId, u128) {
    (RecordId::new(uuid::Uuid::from_u128(n)), n)
}

fn record_at(ids: &Ids, x: i64) -> Record {
    let position = EntityPos::new(ids.overworld, BlockPos::new(x, 0, 0), [0.0; 3]).expect("inside");
    Record::new(position, "game:mark", 0, vec![x as u8; 40]).expect("is short")
}

/// Changes everything that a transaction can change, much of it.
fn change(
    world: &World,
    ids: &Ids,
    token: u8,
    durability: Durability,
) -> Result<cg_store::Committed<()>, Error> {
    world.transaction_at(durability, |tx| {
        let schema = tx.catalog().current_schema();
        for x in 0..CHUNKS {
            match x {
                1 | 9 => tx.delete(ids.at(x, 0, 0)),
                // Small enough for a delta.
                4 | 5 => drop(tx.set_block(ids.overworld, BlockPos::new(16 * x, 1, 1), ids.stone)?),
                _ => {
                    let mut chunk = Chunk::filled(ids.glass, &schema)?;
                    chunk.set_side(ids.light, vec![token; 300]);
                    tx.save(ids.at(x, 0, 0), chunk);
                }
            }
            if x > 10 {
                tx.put_entity(uuid(x as u128), ids.cow_in(ids.at(x, 0, 0)));
                tx.put_object(format!("object/{x}"), vec![token; 50])?;
                tx.put_record(record(x as u128).0, record_at(ids, x));
                tx.set_property(Property::Named(name(&format!("game:p{x}"))), Some(vec![token; 30]));
            }
        }
        tx.delete_entity(uuid(1));
        tx.delete_object(b"gone")?;
        // From one leaf into another.
        tx.put_record(record(1).0, record_at(ids, 5000));
        Ok(())
    })
}

/// The rows of a world but for its limits, and for the opening that wrote them.
fn contents(world: &World) -> BTreeMap<(Family, Vec<u8>), Vec<u8>> {
    let mut rows = rows_of_any_opening(world);
    rows.remove(&(Family::WorldMeta, b"limits".to_vec()));
    rows
}

#[track_caller]
fn assert_nothing_is_left(world: &World) {
    let left =
        rows(world).into_keys().filter(|(family, key)| *family == Family::Index && key.first() == Some(&4));
    assert_eq!(left.count(), 0, "parts or intents are left");
}

fn ends_as_what_takes_one_batch(world_of: impl Fn(&WorldOptions) -> World) {
    for durability in
        [Durability::Process, Durability::Safe, Durability::SafeBatch, Durability::Fast, Durability::Balanced]
    {
        let worlds = [1 << 20, SMALL.batch_bytes].map(|batch_bytes| {
            let world = world_of(&limited(batch_bytes));
            let ids = begin(&world);
            let committed = change(&world, &ids, 7, durability).expect("commits");
            committed.durable().wait().expect("is synced");
            world.flush().expect("is written");
            assert_eq!(committed.seq, world.last_commit());
            world
        });
        let [one, many] = &worlds;
        assert!(contents(one) == contents(many), "{durability:?}");
        assert_nothing_is_left(many);
        assert_eq!([one, many].map(|world| world.metrics().stats.commits_staged), [0, 2]);
        assert_eq!(
            one.content_hash(cg_store::view::Area::World).expect("hashes"),
            many.content_hash(cg_store::view::Area::World).expect("hashes")
        );
        assert_sound(many);
        // What memory knows of deltas and opacity is right too.
        let ids = Ids::of(many);
        for world in &worlds {
            change(world, &ids, 8, durability).expect("commits");
            world.flush().expect("is written");
            while world.opacity().fold(10).expect("folds") > 0 {}
        }
        assert!(contents(one) == contents(many), "{durability:?}, again");
    }
}

#[test]
fn what_takes_many_batches_ends_as_what_takes_one() {
    ends_as_what_takes_one_batch(|options| {
        World::builder().options(options).in_memory().expect("a world in memory")
    });
}

#[test]
fn what_takes_many_batches_ends_as_what_takes_one_on_disk() {
    let disk = Disk::new();
    let number = AtomicU64::new(0);
    ends_as_what_takes_one_batch(|options| {
        let dir = disk.root().join(format!("world{}", number.fetch_add(1, Ordering::Relaxed)));
        World::builder().options(options).create(dir).expect("is created")
    });
}

/// The first numbers, and then some.
fn few() -> impl Iterator<Item = i64> {
    (0..8).chain((8..).step_by(5))
}

/// The power goes at one commit after the other; the world that is opened again is as before or as after.
#[test]
fn whichever_commit_is_the_last_the_world_opens_as_before_or_as_after() {
    let hash =
        |world: &World| -> ContentHash { world.content_hash(cg_store::view::Area::World).expect("hashes") };
    let whole = World::builder().options(&limited(1 << 20)).in_memory().expect("a world in memory");
    change(&whole, &begin(&whole), 7, Durability::Process).expect("commits");
    let after = whole.content_hash(cg_store::view::Area::World).expect("hashes");
    let (mut seen_before, mut seen_after) = (0, 0);
    for commits in few() {
        let fuse = Fuse::new();
        let below = Surviving::new(&fuse);
        let open = || World::builder().options(&limited(SMALL.batch_bytes)).over(below.clone());
        let world = open().expect("a world");
        let ids = begin(&world);
        let before = hash(&world);
        fuse.set(commits);
        let changed = change(&world, &ids, 7, Durability::Process);
        let is_burnt = fuse.is_burnt();
        assert_eq!(changed.is_ok(), !is_burnt, "{changed:?}");
        drop((changed, world));

        // It goes once more while the world is opened.
        fuse.set(2);
        drop(open());
        fuse.set(i64::MAX);
        let world = open().expect("opens");
        let now = hash(&world);
        assert_nothing_is_left(&world);
        assert_sound(&world);
        if now == before {
            seen_before += 1;
            change(&world, &ids, 7, Durability::Process).expect("commits");
        } else {
            seen_after += 1;
        }
        assert!(seen_after == 0 || now != before, "what was committed is gone again");
        assert_eq!(hash(&world), after, "{commits} commits");
        if !is_burnt {
            break;
        }
    }
    assert!(seen_before > 5 && seen_after > 5, "{seen_before} and {seen_after}");
}

#[test]
fn the_room_on_the_disk_is_counted_twice() {
    const MIN: u64 = 1 << 20;
    let fits = |batch_bytes: u64, free_bytes: u64| {
        let free = Arc::new(AtomicU64::new(u64::MAX));
        let engine = MemEngine::new().with_free_bytes({
            let free = Arc::clone(&free);
            move || free.load(Ordering::Relaxed)
        });
        let options = WorldOptions { min_free_bytes: Some(MIN), ..limited(batch_bytes) };
        let world = World::builder().options(&options).over(engine).expect("a world in memory");
        let ids = begin(&world);
        // The system is asked again after half a second.
        thread::sleep(Duration::from_millis(510));
        free.store(free_bytes, Ordering::Relaxed);
        match change(&world, &ids, 7, Durability::Process) {
            Ok(_) => true,
            Err(Error::LowDiskSpace { min_free_bytes: MIN, .. }) => false,
            Err(error) => panic!("{error}"),
        }
    };
    let needs = |batch_bytes: u64| {
        let (mut less, mut enough) = (MIN, MIN + (1 << 19));
        while enough - less > 8192 {
            let half = less.midpoint(enough);
            *(if fits(batch_bytes, half) { &mut enough } else { &mut less }) = half;
        }
        enough - MIN
    };
    let (one, many) = thread::scope(|scope| {
        let one = scope.spawn(|| needs(1 << 20));
        let many = needs(SMALL.batch_bytes);
        (one.join().expect("counts"), many)
    });
    assert!(one.abs_diff(many / 2) < 8192 && one > 65_536, "{one} in one batch, {many} in many");
}

#[test]
fn a_commit_that_cannot_be_written_now_is_written_when_the_world_is_resumed() {
    use cg_store::engine::Fault;
    let whole = World::builder().options(&limited(1 << 20)).in_memory().expect("a world in memory");
    change(&whole, &begin(&whole), 7, Durability::Process).expect("commits");
    for nth in few().skip(1) {
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let engine = MemEngine::new().with_fault({
            let left = Arc::clone(&left);
            move |_| (left.fetch_sub(1, Ordering::Relaxed) == 1).then_some(Fault::NoSpace)
        });
        let world =
            World::builder().options(&limited(SMALL.batch_bytes)).over(engine).expect("a world in memory");
        let ids = begin(&world);
        left.store(nth as u64, Ordering::Relaxed);
        let failed = change(&world, &ids, 7, Durability::Process);
        if failed.is_ok() {
            assert!(nth > 10, "it took {nth} batches");
            break;
        }
        assert!(matches!(failed, Err(Error::Engine(EngineError::WriteFailed { .. }))), "{failed:?}");
        // Memory has all of it; who wants one state of the rows hears why not.
        assert!(world.load(ids.at(CHUNKS - 1, 0, 0)).expect("loads").is_some());
        let walked =
            world.read_view(|view| view.for_each_place(Area::World, |_| ControlFlow::<()>::Continue(())));
        assert!(matches!(walked, Err(Error::Engine(EngineError::ReadOnly { .. }))), "{walked:?}");
        assert!(matches!(
            world.content_hash(cg_store::view::Area::World),
            Err(Error::Engine(EngineError::ReadOnly { .. }))
        ));
        left.store(if nth % 2 == 0 { 2 } else { u64::MAX }, Ordering::Relaxed);
        if world.resume().is_err() {
            left.store(u64::MAX, Ordering::Relaxed);
            world.resume().expect("goes on");
        }
        assert!(contents(&whole) == contents(&world), "batch {nth}");
        assert_sound(&world);
        change(&world, &ids, 8, Durability::Process).expect("commits");
        assert_nothing_is_left(&world);
    }
}
