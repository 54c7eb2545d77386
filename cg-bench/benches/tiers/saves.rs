//! The slowest of a hundred saves, while chunks move and while they do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cg_bench::order::percentile;
use cg_bench::stored::{SEED, Stored, area, world_options};
use cg_bench::world::{Generator, Scene};
use cg_format::{Chunk, ChunkAt, ChunkPos, Tier};
use cg_store::{Durability, Error, World, WorldOptions};
use cg_tiering::{GameTick, TierPolicy};
use criterion::{Criterion, SamplingMode};

/// Saves from which one percentile is taken, at least.
const SAVES: usize = 2000;
/// The longest time in which nothing moves, unless ticks have failed.
const LONGEST: Duration = Duration::from_secs(60);
/// The time that a tick may take: a tenth of a server's.
const BUDGET: Duration = Duration::from_millis(5);

/// One chunk in each save, changed each time, one save after the other at level `Process`. Chunks move all the time: a
/// thread ticks without a pause, demotes the whole world and promotes it again.
pub(crate) fn saves(criterion: &mut Criterion, stored: &Stored) {
    let mut group = criterion.benchmark_group("tiers: p99 of a save");
    group.sampling_mode(SamplingMode::Flat);
    let tiers = TierPolicy { promote_after_ticks: 0, ..TierPolicy::default() };
    let world =
        World::builder().options(&WorldOptions { tiers, ..world_options(Tier::L0) }).open(&stored.world);
    let world = world.expect("just closed");
    let mut saver = Saver::new(stored, &world);
    group.bench_function("ref: nothing moves", |bench| {
        bench.iter_custom(|times| saver.p99(|| true) * u32::try_from(times).expect("few"));
    });
    let (done, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    // Not so where only benchmarks of other names are asked for.
    let mut is_measured = false;
    std::thread::scope(|scope| {
        scope.spawn(|| keep_moving(stored, &world, &done, &moved));
        group.bench_function("chunks move", |bench| {
            is_measured = true;
            bench.iter_custom(|times| {
                let before = moved.load(Ordering::Acquire);
                let begun = Instant::now();
                let is_moved = || moved.load(Ordering::Acquire) > before || begun.elapsed() > LONGEST;
                saver.p99(is_moved) * u32::try_from(times).expect("few")
            });
        });
        done.store(true, Ordering::Release);
    });
    let moved = moved.load(Ordering::Acquire);
    if is_measured {
        assert!(moved > 0, "nothing was moved beside the saves");
        println!("{moved} chunks were moved beside the saves");
    }
    group.finish();
}

fn keep_moving(stored: &Stored, world: &World, done: &AtomicBool, moved: &AtomicU64) {
    const DAY: u64 = 24 * 3600 * GameTick::PER_SECOND;
    let mut now = 0;
    while !done.load(Ordering::Acquire) {
        now += DAY;
        for is_held in [false, true] {
            let keep = || world.tiers().keep_loaded(stored.dimension, &area());
            let _kept = is_held.then(|| keep().expect("a box that can be kept"));
            let mut idle = 0;
            while idle < 40 && !done.load(Ordering::Acquire) {
                let report = world.tick(GameTick::new(now), &[], BUDGET).expect("ticks");
                idle = if report.moves.moved() == 0 { idle + 1 } else { 0 };
                moved.fetch_add(report.moves.moved(), Ordering::Relaxed);
            }
        }
    }
}

struct Saver<'w> {
    world: &'w World,
    places: Vec<ChunkAt>,
    /// Two contents, so that no save is of what is there.
    contents: [Vec<Arc<Chunk>>; 2],
    saved: usize,
}

impl<'w> Saver<'w> {
    fn new(stored: &Stored, world: &'w World) -> Self {
        let generator = Generator::in_world(Scene::Hills, SEED, world).expect("its own names");
        let layer = |y| {
            let chunks = (-5..5).flat_map(move |x| (-5..5).map(move |z| ChunkPos::constant(x, y, z)));
            chunks.map(|pos| Arc::new(generator.chunk(pos).chunk_without_entities())).collect()
        };
        // Rock without entities: what is saved there lets go of none.
        let places = (0..49).map(|n| stored.at(ChunkPos::constant(n % 7, -12, n / 7))).collect();
        Self { world, places, contents: [layer(3), layer(4)], saved: 0 }
    }

    /// Of at least [`SAVES`] saves, and of all until `is_enough`: a cold cluster is built for longer than they take.
    fn p99(&mut self, is_enough: impl Fn() -> bool) -> Duration {
        let mut times = Vec::new();
        while times.len() < SAVES || !is_enough() {
            times.push(self.save());
        }
        percentile(&mut times, 99.0)
    }

    fn save(&mut self) -> Duration {
        let place = self.places[self.saved % self.places.len()];
        let contents = &self.contents[self.saved / self.places.len() % 2];
        let chunk = Arc::clone(&contents[self.saved % contents.len()]);
        self.saved += 1;
        let start = Instant::now();
        let committed = self.world.transaction_at(Durability::Process, |tx| {
            tx.save(place, chunk);
            Ok::<_, Error>(())
        });
        let time = start.elapsed();
        committed.expect("the disk has room");
        time
    }
}
