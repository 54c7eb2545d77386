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
