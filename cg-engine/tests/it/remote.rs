//! The engine over a simulated network keeps the promises, whatever is lost.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use cg_engine::conformance::remote::{Network, Remote, Server};
use cg_engine::{
    ALL_KEYS, Batch, COMMIT_SEQUENCE_KEY, CommitSeq, Engine as _, EngineError, Family, Level, Readable as _,
    ReadableExt as _, Reopened, Space, conformance,
};

fn connect(server: &Arc<Server>, network: &Arc<Network>) -> Remote {
    Remote::connect(server, network).expect("it answers")
}

/// Networks that lose nothing, something and much, with and without latency.
fn networks() -> [Network; 3] {
    [(Duration::ZERO, 0), (Duration::ZERO, 3), (Duration::from_micros(20), 5)]
        .map(|(latency, lost_one_in)| Network::new(latency, lost_one_in))
}

#[test]
fn it_keeps_the_promises() {
    for network in networks() {
        let network = Arc::new(network);
        conformance::run_all(|| connect(&Server::new(), &network));
    }
}

#[test]
fn a_second_writer_is_fenced() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    let [first, second] = [(); 2].map(|()| connect(&server, &network));
    first.commit(Batch::new(), &[], Level::Process).expect("commits");
    let refused = second.commit(Batch::new(), &[], Level::Process);
    let (given, next) = (CommitSeq::new(1), CommitSeq::new(2));
    assert!(
        matches!(refused, Err(EngineError::Fenced { given: g, next: n }) if (g, n) == (given, next)),
        "{refused:?}"
    );
    assert_eq!(first.last_commit(), given, "nothing was written");
}

#[test]
fn a_network_that_is_cut_ends_writing_until_the_engine_is_opened_again() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    let engine = connect(&server, &network);
    network.cut(true);
    let unavailable = |error: &EngineError| matches!(error, EngineError::Unavailable { .. });
    let read = engine.get(Space::Object, b"a").map(drop).expect_err("no request arrives");
    assert!(unavailable(&read), "{read}");
    let taken = engine.snapshot().map(drop).expect_err("no request arrives");
    assert!(unavailable(&taken), "{taken}");
    let commit = || engine.commit(Batch::new(), &[], Level::Process);
    let failed = commit().expect_err("no request arrives");
    assert!(matches!(&failed, EngineError::WriteFailed { cause } if unavailable(cause)), "{failed}");
    network.cut(false);
    let refused = commit().expect_err("nobody knows what the server has");
    assert!(matches!(&refused, EngineError::ReadOnly { cause } if unavailable(cause)), "{refused}");
    assert!(engine.get(Space::Object, b"a").expect("reads go on").is_none());
    let Reopened::Writable(again) = engine.reopening()(&|last| last == CommitSeq::NONE).expect("connects")
    else {
        panic!("nothing was written")
    };
    assert_eq!(again.commit(Batch::new(), &[], Level::Power).expect("commits"), CommitSeq::new(1));
}

#[test]
fn a_sync_that_is_not_answered_says_which_commit_is_in_doubt() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    let engine = connect(&server, &network);
    let seq = engine.commit(Batch::new(), &[], Level::Process).expect("commits");
    network.cut(true);
    let failed = engine.sync().expect_err("no request arrives");
    assert!(matches!(failed, EngineError::SyncFailed { seq: of, .. } if of == seq), "{failed}");
}

#[test]
fn a_snapshot_that_was_pushed_out_says_so() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    let engine = connect(&server, &network);
    let seq = engine.commit(Batch::new(), &[], Level::Process).expect("commits");
    let oldest = engine.snapshot().expect("is open");
    assert!(oldest.get(Space::Object, b"a").expect("is kept").is_none());
    let _newer: Vec<_> = (0..64).map(|_| engine.snapshot().expect("is open")).collect();
    let gone = oldest.get(Space::Object, b"a").map(drop);
    assert!(matches!(gone, Err(EngineError::SnapshotGone { seq: of }) if of == seq), "{gone:?}");
}

#[test]
fn many_rows_are_one_call() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 4)));
    let engine = connect(&server, &network);
    let before = network.calls();
    let keys: Vec<_> = (0..1000_u32).map(u32::to_be_bytes).collect();
    let keys: Vec<_> = keys.iter().map(|key| (Space::Object, &key[..])).collect();
    assert!(engine.get_many(&keys).iter().all(|row| matches!(row, Ok(None))));
    assert_eq!(network.calls() - before, 1);
}

#[test]
fn a_few_rows_of_a_range_are_one_call() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 4)));
    let engine = connect(&server, &network);
    engine.commit(Batch::new(), &[], Level::Process).expect("commits");
    let before = network.calls();
    let first = engine.scan_first(Family::WorldMeta, ALL_KEYS, 1, |key, _| ControlFlow::Break(key.to_vec()));
    assert_eq!(first.expect("scans").as_deref(), Some(COMMIT_SEQUENCE_KEY));
    assert_eq!(network.calls() - before, 1, "it takes no snapshot");
}
