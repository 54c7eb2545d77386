//! Tests that syncs are shared, have one leader at a time, and are never tried twice.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::*;

#[test]
fn what_is_synced_is_not_synced_again() {
    let syncs = GroupSync::new(CommitSeq::new(5));
    let never = || panic!("nothing to sync");
    syncs.reach(CommitSeq::new(5), || CommitSeq::new(9), never).expect("is synced");
    assert_eq!(syncs.synced(), CommitSeq::new(5));
    syncs.reach(CommitSeq::new(6), || CommitSeq::new(9), || Ok(())).expect("syncs");
    assert_eq!(syncs.synced(), CommitSeq::new(9), "a sync covers all that was there when it began");
}

#[test]
fn one_leader_syncs_for_those_who_waited() {
    const WORKERS: u64 = 8;
    let syncs = GroupSync::default();
    let (newest, count) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Barrier::new(WORKERS as usize);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let seq = newest.fetch_add(1, Ordering::SeqCst) + 1;
                start.wait();
                let sync = || {
                    count.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(50));
                    Ok(())
                };
                let newest = || CommitSeq::new(newest.load(Ordering::SeqCst));
                syncs.reach(CommitSeq::new(seq), newest, sync).expect("syncs");
            });
        }
    });
    // All eight commits existed when the first sync began.
    assert_eq!(count.into_inner(), 1);
    assert_eq!(syncs.synced(), CommitSeq::new(WORKERS));
}

#[test]
fn a_failed_sync_is_never_tried_again() {
    let syncs = GroupSync::default();
    let fail = || Err(EngineError::Unsupported { what: "sync" });
    let failed = |result: Result<(), EngineError>, seq: u64| match result {
        Err(EngineError::SyncFailed { seq: found, cause }) => {
            assert_eq!((found, cause.to_string().as_str()), (CommitSeq::new(seq), "this engine cannot sync"));
        }
        other => panic!("expected a failed sync, got {other:?}"),
    };
    failed(syncs.reach(CommitSeq::new(1), || CommitSeq::new(1), fail), 1);
    let never = || panic!("tried again");
    failed(syncs.reach(CommitSeq::new(2), || CommitSeq::new(2), never), 2);
    assert_eq!(syncs.synced(), CommitSeq::NONE);
}
