//! A search costs little, comes to an end, and misses nothing, even with a small index.

use std::time::Duration;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkPos, Dimension, Tier};

use super::*;
use crate::World;
use crate::maintain::tiering::CubeIndex;
use crate::metrics::Stats;
use crate::tiers::MoveCounts;

const ENOUGH: Duration = Duration::from_secs(600);
const DAY: u64 = 24 * 60 * 60 * GameTick::PER_SECOND;

/// A world with a chunk at each place, as after opening: the index is empty, and holds at most `remembered` cubes.
fn opened(places: impl IntoIterator<Item = [i64; 3]>, remembered: usize) -> (World, Vec<ChunkAt>) {
    let world = World::builder().in_memory().unwrap();
    let flat = world.registry().register_dimension("game:flat").unwrap();
    let [stone] = world.registry().register_blocks(["game:stone"]).unwrap();
    let at = |[x, y, z]: [i64; 3]| ChunkAt::new(flat, ChunkPos::new(x, y, z).unwrap());
    let places: Vec<_> = places.into_iter().map(at).collect();
    let saved = world.transaction(|tx| {
        let chunk = std::sync::Arc::new(Chunk::filled(stone, &tx.catalog().current_schema())?);
        for at in &places {
            tx.save(*at, std::sync::Arc::clone(&chunk));
        }
        Ok::<_, Error>(())
    });
    drop(saved.unwrap());
    ticks(&world, 0, 60);
    let rooms = world.rooms();
    rooms.maintain.keep_all_heat().unwrap();
    let _ = rooms.maintain.activity.tiering.written.lock().take();
    rooms.maintain.maintenance.work(|work| work.cube_index = CubeIndex::default().with_capacity(remembered));
    (world, places)
}

/// Runs ticks. Returns their moves and costs.
fn ticks(world: &World, from: u64, count: u64) -> (MoveCounts, Stats) {
    let (mut moves, before) = (MoveCounts::default(), world.metrics().stats);
    for tick in 0..count {
        let report = world.tick(GameTick::new(from + tick), &[], ENOUGH).unwrap();
        moves.cooled += report.moves.cooled;
        moves.refused += report.moves.refused;
    }
    (moves, world.metrics().stats - before)
}

fn cold(world: &World) -> u64 {
    world.tiers().census().unwrap().tier(Tier::L2).chunks
}

#[test]
fn a_world_is_searched_without_reading_its_rows() {
    // Eight cold clusters of 64 cubes, each with eight chunks.
    let (clusters, chunks) = (8, 8 * 512);
    let places = (0..chunks as i64).map(|n| [n / 512 * 16 + n / 64 % 8 * 2, n / 8 % 8 * 2, n % 8 * 2]);
    let (world, _) = opened(places, 1 << 16);
    let (_, first) = ticks(&world, 1, 1);
    // After the last one a seek finds nothing, and no key.
    assert_eq!((first.keys_scanned, first.engine_reads), (clusters * (2 + 64), 0), "all in one tick");
    // Nothing is due, so no row is read.
    let (moves, work) = ticks(&world, 10, 1000);
    assert_eq!((moves, work.keys_scanned, work.engine_reads), (MoveCounts::default(), 0, 0));
    world
        .rooms()
        .maintain
        .maintenance
        .work(|work| assert!(!work.cube_index.is_searched(), "there is something to be read"));
    // When it is due, each row is read once, and each cluster is one move.
    let (moves, work) = ticks(&world, 6000, 400);
    assert_eq!((moves.cooled, moves.refused, cold(&world)), (chunks, 0, chunks));
    assert_eq!(
        work.moves,
        clusters * 64 + clusters,
        "cubes become warm rows, and those of a cluster one cold row"
    );
    assert_eq!(work.keys_scanned, chunks + clusters * 64 * 2, "each row once, after two seeks for its cube");
    let (moves, work) = ticks(&world, DAY, 200);
    assert_eq!((moves, work.keys_scanned), (MoveCounts::default(), 0));
    world.rooms().maintain.maintenance.work(|work| assert!(work.cube_index.is_searched()));
}

#[test]
fn a_scattered_world_is_searched_to_its_end_and_grows_cold_whatever_fits() {
    for remembered in [10, 100, 1 << 16] {
        let places =
            (0..100).flat_map(|n: i64| [[n * 32, n % 7 * 50, -n * 48], [n * 32 + 5, n % 7 * 50, -n * 48]]);
        let (world, _) = opened(places, remembered);
        let (moves, work) = ticks(&world, 1, 100);
        assert_eq!(moves, MoveCounts::default());
        assert_eq!(
            work.keys_scanned,
            100 * 4,
            "a hot and a heat row for each cluster, and the heat of its cubes"
        );
        let (_, work) = ticks(&world, 101, 200);
        assert_eq!(work.keys_scanned, 0, "{remembered}");
        let (moves, _) = ticks(&world, DAY, 200);
        assert_eq!((moves.cooled, cold(&world)), (200, 200), "{remembered}");
    }
}

#[test]
fn what_is_saved_while_little_is_remembered_grows_cold_too() {
    let (world, places) = opened((0..50).map(|n: i64| [n * 16, 0, 0]), 20);
    let flat = places[0].dimension;
    ticks(&world, 1, 50);
    for round in 0..20 {
        let saved = world.transaction(|tx| {
            let schema = tx.catalog().current_schema();
            let block = tx.catalog().block_id("game:stone").unwrap();
            for n in 0..10 {
                let at = ChunkAt::new(
                    flat,
                    ChunkPos::new((round * 10 + n) * 16 % 800, 4 * (round % 3), 8).unwrap(),
                );
                tx.save(at, Chunk::filled(block, &schema)?);
            }
            Ok::<_, Error>(())
        });
        drop(saved.unwrap());
        ticks(&world, 100 + round as u64 * 20, 20);
    }
    let all = world.tiers().census().unwrap().chunks();
    let (_, work) = ticks(&world, 600, 200);
    assert_eq!(work.keys_scanned, 0, "nothing is due");
    // No player comes for an hour.
    for minute in 0..60 {
        ticks(&world, 3000 + minute * 1200, 20);
    }
    assert_eq!(cold(&world), all);
}

#[test]
fn a_search_that_was_lost_begins_again() {
    let (world, _) = opened((0..40).map(|n: i64| [n * 16, 0, 0]), 1 << 16);
    ticks(&world, 1, 10);
    world.rooms().maintain.activity.tiering.lose_track_of_writes();
    let (_, work) = ticks(&world, 11, 10);
    assert_eq!(work.keys_scanned, 40 * 3, "each cluster is found once more");
    ticks(&world, DAY, 100);
    assert_eq!(cold(&world), 40);
}

#[test]
fn what_was_found_is_sought_again_only_once_it_was_passed() {
    let cube = |n| CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 4 * n)));
    let (mut found, mut seeks) = (Found::default(), 0);
    let mut first = |from: Bound<CubeAt>, finds: Option<i64>| {
        let mut sought = false;
        let first = found.first(from, || {
            sought = true;
            Ok(finds.map(cube))
        });
        seeks += u32::from(sought);
        (first.expect("no seek fails"), sought)
    };
    let at = |n| Bound::Included(cube(n));
    let after = |n| Bound::Excluded(cube(n));
    assert_eq!(first(Bound::Unbounded, Some(5)), (Some(cube(5)), true));
    assert_eq!(first(after(1), None), (Some(cube(5)), false));
    assert_eq!(first(at(5), None), (Some(cube(5)), false));
    assert_eq!(first(after(5), Some(7)), (Some(cube(7)), true));
    assert_eq!(first(at(8), None), (None, true));
    assert_eq!(first(after(9), Some(10)), (None, false), "up to the end there is nothing");
    assert_eq!(seeks, 3);
}

#[test]
fn a_search_that_goes_back_misses_nothing() {
    let (world, places) = opened((0..3).map(|n: i64| [n * 16, 0, 0]), 1 << 16);
    let mut cubes: Vec<_> = places.into_iter().map(CubeAt::of).collect();
    cubes.sort_unstable_by_key(|cube| key_of(*cube));
    let (mut next_cubes, mut damage_log) = (NextCubes::default(), DamageLog::default());
    let mut first = |from| world.rooms().maintain.next_cube(from, &mut next_cubes, &mut damage_log).unwrap();
    assert_eq!(first(Bound::Excluded(cubes[1])), Some(cubes[2]));
    assert_eq!(first(Bound::Included(cubes[0])), Some(cubes[0]));
    assert_eq!(first(Bound::Excluded(cubes[2])), None);
    assert_eq!(first(Bound::Excluded(cubes[0])), Some(cubes[1]));
}

#[test]
fn all_of_a_world_is_demoted_whatever_fits() {
    for remembered in [1, 10, 1 << 16] {
        let (world, _) = opened((0..100).map(|n: i64| [n % 10 * 16, 0, n / 10 * 16]), remembered);
        let read = || world.metrics().stats.keys_scanned;
        let at_first = read();
        assert_eq!(world.tiers().demote_all(0, |_| {}).unwrap(), MoveCounts::default());
        assert!(read() - at_first >= 200, "each cube is read, due or not");
        let moves = world.tiers().demote_all(DAY, |_| {}).unwrap();
        assert_eq!((moves.cooled, moves.refused, cold(&world)), (100, 0, 100), "{remembered}");
        let (moves, work) = ticks(&world, 1, 100);
        assert_eq!((moves, work.keys_scanned), (MoveCounts::default(), 0));
    }
}
