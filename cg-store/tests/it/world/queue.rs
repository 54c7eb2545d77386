//! Commits that return before they are written.

mod admission;
mod run;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::*;
use cg_store::engine::{EngineError, Fault};
use cg_store::{Durability, Peek, StoreLimits};

/// A world whose engine writes a commit only when it is let, once the latch is shut.
struct Gated {
    world: World,
    ids: Ids,
    gate: Arc<Mutex<Option<Receiver<Option<Fault>>>>>,
}

impl Gated {
    fn new(queue_bytes: u64) -> Self {
        Self::in_batches_of(queue_bytes, StoreLimits::default().batch_bytes)
    }

    /// A world whose batches are no larger than this.
    fn in_batches_of(queue_bytes: u64, batch_bytes: u64) -> Self {
        Self::caching(0, queue_bytes, batch_bytes)
    }

    /// As [`in_batches_of`](Self::in_batches_of), with memory for chunks and absent cubes.
    fn caching(cache_bytes: u64, queue_bytes: u64, batch_bytes: u64) -> Self {
        let gate: Arc<Mutex<Option<Receiver<Option<Fault>>>>> = Arc::default();
        let engine = MemEngine::new().with_fault({
            let gate = Arc::clone(&gate);
            move |_| gate.lock().expect("no panic").as_ref().and_then(|gate| gate.recv().ok().flatten())
        });
        let limits = StoreLimits { batch_bytes, ..StoreLimits::default() };
        let options =
            WorldOptions { durability: Durability::Fast, queue_bytes, cache_bytes, limits, ..options() };
        let world = World::builder().options(&options).over(engine).expect("a world in memory");
        let ids = Ids::register(&world);
        Self { world, ids, gate }
    }

    /// From now on each commit waits for a word: `None` lets it through. When the sender is gone, all go through.
    fn shut(&self) -> Sender<Option<Fault>> {
        let (open, gate) = channel();
        *self.gate.lock().expect("no panic") = Some(gate);
        open
    }
}

fn side(world: &World, ids: &Ids, token: u8, len: usize) -> Chunk {
    let mut chunk = filled(world, ids.stone);
    chunk.set_side(ids.light, vec![token; len]);
    chunk
}

fn put(gated: &Gated, x: i64, token: u8, len: usize) -> Result<cg_store::Committed<()>, Error> {
    gated.world.transaction(|tx| {
        tx.save(gated.ids.at(x, 0, 0), side(&gated.world, &gated.ids, token, len));
        Ok(())
    })
}

/// The reads from the engine that some work costs.
fn reads(world: &World, work: impl FnOnce()) -> u64 {
    let before = world.metrics().stats;
    work();
    (world.metrics().stats - before).engine_reads
}

#[test]
fn a_cube_is_learned_as_empty_while_commits_into_others_are_queued() {
    let gated = Gated::caching(64 << 20, 64 << 20, StoreLimits::default().batch_bytes);
    let Gated { world, ids, .. } = &gated;
    let open = gated.shut();
    // Too large to be written together with the next.
    put(&gated, 20, 1, 2 << 20).expect("is taken");
    put(&gated, 100, 1, 10).expect("is taken");
    let look = |x: i64| reads(world, || assert!(world.load(ids.at(x, 0, 0)).expect("loads").is_none()));
    assert!([0, 1].map(look).iter().all(|reads| *reads > 0), "they are asked about");
    assert_eq!([2, 5, 15].map(look), [0; 3], "the cube is known");
    assert!([16, 17, 18].map(look).iter().all(|reads| *reads > 0), "one of the cube is queued");
    world.cache().clear();
    assert!(world.load(ids.at(20, 0, 0)).expect("loads").is_some(), "it is in the queue alone");

    open.send(None).expect("is waited for");
    while world.metrics().queued_commits > 1 {
        thread::yield_now();
    }
    world.cache().clear();
    assert!([16, 17].map(look).iter().all(|reads| *reads > 0), "memory was cleared");
    assert_eq!(look(18), 0, "its group is empty, and the other commit is still queued");
    assert!([96, 97, 98].map(look).iter().all(|reads| *reads > 0), "its cube is not known");
    assert!(world.load(ids.at(20, 0, 0)).expect("loads").is_some());
}

#[test]
fn new_columns_of_a_cube_cost_no_reads_although_others_are_queued() {
    let gated = Gated::caching(64 << 20, 64 << 20, StoreLimits::default().batch_bytes);
    let Gated { world, ids, .. } = &gated;
    let _open = gated.shut();
    put(&gated, 100, 1, 10).expect("is taken");
    let save = |x: i64| {
        reads(world, || {
            let saved = world.transaction(|tx| {
                (0..16).for_each(|y| tx.save(ids.at(x, y, 0), filled(world, ids.stone)));
                Ok::<_, Error>(())
            });
            saved.expect("is taken");
        })
    };
    assert!(save(0) > 0, "the cube is asked about");
    assert_eq!([1, 2, 7, 15].map(save), [0; 4]);
}

#[test]
fn what_is_accepted_is_seen_by_every_reader_before_it_is_written() {
    let gated = Gated::new(64 << 20);
    let Gated { world, ids, .. } = &gated;
    let a = ids.at(0, 0, 0);
    let open = gated.shut();
    let committed = world.transaction(|tx| {
        tx.save(a, filled(world, ids.stone));
        tx.put_entity(uuid(1), ids.cow_in(a));
        tx.set_property(Property::Time, Some(vec![7]));
        Ok::<_, Error>(())
    });
    let committed = committed.expect("is accepted");
    let ticket = committed.durable();
    assert!(!ticket.has_reached(engine::Level::Process) && !ticket.is_durable());
    let (chunk, version) = world.load_versioned(a).expect("loads").expect("is there");
    assert_eq!((version, chunk.entities()), (committed.seq, &[uuid(1)][..]));
    assert_eq!(
        world.load_many(&[a, ids.at(1, 0, 0)][..1])[0].as_ref().expect("loads").as_deref(),
        Some(&*chunk)
    );
    assert_eq!(world.entity(uuid(1)).expect("reads").expect("is there").owner, Owner::Chunk(a));
    assert_eq!(world.entity_version(uuid(1)).expect("reads"), Some(committed.seq));
    assert_eq!(world.property(&Property::Time).expect("reads"), Some(vec![7]));
    assert_eq!(world.last_commit(), committed.seq);
    // A second one over it, which deletes.
    let deleted = world.transaction(|tx| {
        assert!(tx.load(a)?.is_some());
        tx.delete(a);
        Ok::<_, Error>(())
    });
    assert_eq!(deleted.expect("is accepted").seq, committed.seq.next());
    assert_eq!(world.load(a).expect("loads"), None);
    assert_eq!(world.entity(uuid(1)).expect("reads"), None, "it died with its chunk");
    drop(open);
    ticket.wait_for(engine::Level::Process).expect("is written");
    world.flush().expect("is written and synced");
    assert!(ticket.is_durable());
    assert_sound(world);
    assert_eq!(world.load(a).expect("loads"), None);
}

#[test]
fn a_queue_that_is_full_takes_nothing_and_says_so() {
    let gated = Gated::new(64 << 10);
    let open = gated.shut();
    put(&gated, 0, 1, 40 << 10).expect("fits");
    // The writer may have taken the first out of the queue; its memory still counts, and the queue need not be empty.
    put(&gated, 1, 2, 1 << 10).expect("fits");
    let last = gated.world.last_commit();
    let error = put(&gated, 2, 3, 40 << 10).expect_err("is full");
    let Error::Busy { queued_bytes, limit_bytes: 65_536 } = error else { panic!("{error}") };
    assert!((41 << 10..64 << 10).contains(&queued_bytes), "{queued_bytes}");
    assert_eq!(gated.world.last_commit(), last);
    assert!(!matches!(gated.world.peek(gated.ids.at(2, 0, 0)), Peek::Here(_)), "nothing was kept");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| gated.world.wait_for_room());
        drop(open);
        waiting.join().expect("no panic").expect("there is room");
    });
    put(&gated, 2, 3, 40 << 10).expect("fits now");
    gated.world.flush().expect("writes");
    assert_sound(&gated.world);
}

/// A world with a queue of 64 KiB, and in it a commit of 40 that is being written until the sender is gone.
fn being_written() -> (World, Ids, Sender<()>) {
    type Step = Arc<Mutex<Option<(Sender<()>, Receiver<()>)>>>;
    let step: Step = Arc::default();
    let engine = MemEngine::new().with_fault({
        let step = Arc::clone(&step);
        move |_| {
            if let Some((begun, end)) = &*step.lock().expect("no panic") {
                // Nobody waits for what comes after it.
                let _ = begun.send(());
                let _ = end.recv();
            }
            None
        }
    });
    let options =
        WorldOptions { durability: Durability::Fast, queue_bytes: 64 << 10, cache_bytes: 0, ..options() };
    let world = World::builder().options(&options).over(engine).expect("a world in memory");
    let ids = Ids::register(&world);
    let ((begun, is_begun), (end, ended)) = (channel(), channel());
    *step.lock().expect("no panic") = Some((begun, ended));
    put_40_kib(&world, &ids, 0).expect("fits");
    is_begun.recv().expect("it is written");
    (world, ids, end)
}

fn put_40_kib(world: &World, ids: &Ids, x: i64) -> Result<CommitSeq, Error> {
    let put = world.transaction(|tx| {
        tx.save(ids.at(x, 0, 0), side(world, ids, 1, 40 << 10));
        Ok::<_, Error>(())
    });
    put.map(|committed| committed.seq)
}

#[test]
fn who_waits_for_room_waits_for_what_is_being_written_too() {
    let (world, ids, end) = being_written();
    thread::scope(|scope| {
        let (sender, has_room) = channel();
        let world = &world;
        scope.spawn(move || sender.send(world.wait_for_room()));
        let early = has_room.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "it holds 40 of 64 KiB: {early:?}");
        drop(end);
        has_room.recv().expect("is told").expect("there is room");
    });
    put_40_kib(&world, &ids, 1).expect("fits now");
    world.flush().expect("writes");
    assert_sound(&world);
}

#[test]
fn what_is_being_written_takes_its_room() {
    let (world, ids, end) = being_written();
    let error = put_40_kib(&world, &ids, 1).expect_err("both are more than the queue");
    let Error::Busy { queued_bytes, limit_bytes: 65_536 } = error else { panic!("{error}") };
    assert!((40 << 10..64 << 10).contains(&queued_bytes), "{queued_bytes}");
    drop(end);
    // Who has flushed finds the queue empty, whoever has written it.
    for x in 2..40 {
        world.flush().expect("writes");
        put_40_kib(&world, &ids, x).expect("is alone");
    }
    world.flush().expect("writes");
    assert_sound(&world);
}

/// Rows that are encoded before they are written take memory beside what they say.
#[test]
fn what_is_encoded_already_is_counted() {
    let gated = Gated::in_batches_of(64 << 20, 20 << 10);
    let open = gated.shut();
    let noisy = |x: i64, len| {
        let mut chunk = filled(&gated.world, gated.ids.air);
        chunk.set_side(gated.ids.light, super::limits::noise(len));
        let put = gated.world.transaction(|tx| {
            tx.save(gated.ids.at(x, 0, 0), chunk);
            Ok::<_, Error>(())
        });
        drop(put.expect("is accepted"));
    };
    noisy(0, 10 << 10);
    let before = gated.world.metrics().queued_bytes;
    assert!((10 << 10..15 << 10).contains(&before), "{before}");
    noisy(1, 40 << 10);
    let both = gated.world.metrics().queued_bytes - before;
    assert!((80 << 10..100 << 10).contains(&both), "{both}");
    drop(open);
    gated.world.flush().expect("writes");
    assert_eq!(gated.world.metrics().queued_bytes, 0);
    assert_eq!(gated.world.metrics().stats.commits_staged, 1);
    assert_sound(&gated.world);
}

#[test]
fn one_commit_larger_than_the_queue_is_taken_when_it_is_empty() {
    let gated = Gated::new(1);
    put(&gated, 0, 1, 1 << 10).expect("is alone");
    gated.world.flush().expect("writes");
    put(&gated, 1, 1, 1 << 10).expect("is alone again");
    gated.world.flush().expect("writes");
    assert_eq!(gated.world.metrics().stats.conflicts, 0);
    assert_sound(&gated.world);
}

#[test]
fn a_safe_commit_behind_queued_ones_takes_them_along() {
    let gated = Gated::new(1);
    let Gated { world, ids, .. } = &gated;
    let open = gated.shut();
    let queued = put(&gated, 0, 1, 100).expect("is accepted").durable();
    thread::scope(|scope| {
        // Full or not: who waits until it is written needs no room.
        let safe = scope.spawn(|| {
            world.transaction_at(Durability::Safe, |tx| {
                tx.save(ids.at(1, 0, 0), filled(world, ids.glass));
                Ok::<_, Error>(())
            })
        });
        open.send(None).expect("somebody writes");
        open.send(None).expect("somebody writes");
        let safe = safe.join().expect("no panic").expect("commits").durable();
        assert!(safe.is_durable() && queued.is_durable());
    });
    drop(open);
    assert_sound(world);
}

#[test]
fn what_needs_the_whole_world_waits_for_the_queue() {
    let gated = Gated::new(64 << 20);
    let Gated { world, ids, .. } = &gated;
    let open = gated.shut();
    for x in 0..10 {
        put(&gated, x, x as u8, 10).expect("is accepted");
    }
    drop(open);
    let mut count = 0;
    let walked = world.read_view(|view| {
        view.for_each_chunk(cg_store::view::Area::World, |chunk| {
            count += usize::from(chunk.is_ok());
            std::ops::ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!((walked.expect("walks"), count), (None, 10));
    let open = gated.shut();
    put(&gated, 20, 1, 10).expect("is accepted");
    drop(open);
    world.registry().register_dimension("game:end").expect("registers after it");
    put(&gated, 21, 1, 10).expect("is accepted");
    let deleted = world.transaction(|tx| tx.delete_box(ids.overworld, ChunkBox::EVERYTHING));
    assert_eq!(deleted.expect("lists what is queued too").value, 12);
    world.close().expect("writes what is queued");
}

#[test]
fn a_queued_write_that_fails_ends_the_writing_and_memory_serves_on() {
    let gated = Gated::new(64 << 20);
    let Gated { world, ids, .. } = &gated;
    put(&gated, 0, 1, 10).expect("is accepted");
    world.flush().expect("writes");
    let open = gated.shut();
    let ticket = put(&gated, 0, 2, 10).expect("is accepted").durable();
    put(&gated, 1, 3, 10).expect("is accepted");
    open.send(Some(Fault::Write)).expect("somebody writes");
    drop(open);
    let read_only =
        |error: Error| assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
    read_only(ticket.wait_for(engine::Level::Process).expect_err("was not written"));
    read_only(world.flush().expect_err("cannot"));
    read_only(put(&gated, 2, 4, 10).expect_err("takes nothing more"));
    read_only(world.wait_for_room().expect_err("there will be none"));
    assert!(!ticket.is_durable());
    let token = |x| {
        world.load(ids.at(x, 0, 0)).expect("loads").expect("is there").side(ids.light).expect("has light")[0]
    };
    assert_eq!((token(0), token(1)), (2, 3), "memory has the last word");
    assert!(world.load(ids.at(2, 0, 0)).expect("loads").is_none());
    read_only(world.close().expect_err("says that something is lost"));
    read_only(ticket.wait().expect_err("was not written"));
}

#[test]
fn a_panic_while_a_queued_commit_is_written_ends_the_writing_and_nobody_waits_for_ever() {
    let panics_at = Arc::new(AtomicU64::new(0));
    // Until then a later commit would be refused.
    let are_accepted = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_fault({
        let (panics_at, are_accepted) = (Arc::clone(&panics_at), Arc::clone(&are_accepted));
        move |seq| {
            let panics = seq.get() == panics_at.load(Ordering::Relaxed);
            while panics && !are_accepted.load(Ordering::Acquire) {
                thread::yield_now();
            }
            assert!(!panics, "commit {seq} by request");
            None
        }
    });
    let options = WorldOptions { durability: Durability::Fast, cache_bytes: 0, ..options() };
    let world = World::builder().options(&options).over(engine).expect("a world in memory");
    let ids = Ids::register(&world);
    let put = |x| {
        world.transaction(|tx| {
            tx.save(ids.at(x, 0, 0), filled(&world, ids.stone));
            Ok::<_, Error>(())
        })
    };
    panics_at.store(world.last_commit().get() + 2, Ordering::Relaxed);
    let tickets: Vec<_> = (0..3).map(|x| put(x).expect("is accepted").durable()).collect();
    are_accepted.store(true, Ordering::Release);
    let panicked = |error: Error| {
        let Error::Engine(EngineError::ReadOnly { cause }) = &error else { panic!("{error}") };
        let EngineError::Panicked { operation: "writing a queued commit", message } = &**cause else {
            panic!("{error}")
        };
        assert!(message.contains("by request"), "{message}");
    };
    thread::scope(|scope| {
        // Some wait while it happens, some come later.
        let waiting: Vec<_> = tickets[1..].iter().map(|ticket| scope.spawn(|| ticket.wait())).collect();
        for waiting in waiting {
            panicked(waiting.join().expect("no panic").expect_err("was not written"));
        }
    });
    panicked(world.flush().expect_err("cannot"));
    panicked(put(3).expect_err("takes nothing more"));
    panicked(
        world.registry().register_dimension("game:end").expect_err("takes nothing past the queue either"),
    );
    assert!(tickets[0].has_reached(engine::Level::Process), "what came before is written");
    assert!(world.load(ids.at(2, 0, 0)).expect("loads").is_some(), "memory has the last word");
    assert!(world.load(ids.at(3, 0, 0)).expect("loads").is_none());
    panics_at.store(0, Ordering::Relaxed);
    world.resume().expect("writes what is queued");
    assert!(tickets.iter().all(cg_store::Durable::is_durable));
    put(3).expect("is accepted").durable().wait().expect("is written");
    assert_sound(&world);
}

#[test]
fn what_is_queued_is_written_below_the_room_that_new_commits_demand() {
    let free = Arc::new(AtomicU64::new(1 << 40));
    let engine = MemEngine::new().with_free_bytes({
        let free = Arc::clone(&free);
        move || free.load(Ordering::Relaxed)
    });
    let options = WorldOptions { durability: Durability::Fast, min_free_bytes: Some(1 << 20), ..options() };
    let world = World::builder().options(&options).over(engine).expect("a world in memory");
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    free.store(0, Ordering::Relaxed);
    let deleted = world.transaction(|tx| {
        tx.delete(ids.at(0, 0, 0));
        Ok::<_, Error>(())
    });
    deleted.expect("deleting needs no room").durable().wait().expect("what is queued is written");
    assert_eq!(world.load(ids.at(0, 0, 0)).expect("reads go on"), None);
    assert_sound(&world);
}

#[test]
fn after_a_kill_there_is_the_state_behind_some_commit() {
    let disk = Disk::new();
    let options = WorldOptions { durability: Durability::Fast, ..options() };
    let world = World::builder().options(&options).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    // Each commit writes its number to two places.
    let number = |world: &World, x: i64| -> Option<u8> {
        Some(world.load(ids.at(x, 0, 0)).expect("loads")?.side(ids.light).expect("has light")[0])
    };
    for n in 1..=50_u8 {
        let saved = world.transaction(|tx| {
            for x in [0, 9] {
                let mut chunk = filled(&world, ids.stone);
                chunk.set_side(ids.light, vec![n]);
                tx.save(ids.at(x, 0, 0), chunk);
            }
            Ok::<_, Error>(())
        });
        saved.expect("is accepted");
        if n % 10 == 0 {
            // What the disk has now is what a kill would leave.
            let copy = disk.root().join(format!("copy {n}"));
            copy_dir(&disk.path(), &copy);
            let left = World::builder().options(&options).open(&copy).expect("opens");
            assert_eq!(number(&left, 0), number(&left, 9), "of one commit");
            assert!(number(&left, 0).unwrap_or(0) <= n);
            assert_sound(&left);
        }
    }
    world.close().expect("closes");
    drop(world);
    let world = World::builder().options(&options).open(disk.path()).expect("opens");
    assert_eq!((number(&world, 0), number(&world, 9)), (Some(50), Some(50)), "closing saves");
    assert!(world.engine().get(cg_format::Space::ChunkL0, &cg_format::key::chunk(ids.at(0, 0, 0))).is_ok());
}
