//! Overlays that change properties, objects and records of segments.

use cg_layers::{Arenas, Base};
use cg_store::records::RecordQuery;
use cg_tiering::GameTick;

use super::transfer::Crashing;
use super::values::{id, object, property, record, within};
use super::*;

/// A value of each kind in the first segment, and a record that will leave it.
fn furnish<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    within(world, ids.at(0, 0, 0), |tx| {
        tx.save(ids.at(0, 0, 0), filled(world.root(), ids.stone));
        tx.put_object("a", [1])?;
        tx.put_object("gone", [1])?;
        tx.put_record(id(1), record(ids, 0, 1));
        tx.put_record(id(2), record(ids, 1, 1));
        tx.put_record(id(3), record(ids, 2, 1));
        tx.set_property(property("game:a"), Some(vec![1]));
        Ok(())
    })
    .expect("puts");
    world.root().objects().put("root", [1]).expect("puts");
}

/// Changes all of it; the second record goes to another segment.
fn edit<S: Base>(overlay: &Overlay<S>, ids: &Ids) {
    let edited = overlay.transaction(|tx| {
        tx.put_object("a", [2])?;
        tx.delete_object("gone")?;
        tx.put_object("root", [2])?;
        tx.put_object("new", [2])?;
        tx.put_record(id(1), record(ids, 5, 2));
        tx.put_record(id(2), record(ids, 300, 2));
        tx.delete_record(id(3));
        tx.put_record(id(4), record(ids, 600, 2));
        tx.set_property(property("game:a"), Some(vec![2]));
        tx.set_property(property("game:new"), Some(vec![2]));
        Ok::<_, Error>(())
    });
    edited.expect("edits");
}

#[track_caller]
fn assert_merged<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    let objects = ["a", "gone", "root", "new"].map(|key| object(world, key));
    assert_eq!(objects, [Some((1, 2)), None, Some((1, 2)), Some((0, 2))]);
    let all = RecordQuery::in_area(ids.overworld, cg_format::BlockArea::everywhere());
    let records = world.records().in_leaves(&all).expect("finds");
    let expected = [(1, 5), (2, 300), (4, 600)].map(|(n, x)| (id(n), record(ids, x, 2)));
    assert_eq!(records, expected);
    for (id, record) in expected {
        assert_eq!(world.records().get(id).expect("reads"), Some(record));
    }
    let properties = ["game:a", "game:new"].map(|text| world.property(&property(text)).expect("reads"));
    assert_eq!(properties, [const { &[2_u8] }; 2].map(|bytes| Some(bytes.to_vec())));
}

#[test]
fn an_overlay_changes_what_segments_have_where_it_is() {
    let (world, ids) = in_memory();
    furnish(&world, &ids);
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    assert_eq!(
        overlay.object("a").expect("reads").map(|object| object.version),
        Some(0),
        "it is read through"
    );
    edit(&overlay, &ids);
    assert_eq!(overlay.merge_into(&world).expect("merges").changes, 10);
    assert_merged(&world, &ids);
    world
        .segments()
        .with(segment(&ids, 0), |alone| {
            assert_eq!(alone.objects().get("a")?.map(|object| object.version), Some(1));
            assert_eq!(alone.property(&property("game:a"))?, Some(vec![2]));
            let records = [1, 2, 3].map(|n| alone.records().get(id(n)).expect("reads").is_some());
            assert_eq!(records, [true, false, false]);
            Ok(())
        })
        .expect("is there");
    let root = world.root();
    assert!(
        root.objects().get("a").expect("reads").is_none()
            && root.objects().get("new").expect("reads").is_some()
    );
    let records = [2, 4].map(|n| root.records().get(id(n)).expect("reads").is_some());
    assert_eq!(
        records,
        [true, false],
        "one that leaves its segment is the root's, a new one is its segment's"
    );
    let new = world.segments().with(segment(&ids, 2), |alone| alone.records().get(id(4))).expect("is there");
    assert!(new.is_some());
    assert!(overlay.diff().expect("compares").is_empty());
}

/// Both changed it: the merge of all is refused before anything of it is written.
#[test]
fn a_value_that_its_segment_has_changed_is_a_conflict() {
    let (world, ids) = in_memory();
    furnish(&world, &ids);
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    edit(&overlay, &ids);
    within(&world, ids.at(0, 0, 0), |tx| tx.put_object("a", [7])).expect("puts");
    let refused = overlay.merge_into(&world);
    let of_object = |error: &Error| matches!(error.layer(), Some(cg_layers::OverlayError::BaseChanged { key: cg_store::error::ConflictKey::Object(key), .. }) if key.as_bytes() == b"a");
    assert!(refused.as_ref().is_err_and(of_object), "{refused:?}");
    assert_eq!((object(&world, "a"), object(&world, "new")), (Some((1, 7)), None));
}

/// At any commit, and called again: every value is there once.
#[test]
fn a_killed_merge_of_values_is_whole_when_it_is_called_again() {
    for commits in 0.. {
        let home = Crashing::new();
        let above = home.another();
        let world = home.open(true);
        let ids = register(&world);
        furnish(&world, &ids);
        let arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("a base");
        let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
        edit(&overlay, &ids);
        home.fuse.set(commits);
        let merged = overlay.merge_into(&world);
        let is_burnt = home.fuse.is_burnt();
        assert_eq!(merged.is_err(), is_burnt, "{merged:?}");
        drop((overlay, arenas, world));
        let world = home.open(false);
        let arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("the same base");
        let overlay = arenas.resume(0).expect("is leased");
        overlay.merge_into(&world).expect("goes on");
        assert_merged(&world, &ids);
        assert!(overlay.diff().expect("compares").is_empty());
        if !is_burnt {
            assert!(commits > 5, "{commits} commits");
            break;
        }
    }
}

/// A part that is merged is the base's from then on: it can change without a conflict.
#[test]
fn a_segment_goes_on_once_it_has_its_part_of_a_merge() {
    let (mut went_on, mut refused) = (0, 0);
    for commits in 0.. {
        let home = Crashing::new();
        let above = home.another();
        let world = home.open(true);
        let ids = register(&world);
        furnish(&world, &ids);
        let arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("a base");
        let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
        edit(&overlay, &ids);
        home.fuse.set(commits);
        let merged = overlay.merge_into(&world);
        drop((overlay, arenas, world));
        if merged.is_ok() {
            break;
        }
        let world = home.open(false);
        if object(&world, "a") != Some((1, 2)) || object(&world, "new").is_some() {
            continue;
        }
        within(&world, ids.at(0, 0, 0), |tx| {
            tx.put_object("a", [3])?;
            tx.put_record(id(1), record(&ids, 6, 3));
            tx.set_property(property("game:a"), Some(vec![3]));
            Ok(())
        })
        .expect("writes");
        let arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("the same base");
        let overlay = arenas.resume(0).expect("is leased");
        if let Err(error) = overlay.merge_into(&world) {
            // The overlay had not forgotten the part.
            assert!(matches!(error.layer(), Some(cg_layers::OverlayError::BaseChanged { .. })), "{error}");
            refused += 1;
            continue;
        }
        went_on += 1;
        assert_eq!((object(&world, "a"), object(&world, "new")), (Some((2, 3)), Some((0, 2))));
        assert_eq!(world.records().get(id(1)).expect("reads"), Some(record(&ids, 6, 3)));
        assert_eq!(world.property(&property("game:a")).expect("reads"), Some(vec![3]));
    }
    assert!(went_on > 0 && refused > 0, "{went_on} went on, {refused} were refused");
}
