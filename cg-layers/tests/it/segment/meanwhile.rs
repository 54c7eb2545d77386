//! Changes by others in the middle of a call, and segments whose storage fails while the world goes on.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cg_layers::{ArenaPolicy, MergedInPart};
use cg_tiering::GameTick;

use super::staged::{Staged, When, ends, paved};
use super::transfer::whereabouts;
use super::*;

#[test]
fn who_crosses_does_not_wait_for_one_who_waits_for_the_crossing() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 3);
    put(&world, 1, ids.cow_in(places[0]));
    // Two others are open, so that opening the first closes one: another comes in between and opens it.
    for at in &places[1..] {
        block(&world, *at);
    }
    let (other, at, cow) = (world.clone(), places[0], ids.cow_in(places[0]));
    home.meanwhile(When::Closes, move || {
        let (inside, is_inside) = mpsc::channel();
        thread::spawn(move || {
            let put = other.transaction(at, |tx| {
                inside.send(()).expect("is waited for");
                tx.put_entity(uuid(2), cow);
                Ok::<_, Error>(())
            });
            put.expect("puts");
        });
        is_inside.recv_timeout(Duration::from_secs(20)).expect("has opened the segment");
    });
    let (crossing, cow) = (world.clone(), ids.cow_in(places[1]));
    ends(move || crossing.transfer_entities([(uuid(1), cow)])).expect("crosses");
    home.assert_happened();
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[1]], vec![1]));
}

#[test]
fn an_entity_that_two_segments_put_at_once_is_in_one() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 2);
    // The root still says that it is in the first: it went with its chunk.
    put(&world, 1, ids.cow_in(places[0]));
    world
        .transaction(places[0], |tx| {
            tx.delete(places[0]);
            Ok::<_, Error>(())
        })
        .expect("deletes");
    save(&world, places[0], filled(world.root(), ids.stone));
    let (other, cow) = (world.clone(), ids.cow_in(places[1]));
    let (tell, told) = mpsc::channel();
    home.meanwhile(When::Commits(0), move || {
        let put = move || {
            let Owner::Chunk(at) = cow.owner else { panic!("a cow in a chunk") };
            other.transaction(at, |tx| {
                tx.put_entity(uuid(1), cow);
                Ok::<_, Error>(())
            })
        };
        tell.send(ends(put)).expect("is waited for");
    });
    put(&world, 1, ids.cow_in(places[0]));
    let second = told.recv().expect("it happened");
    assert!(
        matches!(second, Err(Error::Conflict { key: cg_store::error::ConflictKey::Entity(id) }) if id == uuid(1)),
        "{second:?}"
    );
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[0]], vec![0]));
    let late = world.transaction(places[1], |tx| {
        tx.put_entity(uuid(1), ids.cow_in(places[1]));
        Ok::<_, Error>(())
    });
    let segment = segment(&ids, 0);
    assert!(
        matches!(late.as_ref().err().and_then(Error::layer::<SegmentError>), Some(found) if *found == SegmentError::EntityElsewhere { id: uuid(1), segment }),
        "{late:?}"
    );
}

#[test]
fn an_object_that_two_segments_put_at_once_is_in_one() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 2);
    let put = |world: SegmentedWorld<Staged>, at: ChunkAt| {
        move || world.transaction(at, |tx| tx.put_object("k", [7]))
    };
    put(world.clone(), places[0])().expect("puts");
    world.transaction(places[0], |tx| tx.delete_object("k")).expect("deletes");
    let (tell, told) = mpsc::channel();
    let second = put(world.clone(), places[1]);
    home.meanwhile(When::Commits(0), move || tell.send(ends(second)).expect("is waited for"));
    put(world.clone(), places[0])().expect("puts");
    let second = told.recv().expect("it happened");
    let is_it = |key: &cg_store::error::ConflictKey| matches!(key, cg_store::error::ConflictKey::Object(key) if key.as_bytes() == b"k");
    assert!(matches!(&second, Err(Error::Conflict { key }) if is_it(key)), "{second:?}");
    assert_eq!(world.objects().version("k").expect("reads"), Some(1));
    let late = put(world.clone(), places[1])();
    let home = Some(segment(&ids, 0));
    assert!(
        matches!(late.as_ref().err().and_then(Error::layer), Some(SegmentError::Elsewhere { key, home: found }) if is_it(key) && *found == home),
        "{late:?}"
    );
}

#[test]
fn an_entity_that_crosses_twice_in_one_call_arrives_once() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 3);
    put(&world, 1, ids.cow_in(places[0]));
    world.transfer_entities([1, 2].map(|to| (uuid(1), ids.cow_in(places[to])))).expect("crosses");
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[2]], vec![2]), "the later one counts");
}

#[test]
fn a_crossing_whose_storage_failed_is_finished_before_anything_else_is_done_with_it() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 4);
    for n in 1..=2 {
        put(&world, n, ids.cow_in(places[0]));
    }
    *home.full.lock() = Some(1);
    let failed = world.transfer_entities([(uuid(1), ids.cow_in(places[1]))]);
    assert!(matches!(failed, Err(Error::Engine(_))), "{failed:?}");
    // It is not lost, and nobody puts a second one.
    let (from, to) = (segment(&ids, 0), segment(&ids, 1));
    let on_its_way = SegmentError::InTransit { id: uuid(1), from, to };
    let refused = |found: Result<(), Error>| {
        assert_eq!(found.as_ref().err().and_then(Error::layer), Some(&on_its_way), "{found:?}");
    };
    refused(world.entity(uuid(1)).map(drop));
    for at in &places {
        refused(world.transaction(*at, |tx| {
            tx.put_entity(uuid(1), ids.cow_in(*at));
            Ok::<_, Error>(())
        }));
    }
    assert!(world.entity(uuid(2)).expect("has nothing to do with it").is_some());
    // The record of the crossing is not written over by the next one.
    let next = world.transfer_entities([(uuid(2), ids.cow_in(places[2]))]);
    assert!(matches!(next, Err(Error::Engine(_))), "{next:?}");
    let deleted = world.segments().delete(segment(&ids, 3));
    assert!(matches!(deleted, Err(Error::Engine(_))), "{deleted:?}");

    *home.full.lock() = None;
    world.segments().with(to, World::resume).expect("has room again");
    let owner = world.entity(uuid(1)).expect("is settled").map(|cow| cow.owner);
    assert_eq!(owner, Some(Owner::Chunk(places[1])));
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[1]], vec![1]));
    world.transfer_entities([(uuid(2), ids.cow_in(places[2]))]).expect("crosses");
    assert_eq!(whereabouts(&world, &places, uuid(2)), (vec![places[2]], vec![2]));
}

#[test]
fn a_segment_that_is_deleted_while_it_is_asked_for_is_absent() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 3);
    let other = world.clone();
    let gone = segment(&ids, 0);
    home.meanwhile(When::Closes, move || other.segments().delete(gone).expect("deletes"));
    assert_eq!(block(&world, places[0]), None);
    home.assert_happened();
}

/// It would wait for one who deletes the segment that it keeps open, and he for it.
#[test]
fn whoever_is_in_a_segment_neither_crosses_nor_deletes() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 2);
    put(&world, 1, ids.cow_in(places[0]));
    let (at, cow, here) = (places[0], ids.cow_in(places[1]), segment(&ids, 0));
    let nested = |refused: Result<(), Error>| assert!(matches!(refused, Err(Error::Nested)), "{refused:?}");
    let (inside, crossing) = (world.clone(), cow.clone());
    nested(ends(move || inside.transaction(at, |_| inside.transfer_entities([(uuid(1), crossing)]))));
    let (inside, crossing) = (world.clone(), cow.clone());
    nested(ends(move || inside.segments().with(here, |_| inside.transfer_entities([(uuid(1), crossing)]))));
    let inside = world.clone();
    nested(ends(move || inside.segments().with(here, |_| inside.segments().delete(here))));
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[0]], vec![0]), "nothing was done");
    // Another world has nothing to do with it, nor has what comes after the closure.
    let (other, others) = in_memory();
    save(&other, others.at(0, 0, 0), filled(other.root(), others.stone));
    let deleted = world.segments().with(here, |_| other.segments().delete(segment(&others, 0)));
    deleted.expect("another world's");
    world.transfer_entities([(uuid(1), cow)]).expect("crosses");
}

/// Glass in a chunk of the first two segments, in an overlay.
fn glazed(world: &SegmentedWorld<Staged>, ids: &Ids) -> Overlay<SegmentedWorld<Staged>> {
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    let edited = overlay.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass)?;
        tx.set_block(ids.overworld, BlockPos::new(256, 0, 0), ids.glass)
    });
    edited.expect("edits");
    overlay
}

/// How many segments a merge says have their part, of how many, and why it stopped.
#[track_caller]
fn in_part<T: std::fmt::Debug>(refused: Result<T, Error>) -> (usize, usize, Error) {
    match refused {
        Err(Error::Layer { kind, error }) => {
            let in_part: Box<MergedInPart> = error.downcast().expect("a merge in part");
            let MergedInPart { merged, segments, error } = *in_part;
            assert_eq!(kind, error.kind());
            (merged, segments, *error)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_merge_whose_storage_failed_goes_on_when_it_is_called_again() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 2);
    let overlay = glazed(&world, &ids);
    *home.full.lock() = Some(1);
    let (merged, segments, error) = in_part(overlay.merge_into(&world));
    assert!(
        (merged, segments) == (1, 2) && matches!(error, Error::Engine(_)),
        "{merged} of {segments}: {error}"
    );
    let shown = |at| overlay.load(at).expect("loads").map(|chunk| chunk.block(LocalPos::new(0, 0, 0)));
    assert_eq!([0, 1].map(|x| block(&world, places[x])), [ids.glass, ids.stone].map(Some));
    assert_eq!([0, 1].map(|x| shown(places[x])), [Some(ids.glass); 2]);
    // The merged segment goes on, and the overlay has nothing of it any more.
    save(&world, places[0], filled(world.root(), ids.machine));
    *home.full.lock() = None;
    world.segments().with(segment(&ids, 1), World::resume).expect("has room again");
    assert_eq!(overlay.merge_into(&world).expect("goes on").changes, 1);
    assert_eq!([0, 1].map(|x| block(&world, places[x])), [ids.machine, ids.glass].map(Some));
}

/// Changes that a stopped merge left in the base are no conflict for an overlay that is edited since.
#[test]
fn an_overlay_is_edited_between_two_calls_of_its_merge() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 3);
    put(&world, 1, ids.cow_in(places[0]));
    let overlay = glazed(&world, &ids);
    let edited = overlay.transaction(|tx| {
        tx.delete(places[2]);
        tx.move_entity(uuid(1), Owner::Chunk(places[1]))
    });
    edited.expect("edits");
    *home.full.lock() = Some(2);
    let (merged, segments, error) = in_part(overlay.merge_into(&world));
    assert!(
        (merged, segments) == (2, 3) && matches!(error, Error::Engine(_)),
        "{merged} of {segments}: {error}"
    );
    let leaving = cg_format::entity::Reason::new("leaving its segment").expect("short");
    let owner = world.entity(uuid(1)).expect("reads").map(|cow| cow.owner);
    assert_eq!(owner, Some(Owner::Detached(leaving)), "it waits for its transfer");
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![], vec![0]));

    let edited = overlay.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(257, 0, 0), ids.machine)?;
        let mut cow = ids.cow_in(places[1]);
        cow.set_component(ids.items, vec![1]).expect("is variable");
        tx.put_entity(uuid(1), cow);
        Ok::<_, Error>(())
    });
    edited.expect("edits");
    let shown = (overlay.load(places[1]).expect("loads"), overlay.entity(uuid(1)).expect("reads"));
    *home.full.lock() = None;
    world.segments().with(segment(&ids, 2), World::resume).expect("has room again");
    overlay.merge_into(&world).expect("goes on");
    assert_eq!((world.load(places[1]).expect("loads"), world.entity(uuid(1)).expect("reads")), shown);
    assert_eq!(block(&world, places[2]), None);
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[1]], vec![1]));
}

/// All are compared before the first is written; this one comes after that.
#[test]
fn a_conflict_in_the_middle_of_a_merge_keeps_the_rest_in_the_overlay() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 2);
    let overlay = glazed(&world, &ids);
    let (other, at, machine) = (world.clone(), places[1], filled(world.root(), ids.machine));
    home.meanwhile(When::Commits(0), move || save(&other, at, machine));
    let (merged, segments, error) = in_part(overlay.merge_into(&world));
    home.assert_happened();
    let is_changed = |error: &Error| matches!(error.layer(), Some(cg_layers::OverlayError::BaseChanged { key, .. }) if *key == cg_store::error::ConflictKey::Chunk(at));
    assert!((merged, segments) == (1, 2) && is_changed(&error), "{merged} of {segments}: {error}");
    assert_eq!([0, 1].map(|x| block(&world, places[x])), [ids.glass, ids.machine].map(Some));
    // Called again, it has one segment left: nothing of that is merged.
    save(&world, places[0], filled(world.root(), ids.stone));
    let again = overlay.merge_into(&world);
    assert!(again.as_ref().is_err_and(is_changed), "{again:?}");
    assert_eq!([0, 1].map(|x| block(&world, places[x])), [ids.stone, ids.machine].map(Some));
}

/// An entity that is changed between its segment's part and its transfer is not written over.
#[test]
fn an_entity_that_is_changed_before_its_transfer_is_a_conflict() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 2);
    put(&world, 1, ids.cow_in(places[0]));
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    overlay.transaction(|tx| tx.move_entity(uuid(1), Owner::Chunk(places[1]))).expect("moves");
    let glaze = |tx: &mut cg_layers::OverlayTransaction<'_, _>| {
        tx.set_block(ids.overworld, BlockPos::new(256, 0, 0), ids.glass)
    };
    overlay.transaction(glaze).expect("edits");
    let (other, at, mut cow) = (world.clone(), places[0], ids.cow_in(places[0]));
    cow.set_component(ids.items, vec![9]).expect("is variable");
    let changed = cow.clone();
    home.meanwhile(When::Commits(1), move || {
        other
            .transaction(at, |tx| {
                tx.put_entity(uuid(1), changed);
                Ok::<_, Error>(())
            })
            .expect("nobody keeps it");
    });
    let (merged, segments, error) = in_part(overlay.merge_into(&world));
    home.assert_happened();
    assert!(
        (merged, segments) == (2, 2)
            && matches!(error, Error::Conflict { key: cg_store::error::ConflictKey::Entity(id) } if id == uuid(1)),
        "{merged} of {segments}: {error}"
    );
    assert_eq!(world.entity(uuid(1)).expect("reads"), Some(cow), "nothing was written over");
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[0]], vec![0]));
    // A tick ends no lease that keeps the rest, also after a call that merged nothing.
    let policy = ArenaPolicy { end_after_ticks: Some(0), ..ArenaPolicy::default() };
    let kept = || {
        let report =
            overlay.arenas().tick(GameTick::new(1), &policy, Duration::from_secs(600)).expect("ticks");
        (report.ended, report.kept_for_merge)
    };
    assert_eq!(kept(), (0, 1));
    let again = overlay.merge_into(&world);
    let changed = again.as_ref().err().and_then(Error::layer);
    assert!(matches!(changed, Some(cg_layers::OverlayError::BaseChanged { .. })), "{again:?}");
    assert_eq!(kept(), (0, 1));
    overlay.reset().expect("gives the rest up");
    assert_eq!(kept(), (1, 0));
}

#[test]
fn whoever_is_in_a_segment_does_not_promote_into_others() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 2);
    let overlay = glazed(&world, &ids);
    let inside = world.clone();
    let at = places[0];
    let refused = ends(move || inside.transaction(at, |_| overlay.merge_into(&inside)));
    assert!(matches!(refused, Err(Error::Nested)), "{refused:?}");
    assert_eq!(block(&world, places[0]), Some(ids.stone));
}

/// It would wait for a user of the overlay, who may wait for one that waits for the segment.
#[test]
fn a_merge_in_a_segment_is_refused_while_its_overlay_is_in_use() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    paved(&world, &ids, 2);
    let (overlay, here) = (glazed(&world, &ids), segment(&ids, 0));
    let refused = ends(move || {
        world.segments().with(here, |_| {
            let (tell, told) = mpsc::channel();
            let (free, freed) = mpsc::channel();
            thread::scope(|threads| {
                let user = overlay.clone();
                threads.spawn(move || {
                    let waited = user.transaction(|_| {
                        tell.send(()).expect("is waited for");
                        freed.recv().expect("is told");
                        Ok::<_, Error>(())
                    });
                    waited.expect("is the only one");
                });
                told.recv().expect("has the overlay");
                let merged = overlay.merge_into(&world);
                free.send(()).expect("is waited for");
                merged
            })
        })
    });
    assert!(matches!(refused, Err(Error::Nested)), "{refused:?}");
}

/// The thread for which the transfer waits may wait for the overlay.
#[test]
fn a_merge_that_waits_for_a_transfer_does_not_keep_the_overlay() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 3);
    put(&world, 1, ids.cow_in(places[0]));
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    // Names of its own are the first that a merge writes.
    let dimensions = vec![name("duel:field")];
    overlay.register(&Registration { dimensions, ..Registration::default() }).expect("registers");
    let (tell, told) = mpsc::channel();
    let (stage, target, overworld, machine) = (home.clone(), world.clone(), ids.overworld, ids.machine);
    home.meanwhile(When::Commits(1), move || {
        let (begins, has_begun) = mpsc::channel();
        stage.meanwhile(When::RootCommits, move || begins.send(()).unwrap_or_default());
        let merging = overlay.clone();
        thread::spawn(move || drop(tell.send(merging.merge_into(&target))));
        // It gets no further than this, or it waits for the transfer.
        let _ = has_begun.recv_timeout(Duration::from_millis(200));
        let edited = overlay.transaction(|tx| tx.set_block(overworld, BlockPos::new(512, 0, 0), machine));
        edited.expect("edits");
    });
    let (crossing, cow) = (world.clone(), ids.cow_in(places[1]));
    ends(move || crossing.transfer_entities([(uuid(1), cow)])).expect("crosses");
    told.recv().expect("ends").expect("merges");
    assert_eq!(block(&world, places[2]), Some(ids.machine));
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[1]], vec![1]));
}

/// Whichever of the three comes first: none of them waits for ever.
#[test]
fn a_closure_in_a_segment_a_merge_and_a_deletion_of_the_segment_all_end() {
    let home = Staged::default();
    let (world, ids) = home.begin();
    let places = paved(&world, &ids, 3);
    let here = segment(&ids, 0);
    let (overworld, machine) = (ids.overworld, ids.machine);
    for round in 0..16 {
        save(&world, places[0], filled(world.root(), ids.stone));
        let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
        let glazed = overlay.transaction(|tx| {
            tx.set_block(overworld, BlockPos::new(256, round, 0), ids.glass)?;
            tx.set_block(overworld, BlockPos::new(512, round, 1), ids.glass)
        });
        glazed.expect("edits");
        let (base, merged) = (world.clone(), overlay.clone());
        let edited = ends(move || {
            thread::scope(|threads| {
                threads.spawn(|| merged.merge_into(&base).expect("merges"));
                threads.spawn(|| base.segments().delete(here).expect("deletes"));
                let edit = |tx: &mut cg_layers::OverlayTransaction<'_, _>| {
                    tx.set_block(overworld, BlockPos::new(513, round, 0), machine)
                };
                base.segments().with(here, |_| merged.transaction(edit))
            })
        });
        match &edited {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.layer(), Some(&SegmentError::Missing { segment: here }), "{error}");
            }
        }
        overlay.merge_into(&world).expect("has at most the edit left");
        let chunk = world.load(places[2]).expect("loads").expect("is stored");
        let shown = chunk.block(LocalPos::new(1, round as u8, 0));
        assert_eq!(shown == machine, edited.is_ok(), "round {round}");
    }
}
