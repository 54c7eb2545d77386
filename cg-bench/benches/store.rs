//! The store against RocksDB itself, with the same options, the same rows and in the same run.
//!
//! The reference is opened on a checkpoint of the world: the same files, and the options that RocksDB recorded beside
//! them. It is handed finished keys and rows, and does nothing else.
//!
//! | group | what is allowed |
//! |---|---|
//! | view a stored chunk | 1.3 × a raw get: the frame's checksum and the key |
//! | load a stored chunk | 1.1 × a raw get and decoding |
//! | open a world | 1.1 × an open of the same files by RocksDB |
//! | save chunks | 1.3 × a raw write batch of the same rows: encoding, sums, and looking at what is replaced |
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_bench::fill::fill;
use cg_bench::order::shuffle;
use cg_bench::raw::{self, Db, family};
use cg_bench::stored::{hot_row, hot_value};
use cg_bench::world::{Generator, Scene};
use cg_format::frame::{Codec, Draft, FrameView, Version};
use cg_format::{Chunk, ChunkAt, ChunkBox, ChunkPos, ClusterTier, Limits, Space, key};
use cg_store::engine::{COMMIT_SEQUENCE_KEY, CommitSeq};
use cg_store::{Durability, Error, World, WorldOptions};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use rocksdb::WriteBatch;
use tempfile::TempDir;

const SEED: u64 = 7;
/// Memory for the engine, of which three quarters are RocksDB's block cache: everything that is read fits.
const ENGINE_BYTES: u64 = 256 << 20;

/// A world on disk whose rows lie in sorted files, and a copy of it for RocksDB alone.
struct Stored {
    world: World,
    generator: Generator,
    raw: Db,
    /// Every chunk, in an order that no cache expects.
    positions: Vec<ChunkAt>,
    dir: TempDir,
}

impl Stored {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (path, copy) = (dir.path().join("world"), dir.path().join("copy"));
        let options = WorldOptions { cache_bytes: 0, engine_bytes: ENGINE_BYTES, ..WorldOptions::process() };
        let world = World::builder().options(&options).create(&path).expect("an empty directory");
        let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
        let area = ChunkBox::new(
            ChunkPos::constant(-4, Generator::BOTTOM_CHUNK_Y, -4),
            ChunkPos::constant(3, Generator::TOP_CHUNK_Y, 3),
        );
        fill(&world, &generator, area, |_| {}).expect("a new world takes any chunk");
        world.close().expect("the disk has room");
        drop(world);
        let world = World::builder().options(&options).open(&path).expect("just closed");
        world.checkpoint(&copy, cg_store::CheckpointFiles::Linked).expect("an empty directory");
        let mut positions: Vec<_> = area.iter().map(|pos| ChunkAt::new(generator.dimension(), pos)).collect();
        shuffle(&mut positions, SEED);
        Self { world, generator, raw: open_raw(&copy), positions, dir }
    }
}

/// RocksDB on a world's files, with the options recorded there.
fn open_raw(world: &Path) -> Db {
    raw::open(world, ENGINE_BYTES as usize / 4 * 3).expect("RocksDB's own files")
}

fn read(criterion: &mut Criterion) {
    let Stored { world, generator, raw, positions, dir: _dir } = Stored::new();
    let hot = family(&raw, Space::ChunkL0);
    let keys: Vec<_> = positions.iter().map(|at| key::chunk(*at)).collect();
    let mut keys = keys.iter().cycle();
    let mut positions = positions.iter().copied().cycle();
    let (mut next_key, mut next_at) =
        (|| keys.next().expect("endless"), || positions.next().expect("endless"));

    let mut group = criterion.benchmark_group("view a stored chunk");
    group.bench_function("ref: RocksDB get <= 1.3", |bench| {
        bench.iter(|| {
            let row = raw.get_pinned_cf(hot, next_key()).expect("sound files").expect("a stored chunk");
            black_box(row.len())
        });
    });
    group.bench_function("view", |bench| {
        bench.iter(|| {
            world
                .tiers()
                .with_stored_bytes(next_at(), |stored| Ok(stored.value.len()))
                .expect("sound")
                .expect("stored")
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("load a stored chunk");
    group.bench_function("ref: RocksDB get and decode <= 1.1", |bench| {
        bench.iter(|| {
            let row = raw.get_pinned_cf(hot, next_key()).expect("sound files").expect("a stored chunk");
            Chunk::decode(&hot_value(&row), generator.schema()).expect("a sound chunk")
        });
    });
    // What of a load's price is the sum that the frame is checked against.
    group.bench_function("RocksDB get, check and decode", |bench| {
        bench.iter(|| {
            let key = next_key();
            let row = raw.get_pinned_cf(hot, key).expect("sound files").expect("a stored chunk");
            let frame = FrameView::open(Space::ChunkL0, key, &row).expect("a sound row");
            let value = frame.raw_payload(&mut Limits::default()).expect("a sound row");
            Chunk::decode(&value, generator.schema()).expect("a sound chunk")
        });
    });
    group.bench_function("load", |bench| {
        bench.iter(|| world.load(next_at()).expect("sound").expect("stored"));
    });
    group.finish();
}

/// Rows that a commit writes for one chunk or more, finished.
type Rows = Vec<(Space, Vec<u8>, Vec<u8>)>;

/// The rows with which a world stores new chunks.
fn rows(chunks: &[(ChunkAt, Arc<Chunk>)], version: Version) -> Rows {
    let mut rows = Rows::new();
    let mut put = |space: Space, key: &[u8], draft: Draft| {
        rows.push((space, key.to_vec(), draft.seal(space, key, version)));
    };
    let mut marks = std::collections::BTreeSet::new();
    for (at, chunk) in chunks {
        put(Space::ChunkL0, &key::chunk(*at), hot_row(chunk));
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            marks.insert(key::change_mark(at.dimension, at.pos.cluster(tier)).to_vec());
        }
    }
    for mark in marks {
        put(Space::ChangeMark, &mark, Draft::plain(Codec::None, 0, |_| {}));
    }
    put(Space::WorldMeta, COMMIT_SEQUENCE_KEY, Draft::plain(Codec::None, 0, |_| {}));
    rows
}

fn save(criterion: &mut Criterion) {
    let stored = Stored::new();
    let generator = &stored.generator;
    // The content of every save is one of these, at a place that has never been saved.
    let contents: Vec<Arc<Chunk>> = stored
        .positions
        .iter()
        .filter(|at| (1..7).contains(&at.pos.y()))
        .map(|at| Arc::new(generator.chunk(at.pos).chunk_without_entities()))
        .collect();
    let mut group = criterion.benchmark_group("save chunks");
    for count in [1_usize, 64] {
        // Cubes of 4×4×4 chunks, one after the other along x and far from what was filled.
        let mut place = 0_i64;
        let mut next = |z: i64| -> Vec<(ChunkAt, Arc<Chunk>)> {
            let chunks = (0..count as i64).map(|index| {
                let cube = (place + index) / 64;
                let within = (place + index) % 64;
                let pos = ChunkPos::new(1000 + cube * 4 + within / 16, within / 4 % 4, z + within % 4);
                let at = ChunkAt::new(generator.dimension(), pos.expect("a place in the world"));
                (at, Arc::clone(&contents[(place + index) as usize % contents.len()]))
            });
            let chunks = chunks.collect();
            place += count as i64;
            chunks
        };
        let z = 1000 * count as i64;
        check_rows(&stored, &next(z));
        group.bench_function(BenchmarkId::new("ref: RocksDB write batch <= 1.3", count), |bench| {
            bench.iter_batched(
                || rows(&next(z), Version::default()),
                |rows| write_raw(&stored.raw, &rows),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(BenchmarkId::new("save", count), |bench| {
            bench.iter_batched(|| next(z), |chunks| save_all(&stored.world, chunks), BatchSize::SmallInput);
        });
    }
    group.finish();
}

fn write_raw(raw: &Db, rows: &Rows) {
    let mut batch = WriteBatch::default();
    for (space, key, row) in rows {
        batch.put_cf(family(raw, *space), key, row);
    }
    raw.write(batch).expect("the disk has room");
}

fn save_all(world: &World, chunks: Vec<(ChunkAt, Arc<Chunk>)>) -> CommitSeq {
    let committed = world.transaction_at(Durability::Process, |tx| {
        for (at, chunk) in chunks {
            tx.save(at, chunk);
        }
        Ok::<_, Error>(())
    });
    committed.expect("the disk has room").seq
}

/// Makes sure that the reference writes what the world writes: the same rows, byte for byte.
fn check_rows(stored: &Stored, chunks: &[(ChunkAt, Arc<Chunk>)]) {
    let seq = save_all(&stored.world, chunks.to_vec());
    let copy = stored.dir.path().join(format!("rows of {}", chunks.len()));
    stored.world.checkpoint(&copy, cg_store::CheckpointFiles::Linked).expect("an empty directory");
    let raw = open_raw(&copy);
    let newest = raw.get_cf(family(&raw, Space::WorldMeta), COMMIT_SEQUENCE_KEY).expect("sound files");
    let newest = newest.expect("every commit stores its number");
    let newest = FrameView::open(Space::WorldMeta, COMMIT_SEQUENCE_KEY, &newest).expect("is sound");
    let version = Version { commit: seq.get(), lineage: newest.header().lineage };
    for (space, key, row) in rows(chunks, version) {
        let found = raw.get_cf(family(&raw, space), &key).expect("sound files");
        assert_eq!(found.as_ref(), Some(&row), "{space:?} {key:02x?}");
    }
}

/// A closed world is opened; closing it again is not measured.
fn open(criterion: &mut Criterion) {
    let Stored { world, raw, dir, .. } = Stored::new();
    world.close().expect("the disk has room");
    drop((world, raw));
    let (path, copy) = (dir.path().join("world"), dir.path().join("copy"));
    let options = WorldOptions { cache_bytes: 0, engine_bytes: ENGINE_BYTES, ..WorldOptions::process() };
    let mut group = criterion.benchmark_group("store: open a world");
    group.bench_function("ref: RocksDB open <= 1.1", |bench| {
        bench.iter_custom(|times| {
            let mut total = Duration::ZERO;
            for _ in 0..times {
                let begun = Instant::now();
                let raw = open_raw(&copy);
                total += begun.elapsed();
                drop(raw);
            }
            total
        });
    });
    group.bench_function("open", |bench| {
        bench.iter_custom(|times| {
            let mut total = Duration::ZERO;
            for _ in 0..times {
                let begun = Instant::now();
                let world = World::builder().options(&options).open(&path).expect("just closed");
                total += begun.elapsed();
                world.close().expect("the disk has room");
            }
            total
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_millis(500));
    targets = read, save, open
}
criterion_main!(benches);
