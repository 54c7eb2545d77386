//! Host processes that are killed.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cg_engine::{
    ALL_KEYS, Batch, Engine as _, EngineError, Family, Guard, Level, Readable as _, ReadableExt as _, Space,
    Stamp,
};
use cg_format::frame::{Codec, Draft, FrameView};
use cg_postgres::{Address, PostgresEngine};

use crate::cluster::{number, server};
use crate::database::options;
use crate::owners::Random;

/// The address of the world that this process is the host of.
const HOST_OF: &str = "CG_PG_HOST_OF";
const ACKNOWLEDGED: &str = "acknowledged ";

/// The batch of a number: a row of its own, and one that each batch writes.
fn batch(number: u64) -> (Batch, Guard) {
    let mut batch = Batch::new();
    let own = number.to_le_bytes();
    for key in [&own[..], b"newest"] {
        let draft = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(&own));
        batch.put(Space::Object, key, draft, Stamp::Commit);
    }
    (batch, Guard::absent(Space::Object, own))
}

/// The host process, which runs this test alone. Elsewhere the test does nothing.
#[test]
fn host() {
    let Ok(address) = env::var(HOST_OF) else { return };
    let address: Address = address.parse().expect("is an address");
    let engine = loop {
        // The server may not have noticed yet that the last host was killed.
        match PostgresEngine::open(&address, &options()) {
            Err(EngineError::InUse { .. }) => {}
            opened => break opened.expect("opens"),
        }
    };
    for number in engine.last_commit().get() + 1.. {
        let (batch, absent) = batch(number);
        let seq = engine.commit(batch, &[absent], Level::Power).expect("commits");
        assert_eq!(seq.get(), number);
        println!("\n{ACKNOWLEDGED}{number}");
    }
}

#[test]
fn a_killed_host_loses_nothing_that_it_acknowledged() {
    let Some(server) = server() else { return };
    let kills = number("CG_PG_KILLS", 20);
    let world = server.database.world();
    drop(world.create());
    let address = server.database.with("replication=quorum");
    let address = address.with_world(world.address.world()).expect("fits");
    // An address shows no password, so the child gets it from the environment.
    let password = server.database.password();
    let (mut random, mut acknowledged, mut unanswered) = (Random(11), 0, 0);
    for kill in 1..=kills {
        let program = env::current_exe().expect("this program has a path");
        let mut host = Command::new(program)
            .args(["hosts::host", "--exact", "--nocapture"])
            .env(HOST_OF, address.to_string())
            .env("PGPASSWORD", &password)
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let said = BufReader::new(host.stdout.take().expect("is piped"));
        let reader = thread::spawn(move || {
            let numbers = said.lines().map_while(Result::ok);
            numbers.filter_map(|line| line.strip_prefix(ACKNOWLEDGED)?.parse::<u64>().ok()).last()
        });
        let begun = Instant::now();
        // Some are killed while they open the world.
        thread::sleep(Duration::from_millis(random.below(1500)));
        host.kill().expect("is a child");
        host.wait().expect("is a child");
        acknowledged = reader.join().expect("reads").unwrap_or(acknowledged);
        // The server may still end its commit.
        thread::sleep(Duration::from_millis(50));
        let reader = PostgresEngine::open_read_only(&world.address, &options()).expect("opens");
        let stored = reader.last_commit().get();
        assert!(
            (acknowledged..=acknowledged + 1).contains(&stored),
            "kill {kill}: {acknowledged}, stored {stored}"
        );
        unanswered += stored - acknowledged;
        let mut rows = 0;
        let scanned = reader.scan(Family::Object, ALL_KEYS, |key, row| {
            let payload = FrameView::open(Space::Object, key, row).expect("is sealed").payload().to_vec();
            if key == b"newest" {
                assert_eq!(payload, stored.to_le_bytes(), "kill {kill}: a batch is torn");
            } else {
                assert_eq!(payload, key);
                rows += 1;
            }
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(
            (scanned.expect("scans"), rows),
            (None, stored),
            "kill {kill} after {:?}",
            begun.elapsed()
        );
        acknowledged = stored;
    }
    let engine = world.open().expect("opens elsewhere");
    assert!(engine.get(Space::Object, b"newest").expect("reads").is_some());
    println!(
        "{kills} killed hosts: {acknowledged} commits, 0 lost, 0 twice; {unanswered} were stored and not answered"
    );
}
