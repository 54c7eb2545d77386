//! Refusals of a segmented world, by their exact words.

use std::fs;
use std::ops::ControlFlow;

use cg_store::view::Area;
use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check<T: std::fmt::Debug>(result: Result<T, Error>, hidden: &[(&str, String)], expected: Expect) {
    let mut text = result.expect_err("is refused").to_string();
    for (word, value) in hidden {
        text = text.replace(value, word);
    }
    expected.assert_eq(&text);
}

#[test]
fn sides_that_are_none() {
    for side_chunks in [0, 8, 24, 1 << 21] {
        let made = SegmentedWorld::in_memory(&[], &SegmentOptions { side_chunks, ..segments() });
        assert!(
            matches!(made.as_ref().err().and_then(Error::layer), Some(SegmentError::Side { side_chunks: found }) if *found == side_chunks)
        );
    }
    let made = SegmentedWorld::in_memory(&[], &SegmentOptions { side_chunks: 24, ..segments() });
    check(
        made,
        &[],
        expect!["a segment's side is a multiple of 16 chunks from 16 to 1048576, and 24 is none"],
    );
}

/// A dimension that no pack has leaves no segment.
#[test]
fn a_dimension_that_is_not_registered() {
    let (world, ids) = in_memory();
    let at = ChunkAt::new(Dimension::new(77), ChunkPos::constant(0, 0, 0));
    let save = world.transaction(at, |tx| {
        tx.save(at, filled(world.root(), ids.stone));
        Ok::<_, Error>(())
    });
    let expected = expect!["dimension 77 is not registered, the world has 2; register its name first"];
    check(save, &[], expected);
    let mut batch = WriteBatch::new();
    batch.save(at, filled(world.root(), ids.stone));
    let submitted = match world.submit(at, batch) {
        Ok(ticket) => ticket.wait(),
        Err(refused) => Err(refused.error),
    };
    check(
        submitted,
        &[],
        expect![
            "what was submitted to segment 0 0 0 of dimension 77 cannot be given to it: dimension 77 is not registered, the world has 2; register its name first"
        ],
    );
    assert_eq!(world.segments().list(), []);
}

/// Inside a closure that holds a segment open, its world cannot be closed.
#[test]
fn closing_the_world_inside_a_closure() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    let nested = |closed: Result<(), Error>| assert!(matches!(closed, Err(Error::Nested)), "{closed:?}");
    let in_transaction = world.transaction(at, |_| {
        nested(world.close());
        Ok::<_, Error>(())
    });
    in_transaction.expect("goes on");
    let with = world.segments().with(world.segment_of(at), |_| {
        nested(world.close());
        Ok(())
    });
    with.expect("goes on");
    let walked = world.segments().for_each_chunk(Area::World, |met| {
        nested(world.close());
        met.map_or_else(ControlFlow::Break, |_| ControlFlow::Continue(()))
    });
    assert!(matches!(walked, Ok(None)), "{walked:?}");
    assert_eq!(block(&world, at), Some(ids.stone));
    world.close().expect("closes");
}

#[test]
fn a_transaction_over_two_segments() {
    let (world, ids) = in_memory();
    let (here, there) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
    save(&world, there, filled(world.root(), ids.stone));
    put(&world, 1, ids.cow_in(there));
    let refused = world.transaction(here, |tx| {
        let chunk = Chunk::filled(ids.stone, &tx.catalog().current_schema()).expect("known");
        tx.save(here, chunk.clone());
        tx.save(there, chunk);
        Ok::<_, Error>(())
    });
    check(
        refused,
        &[],
        expect![
            "the transaction is in segment 0 0 0 of dimension 0 and touched segment 1 0 0 of dimension 0; do one for each segment, and move entities between them with `transfer_entities`"
        ],
    );
    assert_eq!(block(&world, here), None, "nothing was written");
    check(
        world.transaction(here, |tx| tx.load(there)),
        &[],
        expect![
            "the transaction is in segment 0 0 0 of dimension 0 and touched segment 1 0 0 of dimension 0; do one for each segment, and move entities between them with `transfer_entities`"
        ],
    );
    save(&world, here, filled(world.root(), ids.stone));
    let doubled = world.transaction(here, |tx| {
        tx.put_entity(uuid(1), ids.cow_in(here));
        Ok::<_, Error>(())
    });
    check(
        doubled,
        &[],
        expect![
            "entity 00000000-0000-0000-0000-000000000001 is in segment 1 0 0 of dimension 0; move it with `transfer_entities`"
        ],
    );
    assert_eq!(world.entity(uuid(1)).expect("reads").map(|cow| cow.owner), Some(Owner::Chunk(there)));
    check(
        world.transfer_entities([(uuid(2), ids.cow_in(here))]),
        &[],
        expect!["entity 00000000-0000-0000-0000-000000000002 is in no segment; put it first"],
    );
    check(
        world.transfer_entities([(uuid(1), ids.cow_in(ids.at(0, 5, 0)))]),
        &[],
        expect![
            "chunk 0, 5, 0 of dimension 0 is to own entity 00000000-0000-0000-0000-000000000001 and is not stored; save it first, or detach the entity"
        ],
    );
    let reason = cg_format::entity::Reason::new("cargo").expect("short");
    let detached = ids.cow_in(here).owned_by(Owner::Detached(reason));
    check(
        world.transfer_entities([(uuid(1), detached)]),
        &[],
        expect![
            "entity 00000000-0000-0000-0000-000000000001 is to cross a border and its owner is no chunk; give it the chunk where it arrives"
        ],
    );
    check(
        world.segments().delete(segment(&ids, 9)),
        &[],
        expect!["segment 9 0 0 of dimension 0 is not stored"],
    );
    check(
        world.segments().compact(segment(&ids, 9)),
        &[],
        expect!["segment 9 0 0 of dimension 0 is not stored"],
    );
}

#[test]
fn directories_that_are_not_what_they_should_be() {
    let disk = Disk::new();
    let hidden = [("ROOT", disk.root().display().to_string())];
    check(
        SegmentedWorld::open(disk.root().join("no"), &[], &segments()),
        &hidden,
        expect!["ROOT/no is no segmented world: it has no directory `root`"],
    );
    let (world, ids) = create(&disk);
    for x in [0, 16, 32] {
        save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    let root = world.root().identity().uuid;
    world.close().expect("closes");
    drop(world);
    let place = |x: i64| dir(&disk).join("segments").join(format!("0.{x}.0.0"));

    fs::rename(place(0), place(7)).expect("renames");
    fs::rename(place(1), place(0)).expect("renames");
    let world = open(&disk);
    check(
        world.load(ids.at(0, 0, 0)),
        &hidden,
        expect![
            "segment 1 0 0 of dimension 0 lies in the place of segment 0 0 0 of dimension 0; put it back"
        ],
    );
    check(
        world.load(ids.at(16, 0, 0)),
        &hidden,
        expect![
            "segment 1 0 0 of dimension 0 is gone: the root knows it and ROOT/segmented/segments/0.1.0.0 is missing; restore it, or delete the segment"
        ],
    );
    let many = world.load_many(&[ids.at(16, 0, 0), ids.at(32, 0, 0)]);
    assert!(many[0].is_err() && many[1].is_ok(), "the others are read");
    world.close().expect("closes");
    drop(world);

    // A world of its own, and a segment of another root.
    fs::remove_dir_all(place(0)).expect("removes");
    World::builder().options(&options()).create(place(0)).expect("creates").close().expect("closes");
    let other = Disk::new();
    let (foreign, _) = create(&other);
    save(&foreign, ids.at(16, 0, 0), filled(foreign.root(), ids.stone));
    let hidden = [("ROOT", root.to_string()), ("OTHER", foreign.root().identity().uuid.to_string())];
    foreign.close().expect("closes");
    drop(foreign);
    fs::rename(dir(&other).join("segments/0.1.0.0"), place(1)).expect("renames");
    let world = open(&disk);
    check(
        world.load(ids.at(0, 0, 0)),
        &hidden,
        expect![
            "what lies in the place of segment 0 0 0 of dimension 0 is no segment of this world: it does not say that it is one"
        ],
    );
    check(
        world.load(ids.at(16, 0, 0)),
        &hidden,
        expect![
            "segment 1 0 0 of dimension 0 belongs to the root OTHER, and this is ROOT; export and import what is to move"
        ],
    );
    // What was lost can be deleted, and made again.
    world.segments().delete(segment(&ids, 1)).expect("deletes");
    save(&world, ids.at(16, 0, 0), filled(world.root(), ids.glass));
    assert_eq!(block(&world, ids.at(16, 0, 0)), Some(ids.glass));
}

#[test]
fn a_segment_with_names_that_its_root_does_not_have() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    save(&world, ids.at(0, 0, 0), filled(world.root(), ids.stone));
    world.close().expect("closes");
    drop(world);
    let alone =
        World::builder().options(&options()).open(dir(&disk).join("segments/0.0.0.0")).expect("opens");
    alone.registry().register_dimension("game:moon").expect("registers");
    alone.close().expect("closes");
    drop(alone);
    check(
        open(&disk).load(ids.at(0, 0, 0)),
        &[],
        expect![
            "segment 0 0 0 of dimension 0 has `game:moon` as dimension 2, and its root does not; restore both from one backup"
        ],
    );
}

/// Rows that an earlier version wrote into a root, byte for byte: a merge into one segment, of one chunk that is
/// deleted.
const OLD_MERGE: (&[u8], &[u8]) = (
    b"\x02\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\
      \x00\x00\x00\x00\x01\x00\x00\x00\
      \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
      \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
      \x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00",
    b"\x01\x02\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\x31\
      \x00\x00\x00\x00\x01\x00\x00\x00\
      \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
      \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
      \x00\x00\
      \x80\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\
      \x80\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00",
);

#[test]
fn a_merge_that_an_earlier_version_did_not_finish() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    world.close().expect("closes");
    drop(world);
    let named = |text: &str| Property::Named(name(text));
    let (record, piece) = (named(":promotion"), named(":promotion/00000000.00000000"));
    let root = || World::builder().options(&options()).open(dir(&disk).join("root")).expect("opens");
    let set = |property: &Property, bytes: Option<&[u8]>| {
        let root = root();
        let set = root.transaction(|tx| {
            tx.set_property(property.clone(), bytes.map(Into::into));
            Ok::<_, Error>(())
        });
        set.expect("writes");
        root.close().expect("closes");
    };
    set(&piece, Some(OLD_MERGE.1));
    set(&record, Some(OLD_MERGE.0));
    check(
        SegmentedWorld::open(dir(&disk), &[], &segments()),
        &[],
        expect![
            "the root has a merge into several segments that an earlier version began and did not finish; open the world once with the version that wrote it, then again with this one"
        ],
    );
    let hashed = SegmentedWorld::content_hash(dir(&disk), cg_store::view::Area::World, &options(), |_| {
        Ok::<_, Error>(())
    });
    let error = hashed.expect_err("is refused");
    assert_eq!(error.layer(), Some(&SegmentError::UnfinishedMerge));
    let kept = root();
    assert_eq!(kept.property(&record).expect("reads").as_deref(), Some(OLD_MERGE.0), "it was not touched");
    assert_eq!(kept.property(&piece).expect("reads").as_deref(), Some(OLD_MERGE.1));
    kept.close().expect("closes");
    drop(kept);
    // One that was never committed, or is finished, left pieces at most.
    set(&record, None);
    let world = open(&disk);
    assert_eq!(block(&world, at), Some(ids.stone));
    assert_eq!(world.root().property(&piece).expect("reads"), None, "it means nothing");
}

/// A copy of a directory with everything in it.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).expect("creates");
    for entry in fs::read_dir(from).expect("reads").map(|entry| entry.expect("reads")) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copies");
        }
    }
}

/// A root from an older backup than its segments.
#[test]
fn a_segment_that_the_root_does_not_know_is_not_written_over() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    world.close().expect("closes");
    drop(world);
    let (root, older) = (dir(&disk).join("root"), disk.root().join("older"));
    copy(&root, &older);
    let at = ids.at(0, 0, 0);
    let world = open(&disk);
    save(&world, at, filled(world.root(), ids.stone));
    let path = dir(&disk).join("segments").join("0.0.0.0");
    world.close().expect("closes");
    drop(world);

    let newer = disk.root().join("newer");
    fs::rename(&root, &newer).expect("moves");
    copy(&older, &root);
    let world = open(&disk);
    check(
        world.transaction(at, |tx| {
            tx.save(at, filled(world.root(), ids.glass));
            Ok::<_, Error>(())
        }),
        &[("PATH", path.display().to_string())],
        expect![
            "segment 0 0 0 of dimension 0 lies in PATH and its root does not know it; restore both from one backup, or move it away"
        ],
    );
    check(
        world.load(at),
        &[("PATH", path.display().to_string())],
        expect![
            "segment 0 0 0 of dimension 0 lies in PATH and its root does not know it; restore both from one backup, or move it away"
        ],
    );
    world.close().expect("closes");
    drop(world);

    fs::remove_dir_all(&root).expect("removes");
    fs::rename(&newer, &root).expect("moves");
    assert_eq!(block(&open(&disk), at), Some(ids.stone), "nothing of it was touched");
}
