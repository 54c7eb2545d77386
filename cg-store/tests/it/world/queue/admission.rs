//! Admission of callers to a queue that is full.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::*;
use cg_store::WriteBatch;

const KIB: usize = 1 << 10;

/// Refuses a commit of 60 of 64 KiB to a thread, which then waits and returns how that ended.
fn refused_and_waiting<'s>(
    scope: &'s thread::Scope<'s, '_>,
    gated: &'s Gated,
    x: i64,
) -> thread::ScopedJoinHandle<'s, Result<(), Error>> {
    let (refused, is_refused) = channel();
    let thread = scope.spawn(move || {
        let error = put(gated, x, 1, 60 * KIB).expect_err("is full");
        assert!(matches!(error, Error::Busy { .. }), "{error}");
        refused.send(()).expect("somebody waits");
        gated.world.wait_for_room()
    });
    is_refused.recv().expect("is told");
    thread
}

#[test]
fn a_commit_that_takes_most_of_the_queue_needs_to_wait_once_however_many_small_ones_come() {
    // A disk that needs a millisecond for each commit.
    let engine = MemEngine::new().with_fault(|_| {
        thread::sleep(Duration::from_millis(1));
        None
    });
    let options =
        WorldOptions { durability: Durability::Fast, queue_bytes: 64 << 10, cache_bytes: 0, ..options() };
    let world = World::builder().options(&options).over(engine).expect("a world in memory");
    let ids = Ids::register(&world);
    let is_done = AtomicBool::new(false);
    let commit = |x: i64, len: usize| {
        let put = world.transaction(|tx| {
            tx.save(ids.at(x, 0, 0), side(&world, &ids, 1, len));
            Ok::<_, Error>(())
        });
        put.map(drop)
    };
    let submit = |x: i64, len: usize| {
        let mut batch = WriteBatch::new();
        batch.save(ids.at(x, 0, 0), side(&world, &ids, 1, len));
        world.submit(batch).map(drop).map_err(Error::from)
    };
    thread::scope(|scope| {
        for part in 1..=3 {
            let (commit, submit, is_done, world) = (&commit, &submit, &is_done, &world);
            scope.spawn(move || {
                let mut x = part * 1_000_000;
                while !is_done.load(Ordering::Relaxed) {
                    x += 1;
                    // One of them submits.
                    while let Err(error) = if part == 3 { submit(x, 2 * KIB) } else { commit(x, 2 * KIB) } {
                        assert!(matches!(error, Error::Busy { .. }), "{error}");
                        // One waits, and two do not.
                        if part == 1 {
                            world.wait_for_room().expect("there will be");
                        } else {
                            thread::yield_now();
                        }
                    }
                }
            });
        }
        // Each is refused once, and once more only if this thread got no processor for a quarter of a second.
        let (mut left, mut refusals) = (10, 0);
        while left > 0 && refusals <= 15 {
            match commit(left, 60 * KIB) {
                Ok(()) => left -= 1,
                Err(Error::Busy { .. }) => {
                    refusals += 1;
                    world.wait_for_room().expect("there will be");
                }
                Err(error) => panic!("{error}"),
            }
        }
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(left, 0, "refused {refusals} times");
    });
    world.flush().expect("writes");
    assert_sound(&world);
}

#[test]
fn a_transaction_that_is_run_again_waits_for_room() {
    let gated = Gated::new(64 << 10);
    let open = gated.shut();
    put(&gated, 1, 1, 60 * KIB).expect("is taken by an empty queue");
    let (ran, has_run) = channel();
    thread::scope(|scope| {
        let (Gated { world, ids, .. }, ran) = (&gated, &ran);
        let waiting = scope.spawn(move || {
            world.transact(|tx| {
                tx.save(ids.at(2, 0, 0), side(world, ids, 2, 60 * KIB));
                ran.send(()).expect("somebody waits");
                Ok::<_, Error>(())
            })
        });
        has_run.recv().expect("runs");
        // It does not run again and again while there is no room.
        thread::sleep(Duration::from_millis(30));
        assert!(has_run.try_recv().is_err() && !waiting.is_finished());
        drop(open);
        waiting.join().expect("no panic").expect("has room");
        has_run.recv().expect("ran again");
        assert!(has_run.try_recv().is_err());
    });
    assert!(gated.world.load(gated.ids.at(2, 0, 0)).expect("loads").is_some());
    assert_eq!(gated.world.metrics().stats.busy, 1);
}

#[test]
fn room_that_nobody_takes_is_given_to_others() {
    let gated = Gated::new(64 << 10);
    let open = gated.shut();
    put(&gated, 0, 1, 40 * KIB).expect("fits");
    thread::scope(|scope| {
        let large = refused_and_waiting(scope, &gated, 1);
        drop(open);
        large.join().expect("no panic").expect("there is room");
        // It does not commit what it waited for, and all of this is promised to it for a while.
        let began = Instant::now();
        while let Err(error) = put(&gated, 2, 2, 20 * KIB) {
            assert!(matches!(error, Error::Busy { .. }), "{error}");
            assert!(began.elapsed() < Duration::from_secs(20), "nobody gets its room");
            thread::yield_now();
        }
    });
    gated.world.flush().expect("writes");
    assert_sound(&gated.world);
}

#[test]
fn who_waits_in_line_hears_of_a_failure() {
    let gated = Gated::new(64 << 10);
    let open = gated.shut();
    put(&gated, 0, 1, 40 * KIB).expect("fits");
    thread::scope(|scope| {
        let waiting = [1, 2].map(|x| refused_and_waiting(scope, &gated, x));
        open.send(Some(Fault::NoSpace)).expect("it is written");
        for thread in waiting {
            let error = thread.join().expect("no panic").expect_err("there will be none");
            let Error::Engine(EngineError::ReadOnly { cause }) = error else { panic!("{error}") };
            assert!(matches!(&*cause, EngineError::NoSpace { .. }), "{cause}");
        }
    });
}
