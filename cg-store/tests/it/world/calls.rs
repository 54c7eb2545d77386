//! How often a world calls its engine. Over a network each call is a round trip, so calls are pinned, not time.

use super::tier::demote;
use super::*;
use crate::surviving::{Fuse, Surviving};
use cg_engine::conformance::{Call, Counter, Counting};
use cg_format::ClusterTier;

/// A world whose calls are counted, with a cache that is large enough for every test.
fn counted() -> (World, Counter, Ids) {
    let (engine, counter) = Counting::over(MemEngine::new().with_max_batch_bytes(1 << 30));
    let options = WorldOptions { cache_bytes: 64 << 20, ..options() };
    let world = World::in_memory_over(engine, &[], &options).expect("begins");
    let ids = Ids::register(&world);
    (world, counter, ids)
}

/// The area that a player with a view distance of five chunks sees in a world of 24 chunks of height.
fn area(ids: &Ids) -> Vec<ChunkAt> {
    let columns = (-5..=5).flat_map(|x| (-5..=5).map(move |z| (x, z)));
    columns.flat_map(|(x, z)| (-4..20).map(move |y| (x, y, z))).map(|(x, y, z)| ids.at(x, y, z)).collect()
}

#[test]
fn a_hot_chunk_is_one_call() {
    let (world, counter, ids) = counted();
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    world.clear_cache();
    let (found, calls) = counter.during(|| world.load(ids.at(0, 0, 0)).expect("loads"));
    assert!(found.is_some());
    assert_eq!((calls.of(Call::Get), calls.all()), (1, 1));
    let (found, calls) = counter.during(|| world.load(ids.at(0, 0, 0)).expect("loads"));
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
        world.clear_cache();
        let (found, calls) = counter.during(|| world.load_many(&area));
        assert!(found.into_iter().all(|found| found.expect("loads").is_some()), "{tier:?}");
        assert_eq!((calls.of(Call::GetMany), calls.all()), (most, most), "{tier:?}");
    }
}

#[test]
fn a_commit_reads_its_entities_and_their_chunks_together() {
    let (world, counter, ids) = counted();
    let chunks: Vec<_> = (0..50).map(|x| ids.at(x, 0, 0)).collect();
    save(&world, chunks.iter().map(|at| (*at, filled(&world, ids.stone))));
    let cows = || (0..500_u128).map(|n| (uuid(n), chunks[n as usize % chunks.len()]));
    let put = |moved: usize| {
        world.clear_cache();
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
fn a_world_is_opened_in_few_calls() {
    let engine = Surviving::new(&Fuse::new());
    for is_new in [true, false] {
        let (engine, counter) = Counting::over(engine.clone());
        let begin = || World::in_memory_over(engine, &[], &options()).expect("begins");
        let (world, calls) = counter.during(begin);
        assert!(calls.all() <= 15, "{calls:?}");
        if is_new {
            let ids = Ids::register(&world);
            save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
        }
    }
}
