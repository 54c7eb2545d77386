//! While the disk is full, what was submitted is held, seen, and written when there is room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cg_format::EntityId;
use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_host::{Error, HostOptions, Saved, Writes};
use cg_store::engine::MemEngine;
use cg_store::{ErrorKind, World};

use crate::maker::{AIR, Made, STONE, at, known, over, uniform};

/// A host whose disk has as much room as the number says.
fn made(held_bytes: usize) -> (Made, Arc<AtomicU64>) {
    let room = Arc::new(AtomicU64::new(u64::MAX));
    let free = Arc::clone(&room);
    let engine = MemEngine::new().with_free_bytes(move || free.load(Ordering::SeqCst));
    let world = World::builder().over(engine).expect("memory");
    let options = HostOptions { held_bytes, group: Duration::from_millis(10), ..HostOptions::default() };
    (over(world, options, known(0)), room)
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_the_disk_does_not_take_is_held_and_written_later() {
    let (made, room) = made(256 << 20);
    made.save(&uniform(made.at, &[STONE]));
    room.store(0, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(1500));
    let player = EntityId::from_bytes([7; 16]);
    let kind = made.binding.kind(1).expect("registered");
    let position = EntityPos::new(made.at.dimension, made.block(0, 0, 0), [0.0; 3]).expect("fractions");
    let offline = || Owner::Detached(Reason::new("offline").expect("short"));
    let mut writes = Writes::new();
    writes.put_entity(player, Entity::new(kind, offline(), position));
    let mut other = uniform(at(made.at.dimension, 9, 9), &[STONE]);
    other.entities.push(made.cow(1));
    assert_eq!(made.submit(&uniform(made.at, &[AIR])), Saved::Accepted);
    made.host.submit_writes(&mut writes).expect("held");
    made.host.submit(&made.binding, other.clone(), false).expect("held");
    wait("the group fails", || made.host.metrics().held > 0);
    assert_eq!(made.load(), Some(uniform(made.at, &[AIR])), "a load sees what is held");
    assert_eq!(made.host.load(&made.binding, other.at).expect("held"), Some(other.clone()));
    assert!(made.host.entity(player).expect("held").is_some());
    let error = made.host.flush().expect_err("the disk is full");
    assert_eq!(error.kind(), ErrorKind::LowDisk);
    let error = made.host.save(&made.binding, uniform(made.at, &[STONE]), false).expect_err("full");
    assert_eq!(error.kind(), ErrorKind::LowDisk);
    room.store(u64::MAX, Ordering::SeqCst);
    wait("it is written without a call", || made.host.metrics().pending == 0);
    assert_eq!(made.load(), Some(uniform(made.at, &[AIR])));
    assert_eq!(made.host.load(&made.binding, other.at).expect("sound"), Some(other));
    assert!(made.host.world().entity(player).expect("sound").is_some());
}

#[test]
fn beyond_the_limit_submissions_are_refused_and_say_why() {
    let (made, room) = made(100_000);
    room.store(0, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(1500));
    let mut refused = None;
    for x in 0..1000 {
        let column = uniform(at(made.at.dimension, x, 0), &[STONE; 24]);
        match made.host.submit(&made.binding, column, false) {
            Ok(_) => wait("the group fails", || made.host.metrics().held > 0),
            Err(error) => {
                refused = Some((x, error));
                break;
            }
        }
    }
    let (x, error) = refused.expect("the limit is reached");
    assert!(matches!(&error, Error::Held { held_bytes, .. } if *held_bytes <= 100_000), "{error}");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::LowDisk, true));
    room.store(u64::MAX, Ordering::SeqCst);
    made.host.resume().expect("there is room");
    for x in 0..x {
        let held = made.host.load(&made.binding, at(made.at.dimension, x, 0)).expect("sound");
        assert_eq!(held.expect("stored").sections.len(), 24);
    }
}
