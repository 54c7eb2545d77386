//! Chunks with deltas.

use cg_bench::fill::fill;
use cg_bench::stored::SEED;
use cg_bench::world::{Generator, Scene};
use cg_format::{BlockPos, ChunkAt, ChunkBox, ChunkPos};
use cg_store::{World, WorldOptions};
use criterion::{BenchmarkId, Criterion};
use tempfile::TempDir;

/// With this many a chunk is saved as a whole the next time.
const MOST: u64 = 16;

/// A chunk at a time, in no memory but RocksDB's, which has all of them.
pub(crate) fn folded(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reopened: a chunk after deltas");
    for deltas in [0, 1, 4, MOST / 2, MOST] {
        let (world, places, _dir) = with_deltas(deltas);
        let mut places = places.iter().cycle();
        let id = if deltas == 0 {
            BenchmarkId::from_parameter("ref: a chunk without <= 1.5")
        } else {
            BenchmarkId::new("load", deltas)
        };
        group.bench_function(id, |bench| {
            bench.iter(|| world.load(*places.next().expect("endless")).expect("sound").expect("stored"));
        });
    }
    group.finish();
}

/// A world of hills that was closed and opened again, each of whose chunks has this many deltas.
fn with_deltas(deltas: u64) -> (World, Vec<ChunkAt>, TempDir) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("world");
    let options = WorldOptions { deltas: true, cache_bytes: 0, ..WorldOptions::process() };
    let world = World::builder().options(&options).create(&path).expect("an empty directory");
    let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
    // Below and above the ground.
    let area = ChunkBox::new(ChunkPos::constant(0, 1, 0), ChunkPos::constant(3, 4, 3));
    fill(&world, &generator, area, |_| {}).expect("a new world takes any chunk");
    let catalog = world.catalog();
    let [air, rock] =
        ["minecraft:air", "minecraft:stone"].map(|name| catalog.block_id(name).expect("a name"));
    let places: Vec<_> = area.iter().map(|pos| ChunkAt::new(generator.dimension(), pos)).collect();
    for at in &places {
        for n in 0..deltas as i64 {
            let set = world.transaction(|tx| {
                let min = at.pos.min_block();
                let place = BlockPos::new(min.x + n, min.y + 7, min.z + n * 5 % 16);
                let there = tx.block(at.dimension, place)?;
                tx.set_block(at.dimension, place, if there == Some(air) { rock } else { air })
            });
            set.expect("the chunk is stored");
        }
    }
    assert_eq!(
        world.metrics().stats.deltas_written,
        places.len() as u64 * deltas,
        "each block became a delta"
    );
    world.close().expect("the disk has room");
    drop(world);
    let world = World::builder().options(&options).open(&path).expect("just closed");
    for at in &places {
        assert!(world.load(*at).is_ok_and(|chunk| chunk.is_some()));
    }
    (world, places, dir)
}
