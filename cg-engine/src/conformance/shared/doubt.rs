//! Commits whose answer does not arrive.

use std::thread;
use std::time::Duration;

use super::{How, Link, Loss, SPACE, Shared, assert_fenced, commit, one, payload, reopen, take};
use crate::{CommitSeq, Engine as _, EngineError, Failure, Guard, Level, Readable as _};

pub(super) fn a_commit_whose_messages_are_lost_is_applied_once<S: Shared>(rows: &S) {
    let mut expected = 0;
    for how in How::ALL {
        for loss in [Loss::Request, Loss::Answer, Loss::Connection] {
            let (engine, link) = take(rows);
            link.lose_next(loss);
            let written = how.write(&engine, one(b"a", &[expected as u8]));
            expected += how.count();
            match written {
                Ok(seq) => assert_eq!(seq.get(), expected, "{how:?}, {loss:?}"),
                Err(EngineError::WriteFailed { .. }) => {
                    link.cut(false);
                    let before = expected - how.count();
                    let again = reopen(engine, |found| found == before || found == expected);
                    if again.last_commit().get() < expected {
                        how.write(&*again, one(b"a", &[expected as u8])).expect("writes");
                    }
                    assert_eq!(again.last_commit().get(), expected, "{how:?}, {loss:?}");
                }
                Err(error) => panic!("{how:?}, {loss:?}: expected a commit in doubt, got {error}"),
            }
            link.cut(false);
            let reader = rows.read().expect("opens for reading");
            assert_eq!(reader.last_commit().get(), expected, "{how:?}, {loss:?}");
        }
    }
}

/// The row that a lost answer has changed is the one that the guard compares.
pub(super) fn a_guard_holds_for_a_commit_that_is_sent_again<S: Shared>(rows: &S) {
    for loss in [Loss::Request, Loss::Answer] {
        let (engine, link) = take(rows);
        let before = commit(&engine, one(b"a", b"before")).get();
        let guarded = |payload| (one(b"a", payload), [Guard::version(SPACE, b"a", before)]);
        link.lose_next(loss);
        let (batch, guards) = guarded(b"after");
        match engine.commit(batch, &guards, Level::Process) {
            Ok(seq) => assert_eq!(seq.get(), before + 1, "{loss:?}"),
            // Opening it again shows whether it is stored.
            Err(EngineError::WriteFailed { .. }) => {
                let again = reopen(engine, |found| found == before || found == before + 1);
                let is_stored = payload(&*again, b"a").as_deref() == Some(b"after");
                assert_eq!(again.last_commit().get() == before + 1, is_stored, "{loss:?}");
                continue;
            }
            Err(error) => panic!("{loss:?}: expected a commit that is stored or in doubt, got {error}"),
        }
        let (batch, guards) = guarded(b"of a stale guard");
        let stale = engine.commit(batch, &guards, Level::Process);
        assert!(matches!(stale, Err(EngineError::Conflict { .. })), "{loss:?}: {stale:?}");
        assert_eq!(payload(&engine, b"a").as_deref(), Some(&b"after"[..]), "{loss:?}");
    }
}

pub(super) fn a_late_request_of_an_earlier_connection_is_not_applied<S: Shared>(rows: &S) {
    for (how, n) in How::ALL.into_iter().zip(0..) {
        let (engine, link) = take(rows);
        link.delay_next();
        let failed = how.write(&engine, one(&[n], b"late"));
        assert!(matches!(failed, Err(EngineError::WriteFailed { .. })), "{how:?}: {failed:?}");
        let before = engine.last_commit().get();
        let again = reopen(engine, |found| found == before);
        link.deliver_delayed();
        assert_eq!(payload(&*again, &[n]), None, "{how:?}: a late request is applied");
        let seq = how.write(&*again, one(&[n], b"again")).expect("writes");
        assert_eq!(seq.get(), before + how.count());
        assert_eq!(payload(&*again, &[n]).as_deref(), Some(&b"again"[..]));
    }
}

pub(super) fn a_late_request_of_an_earlier_owner_is_not_applied<S: Shared>(rows: &S) {
    for (how, n) in How::ALL.into_iter().zip(0..) {
        let (first, link) = take(rows);
        link.delay_next();
        let failed = how.write(&first, one(&[n], b"late"));
        assert!(matches!(failed, Err(EngineError::WriteFailed { .. })), "{how:?}: {failed:?}");
        let (second, _link) = take(rows);
        link.deliver_delayed();
        assert_eq!(payload(&second, &[n]), None, "{how:?}: a late request is applied");
        how.write(&second, one(&[n], b"of the second")).expect("writes");
        assert_eq!(payload(&second, &[n]).as_deref(), Some(&b"of the second"[..]));
    }
}

pub(super) fn a_cut_link_ends_writing_until_the_engine_is_opened_again<S: Shared>(rows: &S) {
    let unavailable = |error: &EngineError| matches!(error, EngineError::Unavailable { .. });
    let (engine, link) = take(rows);
    commit(&engine, one(b"a", b"1"));
    let snapshot = engine.snapshot().expect("is open");
    link.cut(true);
    let read = engine.get(SPACE, b"a").map(drop).expect_err("no message arrives");
    assert!(unavailable(&read), "{read}");
    let taken = engine.snapshot().map(drop).expect_err("no message arrives");
    assert!(unavailable(&taken), "{taken}");
    let failed = engine.commit(one(b"a", b"2"), &[], Level::Process).expect_err("no message arrives");
    // An engine that knows that the message was not sent says that nothing was written.
    let ends_writing = matches!(&failed, EngineError::WriteFailed { .. } | EngineError::ReadOnly { .. });
    assert!(ends_writing, "{failed}");
    assert!(matches!(engine.failure(), Some(Failure::Write(_))), "{:?}", engine.failure());
    link.cut(false);
    let refused = engine.commit(one(b"a", b"3"), &[], Level::Process);
    assert!(matches!(refused, Err(EngineError::ReadOnly { .. })), "{refused:?}");
    assert_eq!(payload(&engine, b"a").as_deref(), Some(&b"1"[..]), "reads go on");
    match snapshot.get(SPACE, b"a") {
        Ok(row) => assert!(row.is_some(), "a snapshot that is still there has its rows"),
        Err(error) => assert!(matches!(error, EngineError::SnapshotGone { .. }), "{error}"),
    }
    drop(snapshot);
    let again = reopen(engine, |found| found == 1);
    assert_eq!(commit(&*again, one(b"a", b"4")), CommitSeq::new(2));
}

pub(super) fn a_paused_owner_is_fenced_when_it_wakes<S: Shared>(rows: &S) {
    let (first, link) = take(rows);
    commit(&first, one(b"a", b"1"));
    link.pause(true);
    thread::scope(|scope| {
        let paused = scope.spawn(|| first.commit(one(b"a", b"of the first"), &[], Level::Process));
        let _link = Unpaused(&*link);
        // The test holds whether or not the commit has begun by then.
        thread::sleep(Duration::from_millis(20));
        let (second, _link) = take(rows);
        commit(&second, one(b"a", b"of the second"));
        link.pause(false);
        match paused.join().expect("the thread ends") {
            Err(EngineError::WriteFailed { cause }) => assert!(cause.fence().is_some(), "{cause}"),
            other => assert_fenced(other),
        }
        assert_eq!(payload(&second, b"a").as_deref(), Some(&b"of the second"[..]));
        assert_eq!(second.last_commit(), CommitSeq::new(2));
    });
}

/// A link that is not paused any more when the test ends or panics.
struct Unpaused<'l, L: Link + ?Sized>(&'l L);

impl<L: Link + ?Sized> Drop for Unpaused<'_, L> {
    fn drop(&mut self) {
        self.0.pause(false);
    }
}
