//! Background jobs, and what happens beside them.

use std::sync::atomic::Ordering;
use std::thread;

use super::held::{Gate, Held};
use super::*;

const LONG: Duration = Duration::from_secs(60);

/// The function of a batch has the last handle: it is dropped by the job.
#[test]
fn a_job_may_drop_the_last_handle() {
    let (base, ids) = template();
    let held = Held::over(&base);
    let overlay = over(&held);
    let at = ids.at(1, 0, 0);
    let mut batch = WriteBatch::new();
    let last = overlay.clone();
    batch.edit(at, move |_| {
        let _ = last.arena();
        Ok(())
    });
    let ticket = overlay.submit(batch).expect("takes");
    drop(overlay);
    let (tell, told) = channel();
    thread::spawn(move || tell.send(held.run_job()));
    assert_eq!(told.recv_timeout(LONG), Ok(true), "it does not wait for itself");
    ticket.wait().expect("is written");
}

#[test]
fn the_last_handle_waits_for_a_load_in_the_background() {
    let (base, ids) = template();
    let (held, is_open) = (Held::over(&base), Arc::new(()));
    let engine = MemEngine::new().with_fault({
        let is_open = Arc::clone(&is_open);
        move |_| {
            let _ = &is_open;
            None
        }
    });
    let arenas = Arenas::over(engine, held.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    drop(arenas);
    let at = ids.at(1, 0, 0);
    let (begun, late) = (overlay.load_in_background(&[at]), overlay.load_in_background(&[at]));
    held.reads.close();
    thread::scope(|scope| {
        scope.spawn(|| held.run_job());
        held.reads.wait_for_one();
        let (tell, told) = channel();
        let is_open = &is_open;
        scope.spawn(move || {
            drop(overlay);
            tell.send(Arc::strong_count(is_open)).expect("is awaited");
        });
        let early = told.recv_timeout(Duration::from_millis(200));
        held.reads.open();
        assert!(early.is_err(), "the job still reads");
        assert_eq!(told.recv_timeout(LONG), Ok(1), "nothing has the engine open");
    });
    begun.wait().expect("answers").remove(0).expect("loads");
    held.run_jobs();
    let late = late.wait().map(drop);
    assert!(matches!(late, Err(Error::Closed)), "it had not begun: {late:?}");
}

/// The lease ends while a job is about to write.
#[test]
fn an_arena_is_not_reclaimed_while_a_job_writes_to_it() {
    let (base, ids) = template();
    let (held, fuse, commits) = (Held::over(&base), Fuse::new(), Gate::default());
    let engine = Surviving::over(commits.engine(), &fuse);
    let arenas = Arenas::over(engine, held.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    let (tell, told) = channel();
    let mut batch = WriteBatch::new();
    let begins = tell.clone();
    batch.edit(ids.at(1, 0, 0), move |_| {
        let _ = begins.send("writes");
        Ok(())
    });
    batch.set_property(rule(), Some(vec![7]));
    fuse.set(0);
    let ticket = overlay.submit(batch).expect("takes");
    drop(overlay);
    assert!(!ticket.is_finished(), "the storage takes nothing");
    assert_eq!(told.try_iter().count(), 1, "it tried");
    fuse.set(i64::MAX);
    commits.close();
    thread::scope(|scope| {
        let reclaims = scope.spawn(|| arenas.reclaim(GameTick::new(1)));
        commits.wait_for_one();
        scope.spawn(|| {
            assert!(held.run_job());
            tell.send("left it").expect("is awaited");
        });
        let said = told.recv_timeout(LONG);
        commits.open();
        assert_eq!(said, Ok("left it"));
        assert_eq!(reclaims.join().expect("no panic").expect("reclaims"), 1);
    });
    assert!(held.run_job(), "the job that found the arena in use is started again");
    assert!(ticket.is_finished());
    let released = ticket.wait().expect_err("is refused");
    assert_eq!(released.layer(), Some(&OverlayError::Released { arena: 0 }));
}

/// The storage took nothing until the arena was reclaimed.
#[test]
fn an_arena_is_removed_when_all_that_was_submitted_is_refused() {
    let (base, ids) = template();
    for by_tick in [false, true] {
        let (held, fuse) = (Held::over(&base), Fuse::new());
        let engine = Surviving::new(&fuse);
        let arenas = Arenas::over(engine, held.clone(), &options()).expect("a base");
        let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
        fuse.set(0);
        let ticket = overlay.submit(saved(ids.at(7, 0, 0), filled(&base, ids.stone))).expect("takes");
        drop(overlay);
        held.run_jobs();
        fuse.set(i64::MAX);
        assert_eq!(arenas.reclaim(GameTick::new(1)).expect("reclaims"), 1);
        let remove = || {
            if !by_tick {
                return arenas.remove_free_since(GameTick::new(2)).expect("removes");
            }
            let policy = ArenaPolicy { remove_after_ticks: Some(1), ..ArenaPolicy::default() };
            let report = arenas.tick(GameTick::new(2), &policy, Duration::ZERO).expect("ticks");
            report.removed
        };
        assert_eq!(remove(), 0, "a batch waits");
        assert!(!ticket.is_finished());
        held.run_jobs();
        assert!(ticket.is_finished());
        let released = ticket.wait().expect_err("is refused");
        assert_eq!(released.layer(), Some(&OverlayError::Released { arena: 0 }));
        assert_eq!(remove(), 1);
    }
}

#[test]
fn a_tick_starts_what_waited_for_it() {
    let (base, ids) = template();
    let (held, commits) = (Held::over(&base), Gate::default());
    let arenas = Arenas::over(commits.engine(), held.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    commits.close();
    let policy = ArenaPolicy { end_after_ticks: Some(0), ..ArenaPolicy::default() };
    let ticket = thread::scope(|scope| {
        let ticks = scope.spawn(|| arenas.tick(GameTick::new(1), &policy, Duration::ZERO));
        commits.wait_for_one();
        let ticket = overlay.submit(saved(ids.at(7, 0, 0), filled(&base, ids.stone))).expect("takes");
        assert!(held.run_job());
        assert!(!held.run_job() && !ticket.is_finished(), "the tick has the arena");
        commits.open();
        assert_eq!(ticks.join().expect("no panic").expect("ticks").ended, 1);
        ticket
    });
    assert!(held.run_job(), "the job is started again");
    assert!(ticket.is_finished());
    let released = ticket.wait().expect_err("is refused");
    assert_eq!(released.layer(), Some(&OverlayError::Released { arena: 0 }));
}

/// The base has registered a name, and a transaction stores that.
#[test]
fn a_submission_does_not_wait_while_names_are_stored() {
    let (base, ids) = template();
    let commits = Gate::default();
    let arenas = Arenas::over(commits.engine(), Held::over(&base), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    base.registry().register_dimension("game:moon").expect("registers");
    let at = ids.at(7, 0, 0);
    commits.close();
    thread::scope(|scope| {
        scope.spawn(|| write(&overlay, [(at, Some(filled(&base, ids.glass)))]));
        commits.wait_for_one();
        let (tell, told) = channel();
        let (overlay, batch) = (&overlay, saved(at, filled(&base, ids.stone)));
        scope.spawn(move || tell.send(overlay.submit(batch).map(drop)).expect("is awaited"));
        let taken = told.recv_timeout(Duration::from_secs(10));
        commits.open();
        taken.expect("it waits for no commit").expect("takes");
    });
    assert_eq!(corner(&overlay, at), Some(ids.stone));
}

/// The base is a server that is away for a moment: all that is known of it is synced.
#[test]
fn a_batch_waits_for_a_base_that_cannot_be_reached() {
    let (base, ids) = template();
    let held = Held::over(&base);
    let overlay = over(&held);
    let at = ids.at(1, 0, 0);
    let mut batch = WriteBatch::new();
    batch.set_block(at.dimension, at.pos.min_block(), ids.glass);
    held.is_away.store(true, Ordering::Release);
    let ticket = overlay.submit(batch).expect("takes");
    held.run_jobs();
    assert!(!ticket.is_finished());
    let flushed = overlay.arenas().flush();
    assert!(matches!(&flushed, Err(error) if error.kind() == ErrorKind::Unavailable), "{flushed:?}");
    held.is_away.store(false, Ordering::Release);
    overlay.arenas().flush().expect("writes");
    ticket.wait().expect("is written");
    let chunk = overlay.load(at).expect("loads").expect("is there");
    assert_eq!(chunk.block(LocalPos::new(0, 0, 0)), ids.glass);
}

/// There is a batch that waits in every tick.
#[test]
fn a_lease_ends_though_its_holder_submits_all_the_time() {
    let (base, ids) = template();
    let held = Held::over(&base);
    let arenas = Arenas::over(MemEngine::new(), held.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    let policy = ArenaPolicy { end_after_ticks: Some(10), ..ArenaPolicy::default() };
    let ticket = overlay.submit(saved(ids.at(1, 0, 0), filled(&base, ids.stone))).expect("takes");
    let report = arenas.tick(GameTick::new(10), &policy, Duration::ZERO).expect("ticks");
    assert_eq!(report.ended, 1);
    held.run_jobs();
    let refused = ticket.wait().map(drop);
    let is_released = |error: &Error| matches!(error.layer(), Some(OverlayError::Released { arena: 0 }));
    assert!(refused.as_ref().is_err_and(is_released), "{refused:?}");
}
