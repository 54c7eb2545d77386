//! Chunks that memory has, against the bare cache crate with the same keys and the same chunks in the same run.
//!
//! | group | what is allowed |
//! |---|---|
//! | load a cached chunk | 60 ns, and 1.2 × the bare cache for the path that hands out an `Arc` |
//! | two threads, same chunks; the same 24 chunks | 80 ns for each thread through `with` |
//! | a cached column | 80 ns |
//! | an absent column again | 3 µs |
//! | more chunks than a thread may hold | 40 ns through `with` |
//! | 121 absent columns, the first time | 75 µs |
//! | a million chunks | places that differ in their high bits alone, and in few of them: 1.2 × random places |
//!
//! One iteration is one chunk, or one column where the group says so; with two threads, one for each of them.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use cg_bench::world::{Generator, Scene};
use cg_format::{Chunk, ChunkAt, ChunkPos};
use cg_store::{Error, World, WorldOptions};
use criterion::{Criterion, criterion_group, criterion_main};

const SEED: u64 = 7;
/// Columns along x and along z.
const SIDE: i64 = 11;
/// Chunks of a column.
const HEIGHT: i64 = 24;

type Bare = quick_cache::sync::Cache<ChunkAt, Arc<Chunk>>;

/// A world in memory of which every chunk is cached, and the same chunks in a bare cache.
struct Cached {
    world: World,
    bare: Bare,
    positions: Vec<ChunkAt>,
}

impl Cached {
    fn new(options: &WorldOptions) -> Self {
        let world = World::builder().options(options).in_memory().expect("nothing to reconcile");
        let generator = Generator::in_world(Scene::Flat, SEED, &world).expect("new names");
        let mut positions = Vec::new();
        for x in 0..SIDE {
            for z in 0..SIDE {
                for y in 0..HEIGHT {
                    positions.push(ChunkAt::new(generator.dimension(), ChunkPos::constant(x, y, z)));
                }
            }
        }
        let chunks: Vec<_> = positions
            .iter()
            .map(|at| (*at, Arc::new(generator.chunk(at.pos).chunk_without_entities())))
            .collect();
        let bare = Bare::new(2 * chunks.len());
        for (at, chunk) in &chunks {
            bare.insert(*at, Arc::clone(chunk));
        }
        let saved = world.transaction(|tx| {
            for (at, chunk) in chunks {
                tx.save(at, chunk);
            }
            Ok::<_, Error>(())
        });
        saved.expect("memory is left");
        shuffle(&mut positions);
        Self { world, bare, positions }
    }
}

/// A Fisher-Yates shuffle with a small generator: always the same order.
fn shuffle<T>(items: &mut [T]) {
    let mut bits = SEED;
    for last in (1..items.len()).rev() {
        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        items.swap(last, (bits >> 33) as usize % (last + 1));
    }
}

fn one_thread(criterion: &mut Criterion) {
    let Cached { world, bare, positions } = Cached::new(&WorldOptions::process());
    let mut positions = positions.iter().copied().cycle();
    let mut next = || positions.next().expect("endless");
    let mut group = criterion.benchmark_group("cache: load a cached chunk");
    group.bench_function("ref: quick_cache get", |bench| {
        bench.iter(|| bare.get(&next()).expect("inserted"));
    });
    group.bench_function("load", |bench| {
        bench.iter(|| world.load(next()).expect("sound").expect("stored"));
    });
    group.bench_function("with", |bench| {
        bench.iter(|| {
            world.with_chunk(next(), |chunk| chunk.entities().len()).expect("sound").expect("stored")
        });
    });
    group.finish();
}

/// The cache has room for all chunks, and a thread's part of it for a few of them.
fn many_for_a_thread(criterion: &mut Criterion) {
    let options = WorldOptions { cache_bytes: 8 << 20, ..WorldOptions::process() };
    let Cached { world, positions, .. } = Cached::new(&options);
    let mut positions = positions.iter().copied().cycle();
    let mut next = || positions.next().expect("endless");
    let mut group = criterion.benchmark_group("cache: more chunks than a thread may hold");
    group.bench_function("ref: load", |bench| {
        bench.iter(|| world.load(next()).expect("sound").expect("stored"));
    });
    group.bench_function("with <= 40 ns", |bench| {
        bench.iter(|| {
            world.with_chunk(next(), |chunk| chunk.entities().len()).expect("sound").expect("stored")
        });
    });
    group.finish();
}

/// Columns of land that was never stored, in a world on disk. Each iteration has land of its own.
fn absent_first(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let world = World::builder().options(&WorldOptions::process()).create(dir.path().join("world"));
    let world = world.expect("an empty directory");
    let overworld = world.registry().register_dimension("bench:overworld").expect("a new name");
    let mut land = 0;
    let mut group = criterion.benchmark_group("cache: 121 absent columns, the first time");
    group.bench_function("column <= 75 us", |bench| {
        bench.iter(|| {
            land += 1;
            for (x, z) in (0..SIDE).flat_map(|x| (0..SIDE).map(move |z| (x, z))) {
                let column = world.column(overworld, 1024 * land + x, z, 0..=HEIGHT - 1).expect("sound");
                assert!(column.is_absent());
            }
        });
    });
    group.finish();
}

/// The chunks of a column, from the lowest up.
fn heights(bottom: ChunkAt) -> impl Iterator<Item = ChunkAt> {
    (0..HEIGHT)
        .map(move |y| ChunkAt::new(bottom.dimension, bottom.pos.offset(0, y, 0).expect("in the world")))
}

fn columns(criterion: &mut Criterion) {
    let Cached { world, bare, positions } = Cached::new(&WorldOptions::process());
    let bottoms: Vec<_> = positions.iter().copied().filter(|at| at.pos.y() == 0).collect();
    let mut bottoms = bottoms.iter().copied().cycle();
    let mut next = || bottoms.next().expect("endless");
    let column =
        |at: ChunkAt| world.column(at.dimension, at.pos.x(), at.pos.z(), 0..=HEIGHT - 1).expect("sound");
    let mut group = criterion.benchmark_group("cache: a cached column");
    group.bench_function("ref: quick_cache get, 24 times", |bench| {
        bench.iter(|| heights(next()).for_each(|at| drop(black_box(bare.get(&at).expect("inserted")))));
    });
    group.bench_function("load, 24 times", |bench| {
        bench.iter(|| heights(next()).for_each(|at| drop(black_box(world.load(at).expect("sound")))));
    });
    group.bench_function("column", |bench| bench.iter(|| column(next())));
    group.finish();

    // Nothing is stored a thousand chunks further; an area as large as the stored one is asked for twice and more.
    let mut next = || {
        let at = next();
        ChunkAt::new(at.dimension, at.pos.offset(1000, 0, 0).expect("in the world"))
    };
    let mut group = criterion.benchmark_group("cache: an absent column again");
    let before = world.metrics().stats;
    for _ in 0..SIDE * SIDE {
        let absent = heights(next()).all(|at| world.load(at).expect("sound").is_none());
        assert!(absent, "nothing was stored there");
    }
    let learnt = world.metrics().stats;
    println!(
        "absent columns: {} engine reads to learn {} of them",
        (learnt - before).engine_reads,
        SIDE * SIDE
    );
    group.bench_function("load, 24 times", |bench| {
        bench.iter(|| heights(next()).for_each(|at| drop(black_box(world.load(at).expect("sound")))));
    });
    group.bench_function("column", |bench| bench.iter(|| column(next())));
    group.finish();
    assert_eq!((world.metrics().stats - learnt).engine_reads, 0, "asking again costs no engine read");
}

/// The time of one of two threads that do something with the same places in the same order.
fn on_two_threads(iterations: u64, positions: &[ChunkAt], work: impl Fn(ChunkAt) + Sync) -> Duration {
    let start = Barrier::new(2);
    let run = || {
        start.wait();
        let begun = Instant::now();
        for at in positions.iter().cycle().take(iterations as usize) {
            work(*at);
        }
        begun.elapsed()
    };
    thread::scope(|scope| {
        let other = scope.spawn(run);
        let mine = run();
        (mine + other.join().expect("no panic")) / 2
    })
}

fn two_threads(criterion: &mut Criterion) {
    let Cached { world, bare, positions } = Cached::new(&WorldOptions::process());
    for (name, positions) in [
        ("cache: two threads, same chunks", &positions[..]),
        ("cache: two threads, same 24 chunks", &positions[..24]),
    ] {
        let mut group = criterion.benchmark_group(name);
        group.bench_function("ref: quick_cache get", |bench| {
            bench.iter_custom(|count| {
                on_two_threads(count, positions, |at| drop(black_box(bare.get(&at).expect("inserted"))))
            });
        });
        group.bench_function("load", |bench| {
            bench.iter_custom(|count| {
                on_two_threads(count, positions, |at| drop(black_box(world.load(at).expect("sound"))))
            });
        });
        group.bench_function("with", |bench| {
            bench.iter_custom(|count| {
                on_two_threads(count, positions, |at| {
                    black_box(world.with_chunk(at, |chunk| chunk.entities().len()).expect("sound"));
                })
            });
        });
        group.finish();
    }
}

/// How many chunks of each kind are in memory in the last group.
fn million() -> i64 {
    let is_quick = std::env::args().any(|arg| arg == "--test" || arg == "--quick");
    if is_quick { 10_000 } else { 1_000_000 }
}

/// Places that share their low bits, and random ones, all in one cache. If a table hashed by low bits, each load of the
/// first would go through many others.
fn same_low_bits(criterion: &mut Criterion) {
    let options = WorldOptions { cache_bytes: 4 << 30, ..WorldOptions::fast() };
    let world = World::builder().options(&options).in_memory().expect("nothing to reconcile");
    let flat = world.registry().register_dimension("bench:flat").expect("a new name");
    let [stone] = world.registry().register_blocks(["bench:stone"]).expect("a new name");
    let at = |x, y, z| ChunkAt::new(flat, ChunkPos::constant(x, y, z));
    let alike: Vec<_> =
        (0..million()).map(|n| at((n % 1000) << 40, n / 1_000_000, (n / 1000) << 40)).collect();
    // An odd factor reaches every number once.
    let mixed = |n: i64| n.wrapping_mul(0x5851_f42d_4c95_7f2d) >> 8;
    let random: Vec<_> = (0..million()).map(|n| at(mixed(n), mixed(n + 1), mixed(n + 2))).collect();
    let chunk = Arc::new(Chunk::filled(stone, &world.catalog().current_schema()).expect("registered"));
    for some in alike.chunks(10_000).zip(random.chunks(10_000)).flat_map(|(alike, random)| [alike, random]) {
        let saved = world.transaction(|tx| {
            for at in some {
                tx.save(*at, Arc::clone(&chunk));
            }
            Ok::<_, Error>(())
        });
        saved.expect("memory is left");
        world.flush().expect("memory is left");
    }
    let before = world.metrics().stats;
    let mut group = criterion.benchmark_group("cache: a million chunks");
    for (name, mut places) in [("ref: load, random places", random), ("load, same low bits <= 1.2", alike)] {
        shuffle(&mut places);
        let mut places = places.into_iter().cycle();
        let mut next = || places.next().expect("endless");
        group.bench_function(name, |bench| {
            bench.iter(|| world.load(next()).expect("sound").expect("stored"));
        });
    }
    group.finish();
    assert_eq!((world.metrics().stats - before).engine_reads, 0, "all are in memory");
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(1))
        .warm_up_time(Duration::from_millis(300));
    targets = one_thread, many_for_a_thread, columns, absent_first, two_threads, same_low_bits
}
criterion_main!(benches);
