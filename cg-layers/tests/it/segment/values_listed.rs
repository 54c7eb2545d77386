//! Objects and records of all segments, in one order.

use std::collections::BTreeSet;

use cg_store::records::{RecordQuery, RecordSettings, RecordShape};

use super::values::{id, keys, record, within};
use super::*;

/// The records of an area by their numbers.
fn signs<H: SegmentHome>(world: &SegmentedWorld<H>, query: &RecordQuery) -> Vec<u128> {
    let found = world.records().in_leaves(query).expect("finds");
    found.into_iter().map(|(id, _)| uuid::Uuid::from_bytes(id.to_bytes()).as_u128()).collect()
}

fn along_x(ids: &Ids, from: i64, to: i64) -> RecordQuery {
    RecordQuery::new(ids.overworld, BlockBox::new(BlockPos::new(from, 0, 0), BlockPos::new(to, 9, 9)))
}

#[test]
fn objects_of_all_segments_are_listed_in_one_order() {
    let (world, ids) = in_memory();
    let mut all = BTreeSet::new();
    for n in 0..40_i64 {
        let (key, at) = (format!("k/{:02}", n * 7 % 40), ids.at(16 * (n % 4), 0, 0));
        if n % 5 == 0 {
            world.root().objects().put(&key, [0]).expect("puts");
        } else {
            within(&world, at, |tx| tx.put_object(&key, [1])).expect("puts");
        }
        if n % 3 == 0 && n % 5 != 0 {
            within(&world, at, |tx| tx.delete_object(&key)).expect("deletes");
        } else {
            all.insert(key);
        }
    }
    within(&world, ids.at(0, 0, 0), |tx| tx.put_object("l", [1])).expect("puts");
    for page in [1, 2, 7, 100] {
        assert!(keys(&world, "k/", page).iter().eq(&all), "pages of {page}");
    }
    assert_eq!(keys(&world, "k/2", 3), keys(&world, "k/2", 30));
    assert_eq!(keys(&world, "", 9).last().map(String::as_str), Some("l"));
}

/// A leaf that reaches over a border has records of two segments.
#[test]
fn records_are_found_on_both_sides_of_a_border() {
    let settings = RecordSettings { leaf_square_size: 100, ..RecordSettings::default() };
    let shape = RecordShape::new(settings).expect("a tree");
    let options = SegmentOptions { world: WorldOptions { records: Some(shape), ..options() }, ..segments() };
    let world = SegmentedWorld::in_memory(&[], &options).expect("a world");
    let ids = register(&world);
    for (n, x) in (1..).zip([-300, -30, 10, 220, 255, 256, 290, 310, 700]) {
        let sign = record(&ids, x, 0);
        let at = ChunkAt::new(ids.overworld, sign.position.block().chunk());
        within(&world, at, |tx| {
            tx.put_record(id(n), sign);
            Ok(())
        })
        .expect("puts");
    }
    world.root().records().insert([(id(20), record(&ids, 240, 0))]).expect("puts");
    let found = |from, to| signs(&world, &along_x(&ids, from, to));
    let sorted = |mut found: Vec<u128>| {
        found.sort_unstable();
        found
    };
    assert_eq!(sorted(found(290, 290)), [4, 5, 6, 7, 20], "the leaf from 200 to 299");
    assert_eq!(sorted(found(-40, -1)), [2]);
    assert_eq!(found(-1000, 1000).len(), 10);
    assert_eq!(found(1000, 1001), Vec::<u128>::new());
    let plain = World::builder().options(&options.world).in_memory().expect("a world");
    plain.registry().register(&crate::fixture::registration()).expect("registers");
    let all = world.records().in_leaves(&along_x(&ids, -1000, 1000)).expect("finds");
    plain.records().insert(all.clone()).expect("puts");
    assert_eq!(plain.records().in_leaves(&along_x(&ids, -1000, 1000)).expect("finds"), all, "in its order");
    let within_box = world.records().in_box(&along_x(&ids, 250, 290)).expect("finds");
    assert_eq!(
        within_box.iter().map(|(id, _)| uuid::Uuid::from_bytes(id.to_bytes()).as_u128()).collect::<Vec<_>>(),
        [5, 6, 7]
    );
}
