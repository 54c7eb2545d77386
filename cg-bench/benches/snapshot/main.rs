//! Regions captured and put back, against a restore block by block in the same run.
//!
//! The region has 24×24 columns of 24 sections, 56,623,104 blocks, generated from a seed and all different where there is
//! ground. The host keeps its chunks in a map and counts the changes that it is told. The reference does what servers do:
//! it takes the snapshot as palette and indexes, looks at every block of the region, sets those that differ and tells the
//! host.
//!
//! | damage | what it is |
//! |---|---|
//! | scattered | random cells, so that nearly every section is touched |
//! | clustered | craters of 20 blocks; at 100 % everything is air |
//!
//! One iteration is the whole region. With `--quick` and `--test` it has 4×4 columns.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use cg_bench::world::{Generator, Scene};
use cg_format::{BlockBox, BlockId, BlockPos, Chunk, ChunkAt, ChunkPos, Dimension, Editor as _, LocalPos};
use cg_registry::Catalog;
use cg_snapshot::file::{FileOptions, SnapshotFile};
use cg_snapshot::memory::Memory;
use cg_snapshot::{
    CaptureOptions, Contents, Place, Region, RestoreJob, RestoreOptions, Snapshot, Unverifiable, capture,
};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

const SEED: u64 = 7;
/// Sections of a column.
const HEIGHT: i64 = 24;
const CRATER_RADIUS: i64 = 20;

struct Arena {
    catalog: Catalog,
    host: Memory,
    region: Region,
    snapshot: Arc<Snapshot>,
}

fn side() -> i64 {
    let is_short = std::env::args().any(|arg| arg == "--quick" || arg == "--test");
    if is_short { 4 } else { 24 }
}

fn options() -> CaptureOptions {
    let contents = Contents { entities: false, ..Contents::ALL };
    CaptureOptions { contents, ..CaptureOptions::named("arena") }
}

impl Arena {
    fn new() -> Self {
        let mut catalog = Catalog::new();
        catalog.register(&Generator::registration()).expect("new names");
        let generator = Generator::new(Scene::Hills, SEED, &catalog).expect("registered");
        let bottom = Generator::BOTTOM_CHUNK_Y;
        let last = side() - 1;
        let corner = |x, y, z| ChunkPos::constant(x, y, z);
        let chunks = cg_format::ChunkBox::new(corner(0, bottom, 0), corner(last, bottom + HEIGHT - 1, last));
        let mut host = Memory::new(&catalog);
        for pos in chunks.iter() {
            let at = ChunkAt::new(generator.dimension(), pos);
            host.insert(at, generator.chunk(pos).chunk_without_entities());
        }
        let region = Region::new(generator.dimension(), chunks.blocks());
        let snapshot = capture(&host, &catalog, region, &options()).expect("memory is left");
        Self { catalog, host, region, snapshot: Arc::new(snapshot) }
    }

    fn blocks(&self) -> u64 {
        self.snapshot.info().section_count * LocalPos::COUNT as u64
    }

    /// A host in which a share of all blocks is another one; how many are.
    fn damaged(&self, damage: Damage, percent: u64) -> (Memory, u64) {
        let mut host = self.host.clone();
        let mut dice = Dice(SEED + percent);
        match damage {
            Damage::Clustered if percent < 100 => self.craters(&mut host, &mut dice, percent),
            _ => self.scatter(&mut host, &mut dice, damage, percent),
        }
        let now = capture(&host, &self.catalog, self.region, &options()).expect("memory is left");
        let found = cg_snapshot::diff(&now, &self.snapshot, &mut |_| {}).expect("one region");
        (host, found.blocks)
    }

    fn scatter(&self, host: &mut Memory, dice: &mut Dice, damage: Damage, percent: u64) {
        let schema = self.catalog.current_schema();
        let kinds: Vec<BlockId> = self.snapshot.names().blocks().map(|(id, _)| id).collect();
        for section in self.region.sections() {
            let at = section.at;
            host.edit(at, |chunk| {
                for cell in LocalPos::all() {
                    if percent < 100 && dice.below(100) >= percent {
                        continue;
                    }
                    let old = chunk.block(cell);
                    let new = match damage {
                        Damage::Scattered if percent < 100 => kinds[dice.below(kinds.len() as u64) as usize],
                        // All of them other ones, and few kinds: two that alternate.
                        Damage::Scattered => kinds[usize::from(old == kinds[0])],
                        Damage::Clustered => BlockId::new(0),
                    };
                    chunk.set_block(cell, new, &schema).expect("known");
                }
                chunk.pack();
            });
        }
    }

    fn craters(&self, host: &mut Memory, dice: &mut Dice, percent: u64) {
        let r = CRATER_RADIUS;
        let crater_blocks = (r * r * r * 4) as u64;
        let count = (self.blocks() * percent / 100 / crater_blocks).max(1);
        let (min, max) = (self.region.area().min(), self.region.area().max());
        for _ in 0..count {
            let mut along = |min: i64, max: i64| min + dice.below((max - min) as u64) as i64;
            // Where there is ground.
            let centre = [along(min.x, max.x), along(min.y, min.y + 150), along(min.z, max.z)];
            for dx in -r..=r {
                for dy in -r..=r {
                    for dz in -r..=r {
                        let pos = BlockPos::new(centre[0] + dx, centre[1] + dy, centre[2] + dz);
                        if dx * dx + dy * dy + dz * dz <= r * r && self.region.area().contains(pos) {
                            host.set_block(self.region.dimension(), pos, BlockId::new(0)).expect("known");
                        }
                    }
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    Scattered,
    Clustered,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

/// Restores, and counts what is told.
fn restore(arena: &Arena, host: &mut Memory) -> u64 {
    let snapshot = Arc::clone(&arena.snapshot);
    let mut job = RestoreJob::new(snapshot, &arena.catalog, RestoreOptions::default()).expect("it fits");
    let mut told = 0;
    job.run(host, &mut |change| {
        black_box(change);
        told += 1;
    })
    .expect("memory takes all");
    told
}

/// A snapshot as such servers keep it: for each section a palette and an index for each block.
fn as_indexes(snapshot: &Snapshot) -> Vec<(ChunkAt, Vec<BlockId>, Vec<u16>)> {
    let section = |(section, place): (cg_snapshot::Section, Place<'_>)| {
        let Place::Kept(kept) = place else { return None };
        let chunk = snapshot.decode(section.at, kept).expect("sound");
        let palette: Vec<BlockId> = chunk.palette().iter().map(|entry| entry.block).collect();
        let index = |cell| palette.iter().position(|kind| *kind == chunk.block(cell)).unwrap_or(0) as u16;
        let indexes = LocalPos::all().map(index).collect();
        Some((section.at, palette, indexes))
    };
    snapshot.sections().filter_map(section).collect()
}

fn restore_block_by_block(
    arena: &Arena,
    saved: &[(ChunkAt, Vec<BlockId>, Vec<u16>)],
    host: &mut Memory,
) -> u64 {
    let schema = arena.catalog.current_schema();
    let inside: BlockBox = arena.region.area();
    let mut told = 0;
    for (at, palette, indexes) in saved {
        let Some(mut live) = host.load(*at).unwrap_or_else(|never| match never {}) else { continue };
        for (cell, index) in LocalPos::all().zip(indexes) {
            let pos = at.pos.block(cell);
            if !inside.contains(pos) {
                continue;
            }
            let new = palette[usize::from(*index)];
            if live.block(cell) != new {
                let chunk: &mut Chunk = Arc::make_mut(&mut live);
                chunk.set_block(cell, new, &schema).expect("known");
                black_box((at.dimension, pos, new));
                told += 1;
            }
        }
        host.insert(*at, live);
    }
    told
}

fn describe(arena: &Arena) {
    let info = arena.snapshot.info();
    let single = arena.snapshot.sections().filter(|(_, place)| match place {
        Place::Kept(kept) => kept.bytes().len() < 200,
        _ => false,
    });
    let (single, present) = (single.count() as f64, info.present_count as f64);
    let file = |codec| arena.snapshot.to_bytes(&FileOptions { codec }).expect("sound").len() as f64;
    let blocks = arena.blocks() as f64;
    let (lz4, zstd) = (file(cg_format::codec::Codec::Lz4), file(cg_format::codec::Codec::Zstd));
    eprintln!(
        "{} sections: {:.1} % of one kind, {:.1} % repeated; {} bytes kept, {:.3} per block; in memory {:.3} of that; \
         file {lz4} bytes by LZ4 ({:.3} per block), {zstd} by Zstandard ({:.3})",
        info.section_count,
        100.0 * single / present,
        100.0 * (present - info.unique_count as f64) / present,
        info.unique_bytes,
        info.unique_bytes as f64 / blocks,
        arena.snapshot.memory_bytes() as f64 / info.unique_bytes as f64,
        lz4 / blocks,
        zstd / blocks,
    );
}

fn capturing(criterion: &mut Criterion) {
    let arena = Arena::new();
    describe(&arena);
    let mut group = criterion.benchmark_group("snapshot: capture");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    group.bench_function("from a host", |bench| {
        bench.iter_with_large_drop(|| {
            capture(&arena.host, &arena.catalog, arena.region, &options()).expect("memory is left")
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("snapshot: file");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    group.bench_function("write, LZ4", |bench| {
        bench.iter_with_large_drop(|| arena.snapshot.to_bytes(&FileOptions::default()).expect("sound"));
    });
    let bytes = arena.snapshot.to_bytes(&FileOptions::default()).expect("sound");
    group.bench_function("read, LZ4", |bench| {
        bench.iter_with_large_drop(|| {
            let file = SnapshotFile::open(std::io::Cursor::new(&bytes), cg_format::Limits::default());
            file.and_then(|mut file| file.load(Unverifiable::Fail)).expect("sound")
        });
    });
    group.finish();
}

fn restoring(criterion: &mut Criterion) {
    let arena = Arena::new();
    let saved = as_indexes(&arena.snapshot);
    assert_eq!(arena.region.dimension(), Dimension::new(0), "the generator has one dimension");
    let cases = [
        (Damage::Clustered, 1),
        (Damage::Clustered, 25),
        (Damage::Clustered, 100),
        (Damage::Scattered, 1),
        (Damage::Scattered, 25),
        (Damage::Scattered, 100),
    ];
    for (damage, percent) in cases {
        let (host, blocks) = arena.damaged(damage, percent);
        let name = format!("snapshot: restore, {percent} % {damage:?}").to_lowercase();
        eprintln!("{name}: {blocks} blocks differ, {:.2} %", 100.0 * blocks as f64 / arena.blocks() as f64);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_secs(1));
        group.bench_function("to a host", |bench| {
            bench.iter_batched(
                || host.clone(),
                |mut host| {
                    let told = restore(&arena, &mut host);
                    assert!(told >= blocks, "{told}");
                    host
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function("ref: block by block", |bench| {
            bench.iter_batched(
                || host.clone(),
                |mut host| {
                    black_box(restore_block_by_block(&arena, &saved, &mut host));
                    host
                },
                BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

criterion_group!(benches, capturing, restoring);
criterion_main!(benches);
