//! Ticks over an engine that fails, and past rows that it cannot read.

use super::super::moves::{play, player, tiers};
use super::*;
use cg_tiering::GameTick;
use std::time::Duration;

/// Chunks whose moves are cut off by a failed write, which left nothing or all of it, are still demoted in time.
#[test]
fn moves_that_failed_are_looked_at_again() {
    const MINUTE: u64 = 60 * cg_tiering::GameTick::PER_SECOND;
    for fault in [Fault::Whole, Fault::Lost] {
        for nth in 1..=6 {
            let Failing { world, plan, ids } = Failing::over(MemEngine::new());
            // What comes after the round that looks for rows is known from commits alone.
            play(&world, 1, &[]);
            let all: Vec<_> = (0..8).map(|n| ids.at(4 * (n % 4), 4 * (n / 4), 0)).collect();
            save(&world, all.iter().map(|at| (*at, filled(&world, ids.stone))));
            // Somebody is neither near nor far.
            let watcher = [player(1, ids.overworld, -200, 60, 100)];
            play(&world, 2, &watcher);
            world.flush().expect("is written");
            plan.fail(nth, fault);
            let mut failed = 0;
            for tick in 0..700 {
                let now = cg_tiering::GameTick::new(5 * MINUTE + 10 + tick);
                if world.tick(now, &watcher, std::time::Duration::from_secs(600)).is_err() {
                    failed += 1;
                    world.resume().expect("goes on");
                }
            }
            assert_eq!(failed, 1, "{fault:?} at move {nth}");
            assert_eq!(tiers(&world), [0, 8, 0], "{fault:?} at move {nth}");
            play(&world, 8 * 60 * MINUTE, &[]);
            assert_eq!(tiers(&world), [0, 0, 8], "{fault:?} at move {nth}");
        }
    }
}

#[test]
fn rows_that_cannot_be_read_keep_no_tick_from_moving_others() {
    let Failing { world, plan, ids } = Failing::over(MemEngine::new());
    play(&world, 1, &[]);
    let chunk = || filled(&world, ids.stone);
    save(&world, [0, 4, 8, 40].map(|x| (ids.at(x, 0, 0), chunk())));
    world.flush().expect("is written");
    let hide = |row: Option<ChunkAt>| {
        *plan.unreadable.lock().expect("no panic") = row.map(|at| cg_format::key::chunk(at).into());
    };
    hide(Some(ids.at(4, 0, 0)));
    let day = 24 * 60 * 60 * cg_tiering::GameTick::PER_SECOND;
    play(&world, day, &[]);
    play(&world, day + 1, &[]);
    hide(None);
    assert_eq!(tiers(&world), [1, 0, 3], "known from commits");
    hide(Some(ids.at(4, 0, 0)));
    // Now all rows are looked for again.
    plan.fail(1, Fault::Lost);
    save(&world, [(ids.at(12, 0, 0), chunk())]);
    world.flush().expect_err("the write fails");
    world.resume().expect("goes on");
    for tick in 0..20 {
        play(&world, 2 * day + tick, &[]);
    }
    hide(None);
    assert_eq!(tiers(&world), [1, 0, 4], "found by the round");
}

/// To find the end of what cannot be read takes some hundred scans.
fn the_end_of_a_gap_is_looked_for_once(engine: impl Engine) {
    let failing = Failing::over(engine);
    let Failing { world, plan, ids } = &failing;
    // Cubes with heat and without hot rows, each in a cold cluster of its own, in front of a row that nobody can read.
    let warm: Vec<_> = (0..40).map(|n| ids.at(16 * n, 0, 0)).collect();
    save(world, warm.iter().map(|at| (*at, filled(world, ids.stone))));
    for now in 1..=21 {
        world.tick(GameTick::new(now), &[], Duration::from_secs(60)).expect("ticks");
    }
    world.flush().expect("flushes");
    demote(world, cg_format::ClusterTier::L1, &warm, false);
    let far = ids.at(16 * 500, 0, 0);
    save(world, [(far, filled(world, ids.stone))]);
    world.flush().expect("flushes");
    // A failure and what follows from it makes ticks search the world anew.
    plan.fail(1, Fault::Lost);
    world.registry().register_dimension("game:lost").expect_err("is not written");
    world.resume().expect("goes on");
    *plan.unreadable.lock().expect("no panic") = Some(cg_format::key::chunk(far).into());
    let before = plan.scans.load(Ordering::Relaxed);
    let mut told = Vec::new();
    for now in 22..=42 {
        told.extend(world.tick(GameTick::new(now), &[], Duration::from_secs(60)).expect("ticks").damaged);
    }
    let scans = plan.scans.load(Ordering::Relaxed) - before;
    assert_eq!(told.len(), 1, "{told:?}");
    // Three for each cluster, and the others once.
    assert!(scans < 3 * 40 + 2000, "{scans} scans");
}

#[test]
fn the_end_of_a_gap_is_looked_for_once_in_memory() {
    the_end_of_a_gap_is_looked_for_once(MemEngine::new());
}

#[test]
fn the_end_of_a_gap_is_looked_for_once_on_disk() {
    let disk = Disk::new();
    let engine = RocksEngine::create(&disk.root().join("db"), &RocksOptions::default());
    the_end_of_a_gap_is_looked_for_once(engine.expect("is created"));
}
