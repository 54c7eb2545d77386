//! A save is called unchanged only if it is what is stored.

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
fn other_heights() {
    let made = made();
    let column = uniform(made.at, &[STONE, STONE]);
    made.save(&column);
    let lower = ColumnAt { max_y: -4, ..made.at };
    made.host.save(&made.binding, uniform(lower, &[AIR]), false).expect("sound");
    let saved = made.save(&column);
    assert_eq!((saved == Saved::Unchanged, first(&made.load().expect("sound"))), (false, STONE));
}

#[test]
fn binding_of_a_reused_address() {
    let made = made();
    let column = uniform(made.at, &[STONE]);
    for _ in 0..50 {
        let one = made.host.bind(known(0)).expect("sound");
        made.host.save(&one, column.clone(), false).expect("sound");
        let address = Arc::as_ptr(&one) as usize;
        drop(one);
        let mut swapped = known(0);
        swapped.blocks.swap(1, 3);
        let two = made.host.bind(swapped).expect("sound");
        let saved = made.host.save(&two, column.clone(), false).expect("sound");
        if Arc::as_ptr(&two) as usize == address {
            assert_ne!(saved, Saved::Unchanged, "number 1 is water by now");
            return;
        }
    }
}

#[test]
fn raw_write_in_one_list_with_its_column() {
    let made = made();
    let column = uniform(made.at, &[STONE]);
    let mut writes = Writes::new();
    writes.column(&made.binding, column.clone(), false).expect("sound");
    writes.set_block(made.at.dimension, made.block(0, 0, 0), made.binding.block(CHEST).expect("sound"));
    made.host.commit(&mut writes, None).expect("sound");
    let saved = made.save(&column);
    assert_eq!((saved == Saved::Unchanged, first(&made.load().expect("sound"))), (false, STONE));
}

#[test]
fn submitted_while_a_commit_runs() {
    let slow = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_free_bytes({
        let slow = Arc::clone(&slow);
        move || {
            if std::thread::current().name() == Some("saver") && slow.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(700));
            }
            u64::MAX
        }
    });
    let world = World::builder().over(engine).expect("sound");
    let made = over(world, HostOptions { group: LONG, ..HostOptions::default() }, known(0));
    made.save(&uniform(made.at, &[WATER]));
    std::thread::sleep(Duration::from_millis(700));
    slow.store(true, Ordering::SeqCst);
    let (host, binding, column) =
        (Arc::clone(&made.host), Arc::clone(&made.binding), uniform(made.at, &[STONE]));
    let saver =
        std::thread::Builder::new().name("saver".into()).spawn(move || host.save(&binding, column, false));
    std::thread::sleep(Duration::from_millis(250));
    made.submit(&uniform(made.at, &[AIR])); // accepted while the save runs, and committed after it
    saver.expect("sound").join().expect("sound").expect("sound");
    let again = made.submit(&uniform(made.at, &[STONE]));
    assert_eq!((again == Saved::Unchanged, first(&stored(&made, made.at).expect("sound"))), (false, STONE));
}

#[test]
fn load_that_runs_during_a_raw_write() {
    let made = made();
    let column = uniform(made.at, &[STONE; 24]);
    made.save(&column);
    let [stone, chest] = [STONE, CHEST].map(|block| made.binding.block(block).expect("sound"));
    for round in 0..3000 {
        made.host.world().cache().clear();
        let (host, binding, at) = (Arc::clone(&made.host), Arc::clone(&made.binding), made.at);
        let loader = std::thread::spawn(move || host.load(&binding, at).expect("sound"));
        std::thread::sleep(Duration::from_micros(20 + round % 200));
        let mut writes = Writes::new();
        writes.set_block(made.at.dimension, made.block(0, 0, 0), chest);
        made.host.commit(&mut writes, None).expect("sound");
        loader.join().expect("sound");
        let saved = made.save(&column);
        let cell = made.host.world().load(ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk()));
        let block = cell.expect("sound").expect("sound").block(LocalPos::new(0, 0, 0));
        assert!(block == stone, "round {round}: {saved:?}, and the chest is stored");
    }
}

#[test]
fn safe_commit_of_what_was_saved_without_a_sync() {
    let dir = tempfile::tempdir().expect("sound");
    let options = WorldOptions { durability: Durability::Fast, ..WorldOptions::default() };
    let world = World::builder().options(&options).create(dir.path().join("world")).expect("sound");
    let made = over(world, HostOptions { durability: Durability::Fast, ..HostOptions::default() }, known(0));
    let column = uniform(made.at, &[STONE]);
    let Saved::Changed(seq) = made.save(&column) else { panic!("new") };
    let mut writes = Writes::new();
    writes.column(&made.binding, column, false).expect("sound");
    let saved = made.host.commit(&mut writes, Some(Durability::Safe)).expect("sound");
    let synced = made.host.world().metrics().last_synced;
    assert!(synced >= seq, "{saved:?} was returned, commit {seq:?} is not on the disk: {synced:?}");
}

#[test]
fn underflow_of_plain() {
    let made = made();
    let mut column = uniform(made.at, &[STONE]);
    column.damaged = vec![-3]; // of an earlier load; not read by a save
    made.save(&column);
    column.sections[0] = section(-4, vec![Cells::uniform(AIR, FORM, 4)]);
    made.save(&column);
}

#[test]
fn a_commit_that_failed_and_is_there() {
    use cg_store::engine::Fault;
    let bad = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_fault({
        let bad = Arc::clone(&bad);
        move |_| bad.load(Ordering::SeqCst).then_some(Fault::Sync)
    });
    let world = World::builder().over(engine).expect("sound"); // Safe by default
    let made = over(world, HostOptions::default(), known(0));
    made.save(&uniform(made.at, &[STONE]));
    bad.store(true, Ordering::SeqCst);
    let failed = made.host.save(&made.binding, uniform(made.at, &[AIR]), false);
    bad.store(false, Ordering::SeqCst);
    let now = made.load().map(|column| first(&column));
    let saved = made.host.save(&made.binding, uniform(made.at, &[STONE]), false);
    assert_eq!(first(&made.load().expect("sound")), STONE);
}

#[test]
fn in_doubt_without_a_load() {
    use cg_store::engine::Fault;
    let bad = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_fault({
        let bad = Arc::clone(&bad);
        move |_| bad.load(Ordering::SeqCst).then_some(Fault::Sync)
    });
    let world = World::builder().over(engine).expect("sound");
    let made = over(world, HostOptions::default(), known(0));
    made.save(&uniform(made.at, &[STONE]));
    bad.store(true, Ordering::SeqCst);
    let failed = made.host.save(&made.binding, uniform(made.at, &[AIR]), false);
    bad.store(false, Ordering::SeqCst);
    let saved = made.host.save(&made.binding, uniform(made.at, &[STONE]), false);
    assert_eq!(first(&made.load().expect("sound")), STONE, "{saved:?}");
}
