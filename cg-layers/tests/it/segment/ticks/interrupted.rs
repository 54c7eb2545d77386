//! Ticks that a crash ends, and those beside other calls.

use std::sync::atomic::{AtomicBool, Ordering};

use cg_store::verify::VerifyDepth;

use super::*;
use crate::fixture::copy_dir;

/// The power goes before any commit of ticks in which chunks of several segments move.
#[test]
fn a_power_cut_in_a_tick_loses_nothing() {
    let mut cuts = 0;
    for commits in 0.. {
        let home = Crashing::new();
        let world = home.open_with(true, &open_at_once(8));
        let ids = register(&world);
        let places = [ids.at(0, 0, 0), ids.at(8, 0, 0), ids.at(16, 0, 0), ids.at(-1, 0, 0)];
        for (at, block) in places.into_iter().zip([ids.stone, ids.glass].into_iter().cycle()) {
            save(&world, at, filled(world.root(), block));
        }
        home.fuse.set(commits);
        let times = [1, 6, 12, 36, 40].map(minute);
        let ticked = times.map(|now| (0..2).map(|_| world.tick(now, &[], NO_HURRY)).all(|tick| tick.is_ok()));
        let is_burnt = home.fuse.is_burnt();
        if !is_burnt {
            assert_eq!(ticked, [true; 5]);
            assert_eq!(places.map(|at| tier(&world, at)), [Tier::L2; 4]);
        }
        home.fuse.set(0);
        drop(world);
        let world = home.open_with(false, &open_at_once(8));
        for (at, stored) in places.into_iter().zip([ids.stone, ids.glass].into_iter().cycle()) {
            assert_eq!(block(&world, at), Some(stored), "after {commits} commits");
        }
        for segment in world.segments().list() {
            let check = |world: &World| {
                assert_sound(world);
                Ok(())
            };
            world.segments().with(segment, check).expect("opens");
        }
        pass(&world, 100, &[]);
        if !is_burnt {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 5, "{cuts}");
}

#[test]
fn a_killed_process_leaves_the_time() {
    let (disk, copy) = (Disk::new(), Disk::new());
    let (world, ids) = create(&disk);
    let at = ids.at(0, 0, 0);
    pass(&world, 500, &[]);
    save(&world, at, filled(world.root(), ids.stone));
    copy_dir(&dir(&disk), &dir(&copy));
    world.close().expect("closes");
    let world = open(&copy);
    assert_eq!(world.root().tiers().clock().now(), minute(500));
    // A segment that is made before the first tick has the time too.
    let other = ids.at(16, 0, 0);
    save(&world, other, filled(world.root(), ids.stone));
    assert_eq!(block(&world, at), Some(ids.stone));
    pass(&world, 501, &[]);
    assert_eq!([at, other].map(|at| tier(&world, at)), [Tier::L0; 2]);
}

#[test]
fn ticks_run_beside_transactions_openings_and_deletions() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let (world, ids, is_over) = (&world, &ids, &is_over);
        let write = |of: i64| {
            move || {
                for n in 0..60 {
                    let at = ids.at(n % 5 * 16 + of, 0, 0);
                    save(world, at, filled(world.root(), if n < 55 { ids.glass } else { ids.stone }));
                    assert!(world.load(at).expect("loads").is_some());
                }
            }
        };
        let mut writers: Vec<_> = [0, 4].map(|of| threads.spawn(write(of))).into();
        writers.push(threads.spawn(|| {
            for _ in 0..15 {
                save(world, ids.at(-1, 0, 0), filled(world.root(), ids.stone));
                world.segments().delete(segment(ids, -1)).expect("deletes");
            }
        }));
        let ticking = threads.spawn(|| {
            let mut now = 0;
            while !is_over.load(Ordering::Relaxed) {
                now += 1;
                let stands = player(ids, (now % 80) as i64 * 16, 0, 0);
                let budget = Duration::from_millis(now % 7);
                world.tick(minute(now), &[stands], budget).expect("ticks");
            }
            now
        });
        for writer in writers {
            writer.join().expect("writes");
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(ticking.join().expect("ticks") > 3);
    });
    for of in [0, 4] {
        for x in 0..5 {
            assert_eq!(block(&world, ids.at(x * 16 + of, 0, 0)), Some(ids.stone));
        }
    }
    world.close().expect("closes");
    drop(world);
    let report = SegmentedWorld::verify(dir(&disk), VerifyDepth::Full, &options(), &[], |_| {});
    assert!(report.as_ref().is_ok_and(cg_layers::SegmentedReport::is_ok), "{report:?}");
}
