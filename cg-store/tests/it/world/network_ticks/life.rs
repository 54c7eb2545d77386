//! A world over a network becomes what it becomes in memory with the same ticks.

use super::super::moves::play;
use super::*;

/// The life of a world: what is saved, edited and deleted between the moves.
fn live(
    world: &World,
    ids: &Ids,
    run_until_idle: &dyn Fn(&World, u64, &[PlayerAt]),
) -> Vec<([u64; 3], String)> {
    let all = in_each_cube(ids, 1);
    let mut states = Vec::new();
    let mut state = |world: &World| {
        let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
        world.cache().clear();
        let chunks = world.load_many(&all).into_iter().map(|found| found.expect("loads"));
        let chunks: Vec<_> = chunks.map(|chunk| chunk.map(|chunk| format!("{chunk:?}"))).collect();
        let column = world.opacity().column(ids.overworld, 3, 3).expect("reads");
        states.push((tiers(world), format!("{hash} {column:?} {chunks:?}")));
    };
    save(world, all.iter().zip(0..).map(|(at, seed)| (*at, noisy(world, ids, seed))));
    let put = world.transaction(|tx| {
        (0..50_u128).for_each(|n| tx.put_entity(uuid(n), ids.cow_in(all[n as usize * 7])));
        Ok::<_, Error>(())
    });
    put.expect("commits");
    let dig = |world: &World, from: i64| {
        for n in 0..60_i64 {
            let [x, y, z] = [(n * 5 + from) % 256, n % 64, n * 3 % 64];
            let block = world.transaction(|tx| {
                let at = BlockPos::new(x, y, z);
                let is_there = tx.load(ChunkAt::new(ids.overworld, at.chunk()))?.is_some();
                if is_there { tx.set_block(ids.overworld, at, ids.glass).map(drop) } else { Ok(()) }
            });
            block.expect("commits");
        }
    };
    let delete = |world: &World, chunks: &[ChunkAt]| {
        let deleted = world.transaction(|tx| {
            for at in chunks {
                if tx.load(*at)?.is_some_and(|chunk| chunk.entities().is_empty()) {
                    tx.delete(*at);
                }
            }
            Ok::<_, Error>(())
        });
        deleted.expect("deletes");
    };
    run_until_idle(world, 1, &[]);
    state(world);
    dig(world, 0);
    delete(world, &all[300..320]);
    run_until_idle(world, 2 * 60 * GameTick::PER_SECOND, &[]);
    state(world);
    run_until_idle(world, HOUR + 10_000, &[]);
    state(world);
    // Copies in warm clusters are shadowed, and some are hidden by tombstones.
    save(world, all[..40].iter().map(|at| (*at, filled(world, ids.stone))));
    delete(world, &all[40..90]);
    dig(world, 7);
    run_until_idle(world, HOUR + 20_000, &[]);
    state(world);
    run_until_idle(world, 2 * DAY, &[]);
    state(world);
    let horizon = world.last_commit();
    world.tiers().purge_tombstones_before(horizon).expect("purges");
    run_until_idle(world, 2 * DAY + HOUR, &[]);
    state(world);
    let visitor = [player(1, ids.overworld, 128, 8, 8)];
    run_until_idle(world, 3 * DAY, &visitor);
    assert!(world.load_many(&all).into_iter().all(|found| found.is_ok()));
    run_until_idle(world, 3 * DAY + HOUR, &visitor);
    state(world);
    // Everything that is cold is shadowed by now.
    run_until_idle(world, 3 * DAY + 2 * HOUR, &visitor);
    save(world, all[..100].iter().map(|at| (*at, filled(world, ids.glass))));
    run_until_idle(world, 3 * DAY + 3 * HOUR, &visitor);
    state(world);
    assert_sound(world);
    run_until_idle(world, 10 * DAY, &[]);
    run_until_idle(world, 20 * DAY, &[]);
    state(world);
    assert_sound(world);
    states
}

#[test]
fn a_world_over_a_network_becomes_what_it_becomes_in_memory() {
    let options = network_options();
    let memory = World::builder().options(&options).in_memory().expect("a world in memory");
    let expected = live(&memory, &Ids::register(&memory), &|world, now, players| play(world, now, players));
    let (world, _, _, ids) = over_network(&options);
    let found = live(&world, &ids, &|world, now, players| _ = run_until_idle(world, now, players));
    for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.0, expected.0, "the tiers after step {step}");
        assert!(found.1 == expected.1, "the content after step {step}");
    }
    let [hot, warm, cold] = found.last().expect("there are states").0;
    assert!(hot == 0 && warm == 0 && cold > 250, "{hot} {warm} {cold}");
}
