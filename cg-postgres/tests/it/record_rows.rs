//! Rows of the family of records, with and without a table, equal those of an engine in memory.

use std::collections::BTreeSet;
use std::ops::Bound;

use cg_engine::{
    Batch, Engine, EngineError, Guard, Level, MemEngine, Readable, ReadableExt as _, RowSlice, Space, Stamp,
};
use cg_format::frame::{Codec, Draft};
use cg_format::key::{self, Family, RecordLeaf, RecordPath};
use cg_format::{BlockPos, Dimension};
use cg_postgres::{PostgresEngine, Refusal};
use cg_store::records::RecordShape;

use crate::database::{TestWorld, database, options};
use crate::opening::refusal;
use crate::records::{count, id, leaf, record_at, rows, tables};

pub(crate) fn put(batch: &mut Batch, key: Vec<u8>, body: &[u8]) {
    let draft = Draft::plain(Codec::None, 0, |out| out.extend(body));
    batch.put(Space::Record, key, draft, Stamp::Commit);
}

pub(crate) fn commit(engine: &dyn Engine, fill: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::new();
    fill(&mut batch);
    engine.commit(batch, &[], Level::Process).expect("commits");
}

fn limited(test: &TestWorld, max_record_tables: u32) -> PostgresEngine {
    let mut options = options();
    options.max_record_tables = max_record_tables;
    PostgresEngine::open(&test.address, &options).expect("opens")
}

/// The reads of an engine and of one in memory with the same rows.
fn assert_equal(engine: &dyn Readable, expected: &MemEngine, keys: &[Vec<u8>]) {
    assert_eq!(rows(engine), rows(expected));
    let mut bounds = keys.to_vec();
    bounds.sort();
    for (n, from) in bounds.iter().enumerate() {
        for to in bounds.iter().skip(n).step_by(3) {
            let range = (Bound::Excluded(&from[..]), Bound::Included(&to[..]));
            let scan = |view: &dyn Readable| {
                let mut rows = Vec::new();
                view.try_scan(Family::Record, range, |key, row| {
                    rows.push((key.to_vec(), row.to_vec()));
                    Ok::<_, EngineError>(())
                })
                .expect("scans");
                rows
            };
            assert_eq!(scan(engine), scan(expected));
        }
    }
    let value = |found: Result<Option<cg_engine::Value<'_>>, EngineError>| {
        found.expect("reads").map(|value| value.to_vec())
    };
    let asked: Vec<_> = keys.iter().map(|key| (Space::Record, &key[..])).collect();
    let many = |view: &dyn Readable| view.get_many(&asked).into_iter().map(value).collect::<Vec<_>>();
    assert_eq!(many(engine), many(expected));
    let slices: Vec<_> =
        keys.iter().map(|key| RowSlice { space: Space::Record, key, bytes: 20..30 }).collect();
    let parts = |view: &dyn Readable| view.get_slices(&slices).into_iter().map(value).collect::<Vec<_>>();
    assert_eq!(parts(engine), parts(expected));
    for key in keys {
        let one = |view: &dyn Readable| value(view.get(Space::Record, key));
        assert_eq!(one(engine), one(expected));
    }
}

/// Keys in six tables, keys of another number of levels, keys that do not decode, and places.
fn keys() -> Vec<Vec<u8>> {
    let shape = RecordShape::default();
    let mut keys = Vec::new();
    for (n, x) in (0..).zip([0, -300, 5000, 300, -1, 17]) {
        let leaf = leaf(shape, 5, [x, 9, -x]);
        keys.push(key::record(&leaf, id(n)));
        keys.push(key::record(&leaf, id(n + 40)));
        let path = RecordPath::EMPTY.child(3).expect("few levels");
        keys.push(key::record(&RecordLeaf { path, ..leaf }, id(n)));
        let prefix = &key::record_leaf(&leaf)[..33];
        keys.push([prefix, &[7; 3]].concat());
        keys.push(prefix[..20].to_vec());
        keys.push(key::record_place(id(n)).to_vec());
    }
    keys.push(vec![1]);
    keys.push(vec![1; 200]);
    keys.push(vec![0xff; 60]);
    BTreeSet::from_iter(keys).into_iter().collect()
}

pub(crate) fn bodies() -> [Vec<u8>; 4] {
    let mut record = Vec::new();
    record_at(Dimension::new(5), BlockPos::new(1, 2, 3), "mark", 4).encode(&mut record);
    let mut zero = Vec::new();
    record_at(Dimension::new(5), BlockPos::new(1, 2, 3), "ma\0rk", 4).encode(&mut zero);
    [record, zero, b"no record".to_vec(), Vec::new()]
}

/// Puts, overwrites and removes rows in two engines, one of them with tables, and compares them after each commit.
fn compare_changes(engine: &PostgresEngine, reader: &PostgresEngine) {
    let in_memory = MemEngine::new();
    let (keys, bodies) = (keys(), bodies());
    let both = |fill: &dyn Fn(&mut Batch)| {
        commit(engine, fill);
        commit(&in_memory, fill);
        assert_equal(engine, &in_memory, &keys);
        assert_eq!(rows(reader), rows(&in_memory));
        let snapshot = reader.snapshot().expect("is taken");
        assert_equal(&*snapshot, &in_memory, &keys);
    };
    for (n, part) in keys.chunks(9).enumerate() {
        both(&|batch| {
            for (m, key) in part.iter().enumerate() {
                put(batch, key.clone(), &bodies[(n + m) % 4]);
            }
        });
    }
    both(&|batch| {
        for (n, key) in keys.iter().enumerate().filter(|(n, _)| n % 3 != 1) {
            if n % 3 == 0 {
                put(batch, key.clone(), &bodies[n % 4]);
            } else {
                batch.delete(Space::Record, key);
            }
        }
    });
    let mut sorted = keys.clone();
    sorted.sort();
    both(&|batch| {
        batch.delete_range(Space::Record, &sorted[5], &sorted[12]);
        put(batch, sorted[7].clone(), b"again");
    });
    both(&|batch| batch.delete_range(Space::Record, [], [0xff; 90]));
    assert_eq!(rows(engine), []);
}

#[test]
fn rows_with_and_without_a_table_are_read_as_one_family() {
    let Some(database) = database() else { return };
    let test = database.world();
    drop(test.create());
    // A process that only reads was there before the tables.
    let reader = PostgresEngine::open_read_only(&test.address, &options()).expect("opens");
    assert_eq!(rows(&reader), []);
    let engine = test.open().expect("opens");
    compare_changes(&engine, &reader);
    assert_eq!(tables(&test).len(), 6, "{:?}", tables(&test));
    drop(engine);
    assert_eq!(rows(&test.open().expect("opens")), []);
}

#[test]
fn tables_beyond_the_limit_are_rows() {
    let Some(database) = database() else { return };
    for limit in [0, 2] {
        let test = database.world();
        drop(test.create());
        let reader = PostgresEngine::open_read_only(&test.address, &options()).expect("opens");
        let engine = limited(&test, limit);
        compare_changes(&engine, &reader);
        assert_eq!(tables(&test).len(), limit as usize);
        drop(engine);
        // A table cube stays where it began.
        let engine = limited(&test, 9);
        compare_changes_after(&engine, &reader, &test, limit as usize);
    }
}

fn compare_changes_after(engine: &PostgresEngine, reader: &PostgresEngine, test: &TestWorld, made: usize) {
    commit(engine, |batch| {
        for key in keys() {
            put(batch, key, &bodies()[0]);
        }
    });
    assert_eq!(tables(test).len(), made);
    assert_eq!(rows(engine), rows(reader));
    assert_eq!(rows(engine).len(), keys().len());
}

#[test]
fn a_commit_that_fails_makes_no_table() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let leaf = leaf(RecordShape::default(), 0, [0; 3]);
    let key = key::record(&leaf, id(1));
    let mut batch = Batch::new();
    put(&mut batch, key.clone(), &bodies()[0]);
    let absent = Guard::version(Space::Record, &key[..], 3);
    let failed = engine.commit(batch, &[absent], Level::Process);
    assert!(
        matches!(&failed, Err(EngineError::Conflict { space: Space::Record, found: None, .. })),
        "{failed:?}"
    );
    assert_eq!((tables(&test).len(), count(&test, "{schema}.cg_table"), rows(&engine)), (0, 0, Vec::new()));
    commit(&engine, |batch| put(batch, key.clone(), &bodies()[0]));
    // Guards see rows of tables.
    let mut batch = Batch::new();
    put(&mut batch, key.clone(), &bodies()[1]);
    let failed = engine.commit(batch, &[Guard::absent(Space::Record, &key[..])], Level::Process);
    assert!(
        matches!(&failed, Err(EngineError::Conflict { expected: None, found: Some(1), .. })),
        "{failed:?}"
    );
    let mut batch = Batch::new();
    put(&mut batch, key.clone(), &bodies()[1]);
    engine.commit(batch, &[Guard::version(Space::Record, &key[..], 1)], Level::Process).expect("holds");
    assert_eq!(tables(&test), BTreeSet::from(["records_0_0_0_0".to_owned()]));
}

#[test]
fn columns_of_a_row_that_does_not_decode_are_null() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let leaf = leaf(RecordShape::default(), 0, [0; 3]);
    let keys: Vec<_> = (0..4).map(|n| key::record(&leaf, id(n))).collect();
    commit(&engine, |batch| {
        for (key, body) in keys.iter().zip(bodies()) {
            put(batch, key.clone(), &body);
        }
    });
    let columns = test.run(
        "SELECT string_agg(concat_ws(' ', child_1, child_2, block_x, z, at, kind, convert_from(payload, 'UTF8')), ', ' \
         ORDER BY k) FROM {schema}.records",
    );
    assert_eq!(columns.as_deref(), Some("0 0 1 3.25 4 mark payload 4, 0 0 1 3.25 4 payload 4, 0 0, 0 0"));
    // A row whose columns were right, and are not any more.
    commit(&engine, |batch| put(batch, keys[0].clone(), b"damaged"));
    assert_eq!(count(&test, "{schema}.records WHERE at IS NOT NULL"), 1);
}

#[test]
fn distant_tables_whose_names_are_too_long_are_rows() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let far = leaf(RecordShape::default(), u64::MAX, [i64::MIN, i64::MAX, i64::MIN]);
    let key = key::record(&far, id(1));
    commit(&engine, |batch| put(batch, key.clone(), &bodies()[0]));
    assert_eq!(tables(&test).len(), 0);
    assert_eq!(rows(&engine).len(), 1);
    let near = leaf(RecordShape::default(), u64::MAX, [0, -1, 0]);
    commit(&engine, |batch| put(batch, key::record(&near, id(2)), &bodies()[0]));
    assert_eq!(tables(&test), BTreeSet::from([format!("records_{}_0_n1_0", u64::MAX)]));
    assert_eq!(rows(&engine).len(), 2);
}

#[test]
fn names_of_worlds_are_quoted_in_their_tables_too() {
    let Some(database) = database() else { return };
    let test = database.named(&format!("R{}'%I \"{{name}}$body0$", std::process::id()));
    let engine = test.create();
    let reader = PostgresEngine::open_read_only(&test.address, &options()).expect("opens");
    compare_changes(&engine, &reader);
    assert_eq!(tables(&test).len(), 6);
}

/// A role that may read the tables of the world reads those that are made later.
#[test]
fn a_reader_gets_the_rights_on_later_tables() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let role = "pg_monitor";
    test.run("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO pg_monitor");
    let leaf = leaf(RecordShape::default(), 0, [0; 3]);
    commit(&engine, |batch| put(batch, key::record(&leaf, id(1)), &bodies()[0]));
    for table in ["records", "records_0_0_0_0"] {
        let may = test.run(&format!(
            "SELECT has_table_privilege('{role}', '{}.{table}', 'SELECT')::text || \
             has_table_privilege('{role}', '{}.{table}', 'INSERT')::text",
            test.schema(),
            test.schema()
        ));
        assert_eq!(may.as_deref(), Some("truefalse"), "{table}");
    }
}

#[test]
fn a_table_of_records_that_the_engine_did_not_make_is_refused() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let leaf = leaf(RecordShape::default(), 0, [0; 3]);
    commit(&engine, |batch| put(batch, key::record(&leaf, id(1)), &bodies()[0]));
    drop(engine);
    test.run("CREATE TABLE {schema}.records_own PARTITION OF {schema}.records FOR VALUES FROM ('\\x03') TO ('\\x04')");
    let schema = format!("cg_{}", test.address.world());
    let foreign = |table: &str| Refusal::ForeignTables { schema: schema.clone(), tables: vec![table.into()] };
    assert_eq!(refusal(test.open()), foreign("records_own"));
    test.run("DROP TABLE {schema}.records_own; REVOKE SELECT ON {schema}.records_0_0_0_0 FROM current_user");
    let Refusal::Rights { missing, .. } = refusal(test.open()) else { panic!("expected a right") };
    assert_eq!(missing, ["SELECT on records_0_0_0_0"]);
    test.run("GRANT SELECT ON {schema}.records_0_0_0_0 TO current_user");
    drop(test.open().expect("opens"));
    test.run("CREATE TABLE {schema}.records_own ()");
    assert_eq!(refusal(test.open()), foreign("records_own"));

    let test = database.world();
    drop(test.create());
    test.run("CREATE TABLE {schema}.records (k bytea) PARTITION BY RANGE (k)");
    let schema = format!("cg_{}", test.address.world());
    assert_eq!(refusal(test.open()), Refusal::ForeignTables { schema, tables: vec!["records".into()] });
}

#[test]
fn usage_counts_the_rows_of_tables() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let usage = || {
        let usage = engine.usage().expect("asks");
        let of_records =
            usage.families.iter().find(|usage| usage.family == Family::Record).expect("is listed");
        (of_records.row_count, of_records.table_bytes)
    };
    assert_eq!(usage(), (0, 0));
    commit(&engine, |batch| {
        for n in 0..1000 {
            let leaf = leaf(RecordShape::default(), 0, [(n % 600) as i64, 0, 0]);
            put(batch, key::record(&leaf, id(n)), &bodies()[0]);
        }
    });
    let (rows, bytes) = usage();
    assert!((200..2000).contains(&rows) && bytes > 200_000, "{rows} rows of {bytes} bytes");
    test.run("ANALYZE {schema}.records");
    assert_eq!(usage().0, 1000);
}
