//! The cost of a tick does not depend on how many chunks are stored.

use super::moves::{play, player, tiers};
use super::*;
use cg_tiering::{GameTick, PlayerAt, TierPolicy};
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use std::time::Duration;

const ENOUGH: Duration = Duration::from_secs(600);
const DAY: u64 = 24 * 60 * 60 * GameTick::PER_SECOND;

/// The search after opening meets so many keys in a tick at most: of sixteen cold clusters, each found by two seeks and by
/// the heat of its cubes, of eight cubes full of rows, and so many rows of the opacity map.
const MOST_KEYS: u64 = 16 * (2 + 64) + 8 * (2 + 64) + 64;

/// The most that one of many ticks asked of the engine.
#[derive(Debug, PartialEq, Eq)]
struct Most {
    keys_scanned: u64,
    engine_reads: u64,
    rows_written: u64,
}

/// A world of full cubes: so many chunks along each axis, in tiles of which none has patches.
fn full(sides: [i64; 3]) -> World {
    let world = in_memory();
    let ids = Ids::register(&world);
    let stone = filled(&world, ids.stone);
    let [x, y, z] = sides;
    for x in 0..x {
        let layer = (0..y).flat_map(|y| (0..z).map(move |z| (y, z)));
        save(&world, layer.map(|(y, z)| (ids.at(x, y, z), stone.clone())));
    }
    world.opacity().fold(usize::MAX).expect("folds");
    go_round(&world, 100);
    world
}

/// Ticks until everything that can move was looked at once.
fn go_round(world: &World, ticks: u64) {
    let begin = world.tiers().clock().now().get();
    for tick in 1..=ticks {
        world.tick(GameTick::new(begin + tick), &[], ENOUGH).expect("ticks");
    }
}

/// Plays for a minute, in which nothing is due, and says what the busiest tick cost.
fn busiest_tick(world: &World, players: impl Fn(u64) -> Vec<PlayerAt>) -> Most {
    let mut most = Most { keys_scanned: 0, engine_reads: 0, rows_written: 0 };
    let begin = world.tiers().clock().now().get();
    for tick in 1..=1200 {
        let before = world.metrics().stats;
        let report = world.tick(GameTick::new(begin + tick), &players(tick), ENOUGH).expect("ticks");
        assert_eq!(report.moves, MoveCounts::default(), "nothing is due");
        let work = world.metrics().stats - before;
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
fn a_tick_in_which_nothing_is_due_reads_nothing_in_a_world_of_any_size() {
    let [small, large] = [full([16, 8, 8]), full([32, 20, 32])];
    let flat = full([160, 4, 32]);
    for _ in 0..2 {
        for world in [&small, &large, &flat] {
            let dimension = world.catalog().dimension("game:overworld").expect("is registered");
            let idle = busiest_tick(world, |_| Vec::new());
            let played = busiest_tick(world, |tick| twenty(dimension, tick));
            for most in [idle, played] {
                assert_eq!(most, Most { keys_scanned: 0, engine_reads: 0, rows_written: 0 });
            }
        }
        // The same again in worlds that are cold.
        for world in [&small, &large, &flat] {
            world.tiers().demote_all(DAY, |_| {}).expect("settles");
        }
    }
}

#[test]
fn saves_over_hot_rows_make_ticks_read_nothing() {
    let world = full([16, 4, 16]);
    let ids = Ids::register(&world);
    let mut read = Vec::new();
    for tick in 1..=200 {
        // Four cubes are built in all the time, in places that have rows already.
        let places = (0..4).map(|n| ids.at(n * 4, tick % 4, tick / 4 % 4));
        save(&world, places.map(|at| (at, marked(&world, &ids, tick as u16))));
        let before = world.metrics().stats;
        world.tick(GameTick::new(2000 + tick as u64), &[], ENOUGH).expect("ticks");
        let work = world.metrics().stats - before;
        read.push((work.keys_scanned, work.clusters_read));
    }
    // Folding what the commits say of opacity reads nothing that is counted.
    assert_eq!(read, [(0, 0); 200]);
    // Left alone each cube is read once, however often it was saved in, and then it goes.
    let before = world.metrics().stats;
    play(&world, 60 * 60 * GameTick::PER_SECOND, &[]);
    assert_eq!((world.metrics().stats - before).keys_scanned, 16 * 64);
    assert_eq!(tiers(&world), [0, 0, 16 * 4 * 16]);
}

#[test]
fn after_opening_every_row_is_looked_at_once() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..40).map(|n| ids.at(4 * (n % 4), 4 * (n / 4 % 2), 4 * (n / 8))).collect();
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    // Somebody is neither near nor far.
    let watcher = [player(1, ids.overworld, -200, 60, 100)];
    play(&world, 5 * 60 * GameTick::PER_SECOND + 2, &watcher);
    let beside = all.iter().take(10).map(|at| ids.at(at.pos.x() + 1, at.pos.y(), at.pos.z()));
    save(&world, beside.map(|at| (at, marked(&world, &ids, 2))));
    assert_eq!(tiers(&world), [10, 40, 0]);
    drop(world);
    let world = disk.open(&[]);
    let most = busiest_tick(&world, |_| watcher.to_vec());
    assert!(0 < most.keys_scanned && most.keys_scanned <= MOST_KEYS, "{most:?}");
    let most = busiest_tick(&world, |_| watcher.to_vec());
    assert_eq!(most, Most { keys_scanned: 0, engine_reads: 0, rows_written: 0 });
    // What was found is remembered, warm clusters too: all of it is demoted in time.
    play(&world, 60 * 60 * GameTick::PER_SECOND, &[]);
    assert_eq!(tiers(&world), [0, 0, 50]);
    assert_sound(&world);
}

/// Makes a world of cubes of eight chunks, makes all of them warm, and says how many deleted rows RocksDB stepped over in
/// this thread meanwhile.
fn deleted_rows_passed(cubes: i64) -> u64 {
    let disk = Disk::new();
    let slow = TierPolicy { cold_after_ticks: 7 * DAY, hysteresis_ticks: 7 * DAY, ..TierPolicy::default() };
    let world = World::builder().options(&WorldOptions { tiers: slow, ..options() }).create(disk.path());
    let world = world.expect("is created");
    let ids = Ids::register(&world);
    let stone = filled(&world, ids.stone);
    let chunks = (0..8).flat_map(|n| (0..cubes).map(move |x| (x, n)));
    save(&world, chunks.map(|(x, n)| (ids.at(4 * x, n / 4, n % 4), stone.clone())));
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut passed = PerfContext::default();
    passed.reset();
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    let passed = passed.metric(PerfMetric::InternalDeleteSkippedCount);
    set_perf_stats(PerfStatsLevel::Disable);
    assert_eq!(tiers(&world), [0, 8 * cubes as u64, 0]);
    passed
}

#[test]
fn settling_steps_over_each_deleted_row_a_few_times_in_a_world_of_any_size() {
    let [few, many] = [16, 256].map(|cubes| deleted_rows_passed(cubes) / (8 * cubes as u64));
    assert!((1..=6).contains(&few) && (1..=6).contains(&many), "{few} times, and {many} times");
}
