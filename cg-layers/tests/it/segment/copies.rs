//! Copies of segmented worlds that are in use.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cg_layers::SegmentTransaction;
use cg_store::CheckpointFiles;
use cg_store::verify::VerifyDepth;

use super::staged::ends;
use super::values::{id, object, property, record, within};
use super::*;

/// Deletes values of all kinds in one segment and puts them into the next, with one that stays.
fn travel<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids, [from, to]: [ChunkAt; 2], turn: u8) {
    leave(world, from).expect("deletes");
    within(world, to, |tx| {
        tx.put_object(format!("new/{}/{turn}", to.pos.x()), [turn])?;
        arrive(tx, ids, to, turn)
    })
    .expect("are free");
}

fn arrive(tx: &mut SegmentTransaction<'_, '_>, ids: &Ids, to: ChunkAt, turn: u8) -> Result<(), Error> {
    tx.put_object("travels", [turn])?;
    tx.put_record(id(50), record(ids, 16 * to.pos.x(), turn));
    tx.set_property(property("game:travels"), Some(vec![turn]));
    tx.put_entity(uuid(50), ids.cow_in(to));
    Ok(())
}

fn leave<H: SegmentHome>(world: &SegmentedWorld<H>, from: ChunkAt) -> Result<(), Error> {
    if world.objects().get("travels")?.is_none() {
        return Ok(());
    }
    within(world, from, |tx| {
        tx.delete_object("travels")?;
        tx.delete_record(id(50));
        tx.set_property(property("game:travels"), None);
        tx.delete_entity(uuid(50));
        Ok(())
    })
}

/// The turn of what travels, which must be there wholly or not at all.
#[track_caller]
fn travelling<H: SegmentHome>(world: &SegmentedWorld<H>) -> Option<u8> {
    let of_object = object(world, "travels").map(|(_, turn)| turn);
    let of_record = world.records().get(id(50)).expect("reads").map(|record| record.payload[0]);
    let of_property = world.property(&property("game:travels")).expect("reads").map(|bytes| bytes[0]);
    assert_eq!([of_record, of_property], [of_object; 2]);
    assert_eq!(world.entity(uuid(50)).expect("reads").is_some(), of_object.is_some());
    of_object
}

/// A copy that is taken while everything is written and entities are transferred is a whole world: every entity is in one
/// place.
#[test]
fn a_copy_of_a_world_in_use_is_whole() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let places = [-1, 0, 16, 32].map(|x| ids.at(x, 0, 0));
    for (n, at) in (0..).zip(places) {
        save(&world, at, filled(world.root(), ids.stone));
        put(&world, n, ids.cow_in(at));
    }
    let copies = disk.root().join("copies");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (world, ends) = (&world, &ends);
        let is_over = || ends.load(Ordering::Relaxed);
        let values = scope.spawn(move || {
            for turn in (0..).take_while(|_| !is_over()) {
                travel(world, &ids, [places[turn % 4], places[(turn + 1) % 4]], turn as u8);
            }
        });
        let moves = scope.spawn(move || {
            for turn in (1..).take_while(|_| !is_over()) {
                let (cow, to) = (turn % 4, places[(turn / 4 + turn % 4) % 4]);
                world.transfer_entities([(uuid(cow as u128), ids.cow_in(to))]).expect("is transferred");
            }
        });
        let writes = scope.spawn(move || {
            for turn in (1_i64..).take_while(|_| !is_over()) {
                save(world, ids.at(48 + 16 * (turn % 3), 1, 0), filled(world.root(), ids.glass));
                let blocks = vec![BlockOffer::new(name(&format!("game:new{turn}")))];
                world.register(&Registration { blocks, ..Registration::default() }).expect("registers");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        for copy in 0..4 {
            world.checkpoint(copies.join(copy.to_string()), CheckpointFiles::Linked).expect("copies");
        }
        ends.store(true, Ordering::Relaxed);
        for thread in [moves, writes, values] {
            thread.join().expect("no panic");
        }
    });
    let mut put_count = Vec::new();
    for copy in 0..4 {
        let dir = copies.join(copy.to_string());
        let report = SegmentedWorld::verify(&dir, VerifyDepth::Full, &options(), &[], |_| {}).expect("opens");
        assert!(report.is_ok(), "{report:?}");
        let one = SegmentedWorld::open(&dir, &[], &segments()).expect("opens");
        let mut homes = BTreeMap::new();
        one.segments()
            .for_each_entity(|met| {
                let (id, cow) = met.expect("is sound");
                assert!(homes.insert(id, cow.owner).is_none(), "{id} is in two places");
                ControlFlow::<()>::Continue(())
            })
            .expect("walks");
        // All that travels is put in one commit and deleted in another one.
        let there = homes.remove(&uuid(50)).is_some();
        assert_eq!(homes.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3].map(uuid));
        assert_eq!(travelling(&one), there.then(|| travelling(&one).expect("with the entity")));
        let listed = one.objects().list("new/", None, 10_000).expect("lists").entries;
        for entry in &listed {
            assert!(one.objects().get(entry.key.as_bytes()).expect("reads").is_some(), "{}", entry.key);
        }
        put_count.push(listed.len());
        for (id, owner) in homes {
            assert_eq!(one.entity(id).expect("reads").map(|cow| cow.owner), Some(owner));
        }
        for at in places {
            assert_eq!(block(&one, at), Some(ids.stone));
        }
    }
    assert!(put_count.is_sorted() && put_count[3] > put_count[0], "values were put meanwhile: {put_count:?}");
    let full = world.checkpoint(copies.join("0"), CheckpointFiles::Linked).expect_err("is not empty");
    assert!(matches!(full, Error::Open(cg_store::OpenError::NotEmpty { .. })), "{full}");
}

#[test]
fn a_copy_that_fails_is_removed() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    save(&world, ids.at(0, 0, 0), filled(world.root(), ids.stone));
    save(&world, ids.at(16, 0, 0), filled(world.root(), ids.stone));
    world.close().expect("closes");
    drop(world);
    let world = open(&disk);
    std::fs::remove_dir_all(dir(&disk).join("segments").join("0.1.0.0")).expect("is lost");
    let copy = disk.root().join("copy");
    let error = world.checkpoint(&copy, CheckpointFiles::Copied).expect_err("a segment is lost");
    assert!(matches!(error.layer(), Some(SegmentError::Lost { .. })), "{error}");
    assert_eq!(std::fs::read_dir(&copy).expect("was made").count(), 0);
    world.segments().delete(segment(&ids, 1)).expect("deletes");
    world.checkpoint(&copy, CheckpointFiles::Copied).expect("copies");
    assert_eq!(
        block(&SegmentedWorld::open(&copy, &[], &segments()).expect("opens"), ids.at(0, 0, 0)),
        Some(ids.stone)
    );
}

/// A copy that waits in the middle, for a batch of a segment that it has to close, is in the way of no other call.
#[test]
fn calls_by_key_do_not_wait_for_a_copy() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let places = [0, 16, 32].map(|x| ids.at(x, 0, 0));
    for (n, at) in (0..).zip(places) {
        save(&world, at, filled(world.root(), ids.stone));
        put(&world, n, ids.cow_in(at));
    }
    within(&world, places[0], |tx| arrive(tx, &ids, places[0], 1)).expect("are new");
    world.root().objects().put("of the root", [1]).expect("puts");
    world.flush().expect("saves");
    // The first and the last are open, so that the last is closed for the second.
    for at in [places[2], places[0], places[2]] {
        block(&world, at);
    }
    let copy = disk.root().join("copy");
    thread::scope(|scope| {
        let (seen, told) = channel();
        let (go_on, waits) = channel::<()>();
        let waits = parking_lot::Mutex::new(waits);
        let mut batch = WriteBatch::new();
        batch.edit(places[2], move |_| {
            seen.send(()).expect("is waited for");
            let _ = waits.lock().recv();
            Ok(())
        });
        let edited = world.submit(places[2], batch).expect("is open");
        told.recv().expect("is being accepted");
        let copying = scope.spawn(|| world.checkpoint(&copy, CheckpointFiles::Linked));
        let begun = std::time::Instant::now();
        while !copy.join("segments").join("0.0.0.0").join("world.cg").exists()
            && begun.elapsed().as_secs() < 20
        {
            thread::sleep(Duration::from_millis(5));
        }
        // It has the root and the first segment.
        thread::sleep(Duration::from_millis(100));
        let world = world.clone();
        ends(move || {
            assert!(world.entity(uuid(0)).expect("reads").is_some());
            assert_eq!(travelling(&world), Some(1));
            within(&world, places[0], |tx| {
                tx.put_entity(uuid(9), ids.cow_in(places[0]));
                tx.put_object("new", [1])
            })
            .expect("are new");
            // Into a segment that is not copied yet, from one that is, and from the root, which is.
            travel(&world, &ids, [places[0], places[1]], 2);
            world.root().objects().delete("of the root").expect("deletes");
            within(&world, places[1], |tx| tx.put_object("of the root", [2])).expect("is free");
            save(&world, ids.at(160, 0, 0), filled(world.root(), ids.stone));
            within(&world, ids.at(160, 0, 0), |tx| tx.put_object("of a new segment", [1])).expect("is new");
            assert_eq!(travelling(&world), Some(2));
        });
        assert!(!copying.is_finished(), "or this shows nothing");
        go_on.send(()).expect("is waited for");
        copying.join().expect("no panic").expect("copies");
        edited.wait().expect("is accepted");
    });
    let report = SegmentedWorld::verify(&copy, VerifyDepth::Full, &options(), &[], |_| {}).expect("opens");
    assert!(report.is_ok(), "{report:?}");
    let one = SegmentedWorld::open(&copy, &[], &segments()).expect("opens");
    assert_eq!(one.segments().list(), [0, 1, 2].map(|x| segment(&ids, x)));
    assert_eq!((travelling(&one), object(&one, "of the root")), (Some(2), Some((1, 2))));
    assert_eq!((object(&one, "new"), object(&one, "of a new segment")), (None, None), "it was copied before");
    assert!(one.root().objects().get("of the root").expect("reads").is_none());
    within(&one, places[2], |tx| tx.put_object("new", [3])).expect("is free");
}
