//! Spatial records: found by area and by id, moved, and kept in one shape.

use std::ops::ControlFlow;

use super::*;
use cg_format::record::Record;
use cg_format::{BlockArea, RecordId, Space, key};
use cg_store::StoreLimits;
use cg_store::error::ConflictKey;
use cg_store::records::{RecordQuery, RecordSettings, RecordShape};
use expect_test::{Expect, expect};

over_both_engines! {
    a_query_returns_the_full_set_of_the_leaves_it_touches
    several_boxes_return_each_record_once_in_the_order_of_the_tree
    queries_choose_by_time_and_kind
    a_record_moves_and_is_never_in_two_places
    equal_records_write_nothing
    points_that_are_none
    who_read_a_record_that_changed_is_told
    many_records_are_inserted_in_parts
    records_and_chunks_come_together_or_not_at_all
    damage_costs_one_record
    what_lies_wrong_is_found
    the_corners_of_the_world_hold_records
}

pub(crate) fn id(n: u128) -> RecordId {
    RecordId::new(uuid::Uuid::from_u128(n))
}

pub(crate) fn record(dimension: Dimension, at: [f64; 3], kind: &str, timestamp: i64) -> Record {
    let position = EntityPos::from_f64(dimension, at).expect("a point");
    Record::new(position, kind, timestamp, format!("{kind} {timestamp}").into_bytes()).expect("short")
}

fn put(world: &World, records: impl IntoIterator<Item = (u128, Record)>) {
    let put = world.transaction(|tx| {
        for (n, record) in records {
            tx.put_record(id(n), record);
        }
        Ok::<_, Error>(())
    });
    put.expect("puts");
}

fn block_box(min: [i64; 3], max: [i64; 3]) -> BlockBox {
    BlockBox::new(BlockPos::new(min[0], min[1], min[2]), BlockPos::new(max[0], max[1], max[2]))
}

#[track_caller]
fn ids_in(world: &World, query: &RecordQuery) -> Vec<u128> {
    let mut found: Vec<_> =
        world.records().in_leaves(query).expect("reads").into_iter().map(|(id, _)| id).collect();
    found.sort_unstable();
    found.into_iter().map(|id| id.get().as_u128()).collect()
}

/// A change is refused with a message, and nothing is written.
#[track_caller]
fn refused(world: &World, body: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>, expected: Expect) {
    let before = rows(world);
    let error = world.transaction(|tx| {
        tx.set_property(Property::Seed, Some(b"beside".to_vec()));
        body(tx)
    });
    expected.assert_eq(&error.expect_err("is refused").to_string());
    assert!(before == rows(world), "a refused transaction wrote something");
}

fn a_query_returns_the_full_set_of_the_leaves_it_touches(world: &World) {
    let ids = Ids::register(world);
    let at = |x: f64, y: f64, z: f64| record(ids.overworld, [x, y, z], "sign", 0);
    put(
        world,
        [
            (1, at(0.0, 0.0, 0.0)),
            (2, at(15.99, 15.0, 15.0)),
            (3, at(16.0, 0.0, 0.0)),
            (4, at(-0.01, 0.0, 0.0)),
            (5, at(-16.0, 0.0, 0.0)),
            (6, at(-16.5, 0.0, 0.0)),
            (7, at(0.0, 0.0, 0.0)),
            (8, at(500.0, -300.0, 90.0)),
            (9, record(ids.nether, [0.0; 3], "sign", 0)),
        ],
    );
    let query = |min, max| ids_in(world, &RecordQuery::new(ids.overworld, block_box(min, max)));
    assert_eq!(query([3; 3], [3; 3]), [1, 2, 7], "all of the leaf, though none lies at the block");
    assert_eq!(query([-1, 0, 0], [0, 0, 0]), [1, 2, 4, 5, 7]);
    assert_eq!(query([-17, 0, 0], [-17, 0, 0]), [6]);
    assert_eq!(query([-400; 3], [600; 3]), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(query([i64::MIN; 3], [i64::MAX; 3]), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(query([1000; 3], [2000; 3]), [0; 0]);
    assert_eq!(ids_in(world, &RecordQuery::new(ids.nether, block_box([0; 3], [0; 3]))), [9]);
    let mut all = 0;
    let ended = world.records().for_each(|found| {
        all += usize::from(found.is_ok());
        if all == 9 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
    });
    assert_eq!((all, ended.expect("scans")), (9, Some("enough")));
    assert_eq!(world.tiers().census().expect("counts").records, 9);
    assert_sound(world);
}

fn several_boxes_return_each_record_once_in_the_order_of_the_tree(world: &World) {
    let ids = Ids::register(world);
    // Leaves of 16 blocks, tables of 256: on both sides of the borders of both.
    let axis = [-300_i64, -257, -256, -17, -16, -1, 0, 15, 16, 255, 256, 300];
    let places = axis.into_iter().flat_map(|x| axis.into_iter().map(move |z| (x, z)));
    let records: Vec<_> = (0..).zip(places.flat_map(|(x, z)| [[x, 0, z], [x, 40, z]])).collect();
    put(
        world,
        records.iter().map(|(n, at)| (*n, record(ids.overworld, at.map(|axis| axis as f64), "sign", 0))),
    );
    put(world, [(9000, record(ids.nether, [0.0; 3], "sign", 0))]);
    let mut in_order = Vec::new();
    let walked = world.records().for_each(|found| {
        let (id, record) = found.expect("is sound");
        in_order.push((id, record.position));
        ControlFlow::<()>::Continue(())
    });
    walked.expect("scans");
    let leaf = |at: BlockPos| [at.x, at.y, at.z].map(|axis| axis.div_euclid(16));
    let all = [
        block_box([-300; 3], [300; 3]),
        block_box([-300, 0, -300], [-17, 0, 300]),
        block_box([-16, 0, -16], [15, 40, 15]),
        block_box([0, 0, 0], [16, 16, 16]),
        block_box([-1, 0, -1], [0, 0, 0]),
        block_box([255, 40, 255], [256, 40, 300]),
        block_box([1000; 3], [2000; 3]),
    ];
    for chosen in 0..1_usize << all.len() {
        let boxes: Vec<_> = (0..all.len()).filter(|n| chosen >> n & 1 == 1).map(|n| all[n]).collect();
        let touches = |at: BlockPos| {
            boxes.iter().any(|area| {
                let (low, high, leaf) = (leaf(area.min()), leaf(area.max()), leaf(at));
                (0..3).all(|axis| (low[axis]..=high[axis]).contains(&leaf[axis]))
            })
        };
        let expected =
            in_order.iter().filter(|(_, at)| at.dimension() == ids.overworld && touches(at.block()));
        let expected: Vec<_> = expected.map(|(id, _)| *id).collect();
        let found = |boxes: Vec<BlockBox>| -> Vec<RecordId> {
            let query = RecordQuery::in_areas(ids.overworld, boxes);
            world.records().in_leaves(&query).expect("reads").into_iter().map(|(id, _)| id).collect()
        };
        assert_eq!(found(boxes.clone()), expected, "{boxes:?}");
        let again = boxes.iter().rev().chain(&boxes).copied().collect();
        assert_eq!(found(again), expected, "in another order, and twice: {boxes:?}");
        let query = RecordQuery::in_areas(ids.overworld, boxes.clone());
        let inside = world.records().in_box(&query).expect("reads").len();
        let is_inside = |at: BlockPos| boxes.iter().any(|area| area.contains(at));
        let expected = records.iter().filter(|(_, [x, y, z])| is_inside(BlockPos::new(*x, *y, *z)));
        assert_eq!(inside, expected.count(), "{boxes:?}");
    }
    assert_eq!(ids_in(world, &RecordQuery::in_areas(ids.overworld, [])), [0; 0], "no box is not everywhere");
    let everywhere = RecordQuery::in_area(ids.nether, BlockArea::everywhere());
    assert_eq!(ids_in(world, &everywhere), [9000]);
}

fn queries_choose_by_time_and_kind(world: &World) {
    let ids = Ids::register(world);
    put(
        world,
        (0..10).map(|n| {
            let kind = if n % 2 == 0 { "sign" } else { "grave" };
            (n, record(ids.overworld, [n as f64, 0.0, 0.0], kind, n as i64 * 10 - 50))
        }),
    );
    let all = RecordQuery::new(ids.overworld, block_box([0; 3], [15; 3]));
    assert_eq!(ids_in(world, &all.clone().after(20)), [8, 9]);
    assert_eq!(ids_in(world, &all.clone().after(i64::MIN)).len(), 10);
    assert_eq!(ids_in(world, &all.clone().after(-50)), [1, 2, 3, 4, 5, 6, 7, 8, 9], "later, not as late");
    assert_eq!(ids_in(world, &all.clone().of_kind("grave")), [1, 3, 5, 7, 9]);
    assert_eq!(ids_in(world, &all.clone().of_kind("grave").after(10)), [7, 9]);
    assert_eq!(ids_in(world, &all.of_kind("g")), [0; 0]);
}

fn a_record_moves_and_is_never_in_two_places(world: &World) {
    let ids = Ids::register(world);
    let at = |x: f64| record(ids.overworld, [x, 0.0, 0.0], "cart", 1);
    put(world, [(1, at(3.0)), (2, at(4.0))]);
    let position = |x: f64| at(x).position;
    for x in [5.0, 40.0, -900.0, 1e15] {
        let moved = world.transaction(|tx| {
            let moved = tx.move_record(id(1), position(x))?;
            assert_eq!(tx.record(id(1))?.expect("is there").position, position(x));
            Ok::<_, Error>((moved, tx.move_record(id(99), position(x))?))
        });
        assert_eq!(moved.expect("moves").value, (true, false));
        assert_eq!(world.records().get(id(1)).expect("reads"), Some(at(x)));
        let everywhere = RecordQuery::new(ids.overworld, block_box([i64::MIN; 3], [i64::MAX; 3]));
        assert_eq!(ids_in(world, &everywhere), [1, 2]);
        assert_sound(world);
    }
    // Into another dimension, and away.
    put(world, [(1, record(ids.nether, [0.0; 3], "cart", 2))]);
    assert_eq!(ids_in(world, &RecordQuery::new(ids.nether, block_box([0; 3], [0; 3]))), [1]);
    let deleted = world.transaction(|tx| {
        tx.delete_record(id(1));
        tx.delete_record(id(50));
        assert_eq!(tx.record(id(1))?, None);
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
    assert_eq!(world.records().get(id(1)).expect("reads"), None);
    let left = rows(world).into_keys().filter(|(family, _)| *family == Family::Record).count();
    assert_eq!(left, 2, "a record and its place");
    assert_sound(world);
}

fn equal_records_write_nothing(world: &World) {
    let ids = Ids::register(world);
    put(world, [(1, record(ids.overworld, [1.0; 3], "sign", 1))]);
    let before = world.last_commit();
    put(world, [(1, record(ids.overworld, [1.0; 3], "sign", 1))]);
    assert_eq!(world.last_commit(), before);
    put(world, [(1, record(ids.overworld, [1.0; 3], "sign", 2))]);
    assert_eq!(world.last_commit(), before.next());
}

fn points_that_are_none(world: &World) {
    let ids = Ids::register(world);
    let tried = |x: f64| {
        move |tx: &mut Transaction<'_>| {
            let position = EntityPos::from_f64(ids.overworld, [0.0, x, 0.0])?;
            tx.put_record(id(1), Record::new(position, "sign", 0, Vec::new())?);
            Ok(())
        }
    };
    refused(world, tried(f64::NAN), expect!["y is NaN, allowed is a number from -2^63 to below 2^63"]);
    refused(world, tried(f64::INFINITY), expect!["y is inf, allowed is a number from -2^63 to below 2^63"]);
    refused(
        world,
        tried(f64::NEG_INFINITY),
        expect!["y is -inf, allowed is a number from -2^63 to below 2^63"],
    );
    refused(world, tried(9.3e18), expect!["y is 9.3e18, allowed is a number from -2^63 to below 2^63"]);
    refused(
        world,
        |tx| {
            tx.put_record(id(1), record(Dimension::new(9), [0.0; 3], "sign", 0));
            Ok(())
        },
        expect!["dimension 9 is not registered, the world has 2; register its name first"],
    );
    refused(
        world,
        |tx| {
            let position = EntityPos::from_f64(ids.overworld, [0.0; 3])?;
            tx.put_record(id(1), Record::new(position, "k".repeat(256), 0, Vec::new())?);
            Ok(())
        },
        expect!["the kind of a record has 256 bytes, at most 255 can be stored"],
    );
}

fn who_read_a_record_that_changed_is_told(world: &World) {
    let ids = Ids::register(world);
    put(world, [(1, record(ids.overworld, [1.0; 3], "sign", 1))]);
    let error = world.transaction(|tx| {
        tx.record(id(1))?;
        std::thread::scope(|scope| {
            scope.spawn(|| put(world, [(1, record(ids.overworld, [900.0; 3], "sign", 2))]));
        });
        tx.put_record(id(2), record(ids.overworld, [1.0; 3], "sign", 3));
        Ok::<_, Error>(())
    });
    match error {
        Err(Error::Conflict { key }) => assert_eq!(key, ConflictKey::Record(id(1))),
        other => panic!("no conflict: {other:?}"),
    }
    assert_eq!(world.records().get(id(2)).expect("reads"), None);
    // Who replaces it without having read it replaces what is there by then.
    put(world, [(1, record(ids.overworld, [5.0; 3], "sign", 3))]);
    assert_sound(world);
}

fn many_records_are_inserted_in_parts(world: &World) {
    let ids = Ids::register(world);
    let before = world.last_commit();
    let all = (0..10_000_u128).map(|n| {
        let place = [(n % 100) as f64 * 7.0, (n / 100) as f64, -(n as f64)];
        (id(n), record(ids.overworld, place, "tree", n as i64))
    });
    let count = world.records().insert(all.chain([(id(0), record(ids.nether, [0.0; 3], "tree", 0))]));
    assert_eq!(count.expect("inserts"), 10_001);
    assert_eq!(world.last_commit(), before.next().next());
    assert_eq!(world.tiers().census().expect("counts").records, 10_000);
    let part = RecordQuery::new(ids.overworld, block_box([0, 0, -100], [100, 40, 0]));
    let leaf = |at: f64| (at as i64).div_euclid(16);
    let expected = (1..10_000_u128).filter(|n| {
        let (x, y, z) = ((n % 100) as f64 * 7.0, (n / 100) as f64, -(*n as f64));
        (0..=6).contains(&leaf(x)) && (0..=2).contains(&leaf(y)) && (-7..=0).contains(&leaf(z))
    });
    assert_eq!(ids_in(world, &part), expected.collect::<Vec<_>>());
    assert_sound(world);
}

fn records_and_chunks_come_together_or_not_at_all(world: &World) {
    let ids = Ids::register(world);
    let at = ids.at(0, 0, 0);
    refused(
        world,
        |tx| {
            tx.save(at, filled(world, ids.stone));
            tx.put_record(id(1), record(ids.overworld, [1.0; 3], "sign", 1));
            tx.put_object("a", *b"x")?;
            tx.put_record(id(2), record(Dimension::new(7), [1.0; 3], "sign", 1));
            Ok(())
        },
        expect!["dimension 7 is not registered, the world has 2; register its name first"],
    );
    let before = world.last_commit();
    let done = world.transaction(|tx| {
        tx.save(at, filled(world, ids.stone));
        tx.put_record(id(1), record(ids.overworld, [1.0; 3], "sign", 1));
        tx.put_object("a", *b"x")
    });
    assert_eq!(done.expect("commits").seq, before.next());
    assert!(world.records().get(id(1)).expect("reads").is_some());
}

fn damage_costs_one_record(world: &World) {
    let ids = Ids::register(world);
    put(world, (1..4).map(|n| (n, record(ids.overworld, [1.0, n as f64, 0.0], "sign", 1))));
    let shape = world.records().shape();
    let leaf = shape.leaf(ids.overworld, BlockPos::new(1, 2, 0));
    plant(world, [(Space::Record, key::record(&leaf, id(2)), Some(plain(&[1, 0, 0])))]);
    let problem = "spatial record: format version needs 8 bytes and 3 are left (at byte 0)";
    let error = world.records().get(id(2)).expect_err("is damaged").to_string();
    assert!(error.contains(problem) && error.starts_with("record 00000000"), "{error}");
    let query = RecordQuery::new(ids.overworld, block_box([0; 3], [0; 3]));
    assert!(matches!(world.records().in_leaves(&query), Err(Error::Corrupt(_))));
    let (mut sound, mut damaged) = (0, 0);
    let shown = world.records().for_each_in(&query, |found| {
        *if found.is_ok() { &mut sound } else { &mut damaged } += 1;
        ControlFlow::<()>::Continue(())
    });
    assert_eq!((shown.expect("scans"), sound, damaged), (None, 2, 1));
    // What is damaged is not written over.
    let error = world.transaction(|tx| {
        tx.delete_record(id(2));
        Ok::<_, Error>(())
    });
    assert!(matches!(error, Err(Error::Corrupt(_))));
    assert_eq!(
        findings(world),
        [format!("record: {problem}; restore it from a checkpoint or set it aside with `cg quarantine`")]
    );
}

fn what_lies_wrong_is_found(world: &World) {
    let ids = Ids::register(world);
    let shape = world.records().shape();
    let here = record(ids.overworld, [1.0; 3], "sign", 1);
    let row = |record: &Record| Some(Draft::plain(Codec::None, 0, |out| record.encode(out)));
    let leaf = |x: i64| shape.leaf(ids.overworld, BlockPos::new(x, 1, 1));
    put(world, [(1, here.clone()), (2, here.clone()), (3, here.clone()), (4, here.clone())]);
    let far = record(Dimension::new(8), [900.0; 3], "sign", 1);
    let far_leaf = shape.leaf(Dimension::new(8), far.position.block());
    plant(
        world,
        [
            // In the wrong leaf, and with its place there.
            (Space::Record, key::record(&leaf(100), id(1)), row(&here)),
            (
                Space::RecordPlace,
                key::record_place(id(1)).to_vec(),
                Some(plain(&key::record_leaf(&leaf(100)))),
            ),
            (Space::Record, key::record(&leaf(1), id(1)), None),
            // In two leaves.
            (
                Space::Record,
                key::record(&leaf(200), id(2)),
                row(&record(ids.overworld, [200.0, 1.0, 1.0], "sign", 1)),
            ),
            // A place without its record.
            (Space::Record, key::record(&leaf(1), id(3)), None),
            // A record without its place, in a dimension that is none.
            (Space::Record, key::record(&far_leaf, id(5)), row(&far)),
            (Space::RecordPlace, key::record_place(id(4)).to_vec(), Some(plain(&[2]))),
        ],
    );
    let mut found = findings(world);
    found.sort();
    let found = found.join("\n").replace("00000000-0000-0000-0000-00000000000", "");
    expect![[r"
        record: dimension 8 of its position was never issued
        record: key: tag is 2, but the rest of the value implies 1 (at byte 0)
        record: record 1 does not lie in the leaf that its position names
        record: record 2 has its place in another leaf
        record: record 3 is not in the leaf that its place names
        record: record 5 has no place, so nobody finds it by its id"]]
    .assert_eq(&found);
    let error = world.records().get(id(3)).expect_err("its place says that it is there").to_string();
    let problem = "frame: frame version needs 1 bytes and 0 are left (at byte 0)";
    assert!(error.starts_with("record 00000000-") && error.contains(problem), "{error}");
}

fn the_corners_of_the_world_hold_records(world: &World) {
    let ids = Ids::register(world);
    let corner = |block: i64| {
        let position = EntityPos::new(ids.overworld, BlockPos::new(block, block, block), [0.5; 3]);
        Record::new(position.expect("a position"), "end", 0, Vec::new()).expect("short")
    };
    put(world, [(1, corner(i64::MIN)), (2, corner(i64::MAX)), (3, corner(0))]);
    for (n, block) in [(1, i64::MIN), (2, i64::MAX)] {
        let query = RecordQuery::new(ids.overworld, block_box([block; 3], [block; 3]));
        assert_eq!(ids_in(world, &query), [n]);
    }
    let half = RecordQuery::new(ids.overworld, block_box([-1; 3], [i64::MAX; 3]));
    assert_eq!(ids_in(world, &half), [2, 3]);
    assert_sound(world);
}

#[test]
fn a_record_of_exactly_the_limit_is_taken_and_a_byte_more_is_not() {
    let limits = StoreLimits { record_bytes: 100, ..StoreLimits::default() };
    let world = World::builder()
        .options(&WorldOptions { limits, ..options() })
        .in_memory()
        .expect("a world in memory");
    let ids = Ids::register(&world);
    let sized = |len: usize| {
        let mut record = record(ids.overworld, [0.0; 3], "sign", 0);
        record.payload.clear();
        let rest = len - record.len_bytes();
        record.payload.resize(rest, 7);
        record
    };
    put(&world, [(1, sized(100))]);
    refused(
        &world,
        |tx| {
            tx.put_record(id(2), sized(101));
            Ok(())
        },
        expect![
            "record 00000000-0000-0000-0000-000000000002 takes 101 bytes, the world's limit is 100; raise the limit or split it"
        ],
    );
}

#[test]
fn a_world_keeps_its_shape() {
    let disk = Disk::new();
    let settings =
        RecordSettings { leaf_square_size: 10, tree_degree: 27, num_levels: 3, roots_per_table: 1 };
    let shape = RecordShape::new(settings).expect("a tree");
    let shaped = |shape| WorldOptions { records: Some(shape), ..options() };
    let world = World::builder().options(&shaped(shape)).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    put(&world, [(1, record(ids.overworld, [-10.0, 9.5, 270.0], "sign", 1))]);
    assert_sound(&world);
    drop(world);
    let before = disk.files();
    let error =
        World::builder().options(&shaped(RecordShape::default())).open(disk.path()).expect_err("is refused");
    expect!["the world's records lie in a tree of shape (leaf 10, degree 27, levels 3, roots 1), and (leaf 16, degree 512, levels 2, roots 8) was asked for; a world keeps its shape for ever"]
        .assert_eq(&error.to_string());
    assert!(before == disk.files(), "a refused open changed a byte");
    for options in [shaped(shape), options()] {
        let world = World::builder().options(&options).open(disk.path()).expect("opens");
        assert_eq!(world.records().shape(), shape);
        let query = RecordQuery::new(ids.overworld, block_box([-10, 0, 279], [-10, 0, 279]));
        assert_eq!(ids_in(&world, &query), [1]);
        assert_sound(&world);
    }
    // A damaged shape refuses to open rather than to find nothing.
    disk.raw().flip(Family::WorldMeta, b"recordShape", 30);
    let error = World::builder().options(&options()).open(disk.path()).expect_err("is refused");
    assert!(error.to_string().starts_with("the row of the shape of the records is damaged"), "{error}");
}

#[test]
fn a_box_has_what_is_in_it_and_its_leaves_what_is_around_it() {
    let world = World::builder().options(&options()).in_memory().expect("a world in memory");
    let ids = Ids::register(&world);
    let places = [[0.0, 0.0, 0.0], [1.9, 1.0, 1.0], [2.0, 1.0, 1.0], [-0.1, 0.0, 0.0]];
    put(&world, (1..).zip(places).map(|(n, place)| (n, record(ids.overworld, place, "test:point", 0))));
    let query = RecordQuery::new(ids.overworld, block_box([0, 0, 0], [1, 1, 1]));
    let found = world.records().in_box(&query).expect("reads");
    assert_eq!(found.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), [id(1), id(2)]);
    assert_eq!(ids_in(&world, &query), [1, 2, 3], "their leaf, and not the one beside it");
}

#[test]
fn a_world_of_an_earlier_draft_gets_the_shape_that_is_asked_for() {
    let disk = Disk::new();
    drop(disk.create(&[]));
    disk.raw().delete(Family::WorldMeta, b"recordShape");
    let world = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    assert_eq!(world.records().shape(), RecordShape::default());
    drop(world);
    let settings = RecordSettings { num_levels: 1, ..RecordSettings::default() };
    let shape = RecordShape::new(settings).expect("a tree");
    drop(
        World::builder()
            .options(&WorldOptions { records: Some(shape), ..options() })
            .open(disk.path())
            .expect("opens"),
    );
    assert_eq!(disk.open(&[]).records().shape(), shape);
}
