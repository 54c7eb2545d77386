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
    assert_eq!(commit(&engine, one(b"after", b"")).get(), 3);
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
