//! Connections that are refused, lost or many.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cg_engine::{Batch, Engine as _, EngineError, Failure, Level, Readable as _, Space};
use cg_postgres::PostgresEngine;

use cg_engine::conformance::shared::Link as _;

use crate::database::{Database, TestWorld, database, options};
use crate::proxy::Proxy;

/// A new world over a proxy.
fn over_proxy(database: &Database) -> (TestWorld, PostgresEngine, Arc<Proxy>) {
    let world = database.world();
    drop(world.create());
    let proxy = Proxy::start(database.primary());
    let address = database.over(&format!("127.0.0.1:{}", proxy.port));
    let address = address.with_world(world.address.world()).expect("fits");
    let engine = PostgresEngine::open(&address, &options()).expect("opens");
    (world, engine, proxy)
}

/// Ends all connections of a proxy, and waits until the engine has noticed it.
fn end_connections(proxy: &Proxy) {
    proxy.cut(true);
    sleep(Duration::from_millis(200));
    proxy.cut(false);
}

#[test]
fn a_refusal_that_stays_is_answered_at_once() {
    let Some(database) = database() else { return };
    for code in ["28P01", "28000", "3D000", "42501"] {
        let (_world, engine, proxy) = over_proxy(&database);
        proxy.refuse_connections(Some(code));
        end_connections(&proxy);
        let begun = Instant::now();
        let read = engine.get(Space::Object, b"a").map(drop).expect_err("is refused");
        assert!(read.to_string().contains(code), "{read}");
        let view = engine.snapshot().map(drop).expect_err("is refused");
        assert!(view.to_string().contains(code), "{view}");
        match engine.commit(Batch::new(), &[], Level::Power) {
            Err(EngineError::ReadOnly { cause }) => assert!(cause.to_string().contains(code), "{cause}"),
            other => panic!("expected that it is refused, got {other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{code} is waited for");
    }
}

#[test]
fn a_server_that_starts_up_is_waited_for() {
    let Some(database) = database() else { return };
    for code in ["57P03", "57P01", "53300"] {
        let (_world, engine, proxy) = over_proxy(&database);
        proxy.refuse_connections(Some(code));
        end_connections(&proxy);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(Duration::from_millis(500));
                proxy.refuse_connections(None);
            });
            let committed = engine.commit(Batch::new(), &[], Level::Power);
            assert_eq!(committed.expect("waits").get(), 1, "{code}");
        });
    }
}

#[test]
fn a_commit_that_was_never_sent_is_not_written() {
    let Some(database) = database() else { return };
    let world = database.world();
    drop(world.create());
    let proxy = Proxy::start(database.primary());
    let address = database.over(&format!("127.0.0.1:{}", proxy.port));
    let mut impatient = options();
    impatient.patience = Duration::from_secs(1);
    let address = address.with_world(world.address.world()).expect("fits");
    let engine = PostgresEngine::open(&address, &impatient).expect("opens");
    proxy.cut(true);
    sleep(Duration::from_millis(200));
    match engine.commit(Batch::new(), &[], Level::Power) {
        Err(EngineError::ReadOnly { cause }) => {
            assert!(matches!(&*cause, EngineError::Unavailable { .. }), "{cause}");
        }
        other => panic!("expected that nothing is written, got {other:?}"),
    }
    assert!(matches!(engine.failure(), Some(Failure::Write(_))), "{:?}", engine.failure());
    proxy.cut(false);
    let reopen = engine.reopening();
    drop(engine);
    let reopened = reopen(&|found| Ok(found.last_commit.get() == 0)).expect("is opened again");
    let cg_engine::Reopened::Writable(engine) = reopened else { panic!("{reopened:?}") };
    assert_eq!(engine.commit(Batch::new(), &[], Level::Power).expect("commits").get(), 1);
}

#[test]
fn reads_of_many_threads_open_few_connections() {
    const THREADS: usize = 48;
    let Some(database) = database() else { return };
    let (_world, engine, proxy) = over_proxy(&database);
    let before = proxy.connections();
    let begin = std::sync::Barrier::new(THREADS);
    let read = || {
        begin.wait();
        assert!(engine.get(Space::Object, b"a").expect("reads").is_none());
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(read);
        }
    });
    let opened = proxy.connections() - before;
    assert!((1..=4).contains(&opened), "{opened} connections");
}

#[test]
fn calls_without_an_answer_share_a_look_at_the_hosts() {
    const THREADS: usize = 32;
    let Some(database) = database() else { return };
    let (_world, engine, proxy) = over_proxy(&database);
    assert!(engine.get(Space::Object, b"a").expect("reads").is_none());
    let before = proxy.connections();
    proxy.pause(true);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| assert!(engine.get(Space::Object, b"a").expect("waits").is_none()));
        }
        // A call without an answer looks after 5 s.
        sleep(Duration::from_millis(6500));
        let opened = proxy.connections() - before;
        proxy.pause(false);
        assert!((1..=5).contains(&opened), "{opened} connections: three for reads, and a look or two");
    });
}

#[test]
fn an_opening_begins_the_connection_of_its_first_read_and_needs_none() {
    let Some(database) = database() else { return };
    let world = database.world();
    drop(world.create());
    for is_refused in [false, true] {
        let proxy = Proxy::start(database.primary());
        if is_refused {
            proxy.refuse_connections_after(1, "53300");
        }
        let address = database.over(&format!("127.0.0.1:{}", proxy.port));
        let address = address.with_world(world.address.world()).expect("fits");
        let engine = PostgresEngine::open(&address, &options()).expect("the owner needs one connection");
        let begun = Instant::now();
        while proxy.connections() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(10), "no connection is begun ahead");
            sleep(Duration::from_millis(10));
        }
        // Time for the refusal.
        sleep(Duration::from_millis(100));
        proxy.refuse_connections(None);
        assert!(engine.get(Space::Object, b"a").expect("reads").is_none());
        assert_eq!(proxy.connections(), 2 + usize::from(is_refused));
        drop(engine);
        let open = "SELECT count(*) FROM pg_stat_activity WHERE strpos(query, '{schema}') > 0 AND pid <> pg_backend_pid()";
        let begun = Instant::now();
        while world.run(open).as_deref() != Some("0") {
            assert!(begun.elapsed() < Duration::from_secs(10), "a connection outlives its engine");
            sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_read_shares_a_busy_connection_while_no_other_can_be_opened() {
    let Some(database) = database() else { return };
    let (world, engine, proxy) = over_proxy(&database);
    assert!(engine.get(Space::Object, b"a").expect("reads").is_none());
    proxy.refuse_connections(Some("53300"));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| world.run("BEGIN; LOCK TABLE {schema}.cg_row; SELECT pg_sleep(1.5); COMMIT"));
        sleep(Duration::from_millis(500));
        for _ in 0..3 {
            scope.spawn(|| assert!(engine.get(Space::Object, b"a").expect("reads").is_none()));
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(10), "a read waited for a connection of its own");
}
