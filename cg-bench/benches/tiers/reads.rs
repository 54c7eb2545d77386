//! Boxes of chunks and of blocks, and single chunks, from each tier.

use std::hint::black_box;

use cg_bench::order::shuffle;
use cg_bench::raw::{Db, family};
use cg_bench::stored::{Stored, area, view};
use cg_format::{BlockId, CellOrder, LocalPos};
use cg_store::World;
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};

const REFERENCE: &str = "ref: fetch and decode <= 1.3";

/// Each side on a database that was just opened, and on one whose caches are full.
fn cold_and_warm(
    group: &mut BenchmarkGroup<'_, WallTime>,
    stored: &Stored,
    ours: impl Fn(&World),
    reference: impl Fn(&Db),
    name: &str,
) {
    let id = |function: &str, how: &str| BenchmarkId::new(function, format!("{:?} {how}", stored.tier));
    let once = BatchSize::PerIteration;
    group.bench_function(id(REFERENCE, "cold"), |bench| {
        bench.iter_batched_ref(|| stored.open_raw(), |raw| reference(raw), once);
    });
    group.bench_function(id(name, "cold"), |bench| {
        bench.iter_batched_ref(|| stored.open(), |world| ours(world), once);
    });
    let raw = stored.open_raw();
    group.bench_function(id(REFERENCE, "warm"), |bench| bench.iter(|| reference(&raw)));
    drop(raw);
    let world = stored.open();
    group.bench_function(id(name, "warm"), |bench| bench.iter(|| ours(&world)));
}

/// 11×11×24 chunks, as chunks and as a flat array of blocks.
pub(crate) fn boxes(criterion: &mut Criterion, all: &[Stored]) {
    let mut group = criterion.benchmark_group("tiers: chunks of a box");
    group.throughput(Throughput::Elements(view().count() as u64)).sampling_mode(SamplingMode::Flat);
    for stored in all {
        let asked: Vec<_> = view().iter().map(|pos| stored.at(pos)).collect();
        let rows = stored.rows(&asked);
        let ours = |world: &World| {
            for chunk in world.load_many(&asked) {
                black_box(chunk.expect("sound").expect("stored"));
            }
        };
        let reference = |raw: &Db| stored.fetch(raw, &rows, |_, chunk| drop(black_box(chunk)));
        cold_and_warm(&mut group, stored, ours, reference, "load_many");
    }
    group.finish();

    let mut group = criterion.benchmark_group("tiers: blocks of a box");
    group.throughput(Throughput::Elements(view().count() as u64)).sampling_mode(SamplingMode::Flat);
    let blocks = view().blocks();
    let [side_x, side_y, side_z] = blocks.size().map(|side| side as usize);
    let out = std::cell::RefCell::new(vec![0_u16; side_x * side_y * side_z]);
    for stored in all {
        let asked: Vec<_> = view().iter().map(|pos| stored.at(pos)).collect();
        let rows = stored.rows(&asked);
        let dimension = stored.dimension;
        let ours = |world: &World| {
            let mut out = out.borrow_mut();
            let absent =
                world.read_view(|view| view.read_box(dimension, blocks, CellOrder::Xyz, &mut out, short));
            assert_eq!(absent.expect("sound"), 0);
        };
        let reference = |raw: &Db| {
            let out = &mut out.borrow_mut();
            let blank = vec![BlockId::default(); LocalPos::COUNT];
            let mut unpacked: Box<[_; LocalPos::COUNT]> = blank.try_into().expect("as many");
            stored.fetch(raw, &rows, |at, chunk| {
                // The order of the array is the chunk's own: a column of 16 blocks along z stays one.
                chunk.unpack(CellOrder::Xyz, &mut unpacked);
                let min = at.pos.min_block();
                let [x, y, z] = [(min.x, blocks.min().x), (min.y, blocks.min().y), (min.z, blocks.min().z)]
                    .map(|(at, min)| at.abs_diff(min) as usize);
                for (index, column) in unpacked.chunks_exact(16).enumerate() {
                    let row = ((x + index / 16) * side_y + y + index % 16) * side_z + z;
                    for (out, block) in out[row..row + 16].iter_mut().zip(column) {
                        *out = short(*block);
                    }
                }
            });
        };
        check(&stored.open(), &stored.open_raw(), &ours, &reference, &out);
        cold_and_warm(&mut group, stored, ours, reference, "read_box");
    }
    group.finish();
}

/// As a host keeps ids that are few.
fn short(block: BlockId) -> u16 {
    block.get() as u16
}

/// Makes sure that both sides read the same.
fn check(
    world: &World,
    raw: &Db,
    ours: &impl Fn(&World),
    reference: &impl Fn(&Db),
    out: &std::cell::RefCell<Vec<u16>>,
) {
    let read = |read: &dyn Fn()| {
        out.borrow_mut().fill(u16::MAX);
        read();
        out.borrow().clone()
    };
    let [a, b] = [read(&|| ours(world)), read(&|| reference(raw))];
    assert!(a == b && !a.contains(&u16::MAX), "both sides read the same blocks, and all of them");
}

/// One chunk at a time, in no order.
pub(crate) fn single(criterion: &mut Criterion, all: &[Stored]) {
    let mut group = criterion.benchmark_group("tiers: load one chunk");
    for stored in all {
        let mut positions: Vec<_> = area().iter().map(|pos| stored.at(pos)).collect();
        shuffle(&mut positions, 7);
        let mut places = positions.iter().copied().cycle();
        let mut next = || places.next().expect("endless");
        let (world, raw) = (stored.open(), stored.open_raw());
        let family = family(&raw, stored.space());
        group.bench_function(
            BenchmarkId::new("ref: fetch and decode", format!("{:?}", stored.tier)),
            |bench| {
                bench.iter(|| {
                    let at = next();
                    let row = raw.get_pinned_cf(family, stored.row_key(at)).expect("sound files");
                    stored.decode_row(&row.expect("a stored row"), &[at], |_, chunk| drop(black_box(chunk)));
                });
            },
        );
        group.bench_function(BenchmarkId::new("load", format!("{:?}", stored.tier)), |bench| {
            bench.iter(|| world.load(next()).expect("sound").expect("stored"));
        });
    }
    group.finish();
}
