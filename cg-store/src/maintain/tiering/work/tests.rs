//! Forgetting after a search, and work while the threads are busy or end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::*;
use crate::engine::{CommitSeq, EngineError, MemEngine};
use crate::{Resources, World, WorldOptions};
use cg_format::chunk::Chunk;
use cg_format::{BlockId, BlockPos, ChunkAt, ChunkBox, ChunkPos, LocalPos, Space};
use cg_tiering::TierPolicy;
use parking_lot::Mutex;

const ENOUGH: Duration = Duration::from_secs(600);

/// Options of a world with two threads of its own, in which only deltas are folded.
fn apart() -> WorldOptions {
    let resources = Some(Resources::new(16 << 20, 2));
    WorldOptions { resources, deltas: true, ..WorldOptions::process() }
}

/// A world with a chunk at each of these places along a line.
fn stored(engine: MemEngine, options: &WorldOptions, places: &[i64]) -> (World, Vec<ChunkAt>, BlockId) {
    let world = World::builder().options(options).over(engine).unwrap();
    let flat = world.registry().register_dimension("game:flat").unwrap();
    let [stone, glass] = world.registry().register_blocks(["game:stone", "game:glass"]).unwrap();
    let all: Vec<_> = places.iter().map(|x| ChunkAt::new(flat, ChunkPos::new(*x, 0, 0).unwrap())).collect();
    let saved = world.transaction(|tx| {
        let schema = tx.catalog().current_schema();
        let mut chunk = Chunk::filled(stone, &schema)?;
        for cell in LocalPos::all().filter(|cell| (cell.x() ^ cell.y() ^ cell.z()) % 2 == 1) {
            chunk.set_block(cell, glass, &schema)?;
        }
        let chunk = Arc::new(chunk);
        for at in &all {
            tx.save(*at, Arc::clone(&chunk));
        }
        Ok::<_, Error>(())
    });
    drop(saved.unwrap());
    (world, all, stone)
}

/// Runs a function while all threads of a world are blocked.
#[track_caller]
fn beside_busy_threads<T: Send>(world: &World, run: impl FnOnce() -> T + Send) -> T {
    let (held, receiver) = channel::<()>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..world.rooms().shared.pool.thread_count() {
        let receiver = Arc::clone(&receiver);
        world.rooms().shared.pool.spawn(move || assert!(receiver.lock().recv().is_err(), "nothing is sent"));
    }
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        scope.spawn(move || sender.send(run()));
        let done = receiver.recv_timeout(Duration::from_secs(60));
        drop(held);
        done.expect("it waits for nobody")
    })
}

fn cold(world: &World) -> u64 {
    world.tiers().census().unwrap().tier(Tier::L2).chunks
}

#[test]
fn moves_wait_behind_nobody_who_keeps_the_threads_busy() {
    let never = 1 << 40;
    let tiers = TierPolicy {
        warm_after_ticks: 100,
        cold_after_ticks: never,
        hysteresis_ticks: never,
        ..TierPolicy::default()
    };
    let (world, ..) = stored(MemEngine::new(), &WorldOptions { tiers, ..apart() }, &[0, 4, 8, 100]);
    // They also search the opacity map; this finishes it.
    world.tick(GameTick::new(0), &[], ENOUGH).unwrap();
    let tick = || world.tick(GameTick::new(200), &[], ENOUGH).unwrap();
    assert_eq!(beside_busy_threads(&world, tick).moves.warmed, 4);
}

#[test]
fn promotions_are_made_behind_ticks_and_wait_behind_others() {
    let tiers = TierPolicy { promote_after_ticks: 0, ..TierPolicy::default() };
    let (world, all, _) = stored(MemEngine::new(), &WorldOptions { tiers, ..apart() }, &[0, 4, 8, 12, 16]);
    let hash = world.content_hash(crate::view::Area::World).unwrap();
    world.tiers().demote_all(1 << 30, |_| {}).unwrap();
    world.tick(GameTick::new(0), &[], ENOUGH).unwrap();
    let _kept = world.tiers().keep_loaded(all[0].dimension, &ChunkBox::new(all[0].pos, all[4].pos)).unwrap();
    let tick = |_| world.tick(GameTick::new(1), &[], ENOUGH).unwrap();
    let reports: Vec<_> = beside_busy_threads(&world, || (0..3).map(tick).collect());
    // It neither waits for the other work nor reads a row that is as large as 64 cubes.
    for report in reports {
        assert_eq!((report.moves.promoted, report.work_left), (0, true));
    }
    let mut promoted = 0;
    for n in 0..10_000 {
        let report = tick(n);
        promoted += report.moves.promoted;
        if !report.work_left {
            break;
        }
        // A thread may not have noticed yet that it has nothing more to do. The tick does not wait for it.
        thread::sleep(Duration::from_millis(1));
    }
    let hot = world.tiers().census().unwrap().tier(Tier::L0).chunks;
    assert_eq!((promoted, hot, world.content_hash(crate::view::Area::World).unwrap()), (5, 5, hash));
}

#[test]
fn a_cold_cluster_is_counted_behind_ticks() {
    let (world, all, stone) = stored(MemEngine::new(), &apart(), &[0, 4, 8, 12]);
    world.tiers().demote_all(1 << 30, |_| {}).unwrap();
    let schema = world.catalog().current_schema();
    let saved = world.transaction(|tx| {
        for at in &all {
            tx.save(*at, Chunk::filled(stone, &schema)?);
        }
        Ok::<_, Error>(())
    });
    drop(saved.unwrap());
    assert_eq!(cold(&world), 0, "all of the cluster is shadowed");
    let tick = || world.tick(GameTick::new(1), &[], Duration::from_millis(20)).unwrap();
    let report = beside_busy_threads(&world, tick);
    assert_eq!((report.moves.shadows_dropped, report.work_left), (0, true));
    let dropped: u64 = (0..1000)
        .map(|_| world.tick(GameTick::new(2), &[], ENOUGH).unwrap())
        .take_while(|report| report.work_left || report.moves.shadows_dropped > 0)
        .map(|report| report.moves.shadows_dropped)
        .sum();
    let clusters = world.usage().unwrap().families.into_iter();
    let clusters = clusters.filter(|family| family.family == cg_format::key::Family::ChunkL2);
    assert_eq!((dropped, clusters.map(|family| family.row_count).sum::<u64>()), (4, 0));
}

#[test]
fn groups_of_a_cold_cluster_are_built_behind_ticks() {
    let (world, ..) = stored(MemEngine::new(), &apart(), &[0, 4, 8]);
    let hash = world.content_hash(crate::view::Area::World).unwrap();
    let until = |kind| {
        for now in 6000..8000 {
            let report = world.tick(GameTick::new(now), &[], Duration::from_millis(2)).unwrap();
            assert_eq!(report.moves.cooled, 0, "the threads that move chunks are busy");
            if world.rooms().maintain.maintenance.work(|work| work.jobs.has(kind)) {
                return;
            }
        }
        panic!("no tick begins {kind:?}");
    };
    beside_busy_threads(&world, || until(JobKind::ColdRead));
    // The read is done before the threads are busy again.
    beside_busy_threads(&world, || until(JobKind::ColdGroups));
    assert_eq!(world.tick(GameTick::new(8000), &[], ENOUGH).unwrap().moves.cooled, 3);
    assert_eq!(world.content_hash(crate::view::Area::World).unwrap(), hash);
}

#[test]
fn a_move_that_is_written_behind_ticks_keeps_no_fold_waiting() {
    let (world, all, stone) = stored(MemEngine::new(), &apart(), &[0, 4, 8, 100]);
    drop(world.transaction(|tx| tx.set_block(all[3].dimension, BlockPos::new(1600, 1, 0), stone)).unwrap());
    let hash = world.content_hash(crate::view::Area::World).unwrap();
    // All of it is due for the coldest tier, and the cluster is never written.
    let tick = |_| world.tick(GameTick::new(6000), &[], Duration::from_millis(20)).unwrap();
    let folded = beside_busy_threads(&world, || (0..10).map(|n| tick(n).deltas_folded).sum::<usize>());
    assert_eq!(folded, 1);
    for later in 1..1000 {
        if cold(&world) == 4 {
            break;
        }
        world.tick(GameTick::new(6000 + later), &[], Duration::from_secs(1)).unwrap();
    }
    assert_eq!((cold(&world), world.content_hash(crate::view::Area::World).unwrap()), (4, hash));
}

#[test]
fn a_panic_behind_a_tick_does_not_pass_for_a_closed_world() {
    let dies = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_fault({
        let dies = Arc::clone(&dies);
        move |_| {
            let is_behind = thread::current().name().is_some_and(|name| name.starts_with("cg-store-"));
            assert!(!is_behind || !dies.load(Ordering::Relaxed), "on purpose");
            None
        }
    });
    let (world, ..) = stored(engine, &apart(), &[0, 4, 8]);
    dies.store(true, Ordering::Relaxed);
    let error = world.tick(GameTick::new(6000), &[], ENOUGH).unwrap_err();
    let Error::Engine(EngineError::Panicked { operation, message }) = &error else { panic!("{error}") };
    assert_eq!((*operation, &**message), ("writing a cold cluster", "on purpose"));
    dies.store(false, Ordering::Relaxed);
    assert_eq!(world.tick(GameTick::new(6001), &[], ENOUGH).unwrap().moves.cooled, 3);
}

#[test]
fn a_cube_that_somebody_looked_at_since_the_search_keeps_its_heat() {
    let (world, all, _) = stored(MemEngine::new(), &apart(), &[0]);
    let rooms = world.rooms();
    let seen = ChunkAt::new(all[0].dimension, ChunkPos::constant(40, 0, 0));
    rooms.maintain.activity.tiering.touch([seen]);
    let cube = CubeAt::of(seen);
    let mut work = Work::default();
    work.cleanup.heat_only = vec![(cube, GameTick::new(0))];
    // An access to an absent or a cold chunk leaves no row.
    rooms.maintain.activity.tiering.ticked(GameTick::new(50), &[]);
    rooms.maintain.activity.tiering.touch([seen]);
    rooms.maintain.forget_heat(&mut work, Due::until(GameTick::new(50), None)).unwrap();
    let heat =
        rooms.maintain.activity.tiering.observers(|seen| seen.heat().get(cube)).map(|heat| heat.last_access);
    assert_eq!((heat, work.cleanup.heat_only.len()), (Some(GameTick::new(50)), 0));
    // Without time nothing is checked, and nothing is lost.
    work.cleanup.heat_only = vec![(cube, GameTick::new(50))];
    rooms
        .maintain
        .forget_heat(&mut work, Due::until(GameTick::new(50), Some(std::time::Instant::now())))
        .unwrap();
    assert_eq!(work.cleanup.heat_only, [(cube, GameTick::new(50))]);
}

#[test]
fn a_cube_that_was_played_in_since_the_search_keeps_its_heat() {
    let world = World::builder().in_memory().unwrap();
    let flat = world.registry().register_dimension("game:flat").unwrap();
    let [stone] = world.registry().register_blocks(["game:stone"]).unwrap();
    let at = |x| ChunkAt::new(flat, ChunkPos::constant(x, 0, 0));
    let saved = world.transaction(|tx| {
        let chunk = Arc::new(Chunk::filled(stone, &tx.catalog().current_schema())?);
        for x in [0, 4] {
            tx.save(at(x), Arc::clone(&chunk));
        }
        Ok::<_, Error>(())
    });
    drop(saved.unwrap());
    let rooms = world.rooms();
    rooms.maintain.keep_all_heat().unwrap();
    // The search found three cubes with only heat. Then a chunk was saved in one, and another got a warm cluster.
    let [hot, warm, empty] = [0, 4, 8].map(|x| CubeAt::of(at(x)));
    rooms.maintain.activity.tiering.touch([at(8)]);
    rooms.maintain.keep_all_heat().unwrap();
    let heat =
        rooms.maintain.activity.tiering.observers(|seen| heat_after_move(seen, warm, GameTick::new(0)));
    demote_warm(&*rooms.shared.engine().unwrap(), &rooms.shared.counters, warm, heat).unwrap();
    let mut work = Work::default();
    let last_access = |cube| rooms.maintain.activity.tiering.observers(|seen| seen.heat().last_access(cube));
    work.cleanup.heat_only = [hot, warm, empty].map(|cube| (cube, last_access(cube))).into();
    rooms.maintain.forget_heat(&mut work, Due::until(GameTick::new(0), None)).unwrap();
    let has_heat =
        |x| rooms.shared.engine().unwrap().get(Space::Heat, &cg_format::key::heat(at(x))).unwrap().is_some();
    assert_eq!([0, 4, 8].map(has_heat), [true, true, false]);
    assert!(work.cleanup.heat_only.is_empty());
}

#[test]
fn marks_above_a_cold_cluster_are_looked_for_behind_ticks() {
    let (world, all, stone) = stored(MemEngine::new(), &apart(), &[0, 40]);
    world.tiers().demote_all(1 << 30, |_| {}).unwrap();
    assert_eq!(cold(&world), 2);
    // In a cube of its own, above a cold cluster that does not hold it.
    let gone = ChunkAt::new(all[0].dimension, ChunkPos::constant(5, 0, 0));
    let saved = world.transaction(|tx| {
        tx.save(gone, Chunk::filled(stone, &tx.catalog().current_schema())?);
        Ok::<_, Error>(())
    });
    drop(saved.unwrap());
    let deleted = world.transaction(|tx| {
        tx.delete(gone);
        Ok::<_, Error>(())
    });
    drop(deleted.unwrap());
    // The slots below are counted before, also in the background.
    for now in 0..10 {
        world.tick(GameTick::new(now), &[], ENOUGH).unwrap();
    }
    world.tiers().purge_tombstones_before(CommitSeq::new(u64::MAX)).unwrap();
    let is_begun = || world.rooms().maintain.maintenance.work(|work| work.jobs.has(JobKind::Purge));
    beside_busy_threads(&world, || {
        for now in 10..2000 {
            let report = world.tick(GameTick::new(now), &[], Duration::from_millis(2)).unwrap();
            assert_eq!(report.moves.tombstones_purged, 0, "no tick reads a cold cluster");
            if is_begun() {
                return;
            }
        }
        panic!("nobody looks for the mark");
    });
    let report = world.tick(GameTick::new(2000), &[], ENOUGH).unwrap();
    assert_eq!((report.moves.tombstones_purged, is_begun()), (1, false));
    assert_eq!(world.load(gone).unwrap(), None);
}
