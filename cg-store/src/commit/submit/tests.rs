//! Reads while nothing is accepted. Only these tests can cause that state.

mod futures;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{ChunkAt, ChunkPos, Dimension, EntityId};

use super::*;
use crate::engine::{Fault, MemEngine};
use crate::rt::reentry::{Doing, ReentryGuard};
use crate::storage::options::WorldOptions;
use crate::{Durability, Peek, Property, World};

/// Returns a world with one kind of block and one dimension, whose engine fails to write the given commit.
fn failing_at(fails_at: &Arc<AtomicU64>, queue_bytes: u64) -> (World, Chunk) {
    let engine = MemEngine::new().with_fault({
        let fails_at = Arc::clone(fails_at);
        move |seq| (seq.get() == fails_at.load(Ordering::Relaxed)).then_some(Fault::Write)
    });
    let options = WorldOptions { queue_bytes, durability: Durability::Fast, ..WorldOptions::default() };
    let world = World::builder().options(&options).over(engine).unwrap();
    let [air] = world.registry().register_blocks([":air"]).unwrap();
    world.registry().register_dimension("game:overworld").unwrap();
    let chunk = Chunk::filled(air, &world.catalog().current_schema()).unwrap();
    (world, chunk)
}

fn world() -> (World, Chunk) {
    failing_at(&Arc::default(), 64 << 20)
}

fn at(x: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))
}

fn saving(x: i64, chunk: &Chunk) -> WriteBatch {
    let mut batch = WriteBatch::with_capacity(1);
    batch.save(at(x), chunk.clone());
    batch
}

#[test]
fn before_it_is_accepted_nobody_sees_the_world_without_it() {
    let (world, chunk) = world();
    let (a, b) = (at(1), at(100));
    assert_eq!(world.load(a).unwrap(), None);
    let held = world.rooms().commit.queue.begin_accepting();
    let ticket = world.submit(saving(1, &chunk)).unwrap();
    assert!(!ticket.is_finished());
    assert_eq!(world.metrics().submitted, 1);
    assert!(world.metrics().queued_bytes > 0);
    assert!(matches!(world.peek(a), Peek::NotLoaded), "memory knows that it was absent");
    assert_eq!(world.load(b).unwrap(), None, "what is none of its business is not waited for");
    thread::scope(|scope| {
        let world = &world;
        let readers: [Box<dyn FnOnce() -> bool + Send>; 7] = [
            Box::new(|| world.load(a).unwrap().is_some()),
            Box::new(|| world.load_many(&[b, a])[1].as_ref().unwrap().is_some()),
            Box::new(|| world.with_chunk(a, |_| ()).unwrap().is_some()),
            Box::new(|| world.column(a.dimension, 1, 0, 0..=0).unwrap().chunk(0).is_some()),
            Box::new(|| world.load_in_background(&[a]).wait().unwrap()[0].as_ref().unwrap().is_some()),
            Box::new(|| world.transaction(|tx| Ok::<_, Error>(tx.load(a)?.is_some())).unwrap().value),
            Box::new(|| world.tiers().with_stored_bytes(a, |_| Ok(())).unwrap().is_some()),
        ];
        let readers = readers.map(|read| scope.spawn(read));
        drop(held);
        for (number, reader) in readers.into_iter().enumerate() {
            assert!(reader.join().unwrap(), "reader {number}");
        }
    });
    assert!(matches!(world.peek(a), Peek::Here(_)));
    assert_eq!(ticket.wait().unwrap().seq, world.last_commit());
    assert_eq!(world.metrics().submitted, 0);
    world.flush().unwrap();
    assert_eq!(world.metrics().queued_bytes, 0);
}

/// A chunk changes when an entity changes to which it refers, or which moves into it.
#[test]
fn an_entity_that_waits_concerns_every_chunk() {
    let (world, chunk) = world();
    let kind = world.registry().register_entity("game:cow").unwrap();
    let id = EntityId::new(uuid::Uuid::from_u128(1));
    let position = EntityPos::new(Dimension::new(0), at(1).pos.min_block(), [0.0; 3]).unwrap();
    world
        .transaction(|tx| {
            tx.save(at(1), chunk.clone());
            tx.put_entity(id, Entity::new(kind, Owner::Chunk(at(1)), position));
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(world.load(at(1)).unwrap().unwrap().entities(), [id]);
    let held = world.rooms().commit.queue.begin_accepting();
    let mut batch = WriteBatch::new();
    batch.delete_entity(id);
    drop(world.submit(batch).unwrap());
    assert!(matches!(world.peek(at(1)), Peek::NotLoaded));
    drop(held);
    assert!(world.load(at(1)).unwrap().unwrap().entities().is_empty());
}

#[test]
fn what_waits_takes_its_room_in_the_queue() {
    let (world, mut chunk) = failing_at(&Arc::default(), 64 << 10);
    let kind = world.registry().register_side("game:light").unwrap();
    chunk.set_side(kind, vec![1; 40 << 10]);
    let held = world.rooms().commit.queue.begin_accepting();
    let _first = world.submit(saving(1, &chunk)).unwrap();
    let Refused { error, batch } = *world.submit(saving(2, &chunk)).unwrap_err();
    let Error::Busy { queued_bytes, limit_bytes: 65_536 } = error else { panic!("{error}") };
    assert!((40 << 10..64 << 10).contains(&queued_bytes), "{queued_bytes}");
    drop(held);
    world.flush().unwrap();
    let _second = world.submit(batch).unwrap();
    assert!(world.load(at(2)).unwrap().is_some());
}

#[test]
fn a_batch_that_is_larger_than_the_queue_is_accepted_by_itself() {
    let (world, mut chunk) = failing_at(&Arc::default(), 64 << 10);
    let kind = world.registry().register_side("game:light").unwrap();
    chunk.set_side(kind, vec![1; 100 << 10]);
    let ticket = world.submit(saving(1, &chunk)).unwrap();
    // No caller reads, so the accepting thread accepts it.
    while !ticket.is_finished() {
        thread::yield_now();
    }
    assert!(world.load_in_background(&[at(1)]).wait().unwrap()[0].as_ref().unwrap().is_some());
}

#[test]
fn what_a_world_that_fails_has_taken_waits_until_it_is_resumed() {
    let fails_at = Arc::default();
    let (world, chunk) = failing_at(&fails_at, 64 << 20);
    let _kept = world.submit(saving(1, &chunk)).unwrap();
    world.flush().unwrap();
    let held = world.rooms().commit.queue.begin_accepting();
    let ticket = world.submit(saving(2, &chunk)).unwrap();
    let refused = world.submit({
        let mut batch = WriteBatch::new();
        batch.save(ChunkAt::new(Dimension::new(7), ChunkPos::constant(0, 0, 0)), chunk.clone());
        batch
    });
    let refused = refused.unwrap();
    // Another commit fails meanwhile.
    fails_at.store(world.last_commit().get() + 1, Ordering::Relaxed);
    set_time_and_fail(&world);
    drop(held);
    let read_only = |error: Error| {
        assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
    };
    read_only(world.load(at(2)).unwrap_err());
    read_only(world.load_many(&[at(1), at(2)]).remove(1).unwrap_err());
    read_only(world.flush().unwrap_err());
    read_only(world.submit(saving(3, &chunk)).unwrap_err().error);
    read_only(world.transaction(|_| Ok::<_, Error>(())).unwrap_err());
    read_only(world.property(&Property::Time).unwrap_err());
    read_only(world.entity(EntityId::new(uuid::Uuid::nil())).unwrap_err());
    read_only(world.tiers().with_stored_bytes(at(1), |_| Ok(())).unwrap_err());
    read_only(world.content_hash(crate::view::Area::World).unwrap_err());
    assert!(world.load(at(1)).unwrap().is_some(), "the rest is served");
    assert!(world.load_many(&[at(1), at(2)])[0].as_ref().unwrap().is_some());
    assert!(!ticket.is_finished() && world.rooms().commit.queue.has_submitted());
    fails_at.store(0, Ordering::Relaxed);
    world.resume().unwrap();
    assert!(world.load(at(2)).unwrap().is_some());
    assert!(ticket.wait().unwrap().durable().is_durable());
    let error = refused.wait().unwrap_err();
    assert!(matches!(error, Error::UnknownDimension { found: 7, issued: 1 }), "{error}");
    assert_eq!(world.property(&Property::Time).unwrap(), Some(vec![1]), "it was accepted before");
}

/// Queues a commit after what was submitted, and waits until its write has failed.
fn set_time_and_fail(world: &World) {
    let rooms = world.rooms();
    let set = |tx: &mut crate::Transaction<'_>| {
        tx.set_property(Property::Time, Some(vec![1]));
        Ok(())
    };
    crate::commit::transaction::accept_reserved(&rooms.commit, set).unwrap();
    while rooms.commit.queue.check().is_ok() {
        thread::yield_now();
    }
}

#[test]
fn closing_accepts_what_waits_and_takes_nothing_behind() {
    let (world, chunk) = world();
    let held = world.rooms().commit.queue.begin_accepting();
    let ticket = world.submit(saving(1, &chunk)).unwrap();
    let late = world.submit(saving(2, &chunk)).unwrap();
    thread::scope(|scope| {
        let closing = scope.spawn(|| world.close());
        while !matches!(world.submit(WriteBatch::new()).map_err(Error::from), Err(Error::Closed)) {
            thread::yield_now();
        }
        drop(held);
        closing.join().unwrap().unwrap();
    });
    let [first, second] = [ticket, late].map(|ticket| ticket.wait().unwrap());
    assert_eq!(first.seq.next(), second.seq);
    assert!(second.durable().is_durable());
}

/// A function of the host that reads the world while its thread accepts a batch sees the world as it was before.
#[test]
fn who_accepts_may_look_at_the_world() {
    let (world, chunk) = world();
    let rooms = world.rooms();
    let held = rooms.commit.queue.begin_accepting();
    let ticket = world.submit(saving(1, &chunk)).unwrap();
    let accepting = ReentryGuard::enter(Doing::Acceptance, &*rooms.commit.queue);
    assert_eq!(world.load(at(1)).unwrap(), None);
    drop(accepting);
    drop(held);
    ticket.wait().unwrap();
    assert!(world.load(at(1)).unwrap().is_some());
}

#[test]
fn what_a_world_that_fails_cannot_accept_any_more_is_said_to_be_lost() {
    let fails_at = Arc::default();
    let (world, chunk) = failing_at(&fails_at, 64 << 20);
    let held = world.rooms().commit.queue.begin_accepting();
    let ticket = world.submit(saving(1, &chunk)).unwrap();
    fails_at.store(world.last_commit().get() + 1, Ordering::Relaxed);
    set_time_and_fail(&world);
    drop(held);
    let error = world.close().unwrap_err();
    assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
    assert!(matches!(ticket.wait().unwrap_err(), Error::Closed));
    assert_eq!(world.metrics().stats.submissions_refused, 1);
}
