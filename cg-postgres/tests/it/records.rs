//! Records as tables: named by the shape, queried with SQL, equal to those of a world in memory.

use std::collections::BTreeSet;

use cg_engine::{ALL_KEYS, EngineError, MemEngine, Readable, ReadableExt as _};
use cg_format::entity::EntityPos;
use cg_format::key::{self, Family, RecordLeaf};
use cg_format::record::Record;
use cg_format::{BlockBox, BlockPos, Dimension, RecordId};
use cg_postgres::PostgresEngine;
use cg_store::prelude::*;
use cg_store::records::{RecordQuery, RecordShape};
use cg_store::view::Area;

use crate::database::{TestWorld, database, options};

/// Numbers that look random.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(crate) fn point(&mut self, reach: i64) -> BlockPos {
        let mut axis = || self.below(2 * reach as u64) as i64 - reach;
        BlockPos::new(axis(), axis(), axis())
    }

    fn block_box(&mut self, reach: i64) -> BlockBox {
        let (from, side) = (self.point(reach), self.below(200) as i64);
        BlockBox::new(from, BlockPos::new(from.x + side, from.y + side / 2, from.z + side))
    }
}

fn register(world: &World) -> Dimension {
    let name = Name::new("game:overworld").expect("a name");
    let registration = Registration { dimensions: vec![name], ..Registration::default() };
    world.registry().register(&registration).expect("registers");
    world.catalog().dimension("game:overworld").expect("a dimension")
}

pub(crate) fn record_at(dimension: Dimension, block: BlockPos, kind: &str, timestamp: i64) -> Record {
    let position = EntityPos::new(dimension, block, [0.5, 0.0, 0.25]).expect("a point");
    Record::new(position, kind, timestamp, format!("payload {timestamp}").into_bytes()).expect("short")
}

pub(crate) fn id(n: u64) -> RecordId {
    RecordId::new(uuid::Uuid::from_u128(u128::from(n) << 64 | 7))
}

/// Puts, moves and removes records in tables around the origin. The same in each world.
fn fill(world: &World, reach: i64) -> Dimension {
    let dimension = register(world);
    let mut numbers = Numbers(1);
    for part in 0..6 {
        let filled = world.transaction(|tx| {
            for n in 0..200 {
                let kind = if n % 3 == 0 { "game:sign" } else { "game:grave" };
                let record = record_at(dimension, numbers.point(reach), kind, part * 200 + n);
                tx.put_record(id(numbers.below(900)), record);
            }
            for _ in 0..30 {
                tx.delete_record(id(numbers.below(900)));
            }
            Ok::<_, Error>(())
        });
        filled.expect("commits");
    }
    dimension
}

pub(crate) fn rows(view: &dyn Readable) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    view.try_scan(Family::Record, ALL_KEYS, |key, row| {
        rows.push((key.to_vec(), row.to_vec()));
        Ok::<_, EngineError>(())
    })
    .expect("scans");
    rows
}

/// The names of the tables, sorted.
pub(crate) fn tables(test: &TestWorld) -> BTreeSet<String> {
    let names = test.run(
        "SELECT coalesce(string_agg(c.relname, ' '), '') FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
         WHERE i.inhparent = to_regclass(quote_ident(nspname()) || '.records')"
            .replace("quote_ident(nspname())", &format!("'{}'", test.schema().replace('\'', "''")))
            .as_str(),
    );
    names.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn count(test: &TestWorld, sql: &str) -> u64 {
    test.run(&format!("SELECT count(*) FROM {sql}")).expect("a row").parse().expect("a number")
}

pub(crate) fn leaf(shape: RecordShape, dimension: u64, block: [i64; 3]) -> RecordLeaf {
    shape.leaf(Dimension::new(dimension), BlockPos::new(block[0], block[1], block[2]))
}

#[test]
fn each_table_cube_has_a_table_that_the_shape_names() {
    let Some(database) = database() else { return };
    let test = database.world();
    let world = World::builder().over(test.create()).expect("begins");
    let dimension = register(&world);
    assert_eq!(
        count(
            &test,
            "pg_class WHERE relname = 'records' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = '{schema}.cg_row'::regclass)"
        ),
        0
    );
    let blocks = [[0, 0, 0], [255, 255, 255], [-1, 0, 600], [256, -257, 0]];
    let filled = world.transaction(|tx| {
        for (n, [x, y, z]) in (0..).zip(blocks) {
            tx.put_record(id(n), record_at(dimension, BlockPos::new(x, y, z), "mark", 0));
        }
        Ok::<_, Error>(())
    });
    filled.expect("commits");
    let dimension = dimension.get();
    let shape = world.records().shape();
    let of_shape = blocks.map(|block| {
        let leaf = leaf(shape, dimension, block);
        key::record_table_name(leaf.dimension, leaf.table)
    });
    let names = [[0, 0, 0], [-1, 0, 2], [1, -2, 0]].map(|table| {
        let [x, y, z] = table.map(|axis: i64| axis.to_string().replace('-', "n"));
        format!("records_{dimension}_{x}_{y}_{z}")
    });
    assert_eq!(tables(&test), names.iter().cloned().collect());
    assert_eq!(tables(&test), of_shape.into_iter().collect());
    assert_eq!(count(&test, &format!("{{schema}}.{}", names[0])), 2);
    assert_eq!(count(&test, "{schema}.cg_row WHERE fam = 9 AND get_byte(k, 0) = 1"), 0);
    // The world is opened with its tables, also by a process that only reads.
    world.close().expect("closes");
    let reader = PostgresEngine::open_read_only(&test.address, &options()).expect("opens");
    assert_eq!(rows(&reader).len(), 8, "each record has its place beside it");
}

#[test]
fn sql_finds_what_the_world_finds() {
    let Some(database) = database() else { return };
    let test = database.world();
    let world = World::builder().over(test.create()).expect("begins");
    let dimension = fill(&world, 300);
    let shape = world.records().shape();
    let corner = BlockPos::new(-3, 7, 200);
    let leaf = shape.leaf(dimension, corner);
    // Every record of the leaf, and every record of the root.
    for (levels, side) in [(2, shape.leaf_side_blocks()), (1, shape.root_side_blocks())] {
        let from = [corner.x, corner.y, corner.z].map(|axis| axis.div_euclid(side) * side);
        let to = from.map(|axis| axis + side - 1);
        let around =
            BlockBox::new(BlockPos::new(from[0], from[1], from[2]), BlockPos::new(to[0], to[1], to[2]));
        let expected = world.records().in_box(&RecordQuery::new(dimension, around)).expect("reads");
        let condition: Vec<_> = (1..)
            .zip(leaf.path.numbers())
            .take(levels)
            .map(|(n, number)| format!("child_{n} = {number}"))
            .collect();
        let table = key::record_table_name(leaf.dimension, leaf.table);
        let sql = test.run(&format!(
            "SELECT coalesce(string_agg(concat_ws(' ', id, block_x, block_y, block_z, x, y, z, at, kind, \
             convert_from(payload, 'UTF8')), E'\\n' ORDER BY k), '') FROM {{schema}}.{table} WHERE {}",
            condition.join(" AND ")
        ));
        let line = |(id, record): &(RecordId, Record)| {
            let (block, [x, y, z]) = (record.position.block(), record.position.to_f64());
            let payload = String::from_utf8_lossy(&record.payload);
            let (at, kind) = (record.timestamp, record.kind());
            let BlockPos { x: bx, y: by, z: bz, .. } = block;
            format!("{} {bx} {by} {bz} {x} {y} {z} {at} {kind} {payload}", id.get())
        };
        let expected: Vec<_> = expected.iter().map(line).collect();
        assert!(levels == 2 || !expected.is_empty());
        assert_eq!(sql.expect("a row"), expected.join("\n"));
    }
    // The whole world, over the parent.
    let corner = |axis| BlockPos::new(axis, axis, axis);
    let all = world
        .records()
        .in_leaves(&RecordQuery::new(dimension, BlockBox::new(corner(-1000), corner(1000))))
        .expect("reads");
    assert_eq!(count(&test, "{schema}.records"), all.len() as u64);
    let signs = all.iter().filter(|(_, record)| record.kind() == "game:sign").count();
    assert_eq!(count(&test, "{schema}.records WHERE kind = 'game:sign'"), signs as u64);
    let plan = test.run(
        "SELECT set_config('enable_seqscan', 'off', false); CREATE TEMP TABLE plan (line text); \
         DO $$ DECLARE line text; BEGIN FOR line IN EXECUTE \
         'EXPLAIN SELECT id FROM {schema}.records WHERE child_1 = 3 AND child_2 = 17' \
         LOOP INSERT INTO plan VALUES (line); END LOOP; END $$; SELECT string_agg(line, E'\\n') FROM plan",
    );
    let plan = plan.expect("is planned");
    let conditions = plan.matches("Index Cond: ((child_1 = 3) AND (child_2 = 17))").count();
    assert_eq!(conditions, tables(&test).len(), "{plan}");
}

#[test]
fn areas_have_the_records_that_they_have_in_memory() {
    let Some(database) = database() else { return };
    let test = database.world();
    let world = World::builder().over(test.create()).expect("begins");
    let in_memory = World::builder().in_memory().expect("begins");
    let dimension = fill(&in_memory, 400);
    assert_eq!(fill(&world, 400), dimension);
    let mut numbers = Numbers(9);
    let mut found = 0;
    for n in 0..60 {
        let boxes: Vec<_> = (0..=n % 4).map(|_| numbers.block_box(400)).collect();
        let query = RecordQuery::in_areas(dimension, boxes);
        let query = if n % 5 == 0 { query.of_kind("game:sign").after(300) } else { query };
        let expected = in_memory.records().in_leaves(&query).expect("reads");
        found += expected.len();
        assert_eq!(world.records().in_leaves(&query).expect("reads"), expected, "{query:?}");
    }
    assert!(found > 100, "{found}");
    for n in 0..900 {
        let expected = in_memory.records().get(id(n)).expect("reads");
        assert_eq!(world.records().get(id(n)).expect("reads"), expected, "{n}");
    }
    let hash = |world: &World| world.content_hash(Area::World).expect("hashes");
    assert_eq!(hash(&world), hash(&in_memory));
    assert!(world.verify(cg_store::verify::VerifyDepth::Full, |_| {}).expect("verifies").is_ok());
}

#[test]
fn a_copy_there_and_back_has_the_same_rows() {
    let Some(database) = database() else { return };
    let in_memory = World::builder().in_memory().expect("begins");
    fill(&in_memory, 400);
    let expected = rows(&*in_memory.engine());
    assert!(expected.len() > 1000);
    let test = database.world();
    let engine = test.create();
    World::builder().copy_over(&in_memory, &engine, |_| {}).expect("copies");
    assert!(rows(&engine) == expected);
    assert!(tables(&test).len() >= 64, "{:?}", tables(&test));
    drop(engine);
    let world = World::builder()
        .open_read_only_over(PostgresEngine::open_read_only(&test.address, &options()).expect("opens"))
        .expect("opens");
    let back = MemEngine::new();
    World::builder().copy_over(&world, &back, |_| {}).expect("copies");
    assert!(rows(&back) == expected);
}

#[test]
fn columns_that_contradict_their_rows_are_found() {
    let Some(database) = database() else { return };
    let test = database.world();
    let world = World::builder().over(test.create()).expect("begins");
    let dimension = register(&world);
    let filled = world.transaction(|tx| {
        for n in 0..3000 {
            let block = BlockPos::new(n as i64 - 1500, 0, 7);
            tx.put_record(id(n), record_at(dimension, block, "mark", n as i64));
        }
        Ok::<_, Error>(())
    });
    filled.expect("commits");
    let verify = || world.verify(cg_store::verify::VerifyDepth::Full, |_| {}).expect("verifies").findings;
    assert_eq!(verify(), []);
    test.run(
        "UPDATE {schema}.records SET kind = 'other', x = x + 1 WHERE at = 5; \
         UPDATE {schema}.records SET payload = set_byte(payload, 2, 0) WHERE at = 1500; \
         UPDATE {schema}.records SET at = NULL WHERE at = 2999",
    );
    let mut findings: Vec<_> = verify()
        .into_iter()
        .map(|finding| {
            let (leaf, _) = key::decode_record(&finding.key).expect("is the key of a record");
            assert_eq!(finding.family, Family::Record);
            (leaf.table[0], finding.what)
        })
        .collect();
    findings.sort();
    let what = |columns| {
        format!(
            "columns of its table contradict the row, which the world reads: {columns}; put the record again"
        )
    };
    assert_eq!(findings, [(-6, what("kind, x")), (0, what("payload")), (5, what("at"))]);
}
