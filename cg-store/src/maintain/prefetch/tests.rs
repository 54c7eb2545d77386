//! The waiting chunks, while the threads that would fetch them are blocked.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use cg_format::{BlockPos, EntityId};

use super::*;
use crate::{Resources, World, WorldOptions};

/// A budget that is enough for everything fetched here.
const ENOUGH: Duration = Duration::from_secs(60);
const WALKER: EntityId = EntityId::from_bytes([1; 16]);

/// A world whose only two threads are blocked until the sender is dropped.
fn held_up(prefetch: PrefetchOptions) -> (World, Sender<()>) {
    let resources = Some(Resources::new(16 << 20, 2));
    let options = WorldOptions { resources, prefetch: Some(prefetch), ..WorldOptions::process() };
    let world = World::builder().options(&options).in_memory().unwrap();
    world.registry().register_dimension("game:flat").unwrap();
    // Nothing else waits for the threads.
    world.tick(GameTick::new(0), &[], ENOUGH).unwrap();
    let (sender, receiver) = channel::<()>();
    let receiver = std::sync::Arc::new(parking_lot::Mutex::new(receiver));
    for _ in 0..2 {
        let receiver = std::sync::Arc::clone(&receiver);
        world.rooms().shared.pool.spawn(move || assert!(receiver.lock().recv().is_err(), "nothing is sent"));
    }
    (world, sender)
}

/// Players with these numbers walk along a line, one chunk per second.
fn walk(world: &World, ids: &[u8], ticks: std::ops::RangeInclusive<u64>, block: impl Fn(i64) -> [i64; 3]) {
    for tick in ticks {
        let [x, y, z] = block(tick as i64);
        let player = |id: &u8| {
            let block = BlockPos::new(x, y + 1000 * i64::from(*id), z);
            PlayerAt { id: EntityId::from_bytes([*id; 16]), dimension: cg_format::Dimension::new(0), block }
        };
        let players: Vec<_> = ids.iter().map(player).collect();
        world.tick(GameTick::new(tick), &players, ENOUGH).unwrap();
    }
}

fn waiting(world: &World) -> usize {
    let mut all = Vec::new();
    let queue = &mut world.rooms().maintain.activity.prefetch.as_ref().unwrap().queue.lock().waiting;
    let mut taken = Vec::new();
    while let Some((player, chunks)) = queue.take(usize::MAX) {
        all.extend(chunks.iter().copied());
        taken.push((player, chunks));
    }
    for (player, chunks) in taken {
        assert_eq!(queue.replace(player, chunks, 1).no_room, 0);
    }
    all.len()
}

/// Waits until no job runs.
fn await_prefetch(world: &World) {
    while world.rooms().maintain.activity.prefetch.as_ref().unwrap().queue.lock().is_served {
        std::thread::yield_now();
    }
}

const ALONE: PrefetchOptions = PrefetchOptions {
    ahead_chunks: 3,
    lookahead_ticks: 60,
    width_chunks: 0,
    height_chunks: 0,
    waiting_chunks: 100,
    in_flight_chunks: 4,
};

#[test]
fn a_turn_drops_what_waited() {
    let (world, hold) = held_up(ALONE);
    walk(&world, &[1], 0..=40, |tick| [tick * 4 / 5, 8, 8]);
    assert_eq!(waiting(&world), 3);
    // The chunks that the player has passed are dropped; the rest when the player turns.
    let before = world.metrics().stats;
    walk(&world, &[1], 41..=56, |tick| [64 - tick * 4 / 5, 8, 8]);
    let dropped = (world.metrics().stats - before).prefetched_dropped;
    let ahead: HashSet<_> = (3..=6)
        .map(|x| ChunkAt::new(cg_format::Dimension::new(0), cg_format::ChunkPos::constant(x, 62, 0)))
        .collect();
    let queue = &mut world.rooms().maintain.activity.prefetch.as_ref().unwrap().queue.lock().waiting;
    let left: Vec<_> = std::iter::from_fn(|| queue.take(100)).flat_map(|(_, chunks)| chunks).collect();
    assert!(left.iter().all(|at| !ahead.contains(at)), "{left:?}");
    assert!(dropped >= 3, "{dropped}");
    drop(hold);
}

#[test]
fn what_waits_for_players_who_leave_is_dropped() {
    let (world, hold) = held_up(ALONE);
    walk(&world, &[1, 2], 0..=15, |tick| [tick * 4 / 5, 8, 8]);
    assert_eq!(waiting(&world), 6);
    walk(&world, &[2], 16..=16, |tick| [tick * 4 / 5, 8, 8]);
    assert_eq!((waiting(&world), world.metrics().stats.prefetched_dropped), (3, 3));
    walk(&world, &[], 17..=17, |_| [0; 3]);
    assert_eq!((waiting(&world), world.metrics().stats.prefetched_dropped), (0, 6));
    drop(hold);
    await_prefetch(&world);
    assert_eq!(world.metrics().stats.prefetched, 0);
}

#[test]
fn no_more_waits_than_may_and_no_more_is_fetched_at_once() {
    let (world, hold) = held_up(PrefetchOptions { width_chunks: 8, height_chunks: 4, ..ALONE });
    walk(&world, &[1, 2, 3], 0..=15, |tick| [tick * 4 / 5, 8, 8]);
    assert_eq!(waiting(&world), 99, "33 for each");
    assert!(world.metrics().stats.prefetched_dropped >= 3 * (3 * 17 * 9 - 33));
    let next = world
        .rooms()
        .maintain
        .activity
        .prefetch
        .as_ref()
        .unwrap()
        .queue
        .lock()
        .waiting
        .take(ALONE.in_flight_chunks);
    assert_eq!(next.map(|(player, chunks)| (player, chunks.len())), Some((WALKER, 4)));
    drop(hold);
    await_prefetch(&world);
    // The neighbours show that some are absent, so these need not be fetched.
    let fetched = world.metrics().stats.prefetched;
    assert!(waiting(&world) == 0 && (1..=95).contains(&fetched), "{fetched}");
}

#[test]
fn no_more_is_fetched_than_the_budget_of_a_tick_says() {
    let (world, hold) = held_up(PrefetchOptions { width_chunks: 8, height_chunks: 4, ..ALONE });
    walk(&world, &[1], 0..=15, |tick| [tick * 4 / 5, 8, 8]);
    let waits = waiting(&world);
    let prefetch = world.rooms().maintain.activity.prefetch.as_ref().unwrap();
    // The last tick has no budget: the predicted chunks continue to wait.
    prefetch.queue.lock().left = Duration::ZERO;
    drop(hold);
    await_prefetch(&world);
    assert_eq!((waiting(&world), world.metrics().stats.prefetched), (waits, 0));
    let tick = |now, budget| {
        let block = BlockPos::new(12, 1008, 8);
        let player = PlayerAt { id: WALKER, dimension: cg_format::Dimension::new(0), block };
        world.tick(GameTick::new(now), &[player], budget).unwrap();
        await_prefetch(&world);
    };
    tick(15, Duration::ZERO);
    assert_eq!(world.metrics().stats.prefetched, 0);
    // Even a very short budget fetches something, but not more than one load.
    tick(15, Duration::from_nanos(1));
    assert!((1..=4).contains(&world.metrics().stats.prefetched), "{:?}", world.metrics().stats);
    tick(15, ENOUGH);
    assert_eq!(waiting(&world), 0);
}

#[test]
fn what_is_in_memory_is_not_fetched() {
    let (world, hold) = held_up(ALONE);
    let at = |x| ChunkAt::new(cg_format::Dimension::new(0), cg_format::ChunkPos::constant(x, 63, 0));
    let [stone] = world.registry().register_blocks(["game:stone"]).unwrap();
    let saved = world.transaction(|tx| {
        let chunk = cg_format::chunk::Chunk::filled(stone, &tx.catalog().current_schema())?;
        (1..=3).for_each(|x| tx.save(at(x), chunk.clone()));
        Ok::<_, crate::Error>(())
    });
    drop(saved.unwrap());
    world.cache().clear();
    assert!(world.load(at(1)).unwrap().is_some());
    walk(&world, &[1], 0..=15, |tick| [tick * 4 / 5, 8, 8]);
    assert_eq!(waiting(&world), 2);
    // The host loaded it first.
    assert!(world.load(at(2)).unwrap().is_some());
    drop(hold);
    await_prefetch(&world);
    let stats = world.metrics().stats;
    assert_eq!((stats.prefetched, stats.prefetched_used, stats.prefetched_wasted), (1, 0, 0));
    assert!(world.load(at(3)).unwrap().is_some());
    assert_eq!((world.metrics().stats.prefetched_used, (world.metrics().stats - stats).cache_hits), (1, 1));
}

#[test]
fn what_was_fetched_in_vain_is_counted_once() {
    let (world, hold) = held_up(ALONE);
    drop(hold);
    walk(&world, &[1], 0..=10, |tick| [tick * 4 / 5, 8, 8]);
    await_prefetch(&world);
    assert_eq!(world.metrics().stats.prefetched, 3);
    // Evicted from memory before the host used them.
    world.cache().clear();
    let at = |x| ChunkAt::new(cg_format::Dimension::new(0), cg_format::ChunkPos::constant(x, 63, 0));
    for _ in 0..2 {
        assert_eq!(world.load(at(1)).unwrap(), None);
        assert_eq!((world.metrics().stats.prefetched_used, world.metrics().stats.prefetched_wasted), (0, 1));
    }
    // The player leaves.
    walk(&world, &[], 11..=11, |_| [0; 3]);
    assert_eq!((world.metrics().stats.prefetched_used, world.metrics().stats.prefetched_wasted), (0, 3));
}
