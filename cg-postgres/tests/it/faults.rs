//! Errors of the server, connections that end, and rows that were changed by hand.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cg_engine::{
    ALL_KEYS, Batch, Engine as _, EngineError, Family, Guard, Level, Place, Readable as _, ReadableExt as _,
    Space, Stamp,
};
use cg_format::frame::{Codec, Draft, FrameView};
use cg_postgres::PostgresEngine;

use crate::database::{TestWorld, database};

fn batch(rows: &[(&[u8], &[u8])]) -> Batch {
    let mut batch = Batch::new();
    for (key, payload) in rows {
        let draft = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(payload));
        batch.put(Space::Object, key, draft, Stamp::Commit);
    }
    batch
}

fn payload(engine: &PostgresEngine, key: &[u8]) -> Option<Vec<u8>> {
    let row = engine.get(Space::Object, key).expect("reads")?;
    Some(FrameView::open(Space::Object, key, &row).expect("is sealed").payload().to_vec())
}

/// A world whose commits begin with a statement of the test.
pub(crate) fn with_statement(world: &TestWorld, statement: &str) -> PostgresEngine {
    let engine = world.create();
    let schema = world.schema().replace('\'', "''");
    let definition = world.run(&format!("SELECT pg_get_functiondef('{schema}.cg_commit_1'::regproc)"));
    let definition = definition.expect("there is such a function");
    let (head, body) = definition.split_once("BEGIN\n").expect("has a body");
    world.run(&format!("{head}BEGIN\n{statement};\n{body}"));
    engine
}

#[test]
fn a_warning_about_the_other_nodes_is_doubt() {
    let Some(database) = database() else { return };
    let world = database.world();
    let statement =
        "IF p_session = 1 THEN RAISE WARNING 'canceling wait for synchronous replication'; END IF";
    let engine = with_statement(&world, statement);
    assert_eq!(engine.commit(batch(&[(b"a", b"1")]), &[], Level::Process).expect("is stored").get(), 1);
    assert_eq!(world.run("SELECT session FROM {schema}.cg_head").as_deref(), Some("2"), "it asks again");
    assert_eq!(engine.commit(batch(&[(b"a", b"2")]), &[], Level::Process).expect("is stored").get(), 2);
    assert_eq!(world.run("SELECT session || ' ' || batches FROM {schema}.cg_head").as_deref(), Some("2 2"));
}

#[test]
fn a_role_without_warnings_gets_them() {
    let Some(database) = database() else { return };
    let world = database.world();
    world.run("ALTER ROLE CURRENT_USER SET client_min_messages = error");
    let statement =
        "IF p_session = 1 THEN RAISE WARNING 'canceling wait for synchronous replication'; END IF";
    let engine = with_statement(&world, statement);
    let committed = engine.commit(batch(&[(b"a", b"1")]), &[], Level::Process);
    world.run("ALTER ROLE CURRENT_USER RESET client_min_messages");
    assert_eq!(committed.expect("is stored").get(), 1);
    assert_eq!(world.run("SELECT session FROM {schema}.cg_head").as_deref(), Some("2"), "it asks again");
}

#[test]
fn a_commit_that_is_rolled_back_for_another_transaction_is_sent_again() {
    let Some(database) = database() else { return };
    let world = database.world();
    let statement = "IF random() < 0.5 THEN RAISE EXCEPTION 'again' USING ERRCODE = '40P01'; END IF";
    let engine = with_statement(&world, statement);
    for seq in 1..=10 {
        assert_eq!(engine.commit(Batch::new(), &[], Level::Process).expect("is stored").get(), seq);
    }
    assert_eq!(world.run("SELECT session || ' ' || batches FROM {schema}.cg_head").as_deref(), Some("1 10"));
}

#[test]
fn a_full_disk_is_no_space_and_other_refusals_are_passed_on_whole() {
    let Some(database) = database() else { return };
    for code in ["53100", "53200"] {
        let world = database.world();
        let raise = format!(
            "IF p_seq = 2 AND p_session = 1 THEN RAISE EXCEPTION 'none left' USING ERRCODE = '{code}', HINT = 'buy more'; END IF"
        );
        let engine = with_statement(&world, &raise);
        engine.commit(batch(&[(b"a", b"1")]), &[], Level::Process).expect("commits");
        let text = format!("none left (SQLSTATE {code}); hint: buy more");
        match engine.commit(batch(&[(b"a", b"2")]), &[], Level::Process) {
            Err(EngineError::NoSpace { message }) if code == "53100" => assert_eq!(message, text),
            Err(EngineError::ReadOnly { cause }) if code == "53200" => {
                assert_eq!(cause.to_string(), format!("commit: {text}"));
            }
            other => panic!("{code}: expected a refusal, got {other:?}"),
        }
        let refused = engine.commit(Batch::new(), &[], Level::Process);
        assert!(matches!(refused, Err(EngineError::ReadOnly { .. })), "{refused:?}");
        assert_eq!(payload(&engine, b"a").as_deref(), Some(&b"1"[..]), "reads go on");
        let reopen = engine.reopening();
        drop(engine);
        let reopened = reopen(&|found| Ok(found.last_commit.get() == 1)).expect("is opened again");
        let cg_engine::Reopened::Writable(engine) = reopened else { panic!("{reopened:?}") };
        assert_eq!(engine.commit(Batch::new(), &[], Level::Process).expect("commits").get(), 2);
    }
}

/// Ends the connections of a world.
const TERMINATE: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
     WHERE usename = current_user AND pid <> pg_backend_pid() AND strpos(query, '{schema}') > 0";

#[test]
fn connections_that_end_are_made_again() {
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    engine.commit(batch(&[(b"a", b"1")]), &[], Level::Process).expect("commits");
    let snapshot = engine.snapshot().expect("is open");
    assert!(snapshot.get(Space::Object, b"a").expect("reads").is_some());
    assert_eq!(payload(&engine, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(world.run(TERMINATE).as_deref(), Some("3"), "a writer, a reader and a snapshot");
    let gone = snapshot.get(Space::Object, b"a").map(drop);
    assert!(matches!(gone, Err(EngineError::SnapshotGone { seq }) if seq.get() == 1), "{gone:?}");
    assert_eq!(payload(&engine, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(engine.commit(batch(&[(b"a", b"2")]), &[], Level::Process).expect("commits").get(), 2);
}

#[test]
fn no_commit_is_lost_or_doubled_while_connections_end() {
    const COMMITS: u32 = 300;
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                world.run(TERMINATE);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        for n in 1..=COMMITS {
            let key = n.to_le_bytes();
            let seq =
                engine.commit(batch(&[(&key, b"")]), &[Guard::absent(Space::Object, key)], Level::Process);
            assert_eq!(seq.expect("commits").get(), u64::from(n));
            if n % 3 == 0 {
                let kept = batch(&[(b"kept", &key)]).maintenance();
                engine.commit(kept, &[], Level::Process).expect("is applied");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let mut count = 0;
    let scanned = engine.scan(Family::Object, ALL_KEYS, |_, _| {
        count += 1;
        ControlFlow::<()>::Continue(())
    });
    assert_eq!((scanned.expect("scans"), count), (None, COMMITS + 1));
    let head = world.run("SELECT seq || ' ' || batches FROM {schema}.cg_head");
    assert_eq!(head, Some(format!("{COMMITS} {}", COMMITS + COMMITS / 3)));
}

#[test]
fn a_large_commit_is_whole_or_not_at_all() {
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    let long = vec![7; 3 << 20];
    let rows: Vec<_> = [b"a", b"b", b"c", b"d"].into_iter().map(|key| (&key[..], &long[..])).collect();
    engine.commit(batch(&rows), &[], Level::Process).expect("commits in parts");
    for (key, row) in &rows {
        assert_eq!(payload(&engine, key).as_deref(), Some(*row));
    }
    let seen = engine.scan(Family::Object, ALL_KEYS, |_, row| {
        assert!(row.len() > long.len());
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(seen.expect("scans"), None);
    // The last part is refused: so is the whole.
    world.run("ALTER TABLE {schema}.cg_row ADD CHECK (k <> 'd' OR octet_length(v) > 100)");
    let rows: Vec<_> = rows.into_iter().map(|(key, _)| (key, &long[1..])).collect();
    let mut refused = batch(&rows);
    refused.append(batch(&[(b"d", b"short")]));
    let refused = engine.commit(refused, &[], Level::Process);
    assert!(
        matches!(&refused, Err(EngineError::ReadOnly { cause }) if cause.to_string().contains("23514")),
        "{refused:?}"
    );
    assert_eq!(payload(&engine, b"a"), Some(long));
    assert_eq!(world.run("SELECT batches FROM {schema}.cg_head").as_deref(), Some("1"));
}

#[test]
fn rows_that_were_changed_by_hand_are_returned_as_they_are_and_guards_find_them() {
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    engine.commit(batch(&[(b"a", b"1"), (b"b", b"2")]), &[], Level::Process).expect("commits");
    world.run("UPDATE {schema}.cg_row SET v = substring(v FROM 1 FOR 9) WHERE k = 'a'");
    world.run("UPDATE {schema}.cg_row SET v = set_byte(v, 24, 9) WHERE k = 'b'");
    let [cut, changed] =
        [b"a", b"b"].map(|key| engine.get(Space::Object, key).expect("reads").expect("is there"));
    assert!(FrameView::open(Space::Object, b"a", &cut).is_err(), "it is too short");
    assert!(FrameView::open(Space::Object, b"b", &changed).is_err(), "its checksum differs");
    match engine.commit(Batch::new(), &[Guard::version(Space::Object, b"a", 1)], Level::Process) {
        Err(EngineError::Corrupt { place: Place::Row { family: Family::Object, key }, message }) => {
            assert_eq!((&*key, &*message), (&b"a"[..], "9 bytes are too few for a frame"));
        }
        other => panic!("expected damage, got {other:?}"),
    }
    engine.commit(batch(&[(b"a", b"3")]), &[], Level::Process).expect("a conflict ends no engine");
}

#[test]
fn keys_of_no_and_of_many_bytes_are_stored_or_refused() {
    let Some(database) = database() else { return };
    let world = database.world();
    let engine = world.create();
    // Not compressible.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    let longest: Vec<u8> = (0..2600).map(|_| next()).collect();
    engine.commit(batch(&[(b"", b"none"), (&longest, b"many")]), &[], Level::Process).expect("commits");
    assert_eq!(payload(&engine, b"").as_deref(), Some(&b"none"[..]));
    assert_eq!(payload(&engine, &longest).as_deref(), Some(&b"many"[..]));
    let refused = engine.commit(batch(&[(&[1; 4096], b"")]), &[], Level::Process);
    assert!(
        matches!(refused, Err(EngineError::TooLarge { len_bytes: 4096, max_bytes: 2600 })),
        "{refused:?}"
    );
    assert!(engine.get(Space::Object, &[1; 4096]).expect("reads").is_none());
    assert_eq!(engine.commit(Batch::new(), &[], Level::Process).expect("commits").get(), 2);
}
