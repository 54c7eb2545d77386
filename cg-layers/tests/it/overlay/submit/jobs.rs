//! Background jobs, and what happens beside them.

use std::thread;

use super::held::Held;
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
