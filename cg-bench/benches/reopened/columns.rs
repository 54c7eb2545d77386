//! Columns of a world that was just opened, and of one that has next to no memory.

use std::cell::LazyCell;
use std::hint::black_box;

use cg_bench::order::shuffle;
use cg_bench::raw::{self, Db};
use cg_bench::saves::regions;
use cg_bench::settled::options;
use cg_bench::stored::{Contents, Rows, SEED, Stored};
use cg_format::{ChunkAt, Tier};
use cg_store::Resources;
use cg_store::{World, WorldOptions};
use criterion::{BatchSize, BenchmarkId, Criterion, SamplingMode, Throughput};

/// The least that an engine takes: a half of it is RocksDB's block cache, a quarter its blob cache.
const ENGINE_BYTES: usize = 16 << 20;
/// Less than a column of terrain.
const CACHE_BYTES: u64 = 64 << 10;

/// A column's place and heights, and its chunks.
type Column = ((i64, i64), Vec<ChunkAt>);

/// A stored world, made when it is first needed. A world that a name filter leaves out is not made.
type Lazy = LazyCell<Stored, Box<dyn FnOnce() -> Stored>>;

fn all() -> Vec<(&'static str, Tier, Lazy)> {
    let terrain = match regions("columns of real saves; hills instead") {
        Some(files) => {
            let name = "1.19.4_prismarine_r.0.0.mca";
            Contents::Save(files.into_iter().find(|file| file.ends_with(name)).expect(name))
        }
        None => Contents::Hills,
    };
    let mut all = Vec::new();
    for (name, contents) in [("empty", Contents::Empty), ("terrain", terrain)] {
        for tier in Tier::ALL {
            let contents = contents.clone();
            let stored: Lazy = LazyCell::new(Box::new(move || Stored::new(&contents, tier)));
            all.push((name, tier, stored));
        }
    }
    all
}

/// A column of 24 chunks at a time, in no order, with memory for less than one.
pub(crate) fn columns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reopened: a column of 24 chunks");
    for (name, tier, stored) in &all() {
        group.bench_function(BenchmarkId::new(reference(name), format!("{name}, {tier:?}")), |bench| {
            let raw = raw::open(&stored.copy, ENGINE_BYTES / 4 * 3).expect("RocksDB's own files");
            let columns = columns_of(stored);
            let rows: Vec<Rows> = columns.iter().map(|(_, chunks)| stored.rows(chunks)).collect();
            let mut turn = rows.iter().cycle();
            bench.iter(|| {
                let rows = turn.next().expect("endless");
                stored.fetch(&raw, rows, |_, chunk| drop(black_box(chunk)));
            });
        });
        group.bench_function(BenchmarkId::new("column", format!("{name}, {tier:?}")), |bench| {
            let world = open_tiny(stored);
            let heights = stored.view.min().y()..=stored.view.max().y();
            let columns = columns_of(stored);
            let mut turn = columns.iter().cycle();
            bench.iter(|| {
                let ((x, z), _) = *turn.next().expect("endless");
                let column = world.column(stored.dimension, x, z, heights.clone()).expect("sound");
                assert_eq!(column.chunks().count(), 24);
                black_box(column);
            });
        });
    }
    group.finish();
}

/// The whole view, by a world that was just opened; opening takes no part.
pub(crate) fn areas(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reopened: 11×11 columns");
    group.throughput(Throughput::Elements(121)).sampling_mode(SamplingMode::Flat);
    for (name, tier, stored) in &all() {
        let asked = || stored.view.iter().map(|pos| stored.at(pos)).collect::<Vec<_>>();
        group.bench_function(BenchmarkId::new(reference(name), format!("{name}, {tier:?}")), |bench| {
            let rows = stored.rows(&asked());
            let fetch = |raw: &mut Db| stored.fetch(raw, &rows, |_, chunk| drop(black_box(chunk)));
            bench.iter_batched_ref(|| stored.open_raw(), fetch, BatchSize::PerIteration);
        });
        group.bench_function(BenchmarkId::new("load_many", format!("{name}, {tier:?}")), |bench| {
            let asked = asked();
            let load = |world: &mut World| {
                for chunk in world.load_many(&asked) {
                    black_box(chunk.expect("sound").expect("stored"));
                }
            };
            bench.iter_batched_ref(|| stored.open(), load, BatchSize::PerIteration);
        });
    }
    group.finish();
}

/// Of chunks of air the time is stated, not the ratio.
fn reference(name: &str) -> &'static str {
    if name == "empty" { "ref: fetch and decode" } else { "ref: fetch and decode <= 1.3" }
}

fn open_tiny(stored: &Stored) -> World {
    let resources = Some(Resources::new(ENGINE_BYTES, 2));
    let tiny = WorldOptions { cache_bytes: CACHE_BYTES, resources, ..WorldOptions::process() };
    World::builder().options(&options(stored.tier, tiny)).open(&stored.world).expect("just closed")
}

/// The columns of the view, in an order that no cache expects.
fn columns_of(stored: &Stored) -> Vec<Column> {
    let (min, max) = (stored.view.min(), stored.view.max());
    let mut places: Vec<_> =
        (min.x()..=max.x()).flat_map(|x| (min.z()..=max.z()).map(move |z| (x, z))).collect();
    shuffle(&mut places, SEED);
    let chunks = |(x, z)| stored.view.iter().filter(move |pos| (pos.x(), pos.z()) == (x, z));
    places.into_iter().map(|place| (place, chunks(place).map(|pos| stored.at(pos)).collect())).collect()
}
