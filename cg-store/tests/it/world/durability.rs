//! Failures that a returned commit survives, and a world whose disk fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use cg_store::Durability;
use cg_store::engine::{EngineError, Fault};

over_both_engines! {
    a_ticket_waits_for_the_disk
    a_commit_at_power_is_on_the_disk_when_it_returns
    a_ticket_is_answered_after_closing
    a_transaction_without_changes_waits_for_what_it_read
}

fn set(world: &World, durability: Durability, value: u8) -> Result<cg_store::Committed<()>, Error> {
    world.transaction_at(durability, |tx| {
        tx.set_property(Property::Time, Some(vec![value]));
        Ok(())
    })
}

fn a_ticket_waits_for_the_disk(world: &World) {
    let committed = set(world, Durability::Process, 1).expect("sets");
    let (ticket, twin) = (committed.durable(), committed.durable().clone());
    assert!(!ticket.is_durable(), "nobody has synced yet");
    ticket.wait().expect("syncs");
    assert!(ticket.is_durable() && twin.is_durable());
    twin.wait().expect("has nothing to do");
    // A later commit is another matter, and an earlier one is synced with it.
    let first = set(world, Durability::Process, 2).expect("sets").durable();
    let second = set(world, Durability::Process, 3).expect("sets").durable();
    assert!(!first.is_durable() && !second.is_durable());
    second.wait().expect("syncs");
    assert!(first.is_durable());
    let third = set(world, Durability::Process, 4).expect("sets").durable();
    world.flush().expect("syncs");
    assert!(third.is_durable());
}

fn a_commit_at_power_is_on_the_disk_when_it_returns(world: &World) {
    let before = set(world, Durability::Process, 1).expect("sets").durable();
    assert!(set(world, Durability::Safe, 2).expect("sets").durable().is_durable());
    assert!(before.is_durable(), "the order of commits is the order in which they survive");
}

fn a_ticket_is_answered_after_closing(world: &World) {
    let ticket = set(world, Durability::Process, 1).expect("sets").durable();
    assert!(!ticket.is_durable());
    world.close().expect("closes");
    assert!(ticket.is_durable(), "closing synced it");
    ticket.wait().expect("closing synced it");
}

fn a_transaction_without_changes_waits_for_what_it_read(world: &World) {
    let written = set(world, Durability::Process, 1).expect("sets");
    let read = world.transaction_at(Durability::Safe, |tx| tx.property(&Property::Time)).expect("reads");
    assert_eq!((read.value.as_deref(), read.seq), (Some(&[1][..]), written.seq));
    assert!(written.durable().is_durable(), "what was read at this level survives");
}

#[test]
fn many_threads_share_their_syncs() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let world = &world;
            scope.spawn(move || {
                for value in 0..10 {
                    let committed = set(world, Durability::Safe, thread * 10 + value).expect("sets");
                    assert!(committed.durable().is_durable());
                }
            });
        }
    });
    assert_eq!(world.metrics().stats.commits, 80);
}

/// A world over an engine whose commits fail from a moment on.
fn failing(fault: Fault) -> (World, Arc<AtomicU64>) {
    let from = Arc::new(AtomicU64::new(u64::MAX));
    let fails_from = Arc::clone(&from);
    let engine = MemEngine::new()
        .with_fault(move |seq| (seq.get() >= fails_from.load(Ordering::Relaxed)).then_some(fault));
    (World::builder().options(&options()).over(engine).expect("a world in memory"), from)
}

#[test]
fn a_failed_write_changes_nothing_and_reads_go_on() {
    for fault in [Fault::NoSpace, Fault::Write] {
        let (world, fails_from) = failing(fault);
        let ids = Ids::register(&world);
        let (a, b) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
        save(&world, [(a, filled(&world, ids.stone))]);
        let (before, last) = (rows(&world), world.last_commit());
        fails_from.store(0, Ordering::Relaxed);
        let save_both = |world: &World| {
            world.transaction(|tx| {
                tx.save(a, filled(world, ids.glass));
                tx.save(b, filled(world, ids.glass));
                tx.put_entity(uuid(1), ids.cow_in(a));
                Ok::<_, Error>(())
            })
        };
        let error = save_both(&world).expect_err("the disk refuses");
        match fault {
            Fault::NoSpace => assert!(matches!(error, Error::Engine(EngineError::NoSpace { .. })), "{error}"),
            _ => assert!(matches!(error, Error::Engine(EngineError::WriteFailed { .. })), "{error}"),
        }
        // Memory shows what was committed, not what was tried.
        assert_eq!(world.load(a).expect("loads").as_deref(), Some(&filled(&world, ids.stone)));
        assert_eq!(world.load(b).expect("loads"), None);
        assert_eq!(world.entity(uuid(1)).expect("reads"), None);
        assert!(before == rows(&world));
        assert_eq!(world.last_commit(), last);
        // The disk is well again, but what it lost is unknown until the next open.
        fails_from.store(u64::MAX, Ordering::Relaxed);
        let error = save_both(&world).expect_err("is read-only");
        assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
        let error = world.registry().register_blocks(["game:new"]).expect_err("is read-only");
        assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
        assert_eq!(world.catalog().block_id("game:new"), None);
        assert_sound(&world);
        world.close().expect_err("what closing would write is refused too");
        assert!(matches!(world.load(a), Err(Error::Closed)), "the world is closed all the same");
    }
}

#[test]
fn a_failed_sync_is_told_to_whoever_waits() {
    let (world, fails_from) = failing(Fault::Sync);
    let sound = set(&world, Durability::Process, 1).expect("sets").durable();
    sound.wait().expect("syncs");
    fails_from.store(0, Ordering::Relaxed);
    let ticket = set(&world, Durability::Process, 2).expect("is handed to the system").durable();
    let error = ticket.wait().expect_err("the sync fails");
    assert!(matches!(error, Error::Engine(EngineError::SyncFailed { .. })), "{error}");
    assert!(!ticket.is_durable() && sound.is_durable());
    let error = ticket.wait().expect_err("a sync is never tried again");
    assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
    assert_eq!(world.property(&Property::Time).expect("reads go on"), Some(vec![2]));
    drop(world);
    assert!(!ticket.is_durable() && sound.is_durable());
    assert!(matches!(ticket.wait(), Err(Error::Closed)), "closing could not sync it");
}

#[test]
fn a_failed_sync_of_a_commit_is_told_by_the_commit() {
    let (world, fails_from) = failing(Fault::Sync);
    fails_from.store(0, Ordering::Relaxed);
    let error = set(&world, Durability::Safe, 2).expect_err("the sync fails");
    assert!(matches!(error, Error::Engine(EngineError::SyncFailed { .. })), "{error}");
}

#[test]
fn a_world_is_synced_by_itself_as_often_as_its_options_say() {
    let synced_after = |sync_every: Duration, wait: Duration| {
        let disk = Disk::new();
        let options = WorldOptions { durability: Durability::Process, sync_every, ..options() };
        let world = World::builder().options(&options).create(disk.path()).expect("is made");
        let committed = set(&world, Durability::Process, 1).expect("sets").durable();
        let begun = Instant::now();
        while !committed.is_durable() && begun.elapsed() < wait {
            std::thread::sleep(Duration::from_millis(5));
        }
        committed.is_durable()
    };
    assert!(synced_after(Duration::ZERO, Duration::from_secs(60)), "the shortest time is used");
    assert!(!synced_after(Duration::from_secs(3600), Duration::from_millis(1500)), "not after a second");
}
