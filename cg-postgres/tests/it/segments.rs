//! Two segments in one schema: the world of segment 0 neither shows nor changes the rows of another.

use cg_engine::{
    ALL_KEYS, Batch, Engine as _, EngineError, Family, Guard, Level, Readable, ReadableExt as _, RowSlice,
    Space,
};
use cg_format::{BlockBox, BlockPos, Dimension, key};
use cg_store::prelude::*;
use cg_store::records::{RecordQuery, RecordShape};
use cg_store::verify::{ContentHash, VerifyDepth};
use cg_store::view::Area;

use crate::database::{TestWorld, database};
use crate::records::{id, leaf, record_at};

/// Rows of another segment: under each key of segment 0, and under a key after each. The last byte of a key of records
/// is one of its id, so both are in one table.
const ANOTHER: &str = "
    INSERT INTO {schema}.cg_row SELECT 7, fam, k, '\\x00' FROM {schema}.cg_row WHERE seg = 0;
    INSERT INTO {schema}.cg_row SELECT 7, fam, k || '\\x07', '\\x00' FROM {schema}.cg_row WHERE seg = 0;
    INSERT INTO {schema}.records (seg, k, kind, v) SELECT 7, k, 'another', '\\x00' FROM {schema}.records WHERE seg = 0;
    INSERT INTO {schema}.records (seg, k, kind, v)
        SELECT 7, set_byte(k, octet_length(k) - 1, 99), 'another', '\\x00' FROM {schema}.records WHERE seg = 0;
    INSERT INTO {schema}.cg_head VALUES (7, 70, 71, 72, 73, NULL, false, 'another')";
/// A digest of these rows.
const DIGEST: &str = "SELECT md5((SELECT string_agg(fam || encode(k || v, 'hex'), ' ' ORDER BY fam, k) FROM {schema}.cg_row WHERE seg = 7)
    || (SELECT string_agg(encode(k || v, 'hex') || kind, ' ' ORDER BY k) FROM {schema}.records WHERE seg = 7)
    || (SELECT h::text FROM {schema}.cg_head h WHERE seg = 7))";

/// What a world says of itself.
#[derive(Debug, PartialEq)]
struct Said {
    rows: Vec<(Family, Vec<u8>, Vec<u8>)>,
    values: Vec<Option<Vec<u8>>>,
    records: Vec<RecordId>,
    hash: ContentHash,
    findings: usize,
    last_commit: u64,
}

fn all(view: &dyn Readable) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    for family in Family::ALL {
        let scanned = view.try_scan(family, ALL_KEYS, |key, row| {
            rows.push((family, key.to_vec(), row.to_vec()));
            Ok::<_, EngineError>(())
        });
        scanned.expect("scans");
    }
    rows
}

fn say(world: &World, dimension: Dimension) -> Said {
    let area = BlockBox::new(BlockPos::new(-600, -10, -10), BlockPos::new(600, 10, 10));
    let records = world.records().in_box(&RecordQuery::new(dimension, area)).expect("reads");
    let records = records.into_iter().map(|(id, _)| id).collect();
    let engine = world.engine();
    let keys: Vec<_> = record_keys().into_iter().map(|key| (Space::Record, key)).collect();
    let behind = [b"a\x07".to_vec(), b"a".to_vec()].map(|key| (Space::Object, key));
    let asked: Vec<_> = keys.iter().chain(&behind).map(|(space, key)| (*space, &key[..])).collect();
    let slices: Vec<_> =
        asked.iter().map(|(space, key)| RowSlice { space: *space, key, bytes: 0..40 }).collect();
    let one = asked.iter().map(|(space, key)| engine.get(*space, key));
    let found = one.chain(engine.get_many(&asked)).chain(engine.get_slices(&slices));
    Said {
        rows: all(&*engine),
        values: found.map(|found| found.expect("reads").map(|value| value.to_vec())).collect(),
        records,
        hash: world.content_hash(Area::World).expect("hashes"),
        findings: world.verify(VerifyDepth::Full, |_| {}).expect("verifies").findings.len(),
        last_commit: world.last_commit().get(),
    }
}

/// Keys of a record that segment 0 has, and of one that only the other has.
fn record_keys() -> [Vec<u8>; 2] {
    let leaf = leaf(RecordShape::default(), 0, [-500, 0, 0]);
    let known = key::record(&leaf, id(0));
    let mut other = known.clone();
    if let Some(last) = other.last_mut() {
        *last = 99;
    }
    [known, other]
}

fn filled(test: &TestWorld) -> (World, Dimension) {
    let world = World::builder().over(test.create()).expect("begins");
    let name = Name::new("game:overworld").expect("a name");
    let registration = Registration { dimensions: vec![name], ..Registration::default() };
    world.registry().register(&registration).expect("registers");
    let dimension = world.catalog().dimension("game:overworld").expect("a dimension");
    let put = world.transaction(|tx| {
        for n in 0..200 {
            let block = BlockPos::new(n as i64 * 5 - 500, 0, 0);
            tx.put_record(id(n), record_at(dimension, block, "game:sign", n as i64));
        }
        for key in ["a", "b", "c"] {
            tx.put_object(key, vec![7; 100])?;
        }
        Ok::<_, Error>(())
    });
    put.expect("commits");
    (world, dimension)
}

#[test]
fn rows_of_another_segment_are_not_shown_and_not_changed() {
    let Some(database) = database() else { return };
    let test = database.world();
    let (world, dimension) = filled(&test);
    let before = say(&world, dimension);
    assert_eq!((before.records.len(), before.findings), (200, 0));
    assert!(before.values.iter().step_by(4).all(Option::is_some), "{:?}", before.values);
    test.run(ANOTHER);
    let another = test.run(DIGEST);
    assert_eq!(say(&world, dimension), before);

    // Commits of the world, and another opening.
    let changed = world.transaction(|tx| {
        tx.put_object("a", vec![8; 100])?;
        tx.delete_object("b")?;
        tx.delete_record(id(1));
        tx.put_record(id(2), record_at(dimension, BlockPos::new(-490, 0, 0), "game:grave", 9));
        Ok::<_, Error>(())
    });
    changed.expect("commits");
    world.close().expect("closes");
    let world = World::builder().over(test.open().expect("opens")).expect("begins");
    let after = say(&world, dimension);
    assert_eq!((after.records.len(), after.findings), (199, 0));
    world.close().expect("closes");
    assert_eq!(test.run(DIGEST), another);

    // Guards and ranges of the engine.
    let engine = test.open().expect("opens");
    let [known, other] = record_keys();
    let guards = [Guard::absent(Space::Object, b"a\x07"), Guard::absent(Space::Record, other)];
    engine.commit(Batch::new(), &guards, Level::Process).expect("only the other segment has them");
    let refused = engine.commit(Batch::new(), &[Guard::absent(Space::Record, known)], Level::Process);
    assert!(matches!(refused, Err(EngineError::Conflict { .. })), "{refused:?}");
    let mut batch = Batch::new();
    for space in [Space::Record, Space::Object, Space::WorldMeta] {
        batch.delete_range(space, [], [0xff; 64]);
    }
    engine.commit(batch, &[], Level::Process).expect("commits");
    let left = all(&engine);
    let emptied = [Family::Record, Family::Object];
    assert!(left.iter().all(|(family, ..)| !emptied.contains(family)), "{left:?}");
    assert_eq!(test.run(DIGEST), another);
}

#[test]
fn usage_is_of_one_segment() {
    let Some(database) = database() else { return };
    let test = database.world();
    let (world, _) = filled(&test);
    let usage = || {
        test.run("ANALYZE {schema}.cg_row; ANALYZE {schema}.records");
        let usage = world.engine().usage().expect("asks");
        usage.families.iter().map(|family| (family.family, family.row_count)).collect::<Vec<_>>()
    };
    let before = usage();
    // A row of each record, and one of its place.
    assert!(before.contains(&(Family::Record, 400)), "{before:?}");
    test.run(ANOTHER);
    assert_eq!(usage(), before);
}
