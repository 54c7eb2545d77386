//! Closing: once, for every handle, whoever does it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;

use super::*;
use cg_format::Space;
use cg_store::Durability;
use cg_store::engine::EngineError;

over_both_engines! {
    every_later_call_says_so
    closing_again_does_nothing
    what_is_committed_behind_the_close_is_refused
    closing_beside_transactions_and_registrations_loses_nothing
}

#[track_caller]
fn closed<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::Closed)), "{result:?}");
}

fn every_later_call_says_so(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    save(world, [(a, filled(world, ids.stone))]);
    assert!(world.load(a).expect("is in memory now").is_some());
    let other = world.clone();
    other.close().expect("closes");
    closed(world.load(a));
    closed(world.load_versioned(a));
    closed(world.tiers().with_stored_bytes(a, |_| Ok(())));
    closed(world.load_many(&[a]).remove(0));
    closed(world.load_in_background(&[a]).wait().and_then(|mut found| found.remove(0)));
    closed(world.entity(uuid(1)));
    closed(world.property(&Property::Seed));
    closed(world.opacity().column(ids.overworld, 0, 0));
    closed(world.transaction(|_| Ok::<_, Error>(())));
    closed(world.registry().register_blocks(["game:new"]));
    closed(world.registry().register_blocks(["game:stone"]));
    closed(world.content_hash(cg_store::view::Area::World));
    closed(world.content_hash(cg_store::view::Area::Box(ids.overworld, ChunkBox::EVERYTHING)));
    closed(world.verify(VerifyDepth::Full, |_| {}));
    closed(world.usage());
    closed(world.flush());
    closed(world.quarantine().chunk(a));
    closed(world.quarantine().entity(uuid(1)));
    closed(world.quarantine().list());
    closed(world.quarantine().delete(Space::ChunkL0, b"row", CommitSeq::new(1)));
    closed(world.opacity().fold(1));
    closed(world.opacity().rebuild());
}

fn what_is_committed_behind_the_close_is_refused(world: &World) {
    Ids::register(world);
    // Nobody would write what is queued from here on.
    closed(world.transaction_at(Durability::Fast, |tx| {
        tx.set_property(Property::Time, Some(vec![1]));
        world.close()
    }));
}

fn closing_again_does_nothing(world: &World) {
    Ids::register(world);
    for _ in 0..3 {
        world.close().expect("is closed");
    }
}

fn closing_beside_transactions_and_registrations_loses_nothing(world: &World) {
    let ids = Ids::register(world);
    let start = Barrier::new(4);
    thread::scope(|scope| {
        let (start, ids) = (&start, &ids);
        for thread in 0..3_i64 {
            scope.spawn(move || {
                start.wait();
                for n in 0..1000 {
                    let name = format!("game:block_{thread}_{n}");
                    let saved = world.registry().register_blocks([name.as_str()]).and_then(|[block]| {
                        let chunk = filled(world, block);
                        world.transaction(|tx| {
                            tx.save(ids.at(thread, n, 0), chunk);
                            Ok::<_, Error>(())
                        })
                    });
                    match saved {
                        Ok(_) => {}
                        Err(Error::Closed) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        start.wait();
        thread::sleep(std::time::Duration::from_millis(20));
        world.close().expect("closes");
    });
}

#[test]
fn names_issued_while_closing_are_there_after_opening() {
    for round in 0..20 {
        let disk = Disk::new();
        let world = disk.create(&[]);
        let start = Barrier::new(3);
        let issued: Vec<Vec<(String, BlockId)>> = thread::scope(|scope| {
            let (start, world) = (&start, &world);
            let threads: Vec<_> = (0..2_i64)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut issued = Vec::new();
                        start.wait();
                        for n in 0.. {
                            let name = format!("game:block_{thread}_{n}");
                            let Ok([block]) = world.registry().register_blocks([name.as_str()]) else {
                                break;
                            };
                            issued.push((name, block));
                        }
                        issued
                    })
                })
                .collect();
            start.wait();
            thread::sleep(std::time::Duration::from_micros(500 * round));
            world.close().expect("closes");
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        drop(world);
        let world = disk.open(&[]);
        for (name, block) in issued.into_iter().flatten() {
            assert_eq!(world.catalog().block_id(&name), Some(block), "{name}");
        }
        assert_sound(&world);
    }
}

#[test]
fn the_last_handle_closes() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let other = world.clone();
    drop(world);
    save(&other, [(ids.at(0, 0, 0), filled(&other, ids.stone))]);
    drop(other);
    let world = disk.open(&[]);
    assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
}

#[test]
fn a_closed_world_is_locked_until_its_last_handle_is_gone() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let other = world.clone();
    world.close().expect("closes");
    let refused = || {
        let error = World::builder().options(&options()).open(disk.path()).expect_err("is locked");
        assert!(
            matches!(&error, Error::Open(OpenError::Engine { source: EngineError::Locked { by: Some(by), .. }, .. })
                if *by == std::process::id()),
            "{error}"
        );
    };
    refused();
    drop(world);
    refused();
    drop(other);
    drop(disk.open(&[]));
}

#[test]
fn what_a_commit_returned_keeps_no_world_open() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let committed = world.transaction(|tx| {
        tx.set_property(Property::Seed, Some(vec![1; 8]));
        Ok::<_, Error>(())
    });
    let committed = committed.expect("sets");
    let ticket = committed.durable();
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(world.property(&Property::Seed).expect("reads"), Some(vec![1; 8]));
    assert!(ticket.is_durable() && committed.durable().is_durable(), "closing synced it");
    ticket.wait().expect("closing synced it");
}

#[test]
fn a_panic_of_the_host_closes_cleanly() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let ids = Ids::register(&world);
        save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
        let _dropped_while_unwinding = world;
        panic!("the host's own");
    }));
    assert!(panicked.is_err());
    let world = disk.open(&[]);
    let ids = Ids::of(&world);
    assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
    assert_sound(&world);
}

#[test]
fn a_world_is_dropped_while_its_own_thread_loads() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..200).map(|n| ids.at(n, 0, 0)).collect();
    save(&world, all.iter().map(|at| (*at, filled(&world, ids.stone))));
    let pending: Vec<_> = (0..20).map(|_| world.load_in_background(&all)).collect();
    drop(world);
    for pending in pending {
        // They were loaded, or the world was gone first; nobody waits for ever.
        match pending.wait() {
            Ok(found) => assert_eq!(found.len(), all.len()),
            Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
        }
    }
    drop(disk.open(&[]));
}
