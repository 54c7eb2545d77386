//! A primary that waits for other nodes in vain, and one that stops waiting.

use std::thread;
use std::time::{Duration, Instant};

use cg_engine::{Engine as _, EngineError, Readable as _, Reopened, Space};
use cg_postgres::PostgresEngine;

use crate::cluster::{Cluster, cluster};
use crate::controls::{commit, stored};
use crate::database::TestWorld;
use crate::failovers::{create, patient};

/// How long no standby runs.
const STOPPED_S: u32 = 10;
const STALL_S: u32 = 4;

#[test]
fn commits_wait_while_no_standby_runs() {
    let Some(cluster) = cluster() else { return };
    let world = cluster.database.world();
    let engine = create(&world);
    assert_eq!(commit(&engine).expect("commits"), 1);
    let stopped = cluster.stop_standbys(STOPPED_S);
    let begun = Instant::now();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| (commit(&engine), begun.elapsed()));
        // Reads go on meanwhile.
        let mut reads = 0;
        while begun.elapsed() < Duration::from_secs(u64::from(STOPPED_S) - 2) {
            assert!(engine.get(Space::Object, b"a").expect("reads").is_none());
            assert!(!waiting.is_finished(), "a commit is answered that no standby has");
            reads += 1;
            thread::sleep(Duration::from_millis(10));
        }
        let (committed, took) = waiting.join().expect("does not panic");
        assert_eq!(committed.expect("waits"), 2);
        println!("no standby for {STOPPED_S} s: {reads} reads, 1 commit answered after {took:.1?}");
    });
    stopped.wait();
    assert_eq!(commit(&engine).expect("commits"), 3);
    assert_eq!(stored(&world), 3);
}

/// Commits to a primary that gets no log to other nodes, stops waiting for them, and fails.
fn over_an_unset_primary(cluster: &Cluster, engine: &PostgresEngine) -> Result<u64, EngineError> {
    assert_eq!(commit(engine).expect("commits"), 1);
    let stalled = cluster.stall_and_unset(STALL_S);
    let committed = commit(engine);
    stalled.wait();
    committed
}

#[test]
fn a_commit_is_in_doubt_if_the_server_stopped_waiting_for_other_nodes() {
    let Some(cluster) = cluster() else { return };
    let world = cluster.database.world();
    let engine = create(&world);
    match over_an_unset_primary(&cluster, &engine) {
        Err(EngineError::WriteFailed { cause }) => {
            assert!(cause.to_string().contains("synchronous_standby_names"), "{cause}");
        }
        other => panic!("expected that it is in doubt, got {other:?}"),
    }
    assert_eq!(stored(&world), 1, "it is lost");
    let reopen = engine.reopening();
    drop(engine);
    let reopened = reopen(&|found| Ok(found.last_commit.get() == 1)).expect("is opened again");
    let Reopened::Writable(engine) = reopened else { panic!("{reopened:?}") };
    assert_eq!(engine.last_commit().get(), 1);
    drop(engine);
    // Without the check behind each commit it is acknowledged, and lost.
    let world: TestWorld = cluster.database.world();
    let address = cluster.database.with("replication=storage");
    let address = address.with_world(world.address.world()).expect("fits");
    let engine = PostgresEngine::create(&address, &patient()).expect("is made");
    let acknowledged = over_an_unset_primary(&cluster, &engine).expect("is acknowledged");
    assert_eq!((acknowledged, stored(&world)), (2, 1));
}
