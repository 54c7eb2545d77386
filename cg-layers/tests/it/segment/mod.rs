//! Segmented worlds, in memory and on disk.

mod archives;
mod arenas;
mod closed;
mod column_walk;
mod compaction;
mod content_hash;
mod copies;
mod history;
mod long_names;
mod meanwhile;
mod memory;
mod merge;
mod model;
mod moved;
mod places;
mod refuse;
mod staged;
mod submit;
mod ticks;
mod transaction;
mod transfer;
mod values;
mod values_listed;
mod values_merged;
mod values_placed;
mod verify;
mod whole;

use std::path::PathBuf;

use cg_layers::{
    Base as _, InMemory, OnDisk, Overlay, SegmentError, SegmentHome, SegmentOptions, SegmentPos,
    SegmentedWorld,
};

use cg_store::prelude::*;

use crate::fixture::{Disk, Ids, assert_sound, filled, name, options, registration, uuid};

/// Segments of 16³ chunks, of which few are open.
pub(crate) fn segments() -> SegmentOptions {
    SegmentOptions { side_chunks: 16, max_open: 2, world: options() }
}

pub(crate) fn in_memory() -> (SegmentedWorld<InMemory>, Ids) {
    let world = SegmentedWorld::in_memory(&[], &segments()).expect("a world");
    let ids = register(&world);
    (world, ids)
}

pub(crate) fn register<H: SegmentHome>(world: &SegmentedWorld<H>) -> Ids {
    world.register(&registration()).expect("registers");
    Ids::of(world.root())
}

/// The directory of a segmented world.
pub(crate) fn dir(disk: &Disk) -> PathBuf {
    disk.root().join("segmented")
}

pub(crate) fn create(disk: &Disk) -> (SegmentedWorld<OnDisk>, Ids) {
    let world = SegmentedWorld::create(dir(disk), &[], &segments()).expect("an empty directory");
    let ids = register(&world);
    (world, ids)
}

pub(crate) fn open(disk: &Disk) -> SegmentedWorld<OnDisk> {
    SegmentedWorld::open(dir(disk), &[], &segments()).expect("opens")
}

#[track_caller]
pub(crate) fn save<H: SegmentHome>(world: &SegmentedWorld<H>, at: ChunkAt, chunk: Chunk) {
    world
        .transaction(at, |tx| {
            tx.save(at, chunk);
            Ok::<_, Error>(())
        })
        .expect("saves");
}

#[track_caller]
pub(crate) fn put<H: SegmentHome>(world: &SegmentedWorld<H>, n: u128, cow: Entity) {
    let Owner::Chunk(at) = cow.owner else { panic!("a cow in a chunk") };
    world
        .transaction(at, |tx| {
            tx.put_entity(uuid(n), cow);
            Ok::<_, Error>(())
        })
        .expect("puts");
}

pub(crate) fn block<H: SegmentHome>(world: &SegmentedWorld<H>, at: ChunkAt) -> Option<BlockId> {
    world.load(at).expect("loads").map(|chunk| chunk.block(LocalPos::new(0, 0, 0)))
}

/// Chunks in five segments come back, with few segments open.
fn chunks_lie_in_their_segments<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    let places: Vec<_> = [-17, -1, 0, 15, 16, 40].map(|x| ids.at(x, 0, -x)).into();
    for (at, block) in places.iter().zip([ids.stone, ids.glass].into_iter().cycle()) {
        save(world, *at, filled(world.root(), block));
    }
    for (at, block) in places.iter().zip([ids.stone, ids.glass].into_iter().cycle()) {
        assert_eq!(self::block(world, *at), Some(block));
    }
    let many = world.load_many(&[places[5], ids.at(0, 500, 0), places[0]]);
    let many: Vec<_> = many.into_iter().map(|chunk| chunk.expect("loads").is_some()).collect();
    assert_eq!(many, [true, false, true], "one result per position, in order");
    let expected: Vec<_> = [-2, -1, 0, 1, 2].into_iter().collect();
    let stored: Vec<_> = world.segments().list().into_iter().map(|segment| segment.x).collect();
    assert_eq!(stored, [vec![-2], vec![-1], vec![0, 0], vec![1], vec![2]].concat(), "{expected:?}");
    assert!(world.segments().open_count() <= 2, "{} are open", world.segments().open_count());
    world.segments().compact(world.segment_of(places[0])).expect("compacts");
    world.segments().delete(world.segment_of(places[0])).expect("deletes");
    assert_eq!(self::block(world, places[0]), None);
    assert_eq!(self::block(world, places[5]), Some(ids.glass), "the others are as they were");
    save(world, places[0], filled(world.root(), ids.glass));
    assert_eq!(self::block(world, places[0]), Some(ids.glass));
}

#[test]
fn chunks_lie_in_their_segments_in_memory() {
    let (world, ids) = in_memory();
    let places: Vec<_> = [-17, -1, 0, 15, 16, 40].map(|x| ids.at(x, 0, -x)).into();
    assert_eq!(places.len(), 6);
    chunks_lie_in_their_segments(&world, &ids);
}

#[test]
fn chunks_lie_in_their_segments_on_disk() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    chunks_lie_in_their_segments(&world, &ids);
    world.close().expect("closes");
    drop(world);
    let world = open(&disk);
    assert_eq!(block(&world, ids.at(40, 0, -40)), Some(ids.glass));
    // A segment alone is a world like any other.
    let path = dir(&disk).join("segments").join("0.2.0.-3");
    world.close().expect("closes");
    drop(world);
    let alone = World::builder().options(&options()).open(path).expect("opens");
    assert!(alone.load(ids.at(40, 0, -40)).expect("loads").is_some());
    assert_sound(&alone);
}

/// However chunks of several segments follow one another, each has its result in its place.
#[test]
fn many_chunks_come_in_the_order_asked() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let places: Vec<_> = (0..60).map(|n| ids.at(n % 5 * 9 - 20, n % 3, n / 20 * 16)).collect();
    for (at, block) in places.iter().step_by(2).zip([ids.stone, ids.glass].into_iter().cycle()) {
        save(&world, *at, filled(world.root(), block));
    }
    let alone = |at: &[ChunkAt]| at.iter().map(|at| block(&world, *at)).collect::<Vec<_>>();
    let together = |at: &[ChunkAt]| {
        let chunks = world.load_many(at).into_iter();
        chunks.map(|chunk| Some(chunk.expect("loads")?.block(LocalPos::new(0, 0, 0)))).collect::<Vec<_>>()
    };
    let mut sorted = places.clone();
    sorted.sort_by_key(|at| world.segment_of(*at));
    assert!(sorted.iter().any(|at| block(&world, *at).is_none()));
    let of_one: Vec<_> =
        places.iter().copied().filter(|at| world.segment_of(*at) == world.segment_of(places[0])).collect();
    assert!(of_one.len() > 2);
    let backwards: Vec<_> = sorted.iter().rev().copied().collect();
    let orders = [&places, &sorted, &backwards, &of_one, &vec![places[3]; 4], &vec![]];
    for (order, at) in orders.into_iter().enumerate() {
        assert!(together(at) == alone(at), "order {order}");
        let found = world.find_chunks(at).into_iter().map(|found| found.expect("finds"));
        assert!(found.eq(at.iter().map(|at| world.find_chunk(*at).expect("finds"))), "order {order}");
    }
}

#[test]
fn names_reach_open_and_closed_segments() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    for x in [0, 16, 32] {
        save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    let blocks = vec![BlockOffer::new(name("game:basalt"))];
    let catalog = world.register(&Registration { blocks, ..Registration::default() }).expect("registers");
    let basalt = catalog.block_id("game:basalt").expect("just registered");
    for x in [0, 16, 32] {
        save(&world, ids.at(x, 1, 0), filled(world.root(), basalt));
        assert_eq!(block(&world, ids.at(x, 1, 0)), Some(basalt));
    }
}

#[test]
fn a_segment_is_opened_ahead_of_need() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    save(&world, ids.at(0, 0, 0), filled(world.root(), ids.stone));
    world.close().expect("closes");
    drop(world);
    let world = open(&disk);
    assert_eq!(world.segments().open_count(), 0);
    world.segments().open_ahead(&[ids.at(3, 3, 3), ids.at(999, 0, 0)]);
    let begun = std::time::Instant::now();
    while world.segments().open_count() == 0 && begun.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(world.segments().open_count(), 1, "what is not stored is not opened");
}

#[test]
fn each_segment_says_what_was_written_into_it() {
    let (world, ids) = in_memory();
    let written = |at: ChunkAt| {
        let bytes =
            world.segments().with(world.segment_of(at), |segment| Ok(segment.metrics().stats.bytes_written));
        bytes.expect("is stored")
    };
    let (busy, calm) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
    save(&world, busy, filled(world.root(), ids.stone));
    save(&world, calm, filled(world.root(), ids.stone));
    let before = [written(busy), written(calm)];
    for y in 1..9 {
        save(&world, ids.at(0, y, 0), filled(world.root(), ids.glass));
    }
    let now = [written(busy), written(calm)];
    assert!(now[0] > before[0] && now[1] == before[1], "{before:?}, then {now:?}");
}

#[test]
fn an_overlay_lies_over_segments_and_merges_into_one() {
    let (world, ids) = in_memory();
    for x in [0, 16] {
        save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    put(&world, 1, ids.cow_in(ids.at(0, 0, 0)));
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    let edited = overlay.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass)?;
        tx.delete_entity(uuid(1));
        Ok::<_, Error>(())
    });
    edited.expect("edits");
    assert_eq!(overlay.entity(uuid(1)).expect("reads"), None);
    overlay.merge_into(&world).expect("merges");
    assert_eq!(block(&world, ids.at(0, 0, 0)), Some(ids.glass));
    assert_eq!(world.entity(uuid(1)).expect("reads"), None);
}

/// A segment by its x.
pub(crate) fn segment(ids: &Ids, x: i64) -> SegmentPos {
    SegmentPos { dimension: ids.overworld, x, y: 0, z: 0 }
}

#[test]
fn a_world_that_is_closed_stays_closed() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let (here, nowhere) = (ids.at(0, 0, 0), ids.at(0, 500, 0));
    save(&world, here, filled(world.root(), ids.stone));
    world.close().expect("closes");
    for at in [here, nowhere] {
        assert!(matches!(world.load(at), Err(Error::Closed)), "{:?}", world.load(at));
        let many = world.load_many(&[at]);
        assert!(matches!(many[..], [Err(Error::Closed)]), "{many:?}");
        let saved = world.transaction(at, |tx| {
            tx.delete(at);
            Ok::<_, Error>(())
        });
        assert!(matches!(saved, Err(Error::Closed)), "{saved:?}");
    }
    let shown = world.segments().with(segment(&ids, 0), |_| Ok(()));
    assert!(matches!(shown, Err(Error::Closed)), "{shown:?}");
    let deleted = world.segments().delete(segment(&ids, 0));
    assert!(matches!(deleted, Err(Error::Closed)), "{deleted:?}");
    assert_eq!(world.segments().open_count(), 0);
    world.close().expect("closing again does nothing");
    drop(world);
    assert_eq!(block(&open(&disk), here), Some(ids.stone));
}

/// A segment that was deleted and made again counts from the beginning: its versions are others than those before.
#[test]
fn what_an_overlay_wrote_over_is_not_in_a_segment_that_was_made_again() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    put(&world, 1, ids.cow_in(at));
    let version = world.find_chunk(at).expect("reads");
    let (chunks, entities) =
        [(); 2].map(|()| Overlay::in_memory(world.clone(), &options()).expect("a base")).into();
    entities.transaction(|tx| tx.move_entity(uuid(1), Owner::Chunk(at))).expect("changes nothing");
    chunks.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(1, 0, 0), ids.glass)).expect("edits");
    let detached = Owner::Detached(cg_format::entity::Reason::new("cargo").expect("short"));
    entities.transaction(|tx| tx.move_entity(uuid(1), detached)).expect("edits");

    world.segments().delete(segment(&ids, 0)).expect("deletes");
    save(&world, at, filled(world.root(), ids.glass));
    put(&world, 1, ids.cow_in(at));
    assert_ne!(world.find_chunk(at).expect("reads"), version);
    for overlay in [chunks, entities] {
        let refused = overlay.merge_into(&world);
        assert!(
            matches!(
                refused.as_ref().err().and_then(Error::layer),
                Some(cg_layers::OverlayError::BaseChanged { .. })
            ),
            "{refused:?}"
        );
    }
    assert_eq!(block(&world, at), Some(ids.glass), "it was not undone");
}
