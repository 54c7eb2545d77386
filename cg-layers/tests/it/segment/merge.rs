//! Overlays merged into several segments: one after the other, and exactly once, also when a merge is killed and called
//! again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cg_layers::{Arenas, Base, OverlayError};
use cg_store::StoreLimits;
use cg_store::engine::{RocksEngine, RocksOptions};

use cg_tiering::GameTick;

use super::transfer::{Crashing, whereabouts};
use super::*;

/// A chunk in each of four segments, of which the last is not stored.
pub(super) fn places(ids: &Ids) -> [ChunkAt; 4] {
    [0, 16, 32, 48].map(|x| ids.at(x, 0, 0))
}

/// Stone in the first three, a cow in each of the first two.
pub(super) fn pave<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    for at in &places(ids)[..3] {
        save(world, *at, filled(world.root(), ids.stone));
    }
    for (n, at) in [(1, 0), (2, 1)] {
        put(world, n, ids.cow_in(places(ids)[at]));
    }
}

/// Changes every segment: a block in the first, a cow from there into the second, whose own goes; the third's chunk is
/// deleted, the fourth's is new.
pub(super) fn edit<S: Base>(overlay: &Overlay<S>, ids: &Ids) {
    let places = places(ids);
    let edited = overlay.transaction(|tx| {
        let schema = tx.catalog().current_schema();
        tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass)?;
        tx.delete_entity(uuid(2));
        tx.delete(places[2]);
        tx.save(places[3], Chunk::filled(ids.stone, &schema).expect("known"));
        tx.put_entity(uuid(3), ids.cow_in(places[3]));
        let detached = Owner::Detached(cg_format::entity::Reason::new("cargo").expect("short"));
        tx.put_entity(uuid(4), ids.cow_in(places[1]).owned_by(detached));
        tx.move_entity(uuid(1), Owner::Chunk(places[1]))
    });
    assert!(edited.expect("edits"));
}

/// Changes again what [`edit`] changed: a deleted chunk is saved, an entity goes back to the first segment, and another
/// one is deleted.
fn edit_again<S: Base>(overlay: &Overlay<S>, ids: &Ids) {
    let places = places(ids);
    let edited = overlay.transaction(|tx| {
        for x in [1, 257, 769] {
            tx.set_block(ids.overworld, BlockPos::new(x, 0, 0), ids.machine)?;
        }
        tx.save(places[2], tx.new_chunk(ids.stone)?);
        let mut cow = ids.cow_in(places[1]);
        cow.set_component(ids.items, vec![1]).expect("is variable");
        tx.put_entity(uuid(1), cow);
        tx.delete_entity(uuid(4));
        tx.move_entity(uuid(3), Owner::Chunk(places[0]))
    });
    assert!(edited.expect("edits"));
}

/// The chunks of all places, and where the cows are.
pub(super) type Content = (Vec<Option<Chunk>>, Vec<Option<Owner>>);

pub(super) fn content<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) -> Content {
    let chunks = world.load_many(&places(ids));
    let chunks = chunks.into_iter().map(|chunk| chunk.expect("loads").as_deref().cloned());
    let owner = |n| world.entity(uuid(n)).expect("reads").map(|cow| cow.owner);
    (chunks.collect(), (1..=4).map(owner).collect())
}

pub(super) fn shown<S: Base>(overlay: &Overlay<S>, ids: &Ids) -> Content {
    let chunks = overlay.load_many(&places(ids));
    let chunks = chunks.into_iter().map(|chunk| chunk.expect("loads").as_deref().cloned());
    let owner = |n| overlay.entity(uuid(n)).expect("reads").map(|cow| cow.owner);
    (chunks.collect(), (1..=4).map(owner).collect())
}

#[track_caller]
fn assert_all_sound<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    for segment in world.segments().list() {
        world
            .segments()
            .with(segment, |world| {
                assert_sound(world);
                Ok(())
            })
            .expect("is there");
    }
    for n in 1..=4 {
        let (chunks, rows) = whereabouts(world, &places(ids), uuid(n));
        let cow = world.entity(uuid(n)).expect("reads");
        let (in_chunks, in_rows) = match cow.map(|cow| cow.owner) {
            None => (0, 0),
            Some(Owner::Detached(_)) => (0, 1),
            Some(Owner::Chunk(at)) => {
                assert_eq!(chunks, [at]);
                (1, 1)
            }
        };
        assert_eq!((chunks.len(), rows.len()), (in_chunks, in_rows), "cow {n}");
    }
}

/// The properties of a root that begin so.
fn properties<H: SegmentHome>(world: &SegmentedWorld<H>, prefix: &str) -> usize {
    let mut count = 0;
    let shown = world.root().read_view(|view| {
        view.for_each_property(prefix, |_| {
            count += 1;
            std::ops::ControlFlow::<()>::Continue(())
        })
    });
    shown.expect("scans");
    count
}

fn merges<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    pave(world, ids);
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    edit(&overlay, ids);
    let expected = shown(&overlay, ids);
    let merged = overlay.merge_into(world).expect("merges");
    assert_eq!(merged.changes, 8, "four chunks and four cows");
    assert_eq!(content(world, ids), expected);
    assert!(overlay.diff().expect("compares").is_empty());
    assert_all_sound(world, ids);
    assert_eq!(properties(world, ":entity/"), 3, "the second cow is nowhere");
    assert_eq!(overlay.merge_into(world).expect("merges").changes, 0);
    // What comes after it works as if nothing had happened.
    world.transfer_entities([(uuid(3), ids.cow_in(places(ids)[0]))]).expect("crosses");
    put(world, 2, ids.cow_in(places(ids)[3]));
    assert_all_sound(world, ids);
}

#[test]
fn an_overlay_merges_into_four_segments_in_memory() {
    let (world, ids) = in_memory();
    merges(&world, &ids);
}

#[test]
fn an_overlay_merges_into_four_segments_on_disk() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    merges(&world, &ids);
    let before = content(&world, &ids);
    world.close().expect("closes");
    drop(world);
    assert_eq!(content(&open(&disk), &ids), before);
}

#[test]
fn what_one_segment_changed_since_keeps_all_from_being_merged() {
    let (world, ids) = in_memory();
    pave(&world, &ids);
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    save(&world, places(&ids)[2], filled(world.root(), ids.glass));
    let before = content(&world, &ids);
    let refused = overlay.merge_into(&world);
    assert!(
        matches!(refused.as_ref().err().and_then(Error::layer), Some(OverlayError::BaseChanged { key, .. })
            if *key == cg_store::error::ConflictKey::Chunk(places(&ids)[2])),
        "{refused:?}"
    );
    assert_eq!(content(&world, &ids), before);
}

/// The segment's own world refuses it: the segments before it are merged, and the overlay keeps the rest.
#[test]
fn what_one_segment_refuses_is_merged_once_it_fits() {
    let limits = StoreLimits { entity_bytes: 200, ..StoreLimits::default() };
    let world = WorldOptions { limits, ..options() };
    let world = SegmentedWorld::in_memory(&[], &SegmentOptions { world, ..segments() }).expect("a world");
    let ids = register(&world);
    pave(&world, &ids);
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    let put = |cow: Entity| {
        let put = overlay.transaction(|tx| {
            tx.put_entity(uuid(3), cow);
            Ok::<_, Error>(())
        });
        put.expect("the overlay takes it");
    };
    let mut large = ids.cow_in(places(&ids)[3]);
    large.set_component(ids.items, vec![7; 300]).expect("is variable");
    put(large);
    let (before, all) = (content(&world, &ids), shown(&overlay, &ids));
    let refused = overlay.merge_into(&world).expect_err("is too large");
    assert_eq!(
        refused.to_string(),
        "3 of 4 segments have their part of the merge, and the overlay keeps the rest; merge it again to go on: entity \
         00000000-0000-0000-0000-000000000003 takes 433 bytes, the world's limit is 200; raise the limit or split it"
    );
    let now = content(&world, &ids);
    assert_eq!((&now.0[0], &now.0[2], &now.0[3]), (&all.0[0], &all.0[2], &before.0[3]));
    assert_eq!(shown(&overlay, &ids), all, "the overlay shows what it has shown");
    assert_all_sound(&world, &ids);

    put(ids.cow_in(places(&ids)[3]));
    overlay.merge_into(&world).expect("fits");
    assert_eq!(content(&world, &ids), all);
    assert_all_sound(&world, &ids);
}

/// A merge into four segments of which each commit is the last in turn, of the root, of a segment or of the overlay. Called
/// again, it has merged everything exactly once.
#[test]
fn a_merge_that_ends_anywhere_goes_on() {
    let merged = ends_anywhere(Crashing::new, &options());
    // The fourth segment is created; four segments commit, and the overlay after each; the root learns of two entities; a
    // transfer takes four commits.
    assert!(merged.len() >= 15 && merged.is_sorted(), "{merged:?}");
    let halves = merged.iter().filter(|merged| (1..4).contains(*merged)).count();
    assert!(halves >= 6 && merged.last() == Some(&4), "{merged:?}");
    let limits = StoreLimits { batch_bytes: 600, ..StoreLimits::default() };
    let in_parts = ends_anywhere(Crashing::new, &WorldOptions { limits, ..options() });
    assert!(in_parts.len() > merged.len() + 4 && in_parts.is_sorted(), "{merged:?} {in_parts:?}");
}

#[test]
fn a_merge_that_ends_anywhere_on_disk_goes_on() {
    let disk = Disk::new();
    let made = Arc::new(AtomicUsize::new(0));
    let home = || {
        let (dir, made) = (disk.root().to_path_buf(), Arc::clone(&made));
        Crashing::of(move || {
            let dir = dir.join(made.fetch_add(1, Ordering::Relaxed).to_string());
            RocksEngine::create(&dir, &RocksOptions::default()).expect("an empty directory")
        })
    };
    let merged = ends_anywhere(home, &options());
    assert!(merged.len() >= 15 && merged.is_sorted(), "{merged:?}");
}

/// The disk is full for a moment, at each commit in turn. The same world goes on, without being opened again.
#[test]
fn a_merge_that_was_stopped_anywhere_goes_on_in_the_same_world() {
    for commits in 0.. {
        let home = Crashing::new();
        let world = home.open(true);
        let ids = register(&world);
        pave(&world, &ids);
        let arenas = Arenas::over(home.another(), world.clone(), &options()).expect("a base");
        let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
        edit(&overlay, &ids);
        let after = shown(&overlay, &ids);
        home.fuse.set(commits);
        let merged = overlay.merge_into(&world);
        home.fuse.set(i64::MAX);
        if merged.is_ok() {
            assert!(commits >= 15, "{commits}");
            break;
        }
        overlay.merge_into(&world).unwrap_or_else(|error| panic!("{commits} commits: {error}"));
        assert_eq!(content(&world, &ids), after, "{commits} commits");
        assert!(overlay.diff().expect("compares").is_empty());
        assert_all_sound(&world, &ids);
    }
}

/// The overlay is edited after its merge has stopped at each commit in turn, with or without a restart.
#[test]
fn an_overlay_is_edited_before_its_stopped_merge_goes_on() {
    for (is_killed, deltas) in [(false, true), (true, true), (true, false)] {
        for commits in 0.. {
            let home = Crashing::new();
            let above = home.another();
            let options = WorldOptions { deltas, ..options() };
            let mut world = home.open(true);
            let ids = register(&world);
            pave(&world, &ids);
            let arenas = Arenas::over(above.clone(), world.clone(), &options).expect("a base");
            let mut overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
            edit(&overlay, &ids);
            home.fuse.set(commits);
            let is_whole = overlay.merge_into(&world).is_ok();
            home.fuse.set(i64::MAX);
            if is_killed {
                drop((overlay, arenas, world));
                world = home.open(false);
                let arenas = Arenas::over(above, world.clone(), &options).expect("the same base");
                overlay = arenas.resume(0).expect("is leased");
            }
            edit_again(&overlay, &ids);
            let after = shown(&overlay, &ids);
            overlay.merge_into(&world).unwrap_or_else(|error| panic!("{commits} commits: {error}"));
            assert_eq!(content(&world, &ids), after, "{commits} commits");
            assert!(overlay.diff().expect("compares").is_empty());
            assert_all_sound(&world, &ids);
            if is_whole {
                assert!(commits >= 15, "{commits}");
                break;
            }
        }
    }
}

/// Returns how many of the places were merged by the first call, for each commit that was its last.
fn ends_anywhere(home: impl Fn() -> Crashing, options: &WorldOptions) -> Vec<usize> {
    let mut merged = Vec::new();
    for commits in 0.. {
        let home = home();
        let above = home.another();
        let segments = SegmentOptions { world: options.clone(), ..segments() };
        let world = home.open_with(true, &segments);
        let ids = register(&world);
        pave(&world, &ids);
        let before = content(&world, &ids);
        let arenas = Arenas::over(above.clone(), world.clone(), options).expect("a base");
        let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
        edit(&overlay, &ids);
        let after = shown(&overlay, &ids);
        home.fuse.set(commits);
        let outcome = overlay.merge_into(&world);
        let is_burnt = home.fuse.is_burnt();
        assert_eq!(outcome.is_ok(), !is_burnt, "{outcome:?}");
        drop((overlay, arenas, world));

        let world = home.open_with(false, &segments);
        let now = content(&world, &ids);
        let is_merged = |place: &usize| {
            // The first cow comes to the second chunk last.
            let without_cow = |chunk: &Option<Chunk>| {
                let mut chunk = chunk.clone()?;
                chunk.remove_entity(uuid(1));
                Some(chunk)
            };
            let [now, before, after] =
                [&now, &before, &after].map(|(chunks, _)| without_cow(&chunks[*place]));
            assert!(now == before || now == after, "{commits} commits left {now:?} at {place}");
            now == after
        };
        merged.push((0..4).filter(is_merged).count());
        assert!(now.1[0].is_some(), "the first cow is somewhere");
        assert_all_sound(&world, &ids);
        let arenas = Arenas::over(above.clone(), world.clone(), options).expect("the same base");
        let overlay = arenas.resume(0).expect("is leased");
        assert_eq!(shown(&overlay, &ids), after, "{commits} commits, before it goes on");
        overlay.merge_into(&world).expect("goes on");
        assert_eq!(content(&world, &ids), after, "{commits} commits");
        assert!(overlay.diff().expect("compares").is_empty());
        assert_eq!(overlay.merge_into(&world).expect("is done").changes, 0);
        assert_all_sound(&world, &ids);
        if !is_burnt {
            break;
        }
    }
    merged
}

/// A record goes to the segment of its position. Objects and properties that no segment has are the root's, and come last.
#[test]
fn values_that_no_segment_has_are_merged_in_this_order() {
    let (key, id) = ("arena/result", cg_format::RecordId::from_bytes([7; 16]));
    let rules = Property::Named(cg_registry::Name::new("game:rules").expect("a name"));
    let mut ends = Vec::new();
    for commits in 0.. {
        let home = Crashing::new();
        let above = home.another();
        let world = home.open(true);
        let ids = register(&world);
        pave(&world, &ids);
        world.root().objects().put(key, *b"none").expect("writes");
        let arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("a base");
        let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
        let position = EntityPos::new(ids.overworld, BlockPos::new(300, 0, 0), [0.5; 3]).expect("a point");
        let grave = cg_format::record::Record::new(position, "game:grave", 1, Vec::new()).expect("short");
        let written = overlay.transaction(|tx| {
            tx.put_object(key, *b"won")?;
            tx.put_record(id, grave.clone());
            tx.set_property(rules.clone(), Some(vec![1]));
            tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass)
        });
        written.expect("writes");
        home.fuse.set(commits);
        let merged = overlay.merge_into(&world);
        let is_burnt = home.fuse.is_burnt();
        assert_eq!(merged.map(|merged| merged.changes).ok(), (!is_burnt).then_some(4));
        drop((overlay, arenas, world));

        let world = home.open(false);
        let shown = || {
            let object = world.root().objects().get(key).expect("reads").expect("is there");
            let record = world.records().get(id).expect("reads");
            let property = world.root().property(&rules).expect("reads");
            let kept = [object.bytes[..] == *b"won", record.is_some(), property.is_some()];
            (block(&world, places(&ids)[0]) == Some(ids.glass), kept)
        };
        ends.push(shown());
        let arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("the same base");
        let overlay = arenas.resume(0).expect("is leased");
        overlay.merge_into(&world).expect("goes on");
        assert_eq!(shown(), (true, [true; 3]));
        assert_eq!(world.root().objects().get(key).expect("reads").expect("is there").version, 1);
        assert!(overlay.diff().expect("compares").is_empty());
        if !is_burnt {
            break;
        }
    }
    ends.dedup();
    let in_segments = [(false, [false; 3]), (true, [false; 3]), (true, [false, true, false])];
    assert_eq!(ends, [&in_segments[..], &[(true, [true; 3])]].concat());
}

/// The root's record of a transfer is a property, and none of them may be longer than the limit.
#[test]
fn more_entities_change_their_segment_than_one_record_takes() {
    let limits = StoreLimits { property_bytes: 600, ..StoreLimits::default() };
    let world = WorldOptions { limits, ..options() };
    let world = SegmentedWorld::in_memory(&[], &SegmentOptions { world, ..segments() }).expect("a world");
    let ids = register(&world);
    let [first, second, ..] = places(&ids);
    for at in [first, second] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    for n in 1..=10 {
        put(&world, n, ids.cow_in(first));
    }
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    let moved = overlay
        .transaction(|tx| (1..=10).try_for_each(|n| tx.move_entity(uuid(n), Owner::Chunk(second)).map(drop)));
    moved.expect("moves");
    assert_eq!(overlay.merge_into(&world).expect("merges").changes, 12);
    for n in 1..=10 {
        assert_eq!(whereabouts(&world, &[first, second], uuid(n)), (vec![second], vec![1]));
    }
}

/// An entity goes from one segment to the other and back: who asks for it always finds it.
#[test]
fn an_entity_that_changes_its_segment_is_always_found() {
    let (world, ids) = in_memory();
    let [first, second, ..] = places(&ids);
    for at in [first, second] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    put(&world, 1, ids.cow_in(first));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) || seen == 0 {
                assert!(world.entity(uuid(1)).expect("reads").is_some(), "it is in neither");
                seen += 1;
            }
        });
        for to in [second, first].into_iter().cycle().take(100) {
            let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
            overlay.transaction(|tx| tx.move_entity(uuid(1), Owner::Chunk(to))).expect("moves");
            overlay.merge_into(&world).expect("merges");
            assert_eq!(whereabouts(&world, &[first, second], uuid(1)), (vec![to], vec![to.pos.x() / 16]));
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("always found it");
    });
}
