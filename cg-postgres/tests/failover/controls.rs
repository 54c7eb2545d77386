//! Controls: a server without one of its checks loses or doubles something.
//!
//! Each is run with the check too, where nothing is lost.

use std::thread;
use std::time::Duration;

use cg_engine::conformance::shared::Link as _;
use cg_engine::{Batch, Engine as _, EngineError, Level, Reopened};
use cg_postgres::{Options, PostgresEngine};

use crate::cluster::{Cluster, cluster, server};
use crate::cuts::{end_in_wait, over};
use crate::database::{Database, TestWorld};
use crate::failovers::{create, take};

/// How long the log of a primary reaches no other node before the primary fails.
const STALL_S: u32 = 3;

/// A function of the schema, a text of it, and what stands there instead.
pub(crate) type Mutant = (&'static str, &'static str, &'static str);

pub(crate) const PLAIN_READ: Mutant = (
    "cg_again_1",
    "UPDATE {schema}.cg_head SET session = session + (epoch = p_epoch)::int4 WHERE seg = p_seg RETURNING * INTO h;",
    "SELECT * INTO h FROM {schema}.cg_head WHERE seg = p_seg;",
);
/// A commit waits for no other node, as if the server had none to wait for.
const ASYNCHRONOUS: Mutant = (
    "cg_commit_1",
    "FOR i IN 1 .. cardinality(range_f)",
    "PERFORM set_config('synchronous_commit', 'local', true); FOR i IN 1 .. cardinality(range_f)",
);
const NO_EPOCH: Mutant = ("cg_commit_1", "AND epoch = p_epoch", "");
const NO_SESSION: Mutant = ("cg_commit_1", "AND session = p_session", "");

pub(crate) fn world(database: &Database, mutant: Option<Mutant>) -> (TestWorld, PostgresEngine) {
    let world = database.world();
    let engine = create(&world);
    if let Some((function, text, mutant)) = mutant {
        world.replace(function, text, mutant);
    }
    (world, engine)
}

pub(crate) fn stored(world: &TestWorld) -> u64 {
    let seq = world.run("SELECT seq FROM {schema}.cg_head").expect("there is a head");
    seq.parse().expect("is a number")
}

pub(crate) fn commit(engine: &PostgresEngine) -> Result<u64, EngineError> {
    engine.commit(Batch::new(), &[], Level::Power).map(cg_engine::CommitSeq::get)
}

/// Commits to a primary that fails before its log reaches another node. Returns the newest commit that was acknowledged,
/// and the newest one that the next primary has.
fn over_a_lost_primary(cluster: &Cluster, mutant: Option<Mutant>, is_ended: bool) -> (u64, u64) {
    let (world, engine) = world(&cluster.database, mutant);
    assert_eq!(commit(&engine).expect("commits"), 1);
    let stalled = cluster.stall(STALL_S);
    let acknowledged = thread::scope(|scope| {
        if is_ended {
            scope.spawn(|| assert!(end_in_wait(&cluster.database), "no commit waits for another node"));
        }
        commit(&engine).expect("commits")
    });
    stalled.wait();
    (acknowledged, stored(&world))
}

#[test]
fn a_doubt_that_is_found_out_by_a_plain_read_loses_a_commit() {
    let Some(cluster) = cluster() else { return };
    assert_eq!(over_a_lost_primary(&cluster, None, true), (2, 2), "found out by a commit");
    assert_eq!(over_a_lost_primary(&cluster, Some(PLAIN_READ), true), (2, 1), "found out by a read");
}

#[test]
fn asynchronous_replication_loses_a_commit() {
    let Some(cluster) = cluster() else { return };
    assert_eq!(over_a_lost_primary(&cluster, None, false), (2, 2), "synchronous");
    assert_eq!(over_a_lost_primary(&cluster, Some(ASYNCHRONOUS), false), (2, 1), "asynchronous");
}

#[test]
fn without_the_epoch_an_earlier_owner_writes_into_the_rows_of_the_next() {
    let Some(server) = server() else { return };
    for (mutant, is_fenced) in [(None, true), (Some(NO_EPOCH), false)] {
        let (world, first) = world(&server.database, mutant);
        assert_eq!(commit(&first).expect("commits"), 1);
        let second = take(&world);
        match commit(&first) {
            Err(EngineError::ReadOnly { .. } | EngineError::Fenced { .. }) if is_fenced => {}
            Ok(2) if !is_fenced => {}
            other => panic!("{mutant:?}: {other:?}"),
        }
        match commit(&second) {
            Ok(2) if is_fenced => {}
            Err(EngineError::WriteFailed { cause }) if !is_fenced => {
                let cause = cause.to_string();
                assert!(cause.contains("the server acknowledged 1 batches up to commit 1"), "{cause}");
            }
            other => panic!("{mutant:?}: {other:?}"),
        }
    }
}

#[test]
fn without_the_session_a_late_request_is_applied_after_it_was_found_not_to_be() {
    let Some(server) = server() else { return };
    for (mutant, expected) in [(None, (1, 1)), (Some(NO_SESSION), (1, 2))] {
        let (world, first) = world(&server.database, mutant);
        drop(first);
        let mut options = Options::default();
        options.patience = Duration::from_secs(2);
        let (engine, proxy) = over(&server.database, &world, &options);
        assert_eq!(commit(&engine).expect("commits"), 1);
        proxy.delay_next();
        let failed = commit(&engine);
        assert!(matches!(failed, Err(EngineError::WriteFailed { .. })), "{failed:?}");
        let reopen = engine.reopening();
        drop(engine);
        let reopened = reopen(&|_| Ok(true)).expect("is opened again");
        let Reopened::Writable(engine) = reopened else { panic!("{reopened:?}") };
        let found = engine.last_commit().get();
        proxy.deliver_delayed();
        assert_eq!((found, stored(&world)), expected, "{mutant:?}");
    }
}
