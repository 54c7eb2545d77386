//! How often a world calls its engine. Over a network each call is a round trip, so calls are pinned, not time.

use super::*;
use crate::surviving::{Fuse, Surviving};
use cg_engine::conformance::remote::{Network, Remote, Server};
use cg_engine::conformance::{Call, Calls, Counter, Counting};
use cg_format::ClusterTier;
use cg_store::engine::Latency;
use cg_store::{Durability, Peek, StoreLimits, WriteBatch};
use cg_tiering::GameTick;
use std::sync::Arc;
use std::time::Duration;

/// A world whose calls are counted, with a cache that is large enough for every test.
fn counted() -> (World, Counter, Ids) {
    let (engine, counter) = Counting::over(MemEngine::new().with_max_batch_bytes(1 << 30));
    let engine = engine.with_caps(|caps| caps.latency = Latency::Network);
    let options = WorldOptions { cache_bytes: 64 << 20, ..options() };
    let world = World::builder().options(&options).over(engine).expect("begins");
    let ids = Ids::register(&world);
    (world, counter, ids)
}

/// The area that a player with a view distance of five chunks sees in a world of 24 chunks of height.
fn area(ids: &Ids) -> Vec<ChunkAt> {
    let columns = (-5..=5).flat_map(|x| (-5..=5).map(move |z| (x, z)));
    columns.flat_map(|(x, z)| (-4..20).map(move |y| (x, y, z))).map(|(x, y, z)| ids.at(x, y, z)).collect()
}

#[test]
fn a_hot_or_warm_chunk_is_one_call_and_a_cold_or_absent_one_two() {
    let (world, counter, ids) = counted();
    let [hot, warm, cold] = [0, 100, 200].map(|x| ids.at(x, 0, 0));
    let neighbour = ids.at(101, 0, 0);
    save(&world, [hot, warm, cold].map(|at| (at, filled(&world, ids.stone))));
    demote(&world, ClusterTier::L1, &[warm], false);
    demote(&world, ClusterTier::L2, &[cold], false);
    let absent = ids.at(300, 0, 0);
    for (at, is_there, most) in
        [(hot, true, 1), (warm, true, 1), (cold, true, 2), (absent, false, 2), (neighbour, false, 2)]
    {
        world.cache().clear();
        let (found, calls) = counter.during(|| world.load(at).expect("loads"));
        assert_eq!((found.is_some(), calls.reads(), calls.all()), (is_there, most, most), "{at}");
    }
    let (found, calls) = counter.during(|| world.load(neighbour).expect("loads"));
    assert!(found.is_none() && calls.reads() <= 2, "{calls:?}");
    world.load(hot).expect("loads");
    let (found, calls) = counter.during(|| world.load(hot).expect("loads"));
    assert!(found.is_some());
    assert_eq!(calls.all(), 0, "it is in memory");
}

#[test]
fn an_area_is_one_call_for_each_tier() {
    for (tier, most) in [(None, 1), (Some(ClusterTier::L1), 2), (Some(ClusterTier::L2), 3)] {
        let (world, counter, ids) = counted();
        let area = area(&ids);
        save(&world, area.iter().map(|at| (*at, filled(&world, ids.stone))));
        if let Some(tier) = tier {
            demote(&world, tier, &area, false);
        }
        world.cache().clear();
        let (found, calls) = counter.during(|| world.load_many(&area));
        assert!(found.into_iter().all(|found| found.expect("loads").is_some()), "{tier:?}");
        assert_eq!((calls.reads(), calls.all()), (most, most), "{tier:?}");
    }
}

#[test]
fn a_commit_reads_its_entities_and_their_chunks_together() {
    let (world, counter, ids) = counted();
    let chunks: Vec<_> = (0..50).map(|x| ids.at(x, 0, 0)).collect();
    save(&world, chunks.iter().map(|at| (*at, filled(&world, ids.stone))));
    let cows = || (0..500_u128).map(|n| (uuid(n), chunks[n as usize % chunks.len()]));
    let put = |moved: usize| {
        world.cache().clear();
        let (put, calls) = counter.during(|| {
            world.transaction(|tx| {
                for (n, (id, _)) in cows().enumerate() {
                    tx.put_entity(id, ids.cow_in(chunks[(n + moved) % chunks.len()]));
                }
                Ok::<_, Error>(())
            })
        });
        put.expect("commits");
        calls
    };
    for moved in 0..3 {
        let calls = put(moved);
        assert_eq!((calls.of(Call::GetMany), calls.reads()), (2, 2), "the entities, and their chunks");
        assert_eq!(calls.all() - calls.reads(), 1, "one write: {calls:?}");
    }
    assert_eq!(world.load(chunks[2]).expect("loads").expect("is there").entities().len(), 10);
    assert_sound(&world);
}

#[test]
fn a_transaction_reads_many_entities_in_one_call_and_guards_each() {
    let (world, counter, ids) = counted();
    let at = ids.at(0, 0, 0);
    let all: Vec<_> = (0..100_u128).map(uuid).collect();
    save(&world, [(at, filled(&world, ids.stone))]);
    let put = |range: std::ops::Range<usize>| {
        let put = world.transaction(|tx| {
            all[range].iter().for_each(|id| tx.put_entity(*id, ids.cow_in(at)));
            Ok::<_, Error>(())
        });
        put.expect("commits");
    };
    put(0..98);
    let refused = world.transaction(|tx| {
        tx.put_entity(all[98], ids.cow_in(at));
        tx.delete_entity(all[97]);
        let (found, calls) = counter.during(|| tx.entities(&all));
        let found: Vec<_> = found.into_iter().map(|found| found.expect("reads").is_some()).collect();
        let expected: Vec<_> = (0..100).map(|n| n != 97 && n != 99).collect();
        assert_eq!((found, calls.of(Call::GetMany), calls.all()), (expected, 1, 1));
        // The one that was not there.
        std::thread::scope(|scope| scope.spawn(|| put(99..100)).join().expect("another thread commits"));
        Ok::<_, Error>(())
    });
    let key = cg_store::error::ConflictKey::Entity(all[99]);
    assert!(matches!(&refused, Err(Error::Conflict { key: found }) if *found == key), "{refused:?}");
}

#[test]
fn a_commit_reads_its_objects_together() {
    let (world, counter, _) = counted();
    let put = |bytes: u8| {
        let (put, calls) = counter.during(|| {
            world.transaction(|tx| {
                for n in 0..100 {
                    tx.put_object(format!("map/{n}"), [bytes])?;
                }
                Ok::<_, Error>(())
            })
        });
        put.expect("commits");
        (calls.of(Call::GetMany), calls.reads(), calls.all())
    };
    assert_eq!([put(1), put(2)], [(1, 1, 2); 2], "one read and one write");
    assert_eq!(world.objects().get("map/99").expect("reads").expect("is there").version, 1);
}

#[test]
fn a_world_is_opened_in_few_calls() {
    let engine = Surviving::new(&Fuse::new());
    for is_new in [true, false] {
        let (engine, counter) = Counting::over(engine.clone());
        let begin = || World::builder().options(&options()).over(engine).expect("begins");
        let (world, calls) = counter.during(begin);
        assert!(calls.all() <= 17, "{calls:?}");
        if is_new {
            let ids = Ids::register(&world);
            save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
        }
    }
}

/// Calls of a tick's thread never wait for a network. What is due is in `network_ticks.rs`.
#[test]
fn a_ticks_thread_calls_no_engine_over_a_network() {
    let (engine, counter) = Counting::over(MemEngine::new());
    let engine = engine.with_caps(|caps| caps.latency = Latency::Network);
    let world = World::builder().options(&options()).over(engine).expect("begins");
    let ids = Ids::register(&world);
    let (old, new) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
    save(&world, [(old, filled(&world, ids.stone))]);
    world.tick(GameTick::new(1), &[], Duration::from_secs(60)).expect("ticks");
    world.cache().clear();
    let (peeked, calls) = counter.during(|| world.peek(old));
    assert!(matches!(peeked, Peek::NotLoaded), "{peeked:?}");
    assert_eq!(calls.all(), 0, "peek: {calls:?}");
    let mut batch = WriteBatch::new();
    batch.save(new, filled(&world, ids.glass));
    batch.save(old, filled(&world, ids.glass));
    batch.put_entity(uuid(1), ids.cow_in(new));
    let (ticket, calls) = counter.during(|| world.submit(batch));
    let ticket = ticket.expect("is taken");
    assert_eq!(calls.all(), 0, "hand_over: {calls:?}");
    ticket.wait().expect("is accepted");
    world.flush().expect("writes");
    for tick in 2..=42 {
        let (report, calls) =
            counter.during(|| world.tick(GameTick::new(tick), &[], Duration::from_secs(60)));
        report.expect("ticks");
        assert_eq!(calls.all(), 0, "tick: {calls:?}");
    }
}

#[test]
fn an_engine_that_stages_is_given_a_large_commit_whole() {
    for stages in [false, true] {
        let (engine, counter) = Counting::over(MemEngine::new());
        let engine = engine.with_caps(|caps| caps.stages = stages);
        let limits = StoreLimits { batch_bytes: 4096, ..StoreLimits::default() };
        let options = WorldOptions { limits, durability: Durability::Process, ..options() };
        let world = World::builder().options(&options).over(engine).expect("begins");
        let write = || {
            world.transaction(|tx| {
                for n in 0..100 {
                    tx.set_property(Property::Named(name(&format!("game:{n}"))), Some(vec![7; 200]));
                }
                Ok::<_, Error>(())
            })
        };
        let (written, calls) = counter.during(write);
        written.expect("commits");
        assert_eq!(calls.of(Call::CommitRun) == 1, stages, "{calls:?}");
        assert_eq!(world.metrics().stats.commits_staged, u64::from(!stages));
    }
}

#[test]
fn a_world_in_an_engine_keeps_its_identity_there() {
    let engine = Surviving::new(&Fuse::new());
    let open = || World::builder().options(&options()).over(engine.clone()).expect("opens");
    let identity = open().identity();
    assert_eq!(open().identity(), identity);
    let other = World::builder().options(&options()).in_memory().expect("another world");
    assert_ne!(other.identity(), identity);
    let signed = |signature: &str| WorldOptions { signature: Some(signature.into()), ..options() };
    let refused = World::builder().options(&signed("game 2")).over(engine.clone()).expect_err("is refused");
    assert_eq!(refused.to_string(), "the engine has no signature, and `game 2` was asked for");
    let restored = WorldOptions { accept_lost_commits: true, ..options() };
    let restored = World::builder().options(&restored).over(engine.clone()).expect("opens").identity();
    assert_eq!(restored.uuid, identity.uuid);
    assert_ne!(restored.incarnation, identity.incarnation);
    assert_eq!(open().identity(), restored);
    let named = Surviving::new(&Fuse::new());
    drop(World::builder().options(&signed("game 1")).over(named.clone()).expect("a world"));
    let refused = World::builder().options(&signed("game 2")).over(named).expect_err("is refused");
    assert_eq!(refused.to_string(), "the engine has the signature `game 1`, and `game 2` was asked for");
    engine.overwrite(cg_format::Space::WorldMeta, "identity");
    let refused = World::builder().options(&options()).over(engine).expect_err("is refused");
    assert_eq!(
        refused.to_string(),
        "the row of the world's identity is damaged (WorldMeta row 6964656e74697479): frame: uuid needs 16 bytes and 1 are \
         left (at byte 24); restore it from a checkpoint"
    );
}

#[test]
fn an_absent_area_is_seven_calls_and_then_none() {
    let (world, counter, ids) = counted();
    save(&world, [(ids.at(1000, 0, 1000), filled(&world, ids.stone))]);
    let area = area(&ids);
    for most in [7, 0] {
        let (found, calls) = counter.during(|| world.load_many(&area));
        assert!(found.into_iter().all(|found| found.expect("loads").is_none()));
        assert_eq!(calls.all(), most, "{calls:?}");
    }
    // A chunk beside it is known too: its cube is empty.
    let (found, calls) = counter.during(|| world.load(ids.at(7, 0, 7)).expect("loads"));
    assert_eq!((found, calls.all()), (None, 0));
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    world.cache().clear();
    assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
}

#[test]
fn a_few_absent_chunks_are_asked_for_and_nothing_else() {
    let (world, counter, ids) = counted();
    save(&world, [(ids.at(1000, 0, 1000), filled(&world, ids.stone))]);
    let few: Vec<_> = (0..255).map(|n| ids.at(n % 16, n / 16, 0)).collect();
    let (found, calls) = counter.during(|| world.load_many(&few));
    assert!(found.into_iter().all(|found| found.expect("loads").is_none()));
    assert_eq!((calls.reads(), calls.all()), (3, 3), "{calls:?}");
}

/// Submits batches while the first of them waits in the function of the host, and counts the reads of all threads until
/// everything is written.
fn reads_of(
    world: &World,
    counter: &Counter,
    ids: &Ids,
    batches: impl IntoIterator<Item = WriteBatch>,
) -> Calls {
    let held = ids.at(2000, 0, 0);
    save(world, [(held, filled(world, ids.stone))]);
    world.flush().expect("is written");
    let gate = std::sync::Arc::new(std::sync::Barrier::new(2));
    let mut first = WriteBatch::new();
    let inside = std::sync::Arc::clone(&gate);
    first.edit(held, move |_| {
        inside.wait();
        inside.wait();
        Ok(())
    });
    drop(world.submit(first).expect("is taken"));
    gate.wait();
    let before = counter.calls();
    for batch in batches {
        drop(world.submit(batch).expect("is taken"));
    }
    gate.wait();
    world.flush().expect("is accepted and written");
    counter.calls() - before
}

#[test]
fn new_chunks_that_were_submitted_one_by_one_are_asked_for_together() {
    let (world, counter, ids) = counted();
    let batches = (0..100).map(|x| {
        let mut batch = WriteBatch::new();
        batch.save(ids.at(3 * x, 0, 0), marked(&world, &ids, x as u16));
        batch
    });
    let calls = reads_of(&world, &counter, &ids, batches);
    assert_eq!(calls.reads(), 6, "{calls:?}");
    assert_eq!(calls.of(Call::Snapshot), 0, "{calls:?}");
}

#[test]
fn a_flood_of_changed_chunks_reads_none_of_them_alone() {
    for (queue_bytes, deltas) in [(64 << 20, false), (64 << 20, true), (200_000, false), (200_000, true)] {
        let (engine, counter) = Counting::over(MemEngine::new().with_max_batch_bytes(1 << 30));
        let engine = engine.with_caps(|caps| caps.latency = Latency::Network);
        let options = WorldOptions { cache_bytes: 64 << 20, queue_bytes, deltas, ..options() };
        let world = World::builder().options(&options).over(engine).expect("begins");
        let ids = Ids::register(&world);
        let all: Vec<_> = (0..50).map(|x| ids.at(x, 5, 0)).collect();
        let chunk = |seed: u32| super::tier::noisy(&world, &ids, seed);
        save(&world, all.iter().zip(0..).map(|(at, seed)| (*at, chunk(seed))));
        world.flush().expect("is written");
        world.cache().clear();
        let schema = world.catalog().current_schema();
        let before = counter.calls();
        for round in 0..4_u16 {
            for (at, seed) in all.iter().zip(0..) {
                let mut chunk = chunk(seed);
                for n in 0..400 {
                    let cell = LocalPos::from_index(n * 7 + round).expect("a cell");
                    chunk.set_block(cell, ids.stone, &schema).expect("is registered");
                }
                let mut batch = WriteBatch::new();
                batch.save(*at, chunk);
                while let Err(refused) = world.submit(batch) {
                    assert!(matches!(refused.error, Error::Busy { .. }), "{refused}");
                    world.wait_for_room().expect("gets room");
                    batch = refused.batch;
                }
            }
        }
        world.flush().expect("is accepted and written");
        let calls = counter.calls() - before;
        // Each is read at most once, some of them together.
        assert!(calls.reads() <= 50, "{queue_bytes}, {deltas}: {calls:?}");
    }
}

#[test]
fn an_opening_is_three_reads_and_a_creation_one_read_and_two_writes() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    let open = || Counting::over(Remote::take(&server, &network).expect("it answers"));
    let (engine, counter) = open();
    let world = World::builder().create_over(engine).expect("there is nothing");
    let calls = counter.calls();
    assert_eq!((calls.reads(), calls.of(Call::Commit), calls.all()), (1, 2, 3), "{calls:?}");
    world.close().expect("closes");
    drop(world);
    let (engine, counter) = open();
    let world = World::builder().open_over(engine).expect("opens");
    let calls = counter.calls();
    assert_eq!((calls.of(Call::Scan), calls.all()), (3, 3), "{calls:?}");
    drop(world);
    let (engine, counter) = open();
    let refused = World::builder().create_over(engine).map(drop);
    assert!(matches!(refused, Err(Error::Open(OpenError::NotEmpty { .. }))), "{refused:?}");
    assert_eq!(counter.calls().all(), 0, "its commits are known");
}
