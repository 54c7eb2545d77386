//! Worlds over an engine on a simulated server: nothing is lost or applied twice, whatever the network loses.

use std::sync::Arc;
use std::time::Duration;

use cg_engine::conformance::remote::{Network, Remote, Server};
use cg_engine::conformance::shared::Link as _;
use cg_store::engine::{Engine as _, EngineError, Fence};
use cg_store::error::NotResumed;
use cg_store::prelude::*;

fn connect(server: &Arc<Server>, network: &Arc<Network>) -> Remote {
    Remote::take(server, network).expect("it answers")
}

/// Networks that lose nothing, something and much, with and without latency.
fn networks() -> [Network; 3] {
    [(Duration::ZERO, 0), (Duration::ZERO, 3), (Duration::from_micros(20), 5)]
        .map(|(latency, lost_one_in)| Network::new(latency, lost_one_in))
}

#[test]
fn a_world_is_stored_once_whatever_is_lost() {
    let mut ends = Vec::new();
    for network in networks() {
        let (server, network) = (Server::new(), Arc::new(network));
        let options = WorldOptions { durability: Durability::Process, ..WorldOptions::default() };
        let world = World::builder().options(&options).over(connect(&server, &network)).expect("a world");
        let overworld = world.registry().register_dimension("game:overworld").expect("registers");
        let [air, stone] = world.registry().register_blocks([":air", "game:stone"]).expect("registers");
        let at = |x: i64| ChunkAt::new(overworld, ChunkPos::new(x, 0, 0).expect("inside the world"));
        for x in 0..20 {
            let chunk =
                Chunk::filled(if x % 2 == 0 { air } else { stone }, &world.catalog().current_schema());
            let committed = world.transaction(|tx| {
                tx.save(at(x), chunk.expect("is registered"));
                Ok::<_, Error>(())
            });
            committed.expect("commits");
        }
        assert!(world.verify(cg_store::verify::VerifyDepth::Full, |_| {}).expect("verifies").is_ok());
        let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
        world.close().expect("closes");
        let again = connect(&server, &network);
        ends.push((again.last_commit(), hash));
        let again = World::builder().options(&options).over(again).expect("opens");
        assert_eq!(again.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    }
    // The first network loses nothing: a commit that was applied twice would show as a higher number.
    assert_eq!(ends, [ends[0]; 3]);
}

#[test]
fn a_world_goes_on_after_its_network_was_cut() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    let options = WorldOptions { durability: Durability::Process, ..WorldOptions::default() };
    let world = World::builder().options(&options).over(connect(&server, &network)).expect("a world");
    let score = Property::Named(Name::new("game:score").expect("a name"));
    let set = || {
        world.transaction(|tx| {
            tx.set_property(score.clone(), Some(vec![7]));
            Ok::<_, Error>(())
        })
    };
    network.cut(true);
    let failed = set().map(drop).expect_err("no request arrives");
    assert!(matches!(failed, Error::Engine(EngineError::WriteFailed { .. })), "{failed}");
    let read = world.property(&score).expect_err("no request arrives");
    assert!(matches!(read, Error::Engine(EngineError::Unavailable { .. })), "{read}");
    network.cut(false);
    let refused = set().map(drop).expect_err("the world is read-only");
    assert!(matches!(refused, Error::Engine(EngineError::ReadOnly { .. })), "{refused}");
    assert_eq!(world.property(&score).expect("reads go on"), None, "nothing was written");
    world.resume().expect("connects again");
    set().expect("commits");
    assert_eq!(world.property(&score).expect("reads"), Some(vec![7]));
}

fn score() -> Property {
    Property::Named(Name::new("game:score").expect("a name"))
}

fn set(world: &World, token: u8) -> Result<cg_store::Committed<()>, Error> {
    world.transaction(|tx| {
        tx.set_property(score(), Some(vec![token]));
        Ok::<_, Error>(())
    })
}

/// A world of one of several clients of a server, with a network of its own.
fn client(server: &Arc<Server>, durability: Durability) -> (World, Arc<Network>) {
    let network = Arc::new(Network::new(Duration::ZERO, 0));
    let options = WorldOptions { durability, ..WorldOptions::default() };
    let world = World::builder().options(&options).over(connect(server, &network)).expect("a world");
    (world, network)
}

#[test]
fn a_resumed_world_takes_no_commit_of_another_writer_for_its_own() {
    type Commit = fn(&World) -> Result<(), Error>;
    let ways: [Commit; 2] =
        [|world| set(world, 2).map(drop), |world| world.registry().register_blocks(["game:stone"]).map(drop)];
    for commit in ways {
        let server = Server::new();
        let (first, network) = client(&server, Durability::Process);
        set(&first, 1).expect("commits");
        let written = first.last_commit();
        network.cut(true);
        let failed = commit(&first).expect_err("no request arrives");
        assert!(matches!(failed, Error::Engine(EngineError::WriteFailed { .. })), "{failed}");

        let (second, _) = client(&server, Durability::Process);
        // It gets the number of the commit that failed.
        let taken = set(&second, 9).expect("commits").seq;
        assert_eq!(taken, written.next());
        network.cut(false);
        let error = first.resume().expect_err("the rows belong to the second");
        assert_eq!(error.kind(), cg_store::ErrorKind::Fenced, "{error}");
        set(&second, 10).expect("commits");
        assert_eq!(second.property(&score()).expect("reads"), Some(vec![10]));
        let refused = set(&first, 3).map(drop).expect_err("it is fenced");
        assert_eq!(refused.kind(), cg_store::ErrorKind::Fenced, "{refused}");
    }
}

#[test]
fn a_fenced_world_says_which_accepted_commits_are_in_doubt_and_which_are_not_written() {
    let server = Server::new();
    let (first, network) = client(&server, Durability::Fast);
    set(&first, 1).expect("commits").durable().wait().expect("is written");
    let written = first.last_commit();
    network.pause(true);
    let calls = network.calls();
    let sent = set(&first, 2).expect("is accepted");
    while network.calls() == calls {
        std::thread::sleep(Duration::from_millis(1));
    }
    let [_, last] = [3, 4].map(|token| set(&first, token).expect("is accepted"));
    network.cut(true);
    network.pause(false);
    let failed = sent.durable().wait().expect_err("no request arrives");
    assert_eq!(failed.kind(), cg_store::ErrorKind::ReadOnly, "{failed}");

    let (second, _) = client(&server, Durability::Process);
    set(&second, 9).expect("commits");
    network.cut(false);
    for is_cut in [false, true] {
        network.cut(is_cut);
        let error = first.resume().expect_err("the rows belong to the second");
        let Error::NotResumed(NotResumed::Fenced { cause, written: w, sent: s, accepted }) = &error else {
            panic!("{error}")
        };
        let why = Fence::Owner { who: "owner 2 in session 2".into() };
        assert_eq!((cause.fence(), *w, *s, *accepted), (Some(&why), written, sent.seq, last.seq));
        assert_eq!(
            error.to_string(),
            format!(
                "the world stays read-only: the rows were taken for writing by owner 2 in session 2: the world belongs \
                 to another writer, close it; commit {} may or may not be written; commits {} to {} are not written",
                sent.seq,
                sent.seq.next(),
                last.seq
            )
        );
    }
    let doubt = sent.durable().wait().expect_err("the other writer has the world");
    assert_eq!(doubt.kind(), cg_store::ErrorKind::InDoubt, "{doubt}");
    let gone = last.durable().wait().expect_err("the other writer has the world");
    assert!(matches!(gone, Error::Engine(EngineError::Fenced { .. })), "{gone}");
    let closed = first.close().expect_err("two commits are not written");
    assert_eq!(closed.kind(), cg_store::ErrorKind::Fenced, "{closed}");
    assert_eq!(second.property(&score()).expect("reads"), Some(vec![9]));
}

#[test]
fn a_commit_that_was_written_before_the_rows_were_taken_is_never_said_to_have_left_nothing() {
    let server = Server::new();
    let (first, _) = client(&server, Durability::Process);
    let committed = set(&first, 1).expect("commits");
    let (second, _) = client(&server, Durability::Process);
    let error = committed.durable().wait().expect_err("the rows belong to the second");
    let Error::Engine(EngineError::SyncFailed { seq, cause }) = &error else { panic!("{error}") };
    assert_eq!((*seq, cause.fence().is_some()), (committed.seq, true));
    assert_eq!(second.property(&score()).expect("reads"), Some(vec![1]));
}

#[test]
fn what_is_accepted_after_the_rows_were_taken_is_not_in_doubt() {
    let server = Server::new();
    let (first, _) = client(&server, Durability::Fast);
    set(&first, 1).expect("commits").durable().wait().expect("is written");
    let written = first.last_commit();
    let (second, _) = client(&server, Durability::Process);
    let flushed = first.flush().expect_err("the rows belong to the second");
    assert_eq!(flushed.kind(), cg_store::ErrorKind::Fenced, "{flushed}");
    // The queue may take one more commit before it knows.
    let later = set(&first, 2);
    if let Ok(later) = &later {
        let error = later.durable().wait().expect_err("the rows belong to the second");
        assert!(matches!(error, Error::Engine(EngineError::Fenced { .. })), "{error}");
    }
    let error = first.resume().expect_err("the rows belong to the second");
    let Error::NotResumed(NotResumed::Fenced { written: w, sent, accepted, .. }) = &error else {
        panic!("{error}")
    };
    let newest = later.map_or(written, |later| later.seq);
    assert_eq!((*w, *sent, *accepted), (written, written, newest));
    let refused = set(&first, 3).map(drop).expect_err("it is fenced");
    assert_eq!(refused.kind(), cg_store::ErrorKind::Fenced, "{refused}");
    assert_eq!(second.property(&score()).expect("reads"), Some(vec![1]));
}
