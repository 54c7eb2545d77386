//! The calls and the time of an area query in a world of many tables.

use std::ops::ControlFlow;
use std::time::Instant;

use cg_engine::conformance::Counting;
use cg_engine::{Batch, Engine as _, Level, Readable, Space, Stamp};
use cg_format::frame::{Codec, Draft};
use cg_format::key;
use cg_format::{BlockArea, BlockBox, BlockPos, Dimension};
use cg_store::layer::scan_area;
use cg_store::records::RecordShape;

use crate::database::{TestWorld, database};
use crate::records::{Numbers, id, record_at, tables};

/// Queries an area over eight of some tables.
fn query(test: &TestWorld, table_count: u64) {
    let engine = test.create();
    let shape = RecordShape::default();
    let dimension = Dimension::new(0);
    let mut batch = Batch::new();
    let put = |batch: &mut Batch, n: u64, block: BlockPos| {
        let record = record_at(dimension, block, "mark", 0);
        let draft = Draft::plain(Codec::None, 0, |out| record.encode(out));
        batch.put(Space::Record, key::record(&shape.leaf(dimension, block), id(n)), draft, Stamp::Commit);
    };
    let mut numbers = Numbers(4);
    for n in 0..table_count {
        let axis = |n: u64| (n % 10) as i64 * 256 - 1280;
        put(&mut batch, n, BlockPos::new(axis(n), axis(n / 10), axis(n / 100)));
    }
    // A box over eight tables, with 1,000 records and some around it.
    for n in 0..2000 {
        let block = numbers.point(if n % 2 == 0 { 80 } else { 200 });
        put(&mut batch, table_count + n, block);
    }
    engine.commit(batch, &[], Level::Process).expect("commits");
    assert!((table_count..table_count + 99).contains(&(tables(test).len() as u64)) || table_count == 1000);
    let corner = |axis| BlockPos::new(axis, axis, axis);
    let area = BlockArea::from(BlockBox::new(corner(-80), corner(79)));
    let (counting, counter) = Counting::over(engine);
    let find = |view: &dyn Readable| {
        let mut found = 0;
        let broken = scan_area(view, &[], shape, dimension, &area, |record| {
            record.expect("is sound");
            found += 1;
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(broken.expect("reads"), None);
        found
    };
    for _ in 0..3 {
        let snapshot = counting.snapshot().expect("is taken");
        let begun = Instant::now();
        let (found, calls) = counter.during(|| find(&*snapshot));
        let took = begun.elapsed();
        println!("{found} records of {table_count} tables in {took:?}, {calls:?}");
        assert!((1000..1200).contains(&found), "{found}");
        assert_eq!(calls.all(), 1);
    }
}

#[test]
fn an_area_takes_one_call() {
    let Some(database) = database() else { return };
    query(&database.world(), 100);
}

#[test]
#[ignore = "prints the time of a query, which is of use on a machine without other work"]
fn an_area_in_a_world_of_a_thousand_tables() {
    let Some(database) = database() else { return };
    let test = database.world();
    query(&test, 1000);
    // More tables at a time need more locks than a server has.
    for tables in Vec::from_iter(tables(&test)).chunks(50) {
        let names: Vec<_> = tables.iter().map(|name| format!("{{schema}}.{name}")).collect();
        test.run(&format!("DROP TABLE {}", names.join(", ")));
    }
}
