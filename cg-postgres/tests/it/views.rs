//! Snapshots and scans beside each other, and beside the server's upkeep.

use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use cg_engine::{
    ALL_KEYS, Batch, COMMIT_SEQUENCE_KEY, CommitSeq, Engine as _, EngineError, Family, Guard, Level,
    Readable as _, ReadableExt as _, Space, Stamp,
};
use cg_format::frame::{Codec, Draft, version_of};
use cg_postgres::PostgresEngine;

use crate::database::{database, options};

fn put(engine: &PostgresEngine, rows: u16, len_bytes: usize) {
    let mut batch = Batch::new();
    for n in 0..rows {
        let draft = Draft::plain(Codec::None, 0, |out| out.resize(out.len() + len_bytes, 7));
        batch.put(Space::Object, n.to_le_bytes(), draft, Stamp::Commit);
    }
    engine.commit(batch, &[], Level::Process).expect("commits");
}

fn count(engine: &PostgresEngine, mut visit: impl FnMut()) -> usize {
    let mut rows = 0;
    let scanned = engine.scan(Family::Object, ALL_KEYS, |_, _| {
        rows += 1;
        visit();
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(scanned.expect("scans"), None);
    rows
}

#[test]
fn scans_go_on_beside_as_many_snapshots_as_there_may_be() {
    let Some(database) = database() else { return };
    let world = database.world();
    drop(world.create());
    let mut few = options();
    (few.max_views, few.max_scans, few.patience) = (2, 1, Duration::from_secs(3));
    let engine = PostgresEngine::open(&world.address, &few).expect("opens");
    put(&engine, 300, 10);
    let snapshots = [engine.snapshot().expect("is open"), engine.snapshot().expect("is open")];
    assert_eq!(count(&engine, || {}), 300);
    let third = engine.snapshot().map(drop).expect_err("there are two");
    assert!(third.to_string().contains("2 views are open, which is the limit `max_views`"), "{third}");
    drop(snapshots);
}

#[test]
fn a_scan_of_one_page_holds_nothing_while_its_rows_are_visited() {
    let Some(database) = database() else { return };
    let world = database.world();
    drop(world.create());
    let mut few = options();
    (few.max_scans, few.patience) = (1, Duration::from_secs(3));
    let engine = PostgresEngine::open(&world.address, &few).expect("opens");
    put(&engine, 3, 10);
    let mut inner = 0;
    assert_eq!(count(&engine, || inner += count(&engine, || {})), 3);
    assert_eq!(inner, 9);
}

#[test]
fn statistics_delay_no_reader() {
    const READERS: usize = 8;
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    put(&engine, 3, 10);
    thread::scope(|scope| {
        // The lock that statistics need.
        let lock =
            "BEGIN; LOCK TABLE {schema}.cg_row IN SHARE UPDATE EXCLUSIVE MODE; SELECT pg_sleep(3); COMMIT";
        let locked = scope.spawn(|| world.run(lock));
        thread::sleep(Duration::from_millis(500));
        let flushed = scope.spawn(|| engine.flush());
        thread::sleep(Duration::from_millis(200));
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                scope.spawn(|| {
                    let begun = Instant::now();
                    let mut longest = Duration::ZERO;
                    while begun.elapsed() < Duration::from_secs(1) {
                        let call = Instant::now();
                        assert!(engine.get(Space::Object, &[0, 0]).expect("reads").is_some());
                        longest = longest.max(call.elapsed());
                    }
                    longest
                })
            })
            .collect();
        for reader in readers {
            let longest = reader.join().expect("reads");
            assert!(longest < Duration::from_millis(900), "a read took {longest:?}");
        }
        flushed.join().expect("does not panic").expect("is the owner");
        locked.join().expect("does not panic");
    });
}

#[test]
fn a_snapshot_ends_with_its_engine() {
    let Some(database) = database() else { return };
    let world = database.world();
    put(&world.create(), 1, 10);
    let reader = world.read();
    let kept = reader.follow().expect("is taken");
    let transactions = || {
        let open = "SELECT count(*) FROM pg_stat_activity WHERE strpos(query, '{schema}') > 0 AND state = 'idle in transaction'";
        world.run(open)
    };
    assert_eq!(transactions().as_deref(), Some("1"));
    reader.close().expect("closes");
    let begun = Instant::now();
    while transactions().as_deref() != Some("0") {
        assert!(begun.elapsed() < Duration::from_secs(5), "its transaction outlives the engine");
        thread::sleep(Duration::from_millis(20));
    }
    let refused = kept.get(Space::Object, &[0, 0]).map(drop).expect_err("the engine is closed");
    assert!(matches!(refused, cg_engine::EngineError::Closed), "{refused}");
}

#[test]
fn a_commit_searches_no_index_for_the_rows_that_each_one_replaces() {
    const COMMITS: u64 = 300;
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    for _ in 0..COMMITS {
        engine.commit(Batch::new(), &[], Level::Process).expect("commits");
    }
    // A session reports what it did at the latest when it ends.
    drop(engine);
    let until = Instant::now() + Duration::from_secs(20);
    for table in ["cg_head", "cg_row"] {
        let reported = |column: &str| -> u64 {
            let query = format!(
                "SELECT {column} FROM pg_stat_user_tables WHERE relid = '{{schema}}.{table}'::regclass"
            );
            world.run(&query).expect("has a row").parse().expect("is a number")
        };
        while reported("n_tup_upd") < COMMITS - 1 {
            assert!(Instant::now() < until, "{table}: {} updates", reported("n_tup_upd"));
            thread::sleep(Duration::from_millis(50));
        }
        let searches = reported("idx_scan");
        assert!(searches < COMMITS / 10, "{table}: {searches} searches");
    }
}

#[test]
fn rows_that_moved_are_found_by_the_index() {
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    let commit = || engine.commit(Batch::new(), &[], Level::Process).map(CommitSeq::get);
    assert_eq!(commit().expect("commits"), 1);
    // Each row gets another place.
    for table in ["cg_head", "cg_row"] {
        world.run(&format!("VACUUM FULL {{schema}}.{table}"));
        assert!(commit().expect("commits") > 1);
    }
    // A transaction that ends without a commit leaves the places as they were.
    let guard = Guard::absent(Space::WorldMeta, COMMIT_SEQUENCE_KEY);
    let refused = engine.commit(Batch::new(), &[guard], Level::Process);
    assert!(matches!(refused, Err(EngineError::Conflict { .. })), "{refused:?}");
    assert_eq!(commit().expect("commits"), 4);
    let stored = world.run("SELECT seq || ' ' || batches FROM {schema}.cg_head WHERE seg = 0");
    assert_eq!(stored.as_deref(), Some("4 4"));
    assert_eq!(engine.last_commit().get(), 4);
    let row = engine.get(Space::WorldMeta, COMMIT_SEQUENCE_KEY).expect("reads").expect("is there");
    assert_eq!(version_of(&row), Some(4));
    // Another owner's head comes to the place that this one remembers.
    world.run("VACUUM FULL {schema}.cg_head");
    assert_eq!(commit().expect("commits"), 5);
    let place = world.run("SELECT ctid FROM {schema}.cg_head");
    let taking = world.address.clone().with_take(true);
    let next = PostgresEngine::open(&taking, &options()).expect("takes the rows");
    world.run("VACUUM FULL {schema}.cg_head");
    assert_eq!(next.commit(Batch::new(), &[], Level::Process).expect("commits").get(), 6);
    assert_eq!(world.run("SELECT ctid FROM {schema}.cg_head"), place, "the test meets the case");
    let fenced = commit();
    assert!(matches!(fenced, Err(EngineError::Fenced { .. })), "{fenced:?}");
    assert_eq!(next.commit(Batch::new(), &[], Level::Process).expect("commits").get(), 7);
}
