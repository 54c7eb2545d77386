//! Commits too large for one batch, of which any batch fails.

use std::ops::ControlFlow;

use super::*;
use crate::surviving::{Fuse, Surviving};
use cg_store::engine::Reopened;
use cg_store::view::Area;

/// Every step takes about twelve batches.
fn every_batch_of_large_commits_fails_once<E: Engine>(every: usize, over: impl Fn() -> E) {
    const BATCH_BYTES: u64 = 200;
    for fault in [Fault::NoSpace, Fault::Lost, Fault::Whole] {
        for nth in (1..=60).step_by(every) {
            let failing = Failing::in_batches_of(BATCH_BYTES, over());
            fails_and_goes_on(&failing, nth, fault);
        }
    }
    let failing = Failing::in_batches_of(BATCH_BYTES, over());
    let before = failing.world.engine().batch_count();
    failing.put(Durability::Process, 0).expect("commits");
    assert!(failing.world.engine().batch_count() - before > 8, "it takes many batches");
}

#[test]
fn whichever_batch_of_a_large_commit_fails_it_is_there_when_the_world_goes_on() {
    every_batch_of_large_commits_fails_once(1, MemEngine::new);
}

#[test]
fn whichever_batch_of_a_large_commit_fails_on_disk_it_is_there_when_the_world_goes_on() {
    let disk = Disk::new();
    every_batch_of_large_commits_fails_once(11, engines_on(&disk));
}

fn count_chunks(world: &World) -> Result<i64, Error> {
    let mut count = 0;
    let walked = world.read_view(|view| {
        view.for_each_chunk(Area::World, |_| {
            count += 1;
            ControlFlow::<()>::Continue(())
        })
    });
    walked.map(|_| count)
}

/// So many chunks take some twenty batches of 200 bytes.
const LARGE: i64 = 12;

fn put_large(Failing { world, ids, .. }: &Failing) -> Result<(), Error> {
    let large = world.transaction_at(Durability::Process, |tx| {
        for x in 0..LARGE {
            tx.save(ids.at(x, 0, 0), filled(world, ids.stone));
        }
        Ok::<_, Error>(())
    });
    large.map(drop)
}

#[test]
fn a_sync_that_fails_beside_a_large_commit_leaves_all_of_it_or_nothing() {
    let mut found = Vec::new();
    for nth in 1.. {
        let failing = Failing::in_batches_of(200, MemEngine::new());
        let Failing { world, plan, ids } = &failing;
        plan.fail(nth, Fault::SyncBehind);
        let large = put_large(&failing);
        let has_failed = world.engine().failure().is_some();
        match &large {
            Ok(()) | Err(Error::Engine(EngineError::WriteFailed { .. })) => {}
            Err(error) => panic!("batch {nth}: {error}"),
        }
        // Memory has what was accepted; the rows are shown with all of it or not at all.
        assert!(world.load(ids.at(LARGE - 1, 0, 0)).expect("loads").is_some());
        match count_chunks(world) {
            Ok(count) => assert_eq!((count, large.is_ok()), (LARGE, true), "batch {nth}"),
            Err(Error::Engine(EngineError::ReadOnly { .. })) => assert!(large.is_err(), "batch {nth}"),
            Err(error) => panic!("batch {nth}: {error}"),
        }
        if !has_failed {
            break;
        }
        let error = world.resume().expect_err("nobody knows what is on the disk");
        assert!(matches!(error, Error::NotResumed(NotResumed::SyncFailed { .. })), "{error}");
        let reopen = world.engine().reopening();
        drop(failing);
        let Reopened::Writable(engine) = reopen(&|_| Ok(true)).expect("opens") else { panic!("writable") };
        let engine = Surviving::around(engine, &Fuse::new());
        let world = World::builder().options(&options()).over(engine).expect("opens");
        found.push(count_chunks(&world).expect("walks"));
        assert_sound(&world);
    }
    assert!(found.is_sorted() && found.iter().all(|count| [0, LARGE].contains(count)), "{found:?}");
    assert!(found[5] == 0 && found[found.len() - 5] == LARGE, "{found:?}");
}

/// A commit that counts although the write that said so failed, and that fails again while the world is resumed: nobody
/// who wants one state sees it in part, or a state without it.
fn nobody_sees_half_while_the_world_is_not_resumed<E: Engine>(every: usize, over: impl Fn() -> E) {
    let (mut told, mut nth) = (0, 1);
    loop {
        let mut failed = 0;
        for only_reads in [false, true] {
            let context = format!("batch {nth}, only reads: {only_reads}");
            let failing = Failing::in_batches_of(200, over());
            let Failing { world, plan, ids } = &failing;
            plan.fail(nth, Fault::Whole);
            if put_large(&failing).is_ok() {
                continue;
            }
            failed += 1;
            plan.only_reads.store(only_reads, Ordering::Relaxed);
            if !only_reads {
                plan.fail(3, Fault::Lost);
            }
            let resumed = world.resume();
            assert!(resumed.is_err() || !only_reads, "{context}");
            match count_chunks(world) {
                Ok(count) => assert_eq!(count, LARGE, "{context}"),
                Err(Error::Engine(EngineError::ReadOnly { .. })) => told += 1,
                Err(error) => panic!("{context}: {error}"),
            }
            for x in 0..LARGE {
                assert!(world.load(ids.at(x, 0, 0)).expect("memory serves on").is_some(), "{context}");
            }
            plan.only_reads.store(false, Ordering::Relaxed);
            plan.fail_no_more();
            world.resume().unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(count_chunks(world).expect("walks"), LARGE, "{context}");
            assert_sound(world);
        }
        if failed == 0 {
            break;
        }
        nth += every as u64;
    }
    assert!(told > 4, "{told} of {nth}");
}

#[test]
fn nobody_sees_half_of_a_commit_while_the_world_is_not_resumed() {
    nobody_sees_half_while_the_world_is_not_resumed(1, MemEngine::new);
}

#[test]
fn nobody_sees_half_of_a_commit_on_disk_while_the_world_is_not_resumed() {
    let disk = Disk::new();
    nobody_sees_half_while_the_world_is_not_resumed(7, engines_on(&disk));
}
