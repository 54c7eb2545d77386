//! The order of what is submitted to several layers.

use std::task::Poll;

use super::held::Held;
use super::*;

/// The blocks that a function of a batch has found.
type Seen = Arc<Mutex<Vec<BlockId>>>;

/// A batch that notes the block of a chunk's corner.
fn seeing(at: ChunkAt, seen: &Seen) -> WriteBatch {
    let (mut batch, seen) = (WriteBatch::new(), Arc::clone(seen));
    batch.edit(at, move |chunk| {
        seen.lock().expect("no panic").push(chunk.block(LocalPos::new(0, 0, 0)));
        Ok(())
    });
    batch
}

#[track_caller]
fn assert_seen(seen: &Seen, expected: &[BlockId]) {
    assert_eq!(*seen.lock().expect("no panic"), expected);
}

/// The storage of the lower layer takes nothing for a while.
#[test]
fn a_batch_above_waits_for_what_cannot_be_written_below() {
    let (base, ids) = template();
    let (fuse, held) = (Fuse::new(), Held::over(&base));
    let below = Arenas::over(Surviving::new(&fuse), held.clone(), &options()).expect("a base");
    let lower = below.lease("ada", GameTick::new(0)).expect("leases");
    let upper = over(&lower);
    let (at, seen) = (ids.at(1, 0, 0), Seen::default());
    fuse.set(0);
    let first = lower.submit(saved(at, filled(&base, ids.stone))).expect("takes");
    let second = upper.submit(seeing(at, &seen)).expect("takes");
    let mut second = pin!(second);
    let mut context = Context::from_waker(Waker::noop());
    assert!(second.as_mut().poll(&mut context).is_pending());
    let loads = upper.load_in_background(&[at]);
    held.run_jobs();
    assert_seen(&seen, &[]);
    let Poll::Ready(Err(why)) = second.as_mut().poll(&mut context) else { panic!("it is told why it waits") };
    let kind = ErrorKind::LowDisk;
    assert!(
        matches!(why.layer(), Some(OverlayError::NotWritten { arena: 0, kind: why, .. }) if *why == kind),
        "{why:?}"
    );
    let loaded = loads.wait().expect("answers").remove(0);
    assert!(
        matches!(loaded.as_ref().err().and_then(Error::layer), Some(OverlayError::NotWritten { .. })),
        "{loaded:?}"
    );
    assert!(!first.is_finished() && !second.is_finished());

    fuse.set(i64::MAX);
    upper.arenas().tick(GameTick::new(1), &ArenaPolicy::default(), Duration::ZERO).expect("ticks");
    held.run_jobs();
    assert!(first.is_finished() && second.is_finished());
    assert_seen(&seen, &[ids.stone]);
}

#[test]
fn layers_keep_their_order_inside_a_closure_of_a_third() {
    let (base, ids) = template();
    let held = Held::over(&base);
    let lower = over(&held);
    let (upper, third) = (over(&lower), over(&held));
    let (at, seen) = (ids.at(1, 0, 0), Seen::default());
    let submit = |block| {
        lower.submit(saved(at, filled(&base, block))).expect("takes");
        upper.submit(seeing(at, &seen)).expect("takes")
    };
    let within = third.transaction(|_| {
        let ticket = submit(ids.stone);
        upper.transaction(|_| Ok::<_, Error>(()))?;
        assert!(ticket.is_finished());
        Ok::<_, Error>(())
    });
    within.expect("commits");
    assert_seen(&seen, &[ids.stone]);
    upper.reset().expect("resets");

    // What is submitted inside a closure of the lower layer comes after that.
    let within = lower.transaction(|_| {
        let ticket = submit(ids.glass);
        let nested = upper.reset();
        assert!(matches!(nested, Err(Error::Nested)), "{nested:?}");
        Ok::<_, Error>(ticket)
    });
    within.expect("commits").wait().expect("is written");
    assert_seen(&seen, &[ids.stone, ids.glass]);
}

/// Between the writing of the lower layer and the right to change the upper one, both get a batch.
#[test]
fn what_comes_after_the_base_was_given_its_batches_waits_for_the_next_turn() {
    let (base, ids) = template();
    let lower = over(&Held::over(&base));
    let held = Held::over(&lower);
    let upper = over(&held);
    let (at, seen) = (ids.at(1, 0, 0), Seen::default());
    let submit_both = |block| {
        let (lower, upper, chunk) = (lower.clone(), upper.clone(), filled(&base, block));
        let batch = seeing(at, &seen);
        move || {
            lower.submit(saved(at, chunk)).expect("takes");
            upper.submit(batch).expect("takes");
        }
    };
    held.when_applied_next(submit_both(ids.stone));
    upper.transaction(|_| Ok::<_, Error>(())).expect("commits");
    held.assert_applied();
    assert_seen(&seen, &[]);
    assert_eq!(corner(&upper, at), Some(ids.stone));
    assert_seen(&seen, &[ids.stone]);
    held.run_jobs();
    upper.reset().expect("resets");

    let ticket = upper.submit(saved(ids.at(9, 0, 0), filled(&base, ids.stone))).expect("takes");
    held.when_applied_next(submit_both(ids.glass));
    assert!(held.run_job());
    held.assert_applied();
    assert!(ticket.is_finished(), "the background job wrote it");
    assert_seen(&seen, &[ids.stone]);
    assert_eq!(corner(&upper, at), Some(ids.glass));
    assert_seen(&seen, &[ids.stone, ids.glass]);
}

/// A merge into an arena flushes it, and reports what became of no other arena.
#[test]
fn a_merge_does_not_fail_for_a_batch_of_another_arena() {
    let (base, ids) = template();
    let arenas = Arenas::in_memory(base.clone(), &options()).expect("a base");
    let lease = |holder| arenas.lease(holder, GameTick::new(0)).expect("leases");
    let (target, other) = (lease("ada"), lease("grace"));
    let upper = over(&target);
    let own = Registration {
        dimensions: vec![Name::new("duel:field").expect("a name")],
        ..Registration::default()
    };
    upper.register(&own).expect("registers");
    write(&upper, [(ids.at(1, 0, 0), Some(filled(&base, ids.glass)))]);
    let mut absent = WriteBatch::new();
    absent.set_block(ids.overworld, BlockPos::new(9 * 16, 0, 0), ids.glass);
    drop(other.submit(absent).expect("takes"));
    assert_eq!(corner(&other, ids.at(9, 0, 0)), None, "it was refused");
    assert_eq!(upper.merge_into(&target).expect("merges").changes, 1);
    let reported = arenas.flush();
    let Err(Error::DeferredWrite { error, others: 0 }) = reported else { panic!("{reported:?}") };
    assert!(matches!(*error, Error::ChunkAbsent { at } if at == ids.at(9, 0, 0)), "{error:?}");
}
