//! What is done with a segmented world as a whole: walks, pins and metrics.

use std::ops::ControlFlow;

use cg_store::view::Area;

use super::*;

/// Chunks in five segments; the last one has none in the box.
fn spread<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) -> [ChunkAt; 6] {
    let places = [(-17, 0), (-1, 0), (0, 0), (15, 3), (16, 0), (40, 0)].map(|(x, y)| ids.at(x, y, 0));
    for at in places {
        save(world, at, filled(world.root(), ids.stone));
    }
    places
}

#[test]
fn a_walk_crosses_borders_in_the_order_of_segments() {
    let (world, ids) = in_memory();
    let places = spread(&world, &ids);
    let walk = |area: Area<'_>| {
        let mut met = Vec::new();
        let ended = world.segments().for_each_chunk(area, |stored| {
            met.push(stored.expect("is sound").at);
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(ended.expect("walks"), None);
        met
    };
    assert_eq!(walk(Area::World), places);
    let pos = |x, y, z| ChunkPos::new(x, y, z).expect("inside the world");
    let area = Area::Box(ids.overworld, ChunkBox::new(pos(-5, -5, -5), pos(20, 0, 5)));
    assert_eq!(walk(area), [places[1], places[2], places[4]]);
    assert_eq!(walk(Area::Box(ids.nether, ChunkBox::new(pos(-5, -5, -5), pos(20, 0, 5)))), []);
    assert!(world.segments().open_count() <= 2);
    // What was submitted is seen, and the walk ends where it is told to.
    let at = ids.at(1, 0, 0);
    let mut batch = WriteBatch::new();
    batch.save(at, filled(world.root(), ids.glass));
    world.submit(at, batch).expect("is taken");
    let found = world.segments().for_each_decoded(area, |met| {
        let (at, chunk) = met.expect("is sound");
        let is_glass = chunk.block(LocalPos::new(0, 0, 0)) == ids.glass;
        if is_glass { ControlFlow::Break(at) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(found.expect("walks"), Some(at));
}

#[test]
fn a_walk_shows_a_segment_that_is_lost_and_goes_on() {
    let home = super::transfer::Crashing::new();
    let world = home.open(true);
    let ids = register(&world);
    let places = spread(&world, &ids);
    for n in 0..6 {
        put(&world, n, ids.cow_in(places[n as usize]));
    }
    home.remove(world.segment_of(places[0])).expect("is forgotten");
    let (mut chunks, mut cows, mut lost) = (Vec::new(), Vec::new(), 0);
    let mut note = |error: Error| {
        assert!(matches!(error.layer(), Some(SegmentError::Lost { .. })), "{error}");
        lost += 1;
    };
    world
        .segments()
        .for_each_chunk(Area::World, |stored| {
            stored.map_or_else(&mut note, |stored| chunks.push(stored.at));
            ControlFlow::<()>::Continue(())
        })
        .expect("walks");
    world
        .segments()
        .for_each_entity(|met| {
            met.map_or_else(&mut note, |(id, _)| cows.push(id));
            let crossing = world.transfer_entities([(uuid(1), ids.cow_in(places[2]))]);
            assert!(matches!(crossing, Err(Error::Nested)), "{crossing:?}");
            ControlFlow::<()>::Continue(())
        })
        .expect("walks");
    assert_eq!((chunks, lost), (places[1..].to_vec(), 2));
    assert_eq!(cows, [1, 2, 3, 4, 5].map(uuid));
}

#[test]
fn a_pinned_area_stays_in_memory_over_borders() {
    let (world, ids) = in_memory();
    let places = spread(&world, &ids);
    let pos = |x| ChunkPos::new(x, 0, 0).expect("inside the world");
    let spawn = world.segments().pin(ids.overworld, ChunkBox::new(pos(-1), pos(0)));
    for at in places {
        world.load(at).expect("loads");
    }
    assert_eq!(world.segments().open_count(), 3, "two are kept open");
    for at in [places[1], places[2]] {
        assert!(matches!(world.peek(at), Peek::Here(_)), "{at:?}");
    }
    assert_eq!(world.metrics().sum(|metrics| metrics.cache.pinned_chunks), 2);
    drop(spawn);
    assert_eq!(world.metrics().sum(|metrics| metrics.cache.pinned_chunks), 0);
    for at in [places[5], places[0], places[5]] {
        world.load(at).expect("loads");
    }
    assert_eq!(world.segments().open_count(), 2);
    assert!(matches!(world.peek(places[2]), Peek::NotLoaded));
}

/// A world on disk that was opened again, with chunks at `xs` and two heights. No segment is open.
fn rows(disk: &Disk, max_open: usize, xs: std::ops::Range<i64>) -> (SegmentedWorld<OnDisk>, Ids) {
    let (world, ids) = create(disk);
    for (x, y) in xs.flat_map(|x| [(x, 0), (x, 1)]) {
        save(&world, ids.at(x, y, 0), filled(world.root(), ids.stone));
    }
    world.close().expect("closes");
    drop(world);
    let options = SegmentOptions { max_open, ..segments() };
    (SegmentedWorld::open(dir(disk), &[], &options).expect("opens"), ids)
}

#[test]
fn a_pin_loads_its_area_over_borders_up_to_a_limit_and_says_how_much() {
    let disk = Disk::new();
    let (world, ids) = rows(&disk, 4, -12..12);
    let area = ChunkBox::new(ChunkPos::constant(-10, 0, 0), ChunkPos::constant(9, 2, 5));
    let pin = world.segments().pin(ids.overworld, area);
    let places = || (-12..12).flat_map(|x| (0..3).map(move |y| (x, y)));
    let in_memory =
        || places().filter(|(x, y)| matches!(world.peek(ids.at(*x, *y, 0)), Peek::Here(_))).count() as u64;
    assert_eq!(world.segments().open_count(), 0, "a pin alone opens nothing");
    let nothing = pin.load(0).expect("loads");
    assert_eq!((nothing.chunks, nothing.bytes, nothing.is_limited, in_memory()), (0, 0, true, 0));
    let some = pin.load(1).expect("loads");
    assert_eq!((some.chunks, in_memory(), some.is_limited), (16, 16, true), "a group of them");
    assert_eq!(world.segments().open_count(), 1, "the limit ends it");
    let chunk = some.bytes / some.chunks;
    let most = pin.load(20 * chunk + 1).expect("loads");
    assert_eq!((most.chunks, in_memory(), most.is_limited), (36, 36, true), "one limit for both segments");
    let all = pin.load(some.bytes * 10).expect("loads");
    assert_eq!((all.chunks, in_memory(), all.damaged, all.is_limited), (40, 40, 0, false));
    assert_eq!(world.metrics().sum(|metrics| metrics.cache.pinned_chunks), 40);
    assert_eq!(pin.load(all.bytes).expect("loads"), all, "what fits exactly is no limit");
    let mut batch = WriteBatch::new();
    batch.save(ids.at(9, 2, 0), filled(world.root(), ids.stone));
    let _ticket = world.submit(ids.at(9, 2, 0), batch).expect("is taken");
    assert_eq!(pin.load(1 << 20).expect("loads").chunks, 41, "with what was submitted");
    world.close().expect("closes");
    assert!(matches!(pin.load(1 << 20), Err(Error::Closed)));
    drop(world);
    assert!(matches!(pin.load(1 << 20), Err(Error::Closed)));
}

#[test]
fn a_pin_loads_no_more_segments_than_may_be_open_and_says_so() {
    let disk = Disk::new();
    let (world, ids) = rows(&disk, 2, -2..50);
    let row = |from, to| ChunkBox::new(ChunkPos::constant(from, 0, 0), ChunkPos::constant(to, 0, 0));
    assert!(world.load(ids.at(48, 0, 0)).expect("loads").is_some());
    let pin = world.segments().pin(ids.overworld, row(-2, 40));
    for _ in 0..2 {
        let loaded = pin.load(1 << 20).expect("loads");
        assert_eq!((loaded.chunks, loaded.is_limited), (18, true));
        assert!(loaded.bytes < 1 << 20, "it is not for lack of bytes");
        assert_eq!(world.segments().list_open(), [-1, 0].map(|x| segment(&ids, x)), "another was closed");
    }
    drop(pin);
    let pin = world.segments().pin(ids.overworld, row(16, 40));
    let loaded = pin.load(1 << 20).expect("loads");
    assert_eq!((loaded.chunks, loaded.is_limited), (25, false));
}

#[test]
fn metrics_are_of_each_segment_and_of_all() {
    let (world, ids) = in_memory();
    let places = spread(&world, &ids);
    let before = world.metrics();
    assert_eq!(before.segments.len(), world.segments().open_count());
    let written = |metrics: &cg_store::metrics::Metrics| metrics.last_commit.get();
    assert_eq!(
        before.sum(written),
        written(&before.root) + before.segments.values().map(written).sum::<u64>()
    );
    save(&world, places[5], filled(world.root(), ids.glass));
    let after = world.metrics();
    let segment = world.segment_of(places[5]);
    assert_eq!(written(&after.segments[&segment]), written(&before.segments[&segment]) + 1);
    assert_eq!((after.submitted(), after.waiting_bytes), (0, 0));
    // What waits for a segment is counted for it.
    world
        .transaction(places[0], |_| {
            let mut batch = WriteBatch::new();
            batch.put_entity(uuid(1), ids.cow_in(places[0]));
            let bytes = world.metrics().queued_bytes();
            let _ticket = world.submit(places[0], batch)?;
            let waits = world.metrics();
            // A background thread may have it already.
            if let Some(count) = waits.waiting.get(&world.segment_of(places[0])) {
                assert_eq!((*count, waits.submitted()), (1, 1));
                assert!(waits.queued_bytes() > bytes);
            }
            Ok::<_, Error>(())
        })
        .expect("commits");
}
