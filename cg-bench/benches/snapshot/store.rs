//! Regions put back into a world on the disk, durable at the end.

use std::cell::LazyCell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_snapshot::{RestoreJob, RestoreOptions, Snapshot, capture};
use cg_store::{Durability, World, WorldOptions};
use criterion::Criterion;
use tempfile::TempDir;

use super::arena::{Arena, Damage, options};

/// Sections of one transaction.
const SECTIONS_AT_ONCE: usize = 256;

/// A world that holds an arena.
struct Stored {
    world: World,
    /// Removed when the world is dropped.
    _dir: TempDir,
}

impl Stored {
    fn new(arena: &Arena) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = WorldOptions::process();
        let world =
            World::builder().options(&options).create(dir.path().join("world")).expect("an empty directory");
        world.registry().register(&arena.snapshot.registration(&world.catalog())).expect("new names");
        let stored = Self { world, _dir: dir };
        stored.restore(&arena.snapshot);
        stored
    }

    /// Puts a snapshot back; how many blocks became other ones.
    fn restore(&self, snapshot: &Arc<Snapshot>) -> u64 {
        let job = RestoreJob::new(Arc::clone(snapshot), &self.world.catalog(), RestoreOptions::default());
        let mut job = job.expect("its names are registered");
        let mut told = 0;
        let mut observe = |change| {
            black_box(change);
            told += 1;
        };
        loop {
            let more = self.world.transaction_at(Durability::Process, |tx| {
                let more = job.run_some(tx, &mut observe, SECTIONS_AT_ONCE);
                Ok::<_, Box<dyn std::error::Error>>(more?)
            });
            if !more.expect("the disk takes it").value {
                self.world.flush().expect("the disk takes it");
                return told;
            }
        }
    }
}

/// One iteration is a whole restore with the sync after it; bringing the damage back before it takes no part.
pub(super) fn restoring(criterion: &mut Criterion) {
    let arena = LazyCell::new(Arena::generated);
    let stored = LazyCell::new(|| Stored::new(&arena));
    let mut group = criterion.benchmark_group("snapshot: restore to the store, durable");
    group.sample_size(10).measurement_time(Duration::from_secs(5)).warm_up_time(Duration::from_secs(1));
    for (damage, percent) in super::CASES {
        group.bench_function(super::case(damage, percent), |bench| {
            let (damaged, blocks) = damaged(&arena, damage, percent);
            bench.iter_custom(|iterations| {
                let mut spent = Duration::ZERO;
                for _ in 0..iterations {
                    stored.restore(&damaged);
                    let began = Instant::now();
                    let told = stored.restore(&arena.snapshot);
                    spent += began.elapsed();
                    assert!(told >= blocks, "{told} of {blocks}");
                }
                spent
            });
        });
    }
    group.finish();
}

/// The arena with its damage, as a snapshot, and how many blocks are others.
fn damaged(arena: &Arena, damage: Damage, percent: u64) -> (Arc<Snapshot>, u64) {
    let (host, blocks) = arena.damaged(damage, percent);
    let damaged = capture(&host, &arena.catalog, arena.region, &options()).expect("memory is left");
    (Arc::new(damaged), blocks)
}
