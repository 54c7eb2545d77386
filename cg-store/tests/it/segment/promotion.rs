//! Overlays merged into several segments: all of it or nothing, also when it is killed, and for whoever reads meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cg_store::engine::{Engine, RocksEngine, RocksOptions};
use cg_store::{Arenas, Base, OverlayError, StoreLimits};
use cg_tiering::GameTick;

use super::crossing::{Crashing, whereabouts};
use super::*;

/// A chunk in each of four segments, of which the last is not stored.
fn places(ids: &Ids) -> [ChunkAt; 4] {
    [0, 16, 32, 48].map(|x| ids.at(x, 0, 0))
}

/// Stone in the first three, a cow in each of the first two.
fn pave<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    for at in &places(ids)[..3] {
        save(world, *at, filled(world.root(), ids.stone));
    }
    for (n, at) in [(1, 0), (2, 1)] {
        put(world, n, ids.cow_in(places(ids)[at]));
    }
}

/// Changes every segment: a block in the first, a cow from there into the second, whose own goes; the third's chunk is
/// deleted, the fourth's is new.
fn edit<S: Base>(overlay: &Overlay<S>, ids: &Ids) {
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

/// What is in all places, and where the cows are.
type Content = (Vec<Option<Chunk>>, Vec<Option<Owner>>);

fn content<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) -> Content {
    let chunks = world.load_many(&places(ids));
    let chunks = chunks.into_iter().map(|chunk| chunk.expect("loads").as_deref().cloned());
    let owner = |n| world.entity(uuid(n)).expect("reads").map(|cow| cow.owner);
    (chunks.collect(), (1..=4).map(owner).collect())
}

fn shown<S: Base>(overlay: &Overlay<S>, ids: &Ids) -> Content {
    let chunks = overlay.load_many(&places(ids));
    let chunks = chunks.into_iter().map(|chunk| chunk.expect("loads").as_deref().cloned());
    let owner = |n| overlay.entity(uuid(n)).expect("reads").map(|cow| cow.owner);
    (chunks.collect(), (1..=4).map(owner).collect())
}

#[track_caller]
fn assert_all_sound<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    for segment in world.segments() {
        world
            .with_segment(segment, |world| {
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
    let shown = world.root().for_each_property(prefix, |_| {
        count += 1;
        std::ops::ControlFlow::<()>::Continue(())
    });
    shown.expect("scans");
    count
}

fn merges<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    pave(world, ids);
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    edit(&overlay, ids);
    let expected = shown(&overlay, ids);
    let promoted = overlay.promote_into(world).expect("promotes");
    assert_eq!(promoted.changes, 8, "four chunks and four cows");
    assert_eq!(content(world, ids), expected);
    assert!(overlay.diff().expect("compares").is_empty());
    assert_all_sound(world, ids);
    assert_eq!(properties(world, ":promotion"), 0, "nothing is left to be done");
    assert_eq!(properties(world, ":entity/"), 3, "the second cow is nowhere");
    assert_eq!(overlay.promote_into(world).expect("promotes").changes, 0);
    // What comes behind it works as if nothing had happened.
    world.cross([(uuid(3), ids.cow_in(places(ids)[0]))]).expect("crosses");
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
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    save(&world, places(&ids)[2], filled(world.root(), ids.glass));
    let before = content(&world, &ids);
    let refused = overlay.promote_into(&world);
    assert!(
        matches!(&refused, Err(Error::Overlay(OverlayError::BaseChanged { key, .. }))
            if *key == cg_store::ConflictKey::Chunk(places(&ids)[2])),
        "{refused:?}"
    );
    assert_eq!(content(&world, &ids), before);
    assert_eq!(properties(&world, ":promotion"), 0);
    save(&world, places(&ids)[1], filled(world.root(), ids.stone));
}

/// One that the segment's own world would refuse: nothing is merged, and nothing is closed afterwards.
#[test]
fn what_one_segment_would_refuse_keeps_all_from_being_merged() {
    let limits = StoreLimits { entity_bytes: 200, ..StoreLimits::default() };
    let world = WorldOptions { limits, ..options() };
    let world = SegmentedWorld::temporary(&[], &SegmentOptions { world, ..segments() }).expect("a world");
    let ids = register(&world);
    pave(&world, &ids);
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    let large = overlay.transaction(|tx| {
        let mut cow = ids.cow_in(places(&ids)[3]);
        cow.set_component(ids.items, vec![7; 300]).expect("is variable");
        tx.put_entity(uuid(3), cow);
        Ok::<_, Error>(())
    });
    large.expect("the overlay takes it");
    let before = content(&world, &ids);
    let refused = overlay.promote_into(&world);
    assert!(matches!(&refused, Err(Error::TooLarge { limit_bytes: 200, .. })), "{refused:?}");
    assert_eq!(content(&world, &ids), before);
    save(&world, places(&ids)[0], filled(world.root(), ids.glass));
}

/// A promotion into four segments of which each commit is the last in turn, of the root, of a segment or of the overlay: the
/// world that is opened again has all of it or nothing, and what is done then is done as if nothing had happened.
#[test]
fn a_promotion_that_ends_anywhere_is_in_all_segments_or_in_none() {
    let whole = ends_anywhere(Crashing::new, &options());
    // The fourth segment is created; then the root, four segments, the root twice, the overlay.
    assert!(whole.len() >= 9 && whole.is_sorted(), "{whole:?}");
    assert!(!whole[0] && whole.iter().filter(|whole| **whole).count() >= 7, "{whole:?}");
    let limits = StoreLimits { batch_bytes: 600, ..StoreLimits::default() };
    let in_parts = ends_anywhere(Crashing::new, &WorldOptions { limits, ..options() });
    assert!(in_parts.len() > whole.len() + 8 && in_parts.is_sorted(), "{whole:?} {in_parts:?}");
}

#[test]
fn a_promotion_that_ends_anywhere_on_disk_is_in_all_segments_or_in_none() {
    let disk = Disk::new();
    let made = Arc::new(AtomicUsize::new(0));
    let home = || {
        let (dir, made) = (disk.root().to_path_buf(), Arc::clone(&made));
        Crashing::of(move || {
            let dir = dir.join(made.fetch_add(1, Ordering::Relaxed).to_string());
            RocksEngine::create(&dir, &RocksOptions::default()).expect("an empty directory")
        })
    };
    let whole = ends_anywhere(home, &options());
    assert!(whole.len() >= 9 && whole.is_sorted(), "{whole:?}");
}

fn ends_anywhere(home: impl Fn() -> Crashing, options: &WorldOptions) -> Vec<bool> {
    let mut whole = Vec::new();
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
        let promoted = overlay.promote_into(&world);
        let is_burnt = home.fuse.is_burnt();
        if !is_burnt {
            promoted.expect("promotes");
        }
        // Who goes on to read sees all of it or nothing, or hears that it is not carried out.
        home.fuse.set(0);
        let seen = world.load_many(&places(&ids));
        let seen: Option<Vec<_>> =
            seen.into_iter().map(|chunk| Some(chunk.ok()?.as_deref().cloned())).collect();
        assert!(seen.is_none_or(|seen| seen == before.0 || seen == after.0), "{commits} commits, still open");
        drop((overlay, arenas, world));

        let world = home.open_with(false, &segments);
        let now = content(&world, &ids);
        assert!(now == before || now == after, "{commits} commits left {now:?}");
        whole.push(now == after);
        assert_all_sound(&world, &ids);
        assert_eq!(properties(&world, ":promotion"), 0);
        let arenas = Arenas::over(above.clone(), world.clone(), options).expect("the same base");
        let overlay = arenas.resume(0).expect("is leased");
        overlay.promote_into(&world).expect("promotes");
        assert_eq!(content(&world, &ids), after, "{commits} commits");
        assert!(overlay.diff().expect("compares").is_empty());
        assert_all_sound(&world, &ids);
        if !is_burnt {
            break;
        }
    }
    whole
}

/// A segment that has its part does not get it again, whatever was done to it since.
#[test]
fn what_is_carried_out_is_not_carried_out_again() {
    let home = Crashing::new();
    let world = home.open_with(true, &SegmentOptions { max_open: 4, ..segments() });
    let ids = register(&world);
    pave(&world, &ids);
    save(&world, ids.at(60, 0, 0), filled(world.root(), ids.stone));
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    // The root's pieces and its commit, and two of four segments.
    home.fuse.set(4);
    overlay.promote_into(&world).expect_err("the power is gone");
    let (names, at) = (world.catalog(), places(&ids)[0]);
    drop((overlay, world));
    home.fuse.set(i64::MAX);
    let take = |catalog: &mut cg_registry::Catalog| {
        *catalog = cg_registry::Catalog::clone(&names);
        Ok(())
    };
    let alone = World::over(home.engine(segment(&ids, 0)), uuid::Uuid::from_u128(5), take, &options());
    let alone = alone.expect("a world like any other");
    crate::world::save(&alone, [(at, filled(&alone, ids.machine))]);
    drop(alone);
    let world = home.open(false);
    assert_eq!(block(&world, at), Some(ids.machine), "what came later stays");
    assert_eq!(block(&world, places(&ids)[3]), Some(ids.stone), "the others have theirs");
    assert_eq!(properties(&world, ":promotion"), 0);
}

/// A promotion of [`edit`] that counts in the root, and in no segment.
fn counts_only(home: &Crashing) -> (Ids, Content) {
    let world = home.open_with(true, &SegmentOptions { max_open: 4, ..segments() });
    let ids = register(&world);
    pave(&world, &ids);
    // Created now, and open, so that the promotion begins with the root.
    save(&world, ids.at(60, 0, 0), filled(world.root(), ids.stone));
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    let after = shown(&overlay, &ids);
    // The root's pieces and its commit.
    home.fuse.set(2);
    overlay.promote_into(&world).expect_err("the power is gone");
    (ids, after)
}

/// Writes something else where the root has a property.
fn garble(home: &Crashing, name: &str) {
    let root = home.root();
    let garbled = root.transaction(|tx| {
        let name = Property::Named(cg_registry::Name::new(name)?);
        assert!(tx.property(&name)?.is_some(), "there is something to be garbled");
        tx.set_property(name, Some(vec![2, 2, 9]));
        Ok::<_, Error>(())
    });
    garbled.expect("writes");
}

/// Somebody edits a segment by itself behind a crash: what of it the promotion writes over is kept.
#[test]
fn what_was_changed_in_a_segment_alone_is_copied_before_it_is_written_over() {
    let home = Crashing::new();
    let (ids, after) = counts_only(&home);
    let (at, beside) = (places(&ids)[0], ids.at(1, 0, 0));
    let names = home.root().catalog();
    let take = |catalog: &mut cg_registry::Catalog| {
        *catalog = cg_registry::Catalog::clone(&names);
        Ok(())
    };
    let alone = World::over(home.engine(segment(&ids, 0)), uuid::Uuid::from_u128(5), take, &options());
    let alone = alone.expect("a world like any other");
    let edited = filled(&alone, ids.machine);
    crate::world::save(&alone, [(at, edited.clone()), (beside, edited.clone())]);
    alone.flush().expect("syncs");
    drop(alone);

    let world = home.open(false);
    assert_eq!(content(&world, &ids), after);
    assert_eq!(block(&world, beside), Some(ids.machine), "nobody promoted anything there");
    let copies = world.with_segment(segment(&ids, 0), World::quarantined).expect("is there");
    let copies: Vec<_> = copies.iter().map(|copy| (copy.space, copy.key.clone())).collect();
    // The cow was in the chunk.
    let chunk = (cg_format::Space::ChunkL0, cg_format::key::chunk(at).to_vec());
    assert_eq!(copies, [chunk, (cg_format::Space::Entity, cg_format::key::entity(uuid(1)).to_vec())]);
    let copies = world.with_segment(segment(&ids, 1), World::quarantined).expect("is there");
    assert_eq!(copies, [], "nobody has opened that one");
    assert_all_sound(&world, &ids);
}

#[test]
fn a_promotion_whose_head_is_damaged_is_carried_out_as_its_pieces_say() {
    let home = Crashing::new();
    let (ids, after) = counts_only(&home);
    garble(&home, ":promotion");
    let world = home.open(false);
    assert_eq!(content(&world, &ids), after);
    assert_eq!(properties(&world, ":promotion"), 0);
    assert_eq!(world.set_aside_promotion().expect("is sound"), None);
    assert_all_sound(&world, &ids);
}

/// One damaged part closes its own segment, until it is given up.
#[test]
fn a_damaged_part_of_a_promotion_closes_its_segment_until_it_is_set_aside() {
    for head_too in [false, true] {
        let home = Crashing::new();
        let (ids, after) = counts_only(&home);
        // The second segment's: a cow comes, and another goes.
        garble(&home, ":promotion/00000001.00000000");
        if head_too {
            garble(&home, ":promotion");
        }
        let world = home.open(false);
        let [first, second] = [0, 1].map(|x| segment(&ids, x));
        let is_closed = |at| match world.load(at) {
            Err(Error::Segment(SegmentError::NotCarriedOut { .. })) => true,
            read => {
                read.expect("loads");
                false
            }
        };
        let closed = places(&ids).map(is_closed);
        // Nobody can tell whose part it was without the head.
        assert_eq!(closed, if head_too { [true; 4] } else { [false, true, false, false] });

        let found = world.set_aside_promotion().expect("gives it up").expect("it was damaged");
        let others = [first, segment(&ids, 2), segment(&ids, 3)];
        assert_eq!(found.carried_out, others);
        let lost: Vec<_> = found.lost.iter().map(|(segment, _)| *segment).collect();
        assert_eq!(lost, [(!head_too).then_some(second)]);
        assert_eq!(places(&ids).map(is_closed), [false; 4]);
        let (chunks, owners) = content(&world, &ids);
        assert_eq!([&chunks[0], &chunks[2], &chunks[3]], [&after.0[0], &after.0[2], &after.0[3]]);
        // The first cow went, and did not arrive; the second did not go.
        assert_eq!(owners[..3], [None, Some(Owner::Chunk(places(&ids)[1])), after.1[2].clone()]);
        assert_eq!(properties(&world, ":promotion"), 0);
        let copies = world.root().quarantined().expect("scans");
        assert_eq!(copies.len(), if head_too { 2 } else { 1 }, "what could not be read");
        save(&world, places(&ids)[1], filled(world.root(), ids.glass));
        assert_eq!(world.set_aside_promotion().expect("nothing is left"), None);
        drop(world);
        let world = home.open(false);
        assert_eq!(block(&world, places(&ids)[1]), Some(ids.glass));
    }
}

/// It was to go from one to the other, and the root says that it has.
#[test]
fn an_entity_between_two_segments_that_get_no_part_is_found_where_it_was() {
    let home = Crashing::new();
    let (ids, _) = counts_only(&home);
    garble(&home, ":promotion/00000000.00000000");
    garble(&home, ":promotion/00000001.00000000");
    let world = home.open(false);
    let found = world.set_aside_promotion().expect("gives them up").expect("they were damaged");
    assert_eq!(found.carried_out, [2, 3].map(|x| segment(&ids, x)));
    let (_, owners) = content(&world, &ids);
    assert_eq!(owners[0], Some(Owner::Chunk(places(&ids)[0])));
    let there = places(&ids)[3];
    let put = world.transaction(there, |tx| tx.put_entity(uuid(1), ids.cow_in(there)));
    let elsewhere = put.expect_err("it is in the first");
    let is_first = |segment_| segment_ == segment(&ids, 0);
    assert!(
        matches!(elsewhere, Error::Segment(SegmentError::EntityElsewhere { segment, .. }) if is_first(segment)),
        "{elsewhere}"
    );
}

/// They are the root's, and come with the blocks or not at all.
#[test]
fn objects_and_records_are_merged_into_the_root_with_the_rest() {
    let home = Crashing::new();
    let world = home.open(true);
    let ids = register(&world);
    pave(&world, &ids);
    let (key, id) = ("arena/result", cg_format::RecordId::from_bytes([7; 16]));
    world.root().objects().put(key, *b"none").expect("writes");
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    let position = EntityPos::new(ids.overworld, BlockPos::new(300, 0, 0), [0.5; 3]).expect("a point");
    let grave = cg_format::record::Record::new(position, "game:grave", 1, Vec::new()).expect("short");
    let write = |block| {
        let written = overlay.transaction(|tx| {
            tx.put_object(key, *b"won")?;
            tx.put_record(id, grave.clone());
            tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), block)
        });
        written.expect("writes");
    };
    let shown = || {
        let object = world.root().objects().get(key).expect("reads").expect("is there");
        let record = world.root().records().get(id).expect("reads");
        (object.bytes.to_vec(), record.is_some(), block(&world, places(&ids)[0]))
    };
    write(ids.glass);
    home.fuse.set(0);
    overlay.promote_into(&world).expect_err("the power is gone");
    home.fuse.set(i64::MAX);
    assert_eq!(shown(), (b"none".to_vec(), false, Some(ids.stone)));
    drop((overlay, world));
    let world = home.open(false);
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    let written = overlay.transaction(|tx| {
        tx.put_object(key, *b"won")?;
        tx.put_record(id, grave.clone());
        tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass)
    });
    written.expect("writes");
    assert_eq!(overlay.promote_into(&world).expect("promotes").changes, 3);
    let object = world.root().objects().get(key).expect("reads").expect("is there");
    assert_eq!((object.version, &object.bytes[..]), (1, &b"won"[..]));
    assert_eq!(world.root().records().get(id).expect("reads"), Some(grave));
    assert_eq!(block(&world, places(&ids)[0]), Some(ids.glass));
    // One that no segment has anything of.
    overlay.transaction(|tx| tx.delete_object(key)).expect("writes");
    assert_eq!(overlay.promote_into(&world).expect("promotes").changes, 1);
    assert_eq!(world.root().objects().get(key).expect("reads"), None);
}

/// Opening it again is interrupted too, at each commit.
#[test]
fn carrying_out_may_be_interrupted_again_and_again() {
    let home = Crashing::new();
    let (ids, after) = counts_only(&home);
    for commits in [0, 1, 1, 0, 1, 1] {
        drop(home.open_until(commits, &segments()));
    }
    let world = home.open(false);
    assert_eq!(content(&world, &ids), after);
    assert_all_sound(&world, &ids);
}

/// What it is put upon is never lost where it is kept: a power cut behind its commit finds all of that.
#[test]
fn what_a_promotion_stands_on_is_synced_before_it_counts() {
    let home = Crashing::new();
    let world = home.open_with(true, &SegmentOptions { max_open: 8, ..segments() });
    let ids = register(&world);
    pave(&world, &ids);
    save(&world, ids.at(60, 0, 0), filled(world.root(), ids.stone));
    let engines = [0, 1, 2, 3].map(|x| home.engine(segment(&ids, x)));
    let synced = || engines.each_ref().map(|engine| engine.last_synced() == engine.last_commit());
    assert_eq!(synced(), [false; 4], "nobody has asked for it");
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    // The root's pieces and its commit.
    home.fuse.set(2);
    overlay.promote_into(&world).expect_err("the power is gone");
    assert_eq!(synced(), [true; 4]);
}

#[test]
fn a_record_that_cannot_be_forgotten_keeps_nobody_out() {
    let home = Crashing::new();
    let world = home.open_with(true, &SegmentOptions { max_open: 8, ..segments() });
    let ids = register(&world);
    pave(&world, &ids);
    save(&world, ids.at(60, 0, 0), filled(world.root(), ids.stone));
    let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    let after = shown(&overlay, &ids);
    // The root's pieces and its commit, and four segments.
    home.fuse.set(6);
    overlay.promote_into(&world).expect("every segment has its part");
    drop((overlay, world));
    let world = home.open_until(0, &SegmentOptions { max_open: 8, ..segments() });
    let world = world.expect("nothing is left to be carried out");
    assert_eq!(content(&world, &ids), after);
    assert!(properties(&world, ":promotion") > 0);
    drop(world);
    let world = home.open(false);
    assert_eq!(content(&world, &ids), after);
    assert_eq!(properties(&world, ":promotion"), 0);
    assert_all_sound(&world, &ids);
}

/// Each promotion writes one number into two segments. Who has seen a number in one sees no smaller one in the other.
fn readers_see_both<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids, rounds: u16) {
    let [a, b, ..] = places(ids);
    let number = |chunk: Option<Arc<Chunk>>| {
        let chunk = chunk.expect("is stored");
        let mut cells = LocalPos::all();
        cells.position(|cell| chunk.block(cell) == ids.stone).expect("is marked")
    };
    let marked = |n| crate::world::marked(world.root(), ids, n);
    for at in [a, b] {
        save(world, at, marked(0));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (first, second) in [(a, b), (b, a)] {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let seen = number(world.load(first).expect("loads"));
                    let then = number(world.load(second).expect("loads"));
                    assert!(then >= seen, "{then} behind {seen}");
                    let both = world.load_many(&[first, second]);
                    let both: Vec<_> = both.into_iter().map(|chunk| number(chunk.expect("loads"))).collect();
                    assert_eq!(both[0], both[1]);
                }
            });
        }
        for n in 1..rounds {
            let overlay = Overlay::temporary(world.clone(), &options()).expect("a base");
            overlay
                .transaction(|tx| {
                    tx.save(a, marked(n));
                    tx.save(b, marked(n));
                    Ok::<_, Error>(())
                })
                .expect("writes");
            overlay.promote_into(world).expect("promotes");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(number(world.load(b).expect("loads")), usize::from(rounds - 1));
}

#[test]
fn readers_see_both_segments_or_neither_in_memory() {
    let (world, ids) = in_memory();
    readers_see_both(&world, &ids, 300);
}

#[test]
fn readers_see_both_segments_or_neither_on_disk() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    readers_see_both(&world, &ids, 30);
}
