//! Mobs that walk from chunk to chunk: 1,000 a second, 50 in each tick.

use std::fs;
use std::time::{Duration, Instant};

use cg_bench::fill::fill;
use cg_bench::stored::SEED;
use cg_bench::world::{Generator, Scene};
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{ChunkAt, ChunkBox, ChunkPos, EntityId};
use cg_store::{Durability, Error, World, WorldOptions};
use criterion::Criterion;
use tempfile::TempDir;
use uuid::Uuid;

/// Crossings of a tick, and ticks of a second.
const CROSSINGS: usize = 50;
/// Mobs, so that each crosses every two seconds.
const MOBS: usize = 2_000;
/// Chunks along x and z.
const SIDE: i64 = 16;

struct Walk {
    world: World,
    mobs: Vec<EntityId>,
    places: Vec<ChunkAt>,
    /// Crossings so far.
    done: usize,
    dir: TempDir,
}

/// One iteration is a tick: until the call returns, and until the rows are written.
pub(crate) fn crossings(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reopened: 1,000 crossings a second");
    for (name, deltas) in [("whole chunks", false), ("deltas", true)] {
        let mut walk = Walk::new(deltas);
        let mut is_measured = false;
        for (until, waits) in [("until it returns", false), ("until it is written", true)] {
            group.bench_function(format!("50 in a tick, {name}, {until}"), |bench| {
                is_measured = true;
                bench.iter_custom(|times| (0..times).map(|_| walk.tick(waits)).sum());
            });
        }
        if is_measured {
            walk.print_bytes(name);
        }
    }
    group.finish();
}

impl Walk {
    /// Mobs in hills whose columns hold one layer of chunks at the ground.
    fn new(deltas: bool) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = WorldOptions { deltas, min_free_bytes: Some(0), ..WorldOptions::balanced() };
        let world =
            World::builder().options(&options).create(dir.path().join("world")).expect("an empty directory");
        let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
        let area = ChunkBox::new(ChunkPos::constant(0, 3, 0), ChunkPos::constant(SIDE - 1, 3, SIDE - 1));
        fill(&world, &generator, area, |_| {}).expect("a new world takes any chunk");
        let places: Vec<_> = area.iter().map(|pos| ChunkAt::new(generator.dimension(), pos)).collect();
        let kind = world.catalog().entity_type("minecraft:sheep").expect("the generator registered it");
        let mobs: Vec<_> = (0..MOBS as u128).map(|n| EntityId::new(Uuid::from_u128(n + 1))).collect();
        let put = world.transaction_at(Durability::Process, |tx| {
            for (mob, at) in mobs.iter().zip(places.iter().cycle()) {
                let position =
                    EntityPos::new(at.dimension, at.pos.min_block(), [0.5; 3]).expect("in its block");
                tx.put_entity(*mob, Entity::new(kind, Owner::Chunk(*at), position));
            }
            Ok::<_, Error>(())
        });
        put.expect("the disk has room");
        Self { world, mobs, places, done: 0, dir }
    }

    /// The next mobs go on by one chunk each, in one transaction.
    fn tick(&mut self, waits: bool) -> Duration {
        let begun = Instant::now();
        let committed = self.world.transaction(|tx| {
            for n in self.done..self.done + CROSSINGS {
                let (mob, steps) = (n % MOBS, n / MOBS);
                let place = self.places[(mob + steps + 1) % self.places.len()];
                assert!(tx.move_entity(self.mobs[mob], Owner::Chunk(place))?, "it is there");
            }
            Ok::<_, Error>(())
        });
        let returned = begun.elapsed();
        committed.expect("the disk has room");
        self.done += CROSSINGS;
        while self.world.metrics().queued_commits > 0 {
            std::thread::yield_now();
        }
        if waits { begun.elapsed() } else { returned }
    }

    /// Prints the bytes that a second of crossings writes: rows as the world hands them over, and what RocksDB logs of
    /// them.
    fn print_bytes(&mut self, name: &str) {
        const TICKS: u64 = 20;
        let logged = |walk: &Self| -> u64 {
            let files = fs::read_dir(cg_store::directory::engine_dir(&walk.dir.path().join("world")));
            let files = files.expect("readable").flatten();
            let logs =
                files.filter(|file| file.path().extension().is_some_and(|extension| extension == "log"));
            logs.map(|log| log.metadata().map_or(0, |meta| meta.len())).sum()
        };
        self.world.flush().expect("the disk has room");
        let (rows, log) = (self.world.metrics().stats, logged(self));
        for _ in 0..TICKS {
            self.tick(true);
        }
        self.world.flush().expect("the disk has room");
        let (written, after) = (self.world.metrics().stats - rows, logged(self));
        let crossings = TICKS * CROSSINGS as u64;
        eprintln!(
            "{name}: {crossings} crossings are {} rows of {} bytes, and {} bytes of log",
            written.rows_written,
            written.bytes_written,
            after.saturating_sub(log)
        );
    }
}
