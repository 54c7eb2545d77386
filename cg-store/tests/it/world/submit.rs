//! Writes that are submitted and accepted later.

mod columns;
mod parts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::*;
use cg_format::RecordId;
use cg_format::record::Record;
use cg_format::schema::NoComponents;
use cg_store::engine::EngineError;
use cg_store::error::ConflictKey;
use cg_store::{Refused, WriteBatch, WriteTicket};

fn batch(world: &World, ids: &Ids, places: impl IntoIterator<Item = i64>) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for x in places {
        batch.save(ids.at(x, 0, 0), filled(world, ids.stone));
    }
    batch
}

/// A batch that no world takes: a dimension that nobody registered.
fn nowhere(world: &World, ids: &Ids) -> WriteBatch {
    let mut batch = batch(world, ids, [70]);
    batch.save(ChunkAt::new(cg_format::Dimension::new(99), ids.at(0, 0, 0).pos), filled(world, ids.stone));
    batch
}

fn is_nowhere(error: &Error) -> bool {
    matches!(error, Error::UnknownDimension { found: 99, .. })
}

#[test]
fn a_batch_knows_which_chunks_it_touches() {
    let world = World::builder().in_memory().expect("is created");
    let ids = Ids::register(&world);
    let at = |x| ids.at(x, 0, 0);
    let mut batch = WriteBatch::new();
    batch.save(at(1), filled(&world, ids.stone));
    batch.save_blocks(at(2), filled(&world, ids.stone));
    batch.delete(at(3));
    batch.set_block(ids.overworld, at(4).pos.min_block(), ids.stone);
    batch.put_entity(uuid(1), ids.cow_in(at(5)));
    batch.delete_entity(uuid(2));
    batch.set_property(Property::Time, Some(vec![7]));
    let touched: Vec<_> = (0..8).filter(|x| batch.touches(at(*x))).collect();
    assert_eq!(touched, [1, 2, 3, 4, 5]);
    let elsewhere = ChunkAt::new(cg_format::Dimension::new(99), at(1).pos);
    assert!(!batch.touches(elsewhere) && !WriteBatch::new().touches(at(1)));
}

#[test]
fn a_batch_says_what_a_transaction_of_the_same_writes_says() {
    fn check(by_batch: &World, by_transaction: &World) {
        let ids = Ids::register(by_batch);
        Ids::register(by_transaction);
        let (a, b, gone) = (ids.at(0, 0, 0), ids.at(5, 1, 2), ids.at(9, 9, 9));
        let with_cow = |world: &World| {
            let mut chunk = filled(world, ids.glass);
            chunk.set_side(ids.light, vec![3]);
            chunk
        };
        let record = Record::new(ids.cow_in(a).position, "game:sign", 4, vec![1, 2, 3]).expect("is short");
        for world in [by_batch, by_transaction] {
            save(world, [(gone, filled(world, ids.stone)), (b, filled(world, ids.stone))]);
        }
        let mut batch = WriteBatch::new();
        batch.save(a, filled(by_batch, ids.stone));
        // What is said last counts.
        batch.save(a, with_cow(by_batch));
        batch.delete(gone);
        batch.save(b, filled(by_batch, ids.stone));
        batch.put_entity(uuid(1), ids.cow_in(a));
        batch.put_entity(uuid(2), ids.cow_in(a));
        batch.delete_entity(uuid(2));
        batch.set_property(Property::Time, Some(vec![7]));
        batch.put_object("a/key", &b"bytes"[..]).expect("a key");
        batch.delete_object("no/key").expect("a key");
        batch.put_record(RecordId::new(uuid::Uuid::from_u128(4)), record.clone());
        batch.delete_record(RecordId::new(uuid::Uuid::from_u128(5)));
        assert!(!batch.is_empty() && WriteBatch::new().is_empty());
        let seq = by_batch.submit(batch).expect("is taken").wait().expect("is accepted").seq;
        let same = by_transaction.transaction(|tx| {
            tx.save(a, with_cow(by_transaction));
            tx.delete(gone);
            tx.save(b, filled(by_transaction, ids.stone));
            tx.put_entity(uuid(1), ids.cow_in(a));
            tx.set_property(Property::Time, Some(vec![7]));
            tx.put_object("a/key", &b"bytes"[..])?;
            tx.put_record(RecordId::new(uuid::Uuid::from_u128(4)), record.clone());
            Ok::<_, Error>(())
        });
        assert_eq!(seq, same.expect("commits").seq);
        assert_eq!(by_batch.load_versioned(a).expect("loads").expect("is there").1, seq);
        assert_eq!(
            by_batch.load_versioned(b).expect("loads").expect("is there").1.next(),
            seq,
            "it is unchanged"
        );
        by_batch.flush().expect("saves");
        assert!(rows_of_any_opening(by_batch) == rows_of_any_opening(by_transaction), "the same rows");
        assert_sound(by_batch);
    }
    check(&in_memory(), &in_memory());
    let disks = [Disk::new(), Disk::new()];
    check(&disks[0].create(&[]), &disks[1].create(&[]));
}

#[test]
fn a_refusal_is_told_once_by_the_ticket_or_by_who_saves() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let refused = world.submit(nowhere(&world, &ids)).expect("is taken");
    let accepted = world.submit(batch(&world, &ids, [1])).expect("is taken");
    assert!(is_nowhere(&refused.wait().expect_err("is refused")));
    accepted.wait().expect("is none of its business");
    world.flush().expect("it was told");
    // More, of which nobody asks; one of them later.
    let asked = world.submit(nowhere(&world, &ids)).expect("is taken");
    for _ in 0..200 {
        drop(world.submit(nowhere(&world, &ids)).expect("is taken"));
    }
    let settled = world.submit(nowhere(&world, &ids)).expect("is taken");
    let error = world.flush().expect_err("they are refused");
    let Error::DeferredWrite { error, others: 199 } = &error else { panic!("{error}") };
    assert!(is_nowhere(error), "{error}");
    world.flush().expect("all were told but those that have tickets");
    assert!(settled.is_finished() && is_nowhere(&asked.wait().expect_err("is refused")));
    drop(settled);
    assert!(matches!(world.flush(), Err(Error::DeferredWrite { others: 0, .. })), "its ticket told nobody");
    world.flush().expect("all were told");
    assert_eq!(world.load(ids.at(70, 0, 0)).expect("loads"), None, "nothing of it was written");
    assert_eq!(world.metrics().stats.submissions_refused, 203);
    drop(world.submit(nowhere(&world, &ids)).expect("is taken"));
    drop(world.submit(batch(&world, &ids, [2])).expect("is taken"));
    let error = world.close().expect_err("one is refused");
    assert_eq!(
        error.to_string(),
        "a batch that was submitted is refused, and nothing of it is stored: dimension 99 is not registered, the world \
         has 2; register its name first"
    );
    let Refused { error, batch } = *world.submit(batch(&world, &ids, [3])).expect_err("is closed");
    assert!(matches!(error, Error::Closed) && !batch.is_empty(), "{error}");
}

#[test]
fn a_block_is_set_in_the_chunk_as_it_is_by_then() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let at = ids.at(0, 0, 0);
    save(&world, [(at, filled(&world, ids.stone))]);
    let cell = |n: i64| BlockPos::new(n, 3, 4);
    // Others change the chunk all the while.
    thread::scope(|scope| {
        let (world, ids) = (&world, &ids);
        scope.spawn(move || {
            for n in 0..200_u8 {
                world
                    .transact(|tx| tx.set_side(at, ids.light, Some(vec![n])))
                    .expect("nothing but conflicts");
            }
        });
        for n in 0..200 {
            let mut batch = WriteBatch::new();
            batch.set_block(ids.overworld, cell(n % 16), if n < 192 { ids.air } else { ids.glass });
            drop(world.submit(batch).expect("is taken"));
        }
    });
    let chunk = world.load(at).expect("loads").expect("is there");
    let blocks: Vec<_> = (0..16).map(|n| chunk.block(cell(n).local())).collect();
    assert_eq!(blocks, [[ids.glass; 8], [ids.air; 8]].concat());
    assert_eq!(chunk.side(ids.light), Some(&[199][..]));
    // In the order in which it is said.
    let mut batch = WriteBatch::new();
    batch.set_block(ids.overworld, cell(0), ids.glass);
    batch.save(at, filled(&world, ids.air));
    batch.set_block(ids.overworld, cell(1), ids.stone);
    batch.set_block(ids.overworld, cell(1), ids.glass);
    world.submit(batch).expect("is taken").wait().expect("is accepted");
    let chunk = world.load(at).expect("loads").expect("is there");
    assert_eq!((chunk.block(cell(0).local()), chunk.block(cell(1).local())), (ids.air, ids.glass));
    let mut batch = batch_of_nothing_there(&ids);
    batch.save(ids.at(5, 0, 0), filled(&world, ids.air));
    let error = world.submit(batch).expect("is taken").wait().expect_err("is refused");
    assert!(matches!(error, Error::ChunkAbsent { at } if at == ids.at(4, 0, 0)), "{error}");
    assert_eq!(world.load(ids.at(5, 0, 0)).expect("loads"), None);
}

fn batch_of_nothing_there(ids: &Ids) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.set_block(ids.overworld, BlockPos::new(4 * 16, 0, 0), ids.stone);
    batch
}

/// The holder of the commit lock must not wait for what waits for it.
#[test]
fn deletions_are_forgotten_beside_hand_overs() {
    let world = in_memory();
    let ids = Ids::register(&world);
    thread::scope(|scope| {
        let (world, ids) = (&world, &ids);
        scope.spawn(move || {
            for x in 0..2_000 {
                drop(world.submit(batch(world, ids, [x % 50])).expect("is taken"));
            }
        });
        for _ in 0..300 {
            world.tiers().purge_tombstones_before(world.last_commit()).expect("forgets");
        }
    });
    world.flush().expect("nothing is refused");
    assert_sound(&world);
}

#[test]
fn damage_is_not_written_over() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let at = ids.at(0, 0, 0);
    save(&world, [(at, filled(&world, ids.glass))]);
    world.close().expect("closes");
    drop(world);
    disk.raw().flip(Family::ChunkL0, cg_format::key::chunk(at), 30);
    let world = disk.open(&[]);
    let ticket = world.submit(batch(&world, &ids, [1, 0])).expect("is taken");
    assert!(matches!(ticket.wait().expect_err("is refused"), Error::Corrupt(_)));
    assert!(matches!(world.load(at), Err(Error::Corrupt(_))));
    assert_eq!(world.load(ids.at(1, 0, 0)).expect("loads"), None, "all or nothing");
    world.flush().expect("it was told");
}

#[test]
fn nothing_is_taken_without_room_but_deletions() {
    let free = Arc::new(AtomicU64::new(1 << 40));
    let engine = MemEngine::new().with_free_bytes({
        let free = Arc::clone(&free);
        move || free.load(Ordering::Relaxed)
    });
    let options = WorldOptions { min_free_bytes: Some(1 << 20), ..options() };
    let world = World::builder().options(&options).over(engine).expect("a world in memory");
    let ids = Ids::register(&world);
    drop(world.submit(batch(&world, &ids, [0])).expect("is taken"));
    free.store(0, Ordering::Relaxed);
    // What was taken has its room.
    assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
    let error = loop {
        // The system is asked twice a second.
        match world.submit(batch(&world, &ids, [1])) {
            Ok(taken) => drop(taken),
            Err(refused) => break refused.error,
        }
    };
    assert!(matches!(error, Error::LowDiskSpace { free_bytes: 0, min_free_bytes: 1_048_576 }), "{error}");
    let mut deletes = WriteBatch::new();
    deletes.delete(ids.at(0, 0, 0));
    world.submit(deletes).expect("needs no room").wait().expect("is accepted");
    assert_eq!(world.load(ids.at(0, 0, 0)).expect("loads"), None);
}

#[test]
fn a_world_for_reading_takes_nothing() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    world.close().expect("closes");
    drop(world);
    let world = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    let Refused { error, .. } = *world.submit(batch(&world, &ids, [0])).expect_err("only reads");
    assert!(matches!(error, Error::Engine(EngineError::OpenedReadOnly)), "{error}");
}

#[test]
fn what_a_closure_hands_over_comes_before_its_transaction() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let both = world.transaction(|tx| {
        drop(world.submit(batch(&world, &ids, [0]))?);
        tx.save(ids.at(0, 0, 0), filled(&world, ids.glass));
        Ok::<_, Error>(())
    });
    both.expect("read nothing");
    let glass = world.load(ids.at(0, 0, 0)).expect("loads").expect("is there");
    assert_eq!(*glass, filled(&world, ids.glass));
    let error = world.transaction(|tx| {
        tx.load(ids.at(0, 0, 0))?;
        drop(world.submit(batch(&world, &ids, [0]))?);
        tx.save(ids.at(1, 0, 0), filled(&world, ids.glass));
        Ok::<_, Error>(())
    });
    let error = error.expect_err("what it read was changed");
    assert!(
        matches!(error, Error::Conflict { key: ConflictKey::Chunk(at) } if at == ids.at(0, 0, 0)),
        "{error}"
    );
}

/// A function in a batch may own the ticket of an earlier batch, whose end the queue records.
#[test]
fn closing_a_failed_world_drops_the_functions_of_batches_that_wait() {
    use cg_store::engine::Fault;
    let [fails, has_failed] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let engine = MemEngine::new().with_fault({
        let (fails, has_failed) = (Arc::clone(&fails), Arc::clone(&has_failed));
        move |_| {
            let fault = fails.load(Ordering::Acquire).then_some(Fault::NoSpace);
            has_failed.fetch_or(fault.is_some(), Ordering::AcqRel);
            fault
        }
    });
    let world = World::builder().options(&options()).over(engine).expect("a world in memory");
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    let wait_for = |flag: &Arc<AtomicBool>| {
        let flag = Arc::clone(flag);
        move || {
            while !flag.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    };
    let edit = |run: Box<dyn Fn() + Send + Sync>, block| {
        let mut batch = WriteBatch::new();
        batch.edit(ids.at(0, 0, 0), move |chunk| {
            run();
            chunk.set_block(LocalPos::new(0, 0, 0), block, &NoComponents)?;
            Ok(())
        });
        world.submit(batch).expect("is taken")
    };
    drop(edit(Box::new(wait_for(&fails)), ids.glass));
    let failed = wait_for(&has_failed);
    let ticket = edit(
        Box::new(move || {
            failed();
            // Until the queue knows.
            thread::sleep(Duration::from_millis(200));
        }),
        ids.stone,
    );
    drop(edit(Box::new(move || assert!(!ticket.is_finished(), "it is never accepted")), ids.glass));
    fails.store(true, Ordering::Release);
    let (sender, closed) = std::sync::mpsc::channel();
    thread::spawn(move || sender.send(world.close()));
    let closed = closed.recv_timeout(Duration::from_secs(60)).expect("it ends");
    assert!(matches!(closed, Err(Error::Engine(EngineError::ReadOnly { .. }))), "{closed:?}");
}

#[test]
fn a_world_that_is_dropped_has_saved_what_it_was_given() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let tickets: Vec<WriteTicket> =
        (0..100).map(|x| world.submit(batch(&world, &ids, [x, x + 1000])).expect("is taken")).collect();
    drop(world);
    let numbers: Vec<_> = tickets.into_iter().map(|ticket| ticket.wait().expect("is accepted").seq).collect();
    assert!(numbers.windows(2).all(|pair| pair[0].next() == pair[1]), "{numbers:?}");
    let world = disk.open(&[]);
    for x in 0..100 {
        let versions =
            [x, x + 1000].map(|x| world.load_versioned(ids.at(x, 0, 0)).expect("loads").expect("is there").1);
        assert_eq!(versions, [numbers[x as usize]; 2]);
    }
    assert_sound(&world);
}

#[test]
fn after_a_kill_there_is_the_state_behind_some_batch() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let number = |world: &World, x: i64| -> Option<u8> {
        Some(world.load(ids.at(x, 0, 0)).expect("loads")?.side(ids.light).expect("has light")[0])
    };
    for n in 1..=50_u8 {
        let mut batch = WriteBatch::new();
        for x in [0, 9] {
            let mut chunk = filled(&world, ids.stone);
            chunk.set_side(ids.light, vec![n]);
            batch.save(ids.at(x, 0, 0), chunk);
        }
        drop(world.submit(batch).expect("is taken"));
        if n % 10 == 0 {
            // What the disk has now is what a kill would leave.
            let copy = disk.root().join(format!("copy {n}"));
            copy_dir(&disk.path(), &copy);
            let left = World::builder().options(&options()).open(&copy).expect("opens");
            assert_eq!(number(&left, 0), number(&left, 9), "of one batch");
            assert!(number(&left, 0).unwrap_or(0) <= n);
            assert_sound(&left);
        }
    }
    assert_eq!((number(&world, 0), number(&world, 9)), (Some(50), Some(50)));
}
