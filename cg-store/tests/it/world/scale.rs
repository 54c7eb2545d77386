//! What a tick costs does not depend on how many chunks are stored.

use super::moves::player;
use super::*;
use cg_tiering::{GameTick, PlayerAt};
use std::time::Duration;

const ENOUGH: Duration = Duration::from_secs(600);
const DAY: u64 = 24 * 60 * 60 * GameTick::PER_SECOND;

/// Eight cubes, each found by two seeks and full of rows, and 64 tiles of the opacity map.
const MOST_KEYS: u64 = 8 * (2 + 64) + 64;

/// The most that one of many ticks asked of the engine.
#[derive(Debug)]
struct Most {
    keys_scanned: u64,
    engine_reads: u64,
    rows_written: u64,
}

/// A world of full cubes: so many chunks along each axis, in tiles of which none has patches.
fn full(sides: [i64; 3]) -> World<MemEngine> {
    let world = in_memory();
    let ids = Ids::register(&world);
    let stone = filled(&world, ids.stone);
    let [x, y, z] = sides;
    for x in 0..x {
        let layer = (0..y).flat_map(|y| (0..z).map(move |z| (y, z)));
        save(&world, layer.map(|(y, z)| (ids.at(x, y, z), stone.clone())));
    }
    world.fold_opacity(usize::MAX).expect("folds");
    world
}

/// Plays for a minute, in which nothing is due, and says what the busiest tick cost.
fn busiest_tick(world: &World<MemEngine>, players: impl Fn(u64) -> Vec<PlayerAt>) -> Most {
    let mut most = Most { keys_scanned: 0, engine_reads: 0, rows_written: 0 };
    let begin = world.clock().now().get();
    for tick in 1..=1200 {
        let before = world.stats();
        let report = world.tick(GameTick::new(begin + tick), &players(tick), ENOUGH).expect("ticks");
        assert_eq!(report.moves, MoveCounts::default(), "nothing is due");
        let work = world.stats() - before;
        most.keys_scanned = most.keys_scanned.max(work.keys_scanned);
        most.engine_reads = most.engine_reads.max(work.engine_reads);
        most.rows_written = most.rows_written.max(work.rows_written);
    }
    most
}

/// Twenty players who walk about in the same small part of every world.
fn twenty(dimension: Dimension, tick: u64) -> Vec<PlayerAt> {
    let at = |n: i64| [n * 7 % 100 + tick as i64 / 5, n * 11 % 100, n * 13 % 100];
    (0..20).map(|n| (n, at(n))).map(|(n, [x, y, z])| player(n as u128, dimension, x, y, z)).collect()
}

#[test]
fn a_tick_costs_the_same_in_a_world_twenty_times_as_large() {
    let [small, large] = [full([16, 8, 8]), full([32, 20, 32])];
    let flat = full([160, 4, 32]);
    for _ in 0..2 {
        for world in [&small, &large, &flat] {
            let dimension = world.dimension("game:overworld").expect("is registered");
            let idle = busiest_tick(world, |_| Vec::new());
            let played = busiest_tick(world, |tick| twenty(dimension, tick));
            for most in [&idle, &played] {
                assert!(most.keys_scanned <= MOST_KEYS, "{most:?}");
                assert_eq!((most.engine_reads, most.rows_written), (0, 0));
            }
        }
        // The same again in worlds that are cold.
        for world in [&small, &large, &flat] {
            world.settle_tiers(DAY, |_| {}).expect("settles");
        }
    }
}
