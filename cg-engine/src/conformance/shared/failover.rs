//! Commits that survive the loss of one node.

use super::{How, Replicated, commit, one, payload, reopen, take};
use crate::{Engine as _, EngineError, Level};

pub(super) fn an_acknowledged_commit_survives_a_failover<S: Replicated>(rows: &S) {
    let (engine, _link) = take(rows);
    for (how, n) in How::ALL.into_iter().zip(0..) {
        let seq = how.write(&engine, one(&[n], b"")).expect("writes");
        rows.fail_over();
        assert!(payload(&engine, &[n]).is_some(), "{how:?}: an acknowledged commit is lost");
        assert_eq!(engine.last_commit(), seq);
    }
    let count: u64 = How::ALL.into_iter().map(How::count).sum();
    assert_eq!(commit(&engine, one(b"after", b"")).get(), count + 1);
}

pub(super) fn the_commit_that_an_engine_finds_when_it_is_opened_again_survives_a_failover<S: Replicated>(
    rows: &S,
) {
    let (engine, _link) = take(rows);
    commit(&engine, one(b"a", b"1"));
    rows.stall_next();
    let failed = engine.commit(one(b"a", b"2"), &[], Level::Process);
    assert!(matches!(failed, Err(EngineError::WriteFailed { .. })), "{failed:?}");
    let again = reopen(engine, |found| found == 1 || found == 2);
    let (found, value) = (again.last_commit(), payload(&*again, b"a"));
    rows.fail_over();
    assert_eq!(payload(&*again, b"a"), value, "the commit that was found is lost");
    assert_eq!(commit(&*again, one(b"a", b"3")), found.next());
}

pub(super) fn a_run_that_one_node_had_survives_a_failover_whole_or_not_at_all<S: Replicated>(rows: &S) {
    let (engine, _link) = take(rows);
    commit(&engine, one(b"a", b"before"));
    rows.stall_next();
    let failed = How::Run.write(&engine, one(b"a", b"after"));
    assert!(matches!(failed, Err(EngineError::WriteFailed { .. })), "{failed:?}");
    rows.fail_over();
    let again = reopen(engine, |found| found == 1 || found == 1 + How::Run.count());
    let expected: &[u8] = if again.last_commit().get() == 1 { b"before" } else { b"after" };
    assert_eq!(payload(&*again, b"a").as_deref(), Some(expected));
}
