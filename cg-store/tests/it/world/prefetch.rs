//! Chunks ahead of players who move: in memory before they come, and nothing for those who stand.

use std::time::{Duration, Instant};

use super::damage::corrupt;
use super::*;
use cg_format::{Space, frame, key};
use cg_store::metrics::Stats;
use cg_store::{Peek, PrefetchOptions};
use cg_tiering::{GameTick, PlayerAt};

/// Budgets that last for all that is fetched here.
const ENOUGH: Duration = Duration::from_secs(60);

/// Fetches the chunks of the way itself.
fn prefetching() -> WorldOptions {
    let prefetch = PrefetchOptions { width_chunks: 0, height_chunks: 0, ..PrefetchOptions::default() };
    WorldOptions { prefetch: Some(prefetch), ..options() }
}

/// Runs the same tests over a world in memory and over one on disk, both with prefetch.
macro_rules! over_both_prefetching {
    ($($name:ident)*) => {
        mod in_memory {
            $(#[test] fn $name() {
                super::$name(&super::World::builder().options(&super::prefetching()).in_memory().expect("a world in memory"));
            })*
        }
        mod on_disk {
            $(#[test] fn $name() {
                let disk = super::Disk::new();
                super::$name(&super::World::builder().options(&super::prefetching()).create(disk.path()).expect("is created"));
            })*
        }
    };
}
over_both_prefetching! {
    the_next_chunks_are_in_memory_in_every_direction
    who_stands_has_nothing_fetched
    who_falls_and_lands_has_three_chunks_fetched
}

fn tick(world: &World, ids: &Ids, now: u64, [x, y, z]: [f64; 3]) {
    let block = BlockPos::new(x.floor() as i64, y.floor() as i64, z.floor() as i64);
    let player = PlayerAt { id: uuid(7), dimension: ids.overworld, block };
    world.tick(GameTick::new(now), &[player], ENOUGH).expect("ticks");
}

/// Waits until so many chunks were fetched.
#[track_caller]
fn wait(world: &World, before: Stats, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while (world.metrics().stats - before).prefetched < count {
        assert!(Instant::now() < deadline, "{:?}", world.metrics().stats - before);
        std::thread::yield_now();
    }
}

/// Walks at one chunk in a second from the middle of chunk 0 into the third chunk after it, and looks at each
/// chunk just before it is entered.
fn the_next_chunks_are_in_memory_in_every_direction(world: &World) {
    let ids = Ids::register(world);
    let steps = [-1_i64, 0, 1];
    let all = steps.iter().flat_map(|x| steps.iter().flat_map(move |y| steps.map(|z| [*x, *y, z])));
    let way = |direction: [i64; 3]| (0..=6).map(move |n| direction.map(|c| c * n));
    let stored: std::collections::BTreeSet<_> = all.clone().flat_map(way).collect();
    save(world, stored.into_iter().zip(0..).map(|([x, y, z], n)| (ids.at(x, y, z), marked(world, &ids, n))));
    let mut now = 0;
    for direction in all.filter(|direction| *direction != [0; 3]) {
        // A player who comes from elsewhere.
        world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
        world.cache().clear();
        let before = world.metrics().stats;
        for step in 0..=60 {
            now += 1;
            let at = direction.map(|c| 8.0 + c as f64 * (0.01 + 0.8 * f64::from(step)));
            tick(world, &ids, now, at);
            // One chunk is entered in 20 ticks, from the tenth on. Time for the threads: three chunks ahead of it.
            if step % 20 == 8 {
                let next = u64::try_from(step / 20 + 1).expect("is small");
                wait(world, before, next + 2);
                let [x, y, z] = direction.map(|c| c * next as i64);
                let known = world.peek(ids.at(x, y, z));
                assert!(matches!(known, Peek::Here(_)), "{direction:?} {next}: {known:?}");
            }
        }
        // Three chunks entered, three ahead: so nothing is under way when the next direction begins.
        wait(world, before, 6);
        let work = world.metrics().stats - before;
        assert_eq!(
            (work.prefetched, work.prefetched_used, work.prefetched_wasted),
            (6, 3, 0),
            "{direction:?}"
        );
    }
}

fn who_stands_has_nothing_fetched(world: &World) {
    let ids = Ids::register(world);
    save(world, [(ids.at(0, 0, 0), filled(world, ids.stone))]);
    // What was saved is looked at once.
    world.tick(GameTick::new(0), &[], ENOUGH).expect("ticks");
    world.cache().clear();
    let before = world.metrics().stats;
    for now in 0..200 {
        // On the edge of a chunk, to and fro by one block now and then.
        tick(world, &ids, now, [if now % 50 == 0 { 14.0 } else { 13.0 }, 8.0, 8.0]);
    }
    let work = world.metrics().stats - before;
    assert_eq!((work.prefetched, work.prefetched_dropped, work.engine_reads), (0, 0, 0));
}

fn who_falls_and_lands_has_three_chunks_fetched(world: &World) {
    let ids = Ids::register(world);
    save(world, [2, 3].map(|y| (ids.at(0, y, 0), filled(world, ids.stone))));
    world.cache().clear();
    let before = world.metrics().stats;
    for now in 0..10 {
        tick(world, &ids, now, [8.0, 79.0 - now as f64 * 0.8, 8.0]);
    }
    wait(world, before, 3);
    // Straight down, into nothing at last: memory knows that too. Then he stands.
    assert!(matches!(world.peek(ids.at(0, 3, 0)), Peek::Here(_)));
    assert!(matches!(world.peek(ids.at(0, 2, 0)), Peek::Here(_)));
    assert!(matches!(world.peek(ids.at(0, 1, 0)), Peek::Absent));
    for now in 10..60 {
        tick(world, &ids, now, [8.0, 71.0, 8.0]);
    }
    assert_eq!((world.metrics().stats - before).prefetched, 3);
}

#[test]
fn without_options_nothing_is_fetched() {
    let world = in_memory();
    let ids = Ids::register(&world);
    for now in 0..100 {
        tick(&world, &ids, now, [now as f64, 8.0, 8.0]);
    }
    let stats = world.metrics().stats;
    assert_eq!((stats.prefetched, stats.prefetched_dropped, stats.engine_reads), (0, 0, 0));
}

#[test]
fn damage_ahead_is_no_error_and_no_absence() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let [damaged, sound] = [ids.at(1, 0, 0), ids.at(2, 0, 0)];
    save(&world, [damaged, sound].map(|at| (at, marked(&world, &ids, 7))));
    drop(world);
    disk.raw().flip(Family::ChunkL0, key::chunk(damaged), frame::LEN_BYTES + 20);
    let world = World::builder().options(&prefetching()).open(disk.path()).expect("opens");
    let before = world.metrics().stats;
    for now in 0..20 {
        tick(&world, &ids, now, [8.0 + now as f64 * 0.8, 8.0, 8.0]);
    }
    wait(&world, before, 2);
    assert!(matches!(world.peek(sound), Peek::Here(_)));
    assert!(matches!(world.peek(damaged), Peek::NotLoaded));
    assert_eq!(corrupt(world.load(damaged)).space, Space::ChunkL0);
    let work = world.metrics().stats - before;
    assert_eq!((work.prefetched_used, work.prefetched_wasted), (1, 0));
}

#[test]
fn a_world_closes_while_chunks_wait() {
    let disk = Disk::new();
    let prefetch = PrefetchOptions { width_chunks: 32, height_chunks: 32, ..PrefetchOptions::default() };
    let options = WorldOptions { prefetch: Some(prefetch), ..options() };
    let world = World::builder().options(&options).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    for now in 0..10 {
        tick(&world, &ids, now, [8.0 + now as f64 * 0.8, 8.0, 8.0]);
    }
    world.close().expect("closes");
    drop(world);
    disk.open(&[]);
}
