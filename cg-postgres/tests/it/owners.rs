//! Owners that are fenced, and those that only seem to be.

use std::thread::sleep;
use std::time::Duration;

use cg_engine::{Batch, CommitSeq, Engine as _, EngineError, Fence, Level};
use cg_postgres::PostgresEngine;

use crate::database::{TestWorld, database, options};
use crate::faults::with_statement;

type Call = fn(&PostgresEngine) -> Result<(), EngineError>;

/// An owner without its lock tries to take it again after this time.
const LOCK_AGAIN: Duration = Duration::from_secs(2);

fn take(world: &TestWorld) -> PostgresEngine {
    PostgresEngine::open(&world.address.clone().with_take(true), &options()).expect("is taken")
}

fn commit(engine: &PostgresEngine) -> Result<CommitSeq, EngineError> {
    engine.commit(Batch::new(), &[], Level::Power)
}

#[track_caller]
fn assert_fenced<T: std::fmt::Debug>(result: Result<T, EngineError>) {
    assert!(matches!(result, Err(EngineError::Fenced { why: Fence::Owner { .. } })), "{result:?}");
}

/// The transaction that wrote the head.
fn written_by(world: &TestWorld) -> String {
    world.run("SELECT xmin FROM {schema}.cg_head").expect("there is a head")
}

#[test]
fn an_owner_that_is_on_no_other_node_fences_none() {
    let Some(database) = database() else { return };
    let world = database.world();
    let other = "IF p_session = 1 THEN RAISE EXCEPTION 'another owner' USING ERRCODE = 'CG001', DETAIL = '77 1 0 it'; END IF";
    let engine = with_statement(&world, other);
    // The next commit meets what a failover took away meanwhile.
    assert_eq!(commit(&engine).expect("it is the owner").get(), 1);
    let head = world.run("SELECT session || ' ' || batches FROM {schema}.cg_head");
    assert_eq!(head.as_deref(), Some("2 1"), "it asked again");
}

#[test]
fn an_owner_that_always_seems_to_be_another_ends_writing() {
    let Some(database) = database() else { return };
    let world = database.world();
    let other = "RAISE EXCEPTION 'another owner' USING ERRCODE = 'CG001', DETAIL = '77 1 0 it'";
    let engine = with_statement(&world, other);
    match commit(&engine) {
        Err(EngineError::ReadOnly { cause }) => {
            assert!(cause.to_string().contains("changes its owner or session again and again"), "{cause}");
        }
        unexpected => panic!("expected that nothing is written, got {unexpected:?}"),
    }
    assert_eq!(world.run("SELECT batches FROM {schema}.cg_head").as_deref(), Some("0"));
}

#[test]
fn an_owner_is_fenced_by_what_a_commit_has_replicated() {
    let Some(database) = database() else { return };
    let world = database.world();
    let calls: [(&str, Call); 3] = [
        ("commit", |engine| commit(engine).map(drop)),
        ("sync", |engine| engine.sync()),
        ("flush", |engine| engine.flush()),
    ];
    let mut owner = world.create();
    for (how, call) in calls {
        let next = take(&world);
        let before = written_by(&world);
        assert_fenced(call(&owner));
        assert_ne!(written_by(&world), before, "{how}: it was fenced by a read");
        owner = next;
    }
    assert_eq!(commit(&owner).expect("it is not disturbed").get(), 1);
}

#[test]
fn an_owner_whose_opening_was_lost_is_not_the_next_one() {
    let Some(database) = database() else { return };
    let world = database.world();
    drop(world.create());
    let epoch = world.run("SELECT epoch FROM {schema}.cg_head").expect("there is a head");
    let lost = take(&world);
    // A failover takes the opening away.
    world.run(&format!("UPDATE {{schema}}.cg_head SET epoch = {epoch}, session = 1"));
    let next = take(&world);
    assert_fenced(commit(&lost));
    assert_eq!(commit(&next).expect("it is the owner").get(), 1);
}

#[test]
fn an_owner_without_its_lock_takes_it_once_it_is_free() {
    let Some(database) = database() else { return };
    let world = database.world();
    let first = world.create();
    let second = take(&world);
    assert_eq!(commit(&second).expect("commits").get(), 1);
    drop(first);
    sleep(LOCK_AGAIN + Duration::from_millis(100));
    assert_eq!(commit(&second).expect("commits").get(), 2);
    let third = world.open();
    assert!(matches!(third, Err(EngineError::InUse { .. })), "{third:?}");
    assert_eq!(commit(&second).expect("is not fenced").get(), 3);
    drop(second);
    drop(world.open().expect("no process has it"));
}

#[test]
fn a_fenced_owner_keeps_no_lock() {
    let Some(database) = database() else { return };
    let world = database.world();
    let first = world.create();
    let second = take(&world);
    assert_fenced(commit(&first));
    sleep(LOCK_AGAIN + Duration::from_millis(100));
    second.sync().expect("is the owner");
    drop(first);
    let third = world.open();
    assert!(matches!(third, Err(EngineError::InUse { .. })), "{third:?}");
}
