//! A world whose disk has less room than its host demands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const DEMANDED: u64 = 1 << 20;

fn world_with(free: &Arc<AtomicU64>, durability: Durability) -> World<MemEngine> {
    let free = Arc::clone(free);
    let engine = MemEngine::new().with_free_bytes(move || free.load(Ordering::Relaxed));
    let options = WorldOptions { durability, min_free_bytes: DEMANDED, ..options() };
    World::temporary_over(engine, &[], &options).expect("a world in memory")
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
        let Error::NoRoom { free_bytes, min_free_bytes: DEMANDED } = error else { panic!("{error}") };
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
