//! What is said of the durability of batches.

use std::sync::atomic::{AtomicU8, Ordering};

use cg_store::engine::Fault;

use super::*;

fn ruled(bytes: u8) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.set_property(rule(), Some(vec![bytes]));
    batch
}

fn set_in_base(base: &World, bytes: u8) {
    let set = base.transaction(|tx| {
        tx.set_property(rule(), Some(vec![bytes]));
        Ok::<_, Error>(())
    });
    set.expect("sets");
}

/// A batch writes no row where the base has its value already. Its value is as durable as the base's.
#[test]
fn a_batch_that_changes_nothing_is_durable_with_what_it_found() {
    let (base, _) = template();
    let overlay = over(&base);
    overlay.arenas().flush().expect("syncs");
    set_in_base(&base, 7);
    let accepted = overlay.submit(ruled(7)).expect("takes").wait().expect("is written");
    assert_eq!(overlay.arenas().stats().rows_written, 0, "the base has it");
    let durable = accepted.durable();
    assert!(
        durable.has_reached(Level::Process) && !durable.is_durable(),
        "a power cut takes it from the base"
    );
    assert!(base.engine().last_synced() < base.engine().last_commit());
    durable.wait().expect("syncs");
    assert!(durable.is_durable());
    assert_eq!(base.engine().last_synced(), base.engine().last_commit());

    let wait = |batch| overlay.submit(batch).expect("takes").wait().expect("is written").durable();
    let (first, again) = (wait(ruled(8)), wait(ruled(8)));
    assert!(!first.is_durable() && !again.is_durable(), "nor is an earlier batch's");
    overlay.arenas().flush().expect("syncs");
    assert!(first.is_durable() && again.is_durable());
}

#[test]
fn a_safe_overlay_syncs_what_it_finds_in_the_base() {
    let (base, _) = template();
    let safe = WorldOptions { durability: Durability::Safe, ..options() };
    let overlay = Overlay::in_memory(base.clone(), &safe).expect("a base");
    set_in_base(&base, 7);
    let accepted = overlay.submit(ruled(7)).expect("takes").wait().expect("is written");
    assert!(accepted.durable().is_durable());
    assert_eq!(base.engine().last_synced(), base.engine().last_commit());
    set_in_base(&base, 8);
    let set = overlay.transaction(|tx| {
        tx.set_property(rule(), Some(vec![8]));
        Ok::<_, Error>(())
    });
    set.expect("commits");
    assert_eq!(base.engine().last_synced(), base.engine().last_commit());
    assert_eq!(overlay.arenas().stats().rows_written, 0, "the base has both");
}

/// A safe overlay whose commits fail as the returned value says: 1 for the sync, 2 for the write.
fn failing(base: &World) -> (Overlay<World>, Arc<AtomicU8>) {
    let fails = Arc::new(AtomicU8::new(0));
    let engine = MemEngine::new().with_fault({
        let fails = Arc::clone(&fails);
        move |_| [None, Some(Fault::Sync), Some(Fault::Write)][usize::from(fails.load(Ordering::Relaxed))]
    });
    let safe = WorldOptions { durability: Durability::Safe, ..options() };
    let arenas = Arenas::over(engine, base.clone(), &safe).expect("a base");
    (arenas.lease("ada", GameTick::new(0)).expect("leases"), fails)
}

#[test]
fn a_batch_whose_sync_failed_is_written_once_and_not_durable() {
    let (base, ids) = template();
    let (overlay, fails) = failing(&base);
    let at = ids.at(1, 0, 0);
    fails.store(1, Ordering::Relaxed);
    let accepted = overlay.submit(saved(at, filled(&base, ids.stone))).expect("takes").wait();
    let accepted = accepted.expect("it is applied");
    assert_eq!(accepted.seq, overlay.arenas().engine().last_commit());
    let durable = accepted.durable();
    assert!(durable.has_reached(Level::Process) && !durable.is_durable());
    let failed = durable.wait();
    assert!(matches!(failed, Err(Error::Engine(EngineError::ReadOnly { .. }))), "{failed:?}");
    assert_eq!(corner(&overlay, at), Some(ids.stone), "nothing waits");

    let later = overlay.submit(saved(at, filled(&base, ids.glass))).expect("takes");
    let read = overlay.load(at);
    assert!(matches!(read, Err(Error::Engine(EngineError::ReadOnly { .. }))), "{read:?}");
    assert_eq!(accepted.seq, overlay.arenas().engine().last_commit(), "it was given once");
    drop(overlay);
    let lost = later.wait().map(drop);
    assert!(matches!(lost, Err(Error::Closed)), "{lost:?}");
}

#[test]
fn a_batch_whose_writing_failed_is_reported_as_in_doubt() {
    let (base, ids) = template();
    let (overlay, fails) = failing(&base);
    fails.store(2, Ordering::Relaxed);
    let at = ids.at(1, 0, 0);
    let failed = overlay.submit(saved(at, filled(&base, ids.stone))).expect("takes").wait();
    assert!(matches!(failed, Err(Error::Engine(EngineError::WriteFailed { .. }))), "{failed:?}");
    overlay.load(at).expect("nothing waits to be written again");
}
