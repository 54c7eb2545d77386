//! Regions that are captured, and what becomes of them before they are put back.

use std::collections::HashSet;
use std::sync::Arc;

use cg_bench::world::{Generator, Scene};
use cg_format::codec::Codec;
use cg_format::{BlockId, BlockPos, ChunkAt, ChunkPos, LocalPos, SchemaView as _};
use cg_registry::Catalog;
use cg_snapshot::file::FileOptions;
use cg_snapshot::memory::Memory;
use cg_snapshot::{CaptureOptions, Contents, KeptSection, Place, Region, Snapshot, capture};

const SEED: u64 = 7;
/// Sections of a column.
const HEIGHT: i64 = 24;
const CRATER_RADIUS: i64 = 20;

/// A host, the region of it that is captured, and the capture.
pub(super) struct Arena {
    pub(super) catalog: Catalog,
    pub(super) host: Memory,
    pub(super) region: Region,
    pub(super) snapshot: Arc<Snapshot>,
}

/// Whether everything is small and done once.
pub(super) fn is_short() -> bool {
    std::env::args().any(|arg| arg == "--quick" || arg == "--test")
}

fn side() -> i64 {
    if is_short() { 4 } else { 24 }
}

/// Blocks with their components, as an arena is kept: light is computed again, and entities in it go on.
pub(super) fn options() -> CaptureOptions {
    let contents = Contents { entities: false, sides: false, ..Contents::ALL };
    CaptureOptions { contents, ..CaptureOptions::named("arena") }
}

impl Arena {
    pub(super) fn generated() -> Self {
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
        Self::of(catalog, host, Region::new(generator.dimension(), chunks.blocks()))
    }

    pub(super) fn of(catalog: Catalog, host: Memory, region: Region) -> Self {
        let snapshot = capture(&host, &catalog, region, &options()).expect("memory is left");
        Self { catalog, host, region, snapshot: Arc::new(snapshot) }
    }

    /// Blocks of the chunks that are there.
    pub(super) fn blocks(&self) -> u64 {
        self.snapshot.info().present_count * LocalPos::COUNT as u64
    }

    /// A host in which a share of all blocks is another one; how many are.
    pub(super) fn damaged(&self, damage: Damage, percent: u64) -> (Memory, u64) {
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

    fn air(&self) -> BlockId {
        let named = |name| self.catalog.block_id(name);
        named(":air").or_else(|| named("minecraft:air")).unwrap_or_default()
    }

    fn scatter(&self, host: &mut Memory, dice: &mut Dice, damage: Damage, percent: u64) {
        let schema = self.catalog.current_schema();
        // Those without components, as a server would place them.
        let is_plain = |block: &BlockId| schema.components_of(*block).is_some_and(<[_]>::is_empty);
        let kinds: Vec<BlockId> =
            self.snapshot.names().blocks().map(|(id, _)| id).filter(is_plain).take(64).collect();
        let other = |old: BlockId| kinds[usize::from(old == kinds[0])];
        let air = self.air();
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
                        Damage::Scattered => other(old),
                        Damage::Clustered => air,
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
            let mut along = |min: i64, max: i64| min + dice.below((max - min).max(1) as u64) as i64;
            // Where there is ground.
            let centre = [along(min.x, max.x), along(min.y, max.y.min(min.y + 150)), along(min.z, max.z)];
            for dx in -r..=r {
                for dy in -r..=r {
                    for dz in -r..=r {
                        let pos = BlockPos::new(centre[0] + dx, centre[1] + dy, centre[2] + dz);
                        if dx * dx + dy * dy + dz * dz <= r * r && self.region.area().contains(pos) {
                            host.set_block(self.region.dimension(), pos, self.air()).expect("known");
                        }
                    }
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Damage {
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

/// Prints what regions are made of, all together.
pub(super) fn describe(name: &str, arenas: &[Arena]) {
    let mut of_one_kind = 0;
    let (mut rest, mut rest_bytes, mut sections, mut present) = (0, 0, 0, 0);
    let (mut kept_bytes, mut memory_bytes, mut names_bytes, mut unique, mut blocks) = (0, 0, 0, 0, 0);
    let (mut lz4, mut zstd, mut with_sides) = (0, 0, 0);
    for arena in arenas {
        let (info, snapshot) = (arena.snapshot.info(), &arena.snapshot);
        let is_of_one_kind = |kept: &KeptSection<'_>| {
            snapshot.decode(ChunkAt::default(), *kept).expect("sound").kinds().len() == 1
        };
        let ones: HashSet<*const u8> =
            snapshot.kept().filter(is_of_one_kind).map(|kept| kept.bytes().as_ptr()).collect();
        for kept in snapshot.kept().filter(|kept| !ones.contains(&kept.bytes().as_ptr())) {
            rest += 1;
            rest_bytes += kept.bytes().len();
        }
        for (_, place) in snapshot.sections() {
            of_one_kind +=
                u64::from(matches!(place, Place::Kept(kept) if ones.contains(&kept.bytes().as_ptr())));
        }
        sections += info.section_count;
        present += info.present_count;
        unique += info.unique_count;
        kept_bytes += info.unique_bytes;
        memory_bytes += snapshot.memory_bytes();
        names_bytes += snapshot.names().memory_bytes();
        blocks += arena.blocks();
        let file =
            |snapshot: &Snapshot, codec| snapshot.to_bytes(&FileOptions { codec }).expect("sound").len();
        lz4 += file(snapshot, Codec::Lz4);
        zstd += file(snapshot, Codec::Zstd);
        let whole = CaptureOptions { contents: Contents { entities: false, ..Contents::ALL }, ..options() };
        let whole = capture(&arena.host, &arena.catalog, arena.region, &whole).expect("memory is left");
        with_sides += file(&whole, Codec::Lz4);
    }
    let per_block = |bytes: usize, blocks: u64| bytes as f64 / blocks.max(1) as f64;
    let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    eprintln!(
        "{name}: {sections} sections, {present} there: {:.1} % of one kind, {:.1} % repeated; the {rest} others have \
         {:.3} bytes per block; {kept_bytes} bytes kept, {:.3} per block; in memory {:.3} of that, names apart {:.3}; file {lz4} bytes by \
         LZ4 ({:.3} per block), {zstd} by Zstandard ({:.3}), {with_sides} by LZ4 with side data ({:.3})",
        percent(of_one_kind, present),
        percent(present - unique, present),
        per_block(rest_bytes, rest * LocalPos::COUNT as u64),
        kept_bytes as f64 / blocks.max(1) as f64,
        memory_bytes as f64 / kept_bytes.max(1) as f64,
        (memory_bytes - names_bytes) as f64 / kept_bytes.max(1) as f64,
        per_block(lz4, blocks),
        per_block(zstd, blocks),
        per_block(with_sides, blocks),
    );
}
