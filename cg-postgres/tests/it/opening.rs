//! Opening and making worlds, and why that is refused.

use std::time::Duration;

use cg_engine::{Batch, Engine as _, EngineError, Fence, Level, Readable as _};
use cg_postgres::{Address, PostgresEngine, Refusal};

use crate::database::{TestWorld, database, options};

/// The refusal below an error.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(opened: Result<T, EngineError>) -> Refusal {
    match opened {
        Err(EngineError::Other { source, .. }) => *source.downcast().expect("is a refusal"),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn tables(world: &TestWorld) -> String {
    let schema = world.schema().replace('\'', "''");
    let count = format!("SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('{schema}')");
    world.run(&count).expect("is a number")
}

#[test]
fn a_world_that_is_not_there_is_not_made() {
    let Some(database) = database() else { return };
    let world = database.world();
    for open in [PostgresEngine::open, PostgresEngine::open_read_only] {
        match open(&world.address, &options()) {
            Err(EngineError::NotAnEngineDir { dir, reason }) => {
                assert_eq!(dir.to_string_lossy(), world.address.to_string());
                assert_eq!(reason, "the database has no schema for it");
            }
            other => panic!("expected that it is not there, got {other:?}"),
        }
    }
    assert_eq!(tables(&world), "0");
}

#[test]
fn a_world_that_is_there_is_not_made_again() {
    let Some(database) = database() else { return };
    let world = database.world();
    world.run("CREATE SCHEMA {schema}");
    assert!(matches!(world.open(), Err(EngineError::NotAnEngineDir { .. })), "its schema is empty");
    drop(world.create());
    let again = PostgresEngine::create(&world.address, &options());
    assert!(matches!(&again, Err(EngineError::AlreadyExists { .. })), "{again:?}");
}

#[test]
fn strange_names_are_quoted() {
    let Some(database) = database() else { return };
    for name in ["Ünï \"quoted\" 'x' $body0$ \\", &"X".repeat(60)] {
        let world = database.named(name);
        let engine = world.create();
        engine.commit(Batch::new(), &[], Level::Process).expect("commits");
        engine.close().expect("closes");
        assert_eq!(world.open().expect("opens").last_commit().get(), 1);
    }
}

#[test]
fn what_cannot_be_reached_is_named_without_a_password() {
    let Some(database) = database() else { return };
    let begun = std::time::Instant::now();
    let world = database.world();
    let nowhere = PostgresEngine::open(&database.over("127.0.0.1:1"), &options());
    match nowhere {
        Err(EngineError::Unavailable { message }) => {
            assert!(message.contains("@127.0.0.1:1/") && message.contains("refused"), "{message}");
        }
        other => panic!("expected that no server answers, got {other:?}"),
    }
    let host = database.primary();
    let address = format!("postgres://nobody:wrong@{host}/postgres?world=w");
    let address: Address = address.parse().expect("is an address");
    match refusal(PostgresEngine::create(&address, &options())) {
        // A server that asks for no password says that there is no such role.
        Refusal::At { place, error } => {
            assert_eq!(place, address.to_string());
            assert!(["28P01", "28000"].contains(&error.code()), "{error}");
        }
        other => panic!("expected a wrong password, got {other:?}"),
    }
    let elsewhere = database.in_database("not there");
    let Refusal::At { error, .. } = refusal(PostgresEngine::create(&elsewhere, &options())) else {
        panic!("expected that there is no such database")
    };
    assert_eq!(error.code(), "3D000");
    assert!(begun.elapsed() < Duration::from_secs(10), "a refusal is not waited for");
    assert_eq!(tables(&world), "0");
}

#[test]
fn a_host_that_does_not_answer_is_passed_over() {
    let Some(database) = database() else { return };
    let world = database.world();
    let hosts = database.over(&format!("127.0.0.1:1,{}", database.primary()));
    let address = hosts.with_world(world.address.world()).expect("fits");
    let engine = PostgresEngine::create(&address, &options()).expect("one of them takes writes");
    assert_eq!(engine.commit(Batch::new(), &[], Level::Process).expect("commits").get(), 1);
    assert!(engine.get(cg_engine::Space::Object, b"a").expect("reads").is_none());
    // If none takes writes, each says why.
    let hosts = database.over("127.0.0.1:1,127.0.0.1:2");
    match PostgresEngine::open(&hosts, &options()) {
        Err(EngineError::Unavailable { message }) => {
            assert!(message.contains("127.0.0.1:1: ") && message.contains("127.0.0.1:2: "), "{message}");
        }
        other => panic!("expected that no host answers, got {other:?}"),
    }
}

#[test]
fn a_schema_of_other_software_or_of_another_release_is_not_touched() {
    let Some(database) = database() else { return };
    let world = database.world();
    world.run("CREATE SCHEMA {schema}; CREATE TABLE {schema}.players (id int)");
    let schema = format!("cg_{}", world.address.world());
    let foreign = Refusal::ForeignTables { schema, tables: vec!["players".into()] };
    assert_eq!(refusal(PostgresEngine::create(&world.address, &options())), foreign);
    assert_eq!(refusal(world.open()), foreign);
    assert_eq!(tables(&world), "1");

    let world = database.world();
    drop(world.create());
    world.run("UPDATE {schema}.cg_schema SET version = 3, min_reader = 1, min_writer = 2, made_by = 'later'");
    let release = |access, needed| {
        let made_by = "later".into();
        Refusal::Release { version: 3, made_by, access, needed, own: 1 }
    };
    assert_eq!(refusal(world.open()), release("writing", 2));
    drop(PostgresEngine::open_read_only(&world.address, &options()).expect("readers of this release may"));
    world.run("UPDATE {schema}.cg_schema SET min_reader = 2");
    let read = PostgresEngine::open_read_only(&world.address, &options());
    assert_eq!(refusal(read), release("reading", 2));
}

#[test]
fn absent_rights_are_named() {
    let Some(database) = database() else { return };
    let world = database.world();
    drop(world.create());
    world.run("REVOKE SELECT ON {schema}.cg_head FROM current_user");
    let Refusal::Rights { missing, .. } = refusal(world.open()) else { panic!("expected a right") };
    assert_eq!(missing, ["SELECT on cg_head"]);
}

#[test]
fn a_role_that_may_not_call_a_function_is_refused_by_name() {
    let Some(database) = database() else { return };
    let world = database.world();
    drop(world.create());
    let revoke = |function: &str| {
        world.run(&format!("REVOKE EXECUTE ON FUNCTION {{schema}}.{function} FROM PUBLIC, current_user"));
    };
    let missing = |opened| match refusal(opened) {
        Refusal::Rights { missing, .. } => missing,
        other => panic!("expected a right, got {other:?}"),
    };
    let read = || PostgresEngine::open_read_only(&world.address, &options());
    revoke("cg_put_1");
    drop(read().expect("a reader does not put rows"));
    assert_eq!(missing(world.open()), ["EXECUTE on the function cg_put_1"]);
    revoke("cg_records_between_1");
    let between = "EXECUTE on the function cg_records_between_1";
    assert_eq!(missing(read()), [between]);
    assert_eq!(missing(world.open()), ["EXECUTE on the function cg_put_1", between]);
}

#[test]
fn a_second_writer_is_refused_unless_it_takes_the_world() {
    let Some(database) = database() else { return };
    let world = database.world();
    let first = world.create();
    let me = format!("process {} on ", std::process::id());
    match world.open() {
        Err(EngineError::InUse { place, owner }) => {
            assert_eq!(place, world.address.to_string());
            assert!(owner.starts_with(&me) && owner.contains(", since "), "{owner}");
        }
        other => panic!("expected that it is in use, got {other:?}"),
    }
    drop(PostgresEngine::open_read_only(&world.address, &options()).expect("readers need no lock"));
    first.commit(Batch::new(), &[], Level::Process).expect("it still is the owner");
    let taken = PostgresEngine::open(&world.address.clone().with_take(true), &options()).expect("takes");
    match first.commit(Batch::new(), &[], Level::Process) {
        Err(EngineError::Fenced { why: Fence::Owner { who } }) => assert!(who.starts_with(&me), "{who}"),
        other => panic!("expected to be fenced, got {other:?}"),
    }
    assert_eq!(taken.commit(Batch::new(), &[], Level::Process).expect("commits").get(), 2);
    // A lock is free when its owner closes, or is dropped.
    drop(first);
    taken.close().expect("closes");
    let next = world.open().expect("no process has it");
    drop(next);
    drop(world.open().expect("no process has it"));
}

#[test]
fn a_server_that_waits_for_no_other_node_is_refused() {
    let Some(database) = database() else { return };
    let world = database.world();
    if !database.run("SHOW synchronous_standby_names").expect("is set").is_empty() {
        eprintln!("\n*** NOT TESTED: a server without other nodes: CG_PG_URL names one with others ***\n");
        return;
    }
    let quorum = database.with("world=quorum").with_world(world.address.world()).expect("fits");
    let refused = refusal(PostgresEngine::create(&quorum, &options()));
    assert!(matches!(refused, Refusal::NotReplicated(_)), "{refused:?}");
    assert_eq!(tables(&world), "0", "nothing is made");
    let engine = world.create();
    let refused = refusal(PostgresEngine::open(&quorum.with_take(true), &options()));
    assert!(matches!(refused, Refusal::NotReplicated(_)), "{refused:?}");
    // The setting changes while the engine is open.
    world.run("UPDATE {schema}.cg_head SET quorum = true");
    match engine.commit(Batch::new(), &[], Level::Process) {
        Err(error @ EngineError::ReadOnly { .. }) => {
            assert!(error.to_string().contains("synchronous_standby_names"), "{error}");
        }
        other => panic!("expected that it is refused, got {other:?}"),
    }
    world.run("UPDATE {schema}.cg_head SET quorum = false");
    let reopen = engine.reopening();
    drop(engine);
    let reopened = reopen(&|found| Ok(found.last_commit.get() == 0)).expect("is opened again");
    let cg_engine::Reopened::Writable(engine) = reopened else { panic!("{reopened:?}") };
    assert_eq!(engine.commit(Batch::new(), &[], Level::Process).expect("commits").get(), 1);
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused_if_it_is_verified() {
    let Some(database) = database() else { return };
    if database.run("SHOW ssl").expect("is set") != "on" {
        eprintln!("\n*** NOT TESTED: TLS: the server of CG_PG_URL has none ***\n");
        return;
    }
    let world = database.world();
    drop(world.create());
    let over = |mode: &str| {
        let address = database.with(&format!("sslmode={mode}&replication=none"));
        PostgresEngine::open(&address.with_world(world.address.world()).expect("fits"), &options())
    };
    for mode in ["verify-full", "verify-ca"] {
        match refusal(over(mode)) {
            Refusal::Tls(message) => assert!(message.contains("UnknownIssuer"), "{message}"),
            other => panic!("{mode}: expected an unknown authority, got {other:?}"),
        }
    }
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND strpos(query, '{schema}') > 0";
    let engine = over("require").expect("opens");
    assert_eq!(world.run(encrypted).as_deref(), Some("1"));
    drop(engine);
}
