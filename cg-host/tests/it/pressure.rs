//! Full disks, slow commits, panics, and worlds that are open for reading.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_format::{CellOrder, ChunkAt, Dimension, EntityId, LocalPos};
use cg_host::{
    Answer, BlockEntity, Cells, Column, ColumnAt, ColumnEntity, Error, Form, Host, HostOptions, Known, KnownBiome,
    KnownBlock, OnDamage, Peeked, Queue, Saved, Scheduled, Section, Writes,
};
use cg_registry::{BlockOffer, ComponentOffer, Registration};
use cg_store::engine::MemEngine;
use cg_store::prelude::Property;
use cg_store::settings::WorldSettings;
use cg_store::{Durability, ErrorKind, StoreLimits, World, WorldOptions};

use crate::maker::{
    AIR, CHEST, FORM, Made, STONE, UNKNOWN, WATER, at, cells, known, made, name, number, over, section, uniform,
};
use crate::scene::{
    LONG, cow_id, cows, damage, disk, fill_disk, first, grouped, mood, repair, row, stored, with,
};

#[test]
fn flush_that_fails_first_leaves_it_held_for_ever() {
    let (made, room) = disk(256 << 20, Duration::from_millis(50));
    let mut stuck = 0;
    // The thread is there and waits.
    made.submit(&uniform(made.at, &[WATER]));
    made.host.flush().expect("sound");
    std::thread::sleep(Duration::from_millis(200));
    fill_disk(&room);
    made.submit(&uniform(made.at, &[STONE]));
    made.host.flush().expect_err("the disk is full");
    std::thread::sleep(Duration::from_millis(200));
    room.store(u64::MAX, Ordering::SeqCst);
    let begun = Instant::now();
    while made.host.metrics().pending > 0 {
        if begun.elapsed() > Duration::from_secs(13) {
            stuck = made.host.metrics().held;
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(stuck, 0, "the world is resumed every five seconds");
}

#[test]
fn read_only_world_accepts() {
    let dir = tempfile::tempdir().expect("sound");
    let path = dir.path().join("world");
    let made = over(World::builder().create(&path).expect("sound"), HostOptions::default(), known(0));
    made.save(&uniform(made.at, &[STONE]));
    made.host.close().expect("sound");
    let made_at = made.at;
    drop(made);
    let host = Host::new(World::builder().open_read_only(&path).expect("sound"), HostOptions::default()).expect("sound");
    let binding = host.bind(known(0)).expect("sound");
    let mut column = host.load(&binding, made_at).expect("sound").expect("sound");
    column.sections[0] = section(-4, vec![Cells::uniform(AIR, FORM, 4)]);
    let accepted = host.submit(&binding, column, false);
    let pending = host.metrics().pending;
    assert_eq!(accepted.expect_err("read-only").kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_panic_in_the_group_thread() {
    let bomb = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_free_bytes({
        let bomb = Arc::clone(&bomb);
        move || {
            let is_group = std::thread::current().name() == Some("cg-host-group");
            assert!(!(is_group && bomb.swap(false, Ordering::SeqCst)), "a bug of the library");
            u64::MAX
        }
    });
    let world = World::builder().over(engine).expect("sound");
    let made =
        over(world, HostOptions { group: Duration::from_millis(10), ..HostOptions::default() }, known(0));
    std::thread::sleep(Duration::from_millis(700));
    bomb.store(true, Ordering::SeqCst);
    made.submit(&uniform(made.at, &[STONE]));
    let begun = Instant::now();
    while bomb.load(Ordering::SeqCst) && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    for x in 0..300 {
        made.host.submit(&made.binding, uniform(at(made.at.dimension, x, 9), &[STONE]), false).expect("sound");
    }
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(made.host.metrics().pending, 0, "groups go on after a panic");
}

#[test]
fn a_group_without_an_end() {
    let made = grouped(Duration::MAX);
    for x in 0..256 {
        made.host.submit(&made.binding, uniform(at(made.at.dimension, x, 0), &[STONE]), false).expect("sound");
    }
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(made.host.metrics().pending, 0, "256 columns end a group");
}

#[test]
fn a_panic_in_a_queue() {
    let bomb = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_free_bytes({
        let bomb = Arc::clone(&bomb);
        move || {
            let is_queue = std::thread::current().name() == Some("cg-host-queue");
            assert!(!(is_queue && bomb.swap(false, Ordering::SeqCst)), "a bug of the library");
            u64::MAX
        }
    });
    let made = over(World::builder().over(engine).expect("sound"), HostOptions::default(), known(0));
    std::thread::sleep(Duration::from_millis(700));
    bomb.store(true, Ordering::SeqCst);
    let queue = Queue::new(&made.host, 8).expect("sound");
    let mut writes = Writes::new();
    writes.column(&made.binding, uniform(made.at, &[STONE]), false).expect("sound");
    queue.commit(&mut writes, None, 1).expect("sound");
    let done = queue.wait(1, Duration::from_secs(3)).expect("sound");
    assert_eq!(done.len(), 1, "its panics were answered");
}

#[test]
fn waiting_for_ever() {
    let made = made();
    let queue = Queue::new(&made.host, 8).expect("sound");
    queue.load(&made.binding, made.at, 1).expect("sound");
    assert_eq!(queue.wait(1, Duration::MAX).expect("sound").len(), 1);
}

#[test]
fn memory_while_the_disk_is_slow() {
    let slow = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_free_bytes({
        let slow = Arc::clone(&slow);
        move || {
            while std::thread::current().name() == Some("cg-host-group") && slow.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
            }
            u64::MAX
        }
    });
    let options =
        HostOptions { held_bytes: 1_000_000, group: Duration::from_millis(10), ..Default::default() };
    let made = over(World::builder().over(engine).expect("sound"), options, known(0));
    std::thread::sleep(Duration::from_millis(700));
    slow.store(true, Ordering::SeqCst);
    let mut accepted = 0;
    for x in 0..1000 {
        let mut column = uniform(at(made.at.dimension, x, 0), &[STONE]);
        column.sections[0].sky_light = Some(vec![0; 2048].into());
        column.sections[0].block_light = Some(vec![0; 2048].into());
        accepted += u64::from(made.host.submit(&made.binding, column, false).is_ok());
    }
    let bytes = made.host.metrics().pending_bytes;
    slow.store(false, Ordering::SeqCst);
    assert!(bytes <= 1_100_000, "{accepted} columns and {bytes} bytes wait, the limit is 1,000,000");
}

#[test]
fn close_when_there_is_room_again() {
    let (made, room) = disk(256 << 20, Duration::from_millis(10));
    fill_disk(&room);
    made.submit(&uniform(made.at, &[STONE]));
    std::thread::sleep(Duration::from_millis(300));
    room.store(u64::MAX, Ordering::SeqCst);
    made.host.close().expect("there is room");
}

#[test]
fn read_only_save_kind() {
    let dir = tempfile::tempdir().expect("sound");
    let path = dir.path().join("world");
    let world = World::builder().create(&path).expect("sound");
    let dimension = world.registry().register_dimension("game:overworld").expect("sound");
    world.close().expect("sound");
    drop(world);
    let host = Host::new(World::builder().open_read_only(&path).expect("sound"), HostOptions::default()).expect("sound");
    let binding = host.bind(known(0)).expect("sound");
    let at = at(dimension, 0, 0);
    assert_eq!(host.load(&binding, at).expect("sound"), None);
    let error = host.save(&binding, uniform(at, &[STONE]), false).expect_err("read-only");
    assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
}

#[test]
fn a_later_write_comes_after_a_halfway_group() {
    // The group is refused as one, and the disk is full when its second list is committed alone.
    let limits = StoreLimits { chunk_bytes: 10_000, ..StoreLimits::default() };
    let options = WorldOptions { limits, durability: Durability::Fast, ..WorldOptions::default() };
    let made = over(
        World::builder().options(&options).in_memory().expect("sound"),
        HostOptions { group: LONG, ..HostOptions::default() },
        known(0),
    );
    let mut bad = uniform(made.at, &[CHEST]);
    bad.block_entities.push(BlockEntity { at: made.block(0, 0, 0), nbt: vec![0; 9990] });
    made.submit(&uniform(made.at, &[STONE]));
    made.submit(&bad);
    made.submit(&uniform(made.at, &[WATER]));
    made.host.flush().expect("sound");
    assert_eq!(first(&made.load().expect("sound")), WATER);
    made.submit(&uniform(made.at, &[AIR]));
    made.submit(&bad);
    made.host.flush().expect("sound");
    assert_eq!(first(&made.load().expect("sound")), AIR);
    assert_ne!(made.submit(&bad), Saved::Unchanged);
}

#[test]
fn first_submission_then_a_flush_that_fails() {
    let mut stuck = 0;
    let mut hosts = Vec::new();
    for _ in 0..20 {
        let (made, room) = disk(256 << 20, Duration::from_millis(50));
        room.store(0, Ordering::SeqCst);
        hosts.push((made, room));
    }
    std::thread::sleep(Duration::from_millis(1200));
    for (made, room) in &hosts {
        made.submit(&uniform(made.at, &[STONE]));
        made.host.flush().expect_err("the disk is full");
        room.store(u64::MAX, Ordering::SeqCst);
    }
    std::thread::sleep(Duration::from_secs(12));
    for (made, _) in &hosts {
        stuck += made.host.metrics().held;
    }
    assert_eq!(stuck, 0, "of 20: the world is resumed every five seconds");
}

#[test]
fn flush_ends_while_others_submit() {
    let made = grouped(Duration::from_millis(10));
    let stop = Arc::new(AtomicBool::new(false));
    let (host, binding, place) = (Arc::clone(&made.host), Arc::clone(&made.binding), made.at);
    let thread = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            for x in 0..200_000_i64 {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let place = ColumnAt { x: x % 500, ..place };
                let mut column = uniform(place, &[STONE]);
                column.block_entities.push(BlockEntity {
                    at: cg_format::BlockPos::new(place.x * 16, -64, -80),
                    nbt: x.to_le_bytes().to_vec(),
                });
                host.submit(&binding, column, false).expect("sound");
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    });
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    let (host, done) = (Arc::clone(&made.host), Arc::new(AtomicBool::new(false)));
    let flusher = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            host.flush().expect("sound");
            done.store(true, Ordering::SeqCst);
        }
    });
    while !done.load(Ordering::SeqCst) && begun.elapsed() < Duration::from_secs(8) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let was_done = done.load(Ordering::SeqCst);
    stop.store(true, Ordering::SeqCst);
    thread.join().expect("sound");
    flusher.join().expect("sound");
    assert!(was_done, "a flush ends the open group, and does not run as long as others submit");
}
