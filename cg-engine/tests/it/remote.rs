//! The engine over a simulated network keeps the promises, whatever is lost.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cg_engine::conformance::remote::{Defect, Network, Remote, Server};
use cg_engine::conformance::shared::{self, Case, Link as _};
use cg_engine::{
    ALL_KEYS, Batch, COMMIT_SEQUENCE_KEY, Engine as _, EngineError, Family, Level, Readable as _,
    ReadableExt as _, Space, conformance,
};

fn connect(server: &Arc<Server>, network: &Arc<Network>) -> Remote {
    Remote::take(server, network).expect("it answers")
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
fn it_keeps_the_promises_of_shared_rows() {
    shared::run_shared(Server::new);
    shared::run_replicated(Server::new);
}

/// The tests that fail over a server with a defect.
fn failing(defect: Defect) -> BTreeSet<&'static str> {
    let mut cases = shared::shared_cases();
    cases.extend(shared::replicated_cases());
    let fails = |case: &Case<Arc<Server>>| {
        let server = Server::with_defect(defect);
        catch_unwind(AssertUnwindSafe(|| (case.run)(&server))).is_err()
    };
    cases.into_iter().filter(fails).map(|case| case.name).collect()
}

#[test]
fn each_defect_of_a_server_is_found_by_the_test_of_its_promise() {
    let table: [(Defect, &[&str]); 9] = [
        (
            Defect::NoEpoch,
            &["a_second_owner_fences_the_first", "a_late_request_of_an_earlier_owner_is_not_applied"],
        ),
        (Defect::NoSession, &["a_late_request_of_an_earlier_connection_is_not_applied"]),
        (Defect::NewEpochAgain, &["a_fenced_engine_is_not_opened_again"]),
        (Defect::TornScan, &["a_scan_of_many_rows_is_of_one_state"]),
        (Defect::TornRead, &["many_keys_are_read_of_one_state", "parts_of_many_rows_are_read_of_one_state"]),
        (Defect::NoQuorum, &["an_acknowledged_commit_survives_a_failover"]),
        (
            Defect::DoubtByRead,
            &["the_commit_that_an_engine_finds_when_it_is_opened_again_survives_a_failover"],
        ),
        (
            Defect::NoAnswers,
            &[
                "a_commit_whose_messages_are_lost_is_applied_once",
                "a_guard_holds_for_a_commit_that_is_sent_again",
            ],
        ),
        (Defect::RunInParts, &["a_run_that_one_node_had_survives_a_failover_whole_or_not_at_all"]),
    ];
    for (defect, expected) in table {
        let failing = failing(defect);
        let found = expected.iter().all(|name| failing.contains(name));
        assert!(found, "{defect:?} fails {failing:?}, and should fail {expected:?}");
    }
    let numbers = catch_unwind(|| {
        let network = Arc::new(Network::new(Duration::ZERO, 0));
        conformance::run_all(|| connect(&Server::with_defect(Defect::NoNumber), &network));
    });
    let message =
        *numbers.expect_err("a run with a wrong number is written").downcast::<String>().expect("a text");
    assert!(message.starts_with("expected to be fenced"), "{message}");
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
