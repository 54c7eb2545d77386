//! Records found by area in a world of many tables of records.

use std::time::Duration;

use cg_format::entity::EntityPos;
use cg_format::record::Record;
use cg_format::{BlockBox, BlockPos, Dimension, RecordId};
use cg_store::records::RecordQuery;
use cg_store::{World, WorldOptions};
use uuid::Uuid;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::row::{Bound, Row, ms};
use crate::sample::Sample;

/// Records that the query finds, and tables of the world: one has all that are found, and each other one has one.
const FOUND: u64 = 1000;
const TABLES_A_SIDE: i64 = 10;
/// Queries that are measured.
const QUERIES: usize = 50;

/// Measures an area query of 1,000 records in a world whose records are in 1,000 tables.
///
/// # Errors
/// Of the database.
pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let (engine, _) = bench.database.over(Duration::ZERO)?.create("records")?;
    let world = World::builder().options(&WorldOptions::safe()).create_over(engine)?;
    let dimension = world.registry().register_dimension("bench:meadow")?;
    let side = world.records().shape().table_side_blocks();
    let tables = (0..TABLES_A_SIDE.pow(3))
        .map(|n| [n % TABLES_A_SIDE, n / TABLES_A_SIDE % TABLES_A_SIDE, n / TABLES_A_SIDE.pow(2)]);
    let middles = tables.skip(1).map(|table| table.map(|axis| (axis * side + side / 2) as f64));
    let spread = (0..FOUND).map(|n| [13, 57, 101].map(|step| (n * step % side as u64) as f64 + 0.5));
    let records = middles.chain(spread).zip(0..).map(|(point, n)| record(dimension, point, n));
    world.records().insert(records.collect::<Result<Vec<_>, _>>()?)?;
    world.close()?;
    drop(world);
    let mut rows = Vec::new();
    for delay in Bench::delays() {
        let network = bench.database.over(delay)?;
        let (engine, counter) = network.open("records")?;
        let world = World::builder().options(&WorldOptions::safe()).open_over(engine)?;
        for (what, sides, bound) in [
            ("area query of 1,000 records in one of 1,000 tables", 1, Some((3, 10.0))),
            ("area query of 1,999 records in all 1,000 tables", TABLES_A_SIDE, None),
        ] {
            let last = side * sides - 1;
            let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(last, last, last));
            let query = RecordQuery::new(dimension, area);
            let mut sample = Sample::default();
            for _ in 0..bench.times(QUERIES) {
                let found = sample.measure(&network, &counter, || world.records().in_box(&query))?;
                let expected = FOUND + if sides == 1 { 0 } else { TABLES_A_SIDE.pow(3) as u64 - 1 };
                if found.len() as u64 != expected {
                    return Err(
                        format!("{} records were found, and {expected} are there", found.len()).into()
                    );
                }
            }
            let bound = bound.map(|(trips, own)| Bound::trips(delay, trips, &[("", ms(own))]));
            rows.push(Row::of(what, delay, &mut sample, bound));
        }
        world.close()?;
    }
    rows.sort_by_key(|row| row.what.clone());
    Ok(rows)
}

fn record(dimension: Dimension, point: [f64; 3], n: u128) -> Result<(RecordId, Record), Failure> {
    let position = EntityPos::from_f64(dimension, point)?;
    let record = Record::new(position, "bench:sign", n as i64, vec![n as u8; 32])?;
    Ok((RecordId::new(Uuid::from_u128(n)), record))
}
