//! Tables of records as the server has them: gone, alone with a row, and with statistics.

use cg_engine::{Batch, Engine as _, EngineError, Level, Place, Readable as _};
use cg_format::key::{self, Family};
use cg_postgres::PostgresEngine;
use cg_store::records::RecordShape;

use crate::database::{database, options};
use crate::record_rows::{bodies, commit, put};
use crate::records::{count, id, leaf, tables};

#[test]
fn a_table_of_records_that_is_gone_is_damage() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let shape = RecordShape::default();
    commit(&engine, |batch| {
        for (n, x) in (0..).zip([0, 5000]) {
            put(batch, key::record(&leaf(shape, 0, [x, 0, 0]), id(n)), &bodies()[0]);
        }
    });
    drop(engine);
    let names: Vec<_> = tables(&test).into_iter().collect();
    let [first, second] = &names[..] else { panic!("expected two tables: {names:?}") };
    let is_damage = |opened: Result<PostgresEngine, EngineError>, gone: &str| {
        let expected = format!(
            "of the table records these partitions are gone: {gone}; attach those that were detached"
        );
        match opened {
            Err(EngineError::Corrupt { place: Place::Family(Family::Record), message }) => {
                assert!(message.starts_with(&expected), "{message}");
            }
            other => panic!("expected damage, got {other:?}"),
        }
    };
    test.run(&format!("ALTER TABLE {{schema}}.records DETACH PARTITION {{schema}}.{second}"));
    is_damage(test.open(), second);
    test.run(&format!("DROP TABLE {{schema}}.{second}"));
    is_damage(test.open(), second);
    is_damage(PostgresEngine::open_read_only(&test.address, &options()), second);
    test.run(&format!("DROP TABLE {{schema}}.{first}"));
    is_damage(test.open(), &format!("{first}, {second}"));
}

#[test]
fn a_row_in_a_table_of_records_is_noticed() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let row = key::record(&leaf(RecordShape::default(), 0, [0; 3]), id(1));
    let mut batch = Batch::new();
    put(&mut batch, row, &bodies()[0]);
    engine.commit(batch.maintenance(), &[], Level::Process).expect("commits");
    assert_eq!((count(&test, "{schema}.cg_row"), count(&test, "{schema}.records")), (0, 1));
    assert!(!engine.is_empty().expect("reads"));
    test.run("DELETE FROM {schema}.records");
    assert!(engine.is_empty().expect("reads"));
}

#[test]
fn a_flush_makes_the_statistics_of_tables() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let fill = |from: u64, to: u64| {
        commit(&engine, |batch| {
            for n in from..to {
                put(batch, key::record(&leaf(RecordShape::default(), 0, [0; 3]), id(n)), &bodies()[0]);
            }
        });
        engine.flush().expect("is the owner");
    };
    let known =
        || test.run("SELECT reltuples::int8 FROM pg_class WHERE oid = '{schema}.records_0_0_0_0'::regclass");
    fill(0, 300);
    assert_eq!(known().as_deref(), Some("300"));
}
