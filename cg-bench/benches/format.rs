//! Chunks as bytes, against copying, LZ4 and plain arrays.
//!
//! The chunks are those of one seed: `terrain` is a surface without components, `hut` one with a hut and the data of its
//! furniture, and `library` has a thousand component instances.
//!
//! Unpacking 4,096 ids was measured with hand-written kernels when the format was designed. For widths of 1 to 8 bits the
//! best portable one took 0.8, 0.7, 2.5, 1.3, 2.6, 2.4, 2.7 and 2.3 us to 16-bit ids, the one with `pdep` and AVX2 between
//! 0.27 and 0.58 us; a bit loop took 14 to 84 us. Ours is portable, has no `unsafe`, and writes 32-bit ids.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;

use cg_bench::world::{Generator, Scene};
use cg_format::chunk::{CellLayer, Chunk, ChunkView};
use cg_format::lineage::{Lineage, Opening};
use cg_format::wire::bits;
use cg_format::{BlockId, CellOrder, ChunkPos, ComponentId, LocalPos};
use cg_registry::Catalog;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SEED: u64 = 7;

/// One chunk.
struct Sample {
    name: &'static str,
    generator: Generator,
    chunk: Chunk,
    bytes: Vec<u8>,
}

fn samples() -> [Sample; 3] {
    let mut catalog = Catalog::new();
    catalog.register(&Generator::registration()).expect("a new catalog takes any names");
    let generator = |scene| Generator::new(scene, SEED, &catalog).expect("registered above");
    let surface = |has_components| {
        let hills = generator(Scene::Hills);
        let mut chunks = (0..).map(|x| hills.chunk(ChunkPos::constant(x, 4, 0)).chunk);
        let fits =
            |chunk: &Chunk| chunk.kinds().len() > 4 && (chunk.components().count() > 0) == has_components;
        chunks.find(fits).expect("hills never end")
    };
    let library = generator(Scene::Library).chunk(ChunkPos::constant(0, 0, 0)).chunk;
    [
        ("terrain", Scene::Hills, surface(false)),
        ("hut", Scene::Hills, surface(true)),
        ("library", Scene::Library, library),
    ]
    .map(|(name, scene, chunk)| {
        let bytes = chunk.to_bytes();
        Sample { name, generator: generator(scene), chunk, bytes }
    })
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode a chunk");
    for Sample { name, generator, chunk, bytes } in samples() {
        let schema = generator.schema();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        references(&mut group, name, &bytes, Direction::Out);
        group.bench_function(BenchmarkId::new("view", name), |bench| {
            bench.iter(|| ChunkView::new(black_box(&bytes), schema).map(|view| view.chunk_len_bytes()));
        });
        group.bench_function(BenchmarkId::new("decode", name), |bench| {
            bench.iter(|| Chunk::decode(black_box(&bytes), schema));
        });
        let mut blocks = vec![BlockId::default(); LocalPos::COUNT];
        let blocks: &mut [BlockId; LocalPos::COUNT] = blocks.as_mut_slice().try_into().expect("4,096");
        group.bench_function(BenchmarkId::new("unpack all ids", name), |bench| {
            bench.iter(|| black_box(&chunk).unpack(CellOrder::Xyz, black_box(blocks)));
        });
    }
    group.finish();
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode a chunk");
    for Sample { name, generator, chunk, bytes } in samples() {
        let schema = generator.schema();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        references(&mut group, name, &bytes, Direction::In);
        let mut out = Vec::with_capacity(2 * bytes.len());
        group.bench_function(BenchmarkId::new("as decoded", name), |bench| {
            bench.iter(|| {
                out.clear();
                black_box(&chunk).encode(&mut out);
            });
        });
        // An edit makes the encoder look for the canonical order of the palette again.
        let mut edited = chunk.clone();
        let cell = LocalPos::new(8, 8, 8);
        let other = chunk.palette().last().expect("a chunk has a block").block;
        edited.set_block(cell, other, schema).expect("the block is known");
        group.bench_function(BenchmarkId::new("edited", name), |bench| {
            bench.iter(|| {
                out.clear();
                black_box(&edited).encode(&mut out);
            });
        });
    }
    group.finish();
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

/// Measures other work on the same bytes, as references.
fn references(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, bytes: &[u8], direction: Direction) {
    let mut copy = vec![0; bytes.len()];
    group.bench_function(BenchmarkId::new("ref: memcpy", name), |bench| {
        bench.iter(|| black_box(&mut copy).copy_from_slice(black_box(bytes)));
    });
    let mut out = vec![0; lz4_flex::block::get_maximum_output_size(bytes.len())];
    let packed_len = lz4_flex::block::compress_into(bytes, &mut out).expect("room for the worst case");
    let packed = out[..packed_len].to_vec();
    group.bench_function(BenchmarkId::new("ref: lz4", name), |bench| match direction {
        Direction::In => {
            bench.iter(|| lz4_flex::block::compress_into(black_box(bytes), black_box(&mut out)));
        }
        Direction::Out => {
            bench.iter(|| lz4_flex::block::decompress_into(black_box(&packed), black_box(&mut out)));
        }
    });
}

fn unpack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("unpack 4096 ids");
    group.throughput(Throughput::Elements(LocalPos::COUNT as u64));
    let mut ids = vec![0_u32; LocalPos::COUNT];
    let plain = ids.clone();
    group.bench_function("ref: memcpy", |bench| {
        bench.iter(|| black_box(&mut ids).copy_from_slice(black_box(&plain)));
    });
    for width in 1..=8 {
        let values: Vec<u32> =
            (0..LocalPos::COUNT as u32).map(|i| i.wrapping_mul(0x9e37_79b1) >> (32 - width)).collect();
        let mut packed = Vec::new();
        bits::pack(&values, width, &mut packed);
        group.bench_function(BenchmarkId::new("unpack", width), |bench| {
            bench.iter(|| bits::unpack(black_box(&packed), width, black_box(&mut ids)));
        });
        // Checked also when another benchmark was asked for and this one did not run.
        bits::unpack(&packed, width, &mut ids);
        assert_eq!(ids, values);
    }
    group.finish();
}

/// Places in an order that no cache expects.
struct Places<T> {
    places: Vec<T>,
    next: usize,
}

impl<T: Copy> Places<T> {
    fn new(places: impl Iterator<Item = T>) -> Self {
        let mut places: Vec<T> = places.collect();
        // A Fisher-Yates shuffle with a small generator: always the same order.
        let mut bits = SEED;
        for last in (1..places.len()).rev() {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            places.swap(last, (bits >> 33) as usize % (last + 1));
        }
        Self { places, next: 0 }
    }

    fn next(&mut self) -> T {
        self.next = if self.next + 1 < self.places.len() { self.next + 1 } else { 0 };
        self.places[self.next]
    }
}

fn access(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("access in a view");
    let mut cells = Places::new(LocalPos::all());
    let array: Vec<u16> = (0..LocalPos::COUNT as u16).collect();
    group.bench_function("ref: array of u16", |bench| {
        bench.iter(|| black_box(&array)[usize::from(cells.next().index())]);
    });
    for Sample { name, generator, bytes, .. } in samples() {
        let view = ChunkView::new(&bytes, generator.schema()).expect("just encoded");
        group.bench_function(BenchmarkId::new("block", name), |bench| {
            bench.iter(|| black_box(&view).block(cells.next()));
        });
        group.bench_function(BenchmarkId::new("layer 1", name), |bench| {
            bench.iter(|| black_box(&view).layer(cells.next(), 1));
        });
        let mut instances = Places::new(view.components().map(|(component, at, _)| (component, at)));
        if !instances.places.is_empty() {
            group.bench_function(BenchmarkId::new("component", name), |bench| {
                bench.iter(|| component(black_box(&view), instances.next()));
            });
        }
    }
    group.finish();
}

fn component<'a>(view: &ChunkView<'a>, (component, at): (ComponentId, CellLayer)) -> Option<&'a [u8]> {
    view.component(at, component)
}

/// The list of openings as a world reads it, against a copy of its bytes, and the search for the opening of a commit.
fn openings(criterion: &mut Criterion) {
    for count in [1, 1_000, 100_000] {
        let mut lineage = Lineage::default();
        let mut rows = Vec::<Vec<u8>>::new();
        for number in 1..=count {
            lineage.add(Opening { first_commit: 7 * number, number });
            let (index, openings) = lineage.newest_row().expect("one was added");
            rows.resize(index as usize + 1, Vec::new());
            if openings.len() == Lineage::OPENINGS_PER_ROW || number == count {
                Lineage::encode_row(openings, rows.last_mut().expect("it has that row"));
            }
        }
        let mut group = criterion.benchmark_group(format!("{count} openings"));
        group.bench_function("read", |bench| {
            bench.iter(|| {
                let mut read = Lineage::default();
                for row in &rows {
                    read.decode_row(row).expect("it was encoded");
                }
                read
            });
        });
        group.bench_function("copy the bytes", |bench| bench.iter(|| rows.concat()));
        let mut commits = Places::new((1..=count).map(|number| 7 * number));
        group.bench_function("of any commit", |bench| bench.iter(|| lineage.opening_of(commits.next())));
        group.bench_function("of the newest commit", |bench| bench.iter(|| lineage.opening_of(u64::MAX)));
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50).measurement_time(std::time::Duration::from_secs(2))
        .warm_up_time(std::time::Duration::from_millis(500));
    targets = decode, encode, unpack, access, openings
}
criterion_main!(benches);
