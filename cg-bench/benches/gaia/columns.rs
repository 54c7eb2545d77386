//! The columns that are restored, and what becomes of them before.

use std::sync::Arc;

use cg_bench::world::{Generator, Scene};
use cg_format::{BlockId, Chunk, ChunkAt, ChunkBox, ChunkPos, Editor as _, LocalPos, SchemaView as _};
use cg_registry::Catalog;
use cg_snapshot::file::FileOptions;
use cg_snapshot::memory::Memory;
use cg_snapshot::{CaptureOptions, Contents, Region, Snapshot, capture};

const SEED: u64 = 7;
/// Sections of a column.
pub(super) const HEIGHT: i64 = 24;

/// One column of chunks.
pub(super) struct Column {
    pub(super) region: Region,
    pub(super) at: Vec<ChunkAt>,
    pub(super) snapshot: Arc<Snapshot>,
    /// The snapshot as a file.
    pub(super) file: Vec<u8>,
}

/// The columns of an arena.
pub(super) struct Columns {
    pub(super) catalog: Catalog,
    pub(super) host: Memory,
    pub(super) all: Vec<Column>,
    /// All columns in one snapshot.
    pub(super) whole: Snapshot,
}

/// A host in which some blocks are others.
pub(super) struct Damaged {
    pub(super) host: Memory,
    /// The number of blocks that are others.
    pub(super) blocks: u64,
}

/// Blocks with their components, as an arena is kept: light is computed again, and entities in it go on.
pub(super) fn options() -> CaptureOptions {
    let contents = Contents { entities: false, sides: false, ..Contents::ALL };
    CaptureOptions { contents, ..CaptureOptions::named("arena") }
}

impl Columns {
    /// Seeded terrain by the ids of a catalog that knows its names, this many columns along each side.
    pub(super) fn generated(catalog: Catalog, side: i64) -> Self {
        let generator = Generator::new(Scene::Hills, SEED, &catalog).expect("registered");
        let (dimension, bottom) = (generator.dimension(), Generator::BOTTOM_CHUNK_Y);
        let corner = |x, top, z| ChunkPos::constant(x, bottom + top, z);
        let mut host = Memory::new(&catalog);
        let around = ChunkBox::new(corner(0, 0, 0), corner(side - 1, HEIGHT - 1, side - 1));
        for pos in around.iter() {
            host.insert(ChunkAt::new(dimension, pos), generator.chunk(pos).chunk_without_entities());
        }
        let region = |chunks: ChunkBox| Region::new(dimension, chunks.blocks());
        let captured = |region: Region| capture(&host, &catalog, region, &options()).expect("memory is left");
        let column = |x, z| {
            let chunks = ChunkBox::new(corner(x, 0, z), corner(x, HEIGHT - 1, z));
            let (region, at) =
                (region(chunks), chunks.iter().map(|pos| ChunkAt::new(dimension, pos)).collect());
            let snapshot = Arc::new(captured(region));
            let file = snapshot.to_bytes(&FileOptions::default()).expect("sound");
            Column { region, at, snapshot, file }
        };
        let all = (0..side).flat_map(|x| (0..side).map(move |z| (x, z))).map(|(x, z)| column(x, z)).collect();
        let whole = captured(region(around));
        Self { catalog, host, all, whole }
    }

    /// A host in which this share of the blocks of each column is another one.
    pub(super) fn damaged(&self, percent: u64) -> Damaged {
        let schema = self.catalog.current_schema();
        // Those without components, as a server would place them.
        let is_plain = |block: &BlockId| schema.components_of(*block).is_some_and(<[_]>::is_empty);
        let kinds: Vec<BlockId> =
            self.whole.names().blocks().map(|(id, _)| id).filter(is_plain).take(64).collect();
        let mut bits = SEED + percent;
        let mut below = |end: u64| {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (bits >> 33) % end
        };
        let mut host = self.host.clone();
        let mut blocks = 0;
        for at in self.all.iter().flat_map(|column| &column.at).filter(|_| percent > 0) {
            let damage = |chunk: &mut Chunk| {
                for cell in LocalPos::all() {
                    if below(100) >= percent {
                        continue;
                    }
                    let old = chunk.block(cell);
                    // Few kinds if all are others: two that alternate.
                    let count = if percent < 100 { kinds.len() as u64 } else { 1 };
                    let first = below(count) as usize;
                    let new =
                        if kinds[first] == old { kinds[(first + 1) % kinds.len()] } else { kinds[first] };
                    chunk.set_block(cell, new, &schema).expect("known");
                    blocks += 1;
                }
                chunk.pack();
            };
            host.edit(*at, damage).expect("it is there");
        }
        Damaged { host, blocks }
    }

    /// The memory of the snapshots of all columns, and of one snapshot of everything.
    pub(super) fn memory_bytes(&self) -> [usize; 2] {
        let columns = self.all.iter().map(|column| column.snapshot.memory_bytes()).sum();
        [columns, self.whole.memory_bytes()]
    }

    /// The chunks of a host, by column, each as a value of its own.
    pub(super) fn chunks(&self, host: &Memory) -> Vec<Vec<(ChunkAt, Arc<Chunk>)>> {
        let mut host = host.clone();
        let mut own = |at: &ChunkAt| {
            let chunk = host.load(*at).unwrap_or_else(|never| match never {}).expect("it is there");
            (*at, Arc::new(Chunk::clone(&chunk)))
        };
        self.all.iter().map(|column| column.at.iter().map(&mut own).collect()).collect()
    }

    /// A host that shares no chunk with another one.
    pub(super) fn own(&self, host: &Memory) -> Memory {
        let mut own = Memory::new(&self.catalog);
        self.chunks(host).into_iter().flatten().for_each(|(at, chunk)| own.insert(at, chunk));
        own
    }
}
