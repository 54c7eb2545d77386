//! A world whose disk has less room than its host demands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::moves::tiers;
use super::*;
use cg_tiering::GameTick;
use std::time::Duration;

const DEMANDED: u64 = 1 << 20;

fn world_with(free: &Arc<AtomicU64>, durability: Durability) -> World {
    let free = Arc::clone(free);
    let engine = MemEngine::new().with_free_bytes(move || free.load(Ordering::Relaxed));
    let options = WorldOptions { durability, min_free_bytes: Some(DEMANDED), ..options() };
    World::builder().options(&options).over(engine).expect("a world in memory")
}

#[test]
fn without_room_nothing_is_put_and_everything_else_goes_on() {
    for durability in [Durability::Process, Durability::Balanced] {
        let free = Arc::new(AtomicU64::new(1 << 40));
        let world = world_with(&free, durability);
        let ids = Ids::register(&world);
        let (a, b) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
        save(&world, [(a, filled(&world, ids.stone)), (b, filled(&world, ids.stone))]);
        world.flush().expect("writes");
        let (before, last) = (rows(&world), world.last_commit());
        free.store(DEMANDED - 1, Ordering::Relaxed);
        // What the world asked before may still count.
        let refused = || {
            world.transaction(|tx| {
                tx.save(a, filled(&world, ids.glass));
                Ok::<_, Error>(())
            })
        };
        std::thread::sleep(std::time::Duration::from_millis(600));
        let error = refused().expect_err("there is no room");
        let Error::LowDiskSpace { free_bytes, min_free_bytes: DEMANDED } = error else { panic!("{error}") };
        assert!(free_bytes < DEMANDED);
        assert!(
            before == rows(&world) && world.last_commit() == last,
            "a refused transaction wrote something"
        );
        assert_eq!(world.load(a).expect("loads").as_deref(), Some(&filled(&world, ids.stone)));
        // An unchanged save needs no room, and deleting makes some.
        save(&world, [(b, filled(&world, ids.stone))]);
        let deleted = world.transaction(|tx| {
            tx.delete(b);
            Ok::<_, Error>(())
        });
        deleted.expect("deleting needs no room");
        assert_eq!(world.load(b).expect("loads"), None);
        free.store(1 << 40, Ordering::Relaxed);
        refused().expect("there is room again");
        assert_sound(&world);
    }
}

#[test]
fn without_room_nothing_is_moved_or_folded_and_marks_are_forgotten() {
    const LATER: u64 = 1 << 30;
    let free = Arc::new(AtomicU64::new(1 << 40));
    let engine = MemEngine::new().with_free_bytes({
        let free = Arc::clone(&free);
        move || free.load(Ordering::Relaxed)
    });
    let options = WorldOptions { min_free_bytes: Some(DEMANDED), deltas: true, ..options() };
    let world = World::builder().options(&options).over(engine).expect("a world in memory");
    let ids = Ids::register(&world);
    let (a, b) = (ids.at(0, 0, 0), ids.at(50, 0, 0));
    save(&world, [(a, super::tier::noisy(&world, &ids, 1)), (b, filled(&world, ids.stone))]);
    world.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(1, 1, 1), ids.stone)).expect("sets");
    let deleted = world.transaction(|tx| {
        tx.delete(b);
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
    world.tiers().purge_tombstones_before(CommitSeq::new(u64::MAX)).expect("is noted");
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    free.store(DEMANDED - 1, Ordering::Relaxed);
    // What the world asked before may still count.
    std::thread::sleep(Duration::from_millis(600));
    let before = rows(&world);
    let mut moves = MoveCounts::default();
    for n in 0..10 {
        let report = world.tick(GameTick::new(LATER + n), &[], Duration::from_secs(600)).expect("ticks");
        assert!(report.skipped_low_disk && !report.work_left, "{report:?}");
        assert_eq!((report.tiles_folded, report.deltas_folded), (0, 0));
        moves.tombstones_purged += report.moves.tombstones_purged;
        assert_eq!(report.moves.moved(), report.moves.tombstones_purged);
    }
    assert_eq!(moves.tombstones_purged, 1, "that only deletes");
    let mut compaction = world.tiers().compaction(cg_store::view::Area::World).expect("begins");
    while compaction.run(Duration::from_secs(60)).expect("compacts") {}
    assert_eq!(compaction.report().skipped_low_disk, 1, "moves; there are no files");
    let refused = |error: Error| {
        let Error::LowDiskSpace { free_bytes, min_free_bytes: DEMANDED } = error else { panic!("{error}") };
        assert_eq!(free_bytes, DEMANDED - 1);
    };
    free.store(DEMANDED / 4 - 1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(600));
    let error = world.tiers().demote_all(LATER, |_| {}).expect_err("there is no room for that either");
    assert!(
        matches!(error, Error::LowDiskSpace { free_bytes, min_free_bytes }
        if (free_bytes, min_free_bytes) == (DEMANDED / 4 - 1, DEMANDED / 4)),
        "{error}"
    );
    free.store(DEMANDED - 1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(600));
    refused(world.opacity().fold(1).expect_err("there is no room"));
    refused(world.opacity().rebuild().expect_err("there is no room"));
    let lost: Vec<_> = before.iter().filter(|(key, _)| !rows(&world).contains_key(key)).collect();
    assert_eq!((lost.len(), rows(&world).len()), (1, before.len() - 1), "{lost:?}");
    let stats = world.metrics().stats;
    assert_eq!((stats.ticks_low_disk, stats.tiles_folded, stats.chunks_folded), (10, 0, 0));
    assert_eq!(tiers(&world), [1, 0, 0]);

    free.store(1 << 40, Ordering::Relaxed);
    let mut report = world.tick(GameTick::new(LATER + 10), &[], Duration::from_secs(600)).expect("ticks");
    assert!(!report.skipped_low_disk && report.tiles_folded == 2 && report.deltas_folded == 1, "{report:?}");
    for n in 11..20 {
        report = world.tick(GameTick::new(LATER + n), &[], Duration::from_secs(600)).expect("ticks");
    }
    assert_eq!((tiers(&world), report.skipped_low_disk), ([0, 0, 1], false));
    world.tiers().demote_all(LATER, |_| {}).expect("settles");
    assert_eq!(world.metrics().stats.ticks_low_disk, 10);
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    assert_sound(&world);
}

#[test]
fn a_disk_says_how_much_is_free_and_metrics_tell() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    world.flush().expect("syncs");
    let metrics = world.metrics();
    assert!(metrics.free_bytes.is_some_and(|free| free > 0));
    assert_eq!((metrics.last_written, metrics.last_synced), (metrics.last_commit, metrics.last_commit));
    assert_eq!((metrics.queued_commits, metrics.queued_bytes, metrics.stats.busy), (0, 0, 0));
    assert_eq!((metrics.transactions.count(), metrics.ticks.count()), (1, 0));
    assert!(
        metrics
            .to_string()
            .starts_with(&format!("commit {0} (written {0}, synced {0}), 0 queued", metrics.last_commit)),
        "{metrics}"
    );
}
