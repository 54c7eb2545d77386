//! Owners that take a world from each other.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cg_engine::conformance::shared::Link as _;
use cg_engine::{
    ALL_KEYS, Batch, Engine as _, EngineError, Family, Guard, Level, ReadableExt as _, Space, Stamp,
};
use cg_format::frame::{Codec, Draft};
use cg_postgres::{Options, PostgresEngine};

use crate::cluster::{Cluster, SetOnDrop, cluster, number, server};
use crate::controls::{Mutant, PLAIN_READ, commit, stored, world};
use crate::cuts::end_in_wait_of;
use crate::database::{Database, TestWorld, options};
use crate::proxy::Proxy;

/// How long the log of a primary reaches no other node before the primary fails.
const STALL_S: u32 = 5;

/// A number below a limit. The seed is that of the run.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A world is taken on a primary that fails before another node knows. Returns what the owner gets for its next commit.
fn take_on_one_node(cluster: &Cluster, mutant: Option<Mutant>) -> (Result<u64, EngineError>, u64) {
    let (world, first) = world(&cluster.database, mutant);
    assert_eq!(commit(&first).expect("commits"), 1);
    let stalled = cluster.stall(STALL_S);
    let committed = thread::scope(|scope| {
        let mut impatient = Options::default();
        impatient.patience = Duration::from_secs(2);
        let address = world.address.clone().with_take(true);
        let taken = scope.spawn(move || PostgresEngine::open(&address, &impatient).map(drop));
        assert!(end_in_wait_of(&cluster.database, "cg_open_1"), "no opening waits for another node");
        let taken = taken.join().expect("does not panic");
        assert!(matches!(taken, Err(EngineError::Unavailable { .. })), "{taken:?}");
        commit(&first)
    });
    stalled.wait();
    (committed, stored(&world))
}

#[test]
fn an_owner_that_no_other_node_has_fences_none() {
    let Some(cluster) = cluster() else { return };
    let (committed, stored) = take_on_one_node(&cluster, None);
    assert_eq!((committed.expect("it still is the owner"), stored), (2, 2));
    let (committed, stored) = take_on_one_node(&cluster, Some(PLAIN_READ));
    assert!(matches!(committed, Err(EngineError::Fenced { .. })), "fenced by a read: {committed:?}");
    assert_eq!(stored, 1);
}

/// An owner over a link of its own.
struct Owned {
    engine: PostgresEngine,
    link: Arc<Proxy>,
    name: u64,
}

impl Owned {
    fn take(database: &Database, world: &TestWorld, name: u64) -> Self {
        let link = Proxy::start(database.primary());
        let address = database.over(&format!("127.0.0.1:{}", link.port));
        let address = address.with_world(world.address.world()).expect("fits").with_take(true);
        Self { engine: PostgresEngine::open(&address, &options()).expect("is taken"), link, name }
    }

    /// Writes a row that this owner alone writes, with the owner's name and its number.
    fn write(&self, number: u64) -> (Vec<u8>, Result<(), EngineError>) {
        let key = [self.name.to_le_bytes(), number.to_le_bytes()].concat();
        let mut batch = Batch::new();
        batch.put(Space::Object, &key, Draft::plain(Codec::None, 0, |_| {}), Stamp::Commit);
        let absent = Guard::absent(Space::Object, key.clone());
        let written = self.engine.commit(batch, &[absent], Level::Power).map(drop);
        (key, written)
    }
}

/// Commits until it is fenced. Returns the keys that were acknowledged, and those in doubt.
fn write_until_fenced(owned: &Owned, is_taken: &AtomicBool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut acknowledged, mut in_doubt) = (Vec::new(), Vec::new());
    for number in 1.. {
        let was_taken = is_taken.load(Ordering::Acquire);
        let (key, written) = owned.write(number);
        match written {
            Ok(()) => {
                assert!(!was_taken, "commit {number} of owner {} after another took the world", owned.name);
                acknowledged.push(key);
            }
            Err(EngineError::Fenced { .. }) => break,
            Err(EngineError::WriteFailed { cause }) if cause.fence().is_some() => {
                in_doubt.push(key);
                break;
            }
            Err(other) => panic!("commit {number} of owner {}: {other}", owned.name),
        }
    }
    (acknowledged, in_doubt)
}

#[test]
fn of_two_owners_one_is_acknowledged() {
    let Some(server) = server() else { return };
    let rounds = number("CG_PG_TAKES", 20) as u64;
    let database = &server.database;
    let world = database.world();
    drop(world.create());
    let mut random = Random(7);
    let mut owned = Owned::take(database, &world, 0);
    let (mut acknowledged, mut in_doubt, mut held_back) = (BTreeSet::new(), BTreeSet::new(), 0);
    for round in 1..=rounds {
        let (is_taken, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        let mut own = Random(random.below(u64::from(u32::MAX)));
        let (next, (written, doubted), times) = thread::scope(|scope| {
            let writer = scope.spawn(|| write_until_fenced(&owned, &is_taken));
            let link = scope.spawn(|| {
                let mut pauses = 0;
                while !is_done.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(own.below(30)));
                    owned.link.pause(true);
                    thread::sleep(Duration::from_millis(own.below(60)));
                    owned.link.pause(false);
                    pauses += 1;
                }
                pauses
            });
            let done = SetOnDrop(&is_done);
            thread::sleep(Duration::from_millis(random.below(300)));
            let next = Owned::take(database, &world, round);
            is_taken.store(true, Ordering::Release);
            let written = writer.join().expect("writes until it is fenced");
            drop(done);
            (next, written, link.join().expect("pauses"))
        });
        acknowledged.extend(written);
        in_doubt.extend(doubted);
        held_back += times;
        owned = next;
    }
    let mut found = BTreeSet::new();
    let scanned = owned.engine.scan(Family::Object, ALL_KEYS, |key, _| {
        found.insert(key.to_vec());
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(scanned.expect("scans"), None);
    assert!(
        acknowledged.is_subset(&found),
        "{} acknowledged commits are lost",
        acknowledged.difference(&found).count()
    );
    let more: Vec<_> = found.difference(&acknowledged).collect();
    assert!(
        more.iter().all(|key| in_doubt.contains(*key)),
        "a commit is stored that was reported as not written"
    );
    assert_eq!(stored(&world) as usize, found.len(), "numbers are dense");
    println!(
        "{rounds} owners, {held_back} pauses: {} commits acknowledged, 0 after the world was taken, 0 lost; {} in doubt, {} of them stored",
        acknowledged.len(),
        in_doubt.len(),
        more.len(),
    );
}
