//! Values that a merge of an overlay takes to the root: each is in one place, whatever happens meanwhile and wherever it ends.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cg_format::RecordId;
use cg_layers::Arenas;
use cg_store::error::ConflictKey;
use cg_store::records::RecordQuery;
use cg_tiering::GameTick;

use super::staged::{Staged, When, ends, paved};
use super::transfer::Crashing;
use super::values::{id, place_count, property, record, within};
use super::*;

/// How many worlds have a value of each of some keys.
fn copies<H: SegmentHome>(world: &SegmentedWorld<H>, keys: &[ConflictKey]) -> Vec<usize> {
    let has = |world: &World, key: &ConflictKey| match key {
        ConflictKey::Record(id) => world.records().get(*id).expect("reads").is_some(),
        ConflictKey::Object(key) => world.objects().get(key.as_bytes()).expect("reads").is_some(),
        ConflictKey::Property(name) => {
            let property = Property::of_key(name.as_bytes()).expect("a property");
            world.property(&property).expect("reads").is_some()
        }
        key => panic!("{key}"),
    };
    let count = |key: &ConflictKey| {
        let of_segments =
            world.segments().list().into_iter().filter(|segment| {
                world.segments().with(*segment, |world| Ok(has(world, key))).expect("is open")
            });
        of_segments.count() + usize::from(has(world.root(), key))
    };
    keys.iter().map(count).collect()
}

/// All records, with the x of each.
fn all_records<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) -> Vec<(RecordId, i64)> {
    let all = RecordQuery::in_area(ids.overworld, cg_format::BlockArea::everywhere());
    let mut found = world.records().in_leaves(&all).expect("finds");
    found.sort_by_key(|(id, _)| *id);
    found.into_iter().map(|(id, record)| (id, record.position.block().x)).collect()
}

/// A record of the first segment, in a chunk of it.
fn with_sign<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids, n: u128, x: i64) {
    within(world, ids.at(0, 0, 0), |tx| {
        tx.put_record(id(n), record(ids, x, 1));
        Ok(())
    })
    .expect("puts");
}

/// An overlay in which a record is in another segment.
fn moved<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids, n: u128) -> Overlay<SegmentedWorld<H>> {
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    let edited = overlay.transaction(|tx| {
        tx.put_record(id(n), record(ids, 300, 2));
        Ok::<_, Error>(())
    });
    edited.expect("edits");
    overlay
}

/// Each value is found once after a crash, with the overlay and without it.
#[test]
fn a_killed_merge_leaves_every_value_in_one_place() {
    let mut moved = Vec::new();
    for commits in 0.. {
        let home = Crashing::new();
        let above = home.another();
        let world = home.open(true);
        let ids = register(&world);
        save(&world, ids.at(0, 0, 0), filled(world.root(), ids.stone));
        for n in 1..=3 {
            with_sign(&world, &ids, n, 3);
        }
        within(&world, ids.at(0, 0, 0), |tx| tx.put_object("a", [1])).expect("puts");
        let arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("a base");
        let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
        let edited = overlay.transaction(|tx| {
            for n in 2..=3 {
                tx.put_record(id(n), record(&ids, 300, 2));
            }
            tx.put_object("a", [2])?;
            tx.put_object("new", [2])
        });
        edited.expect("edits");
        home.fuse.set(commits);
        let merged = overlay.merge_into(&world);
        let is_burnt = home.fuse.is_burnt();
        assert_eq!(merged.is_err(), is_burnt, "{merged:?}");
        drop((overlay, arenas, world));

        let world = home.open(false);
        let keys = [1, 2, 3].map(|n| ConflictKey::Record(id(n)));
        let found = all_records(&world, &ids);
        assert_eq!(copies(&world, &keys), [1; 3], "after {commits} commits");
        let x = if found[1].1 == 300 { 300 } else { 3 };
        assert_eq!(found, [(id(1), 3), (id(2), x), (id(3), x)], "after {commits} commits");
        for (id, x) in found {
            assert_eq!(world.records().get(id).expect("reads").map(|it| it.position.block().x), Some(x));
        }
        moved.push(x == 300);
        // Without the overlay the world goes on: a deletion brings nothing back.
        let delete = |tx: &mut cg_layers::SegmentTransaction<'_, '_>| {
            tx.delete_record(id(2));
            Ok(())
        };
        match within(&world, ids.at(0, 0, 0), delete) {
            Ok(()) => assert_eq!(x, 3),
            Err(error) => {
                let elsewhere = SegmentError::Elsewhere { key: keys[1].clone(), home: None };
                assert_eq!((error.layer(), x), (Some(&elsewhere), 300));
                let deleted = world.root().transaction(|tx| {
                    tx.delete_record(id(2));
                    Ok::<_, Error>(())
                });
                deleted.expect("deletes");
            }
        }
        assert_eq!(copies(&world, &keys), [1, 0, 1], "after {commits} commits");
        if !is_burnt {
            break;
        }
    }
    assert!(moved.is_sorted() && moved.contains(&true) && moved.contains(&false), "{moved:?}");
    assert!(
        moved.iter().filter(|moved| **moved).count() > 3,
        "kills between the root's commit and the end: {moved:?}"
    );
}

/// Another thread does something before the root's commit, as far as it can.
#[track_caller]
fn merged_while(
    home: &Staged,
    world: &SegmentedWorld<Staged>,
    overlay: Overlay<SegmentedWorld<Staged>>,
    act: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> [Result<(), Error>; 2] {
    let (tell, told) = channel();
    home.meanwhile(When::RootCommits, move || {
        let (begun, ended) = channel();
        thread::spawn(move || {
            let acted = act();
            let _ = begun.send(());
            tell.send(acted)
        });
        // It ends before the commit, or waits for it.
        let _ = ended.recv_timeout(Duration::from_millis(300));
    });
    let target = world.clone();
    let merged = ends(move || overlay.merge_into(&target).map(drop));
    home.assert_happened();
    [merged, told.recv_timeout(Duration::from_secs(20)).expect("ends")]
}

#[test]
fn a_record_that_is_changed_while_it_leaves_its_segment_is_in_one_place() {
    for is_deleted in [false, true] {
        let home = Staged::default();
        let (world, ids) = home.begin();
        paved(&world, &ids, 1);
        with_sign(&world, &ids, 1, 3);
        let overlay = moved(&world, &ids, 1);
        let (other, at, changed) = (world.clone(), ids.at(0, 0, 0), record(&ids, 5, 3));
        let [merged, acted] = merged_while(&home, &world, overlay, move || {
            within(&other, at, |tx| {
                if is_deleted {
                    tx.delete_record(id(1));
                } else {
                    tx.put_record(id(1), changed);
                }
                Ok(())
            })
        });
        merged.expect("was first");
        let key = ConflictKey::Record(id(1));
        let error = acted.expect_err("it has left");
        let is_conflict = matches!(&error, Error::Conflict { key: found } if *found == key);
        let elsewhere = SegmentError::Elsewhere { key: key.clone(), home: None };
        assert!(is_conflict || error.layer() == Some(&elsewhere), "{error}");
        assert_eq!(copies(&world, &[key]), [1]);
        assert_eq!(all_records(&world, &ids), [(id(1), 300)]);
    }
}

/// The root still names the segment that has deleted it, so that the segment needs no commit of the root to put it again.
#[test]
fn a_value_that_its_former_segment_puts_while_it_goes_to_the_root_is_in_one_place() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let at = paved(&world, &ids, 1)[0];
    let set = move |world: &SegmentedWorld<Staged>, bytes: Option<u8>| {
        within(world, at, |tx| {
            tx.set_property(property("game:a"), bytes.map(|byte| vec![byte]));
            Ok(())
        })
    };
    set(&world, Some(1)).expect("puts");
    set(&world, None).expect("deletes");
    assert_eq!(place_count(&world), 1, "or this shows nothing");
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    let edited = overlay.transaction(|tx| {
        tx.set_property(property("game:a"), Some(vec![2]));
        Ok::<_, Error>(())
    });
    edited.expect("edits");
    let other = world.clone();
    let [merged, acted] = merged_while(&home, &world, overlay, move || set(&other, Some(3)));
    merged.expect("was first");
    let key = ConflictKey::Property("game:a".into());
    let elsewhere = SegmentError::Elsewhere { key: key.clone(), home: None };
    assert_eq!(acted.expect_err("the root has it").layer(), Some(&elsewhere));
    assert_eq!((copies(&world, &[key]), place_count(&world)), (vec![1], 0));
    assert_eq!(world.property(&property("game:a")).expect("reads"), Some(vec![2]));
}

/// A power cut may take back a deletion that is not synced. Then the value would be in its segment and in the root.
#[test]
fn a_deletion_in_a_segment_is_synced_before_a_merge_puts_the_value_into_the_root() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let at = paved(&world, &ids, 1)[0];
    for bytes in [Some(vec![1]), None] {
        within(&world, at, |tx| {
            tx.set_property(property("game:a"), bytes);
            Ok(())
        })
        .expect("writes");
    }
    let is_synced = |world: &SegmentedWorld<Staged>| {
        let metrics = world.metrics().segments.into_values().next().expect("is open");
        metrics.last_synced == metrics.last_commit
    };
    assert!(!is_synced(&world), "or this shows nothing");
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    let edited = overlay.transaction(|tx| {
        tx.set_property(property("game:a"), Some(vec![2]));
        Ok::<_, Error>(())
    });
    edited.expect("edits");
    let (tell, told) = channel();
    let seen = world.clone();
    home.meanwhile(When::RootCommits, move || tell.send(is_synced(&seen)).expect("is waited for"));
    overlay.merge_into(&world).expect("merges");
    assert!(told.recv().expect("it happened"));
}

/// The segment's storage fails when the root has the record already.
#[test]
fn a_record_is_found_once_while_its_segment_cannot_delete_it() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    paved(&world, &ids, 1);
    with_sign(&world, &ids, 1, 3);
    with_sign(&world, &ids, 2, 4);
    let overlay = moved(&world, &ids, 1);
    *home.full.lock() = Some(0);
    let failed = overlay.merge_into(&world).expect_err("cannot be written");
    assert_eq!(failed.kind(), cg_store::ErrorKind::LowDisk, "{failed}");
    assert_eq!(copies(&world, &[ConflictKey::Record(id(1))]), [2], "or this shows nothing");
    let expected = [(id(1), 300), (id(2), 4)];
    assert_eq!(all_records(&world, &ids), expected);
    let get = |n| world.records().get(id(n)).expect("reads").map(|record| record.position.block().x);
    assert_eq!([get(1), get(2)], [Some(300), Some(4)]);
    *home.full.lock() = None;
    world.segments().with(segment(&ids, 0), World::resume).expect("has room again");
    assert_eq!(all_records(&world, &ids), expected);
    assert_eq!(copies(&world, &[ConflictKey::Record(id(1))]), [1], "it is deleted at the first call");
    assert_eq!(overlay.merge_into(&world).expect("has nothing left").changes, 0);
}

/// It is neither seen twice nor not at all.
#[test]
fn a_record_that_goes_to_the_root_while_an_area_is_asked_for_is_found() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 3);
    with_sign(&world, &ids, 1, 3);
    let overlay = moved(&world, &ids, 1);
    // Two others are open, so that opening the first closes one: the merge comes in between.
    for at in &places[1..] {
        block(&world, *at);
    }
    let target = world.clone();
    let (tell, told) = channel();
    home.meanwhile(When::Closes, move || {
        let merging = target.clone();
        // At its end it waits for the segment that is being closed.
        thread::spawn(move || tell.send(overlay.merge_into(&merging).map(drop)));
        let root = target.root();
        let has_left = || {
            let departing = root.named_properties(":departure/").expect("reads");
            root.records().get(id(1)).expect("reads").is_some() && departing.is_empty()
        };
        let begun = std::time::Instant::now();
        while !has_left() && begun.elapsed().as_secs() < 20 {
            thread::sleep(Duration::from_millis(2));
        }
        assert!(has_left());
    });
    let (asking, ids_of) = (world.clone(), ids);
    assert_eq!(ends(move || all_records(&asking, &ids_of)), [(id(1), 300)]);
    home.assert_happened();
    told.recv().expect("ends").expect("merges");
}

#[test]
fn a_record_that_a_host_put_into_the_root_as_well_is_found_where_its_segment_has_it() {
    let (world, ids) = in_memory();
    save(&world, ids.at(0, 0, 0), filled(world.root(), ids.stone));
    with_sign(&world, &ids, 1, 3);
    world
        .root()
        .records()
        .insert([(id(1), record(&ids, 700, 9)), (id(2), record(&ids, 701, 9))])
        .expect("puts");
    assert_eq!(all_records(&world, &ids), [(id(1), 3), (id(2), 701)]);
    let there = BlockBox::new(BlockPos::new(600, 0, 0), BlockPos::new(800, 9, 9));
    let found = world.records().in_box(&RecordQuery::new(ids.overworld, there)).expect("finds");
    assert_eq!(
        found.into_iter().map(|(id, _)| id).collect::<Vec<_>>(),
        [id(2)],
        "also where that is not asked for"
    );
}
