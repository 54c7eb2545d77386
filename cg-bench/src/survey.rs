//! Contents of a stored world, in numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use cg_format::chunk::ChunkView;
use cg_format::wire::bits::width_for;
use cg_format::{BlockId, LocalPos};
use cg_store::engine::Usage;
use cg_store::view::Area;
use cg_store::{Error, World};

/// Bytes of a block in a plain array of 16-bit ids.
const RAW_BYTES_PER_BLOCK: u64 = 2;

/// Sums over many chunks. Its `Display` is a table for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// How many blocks there are of each kind, all layers together.
    pub kinds: BTreeMap<BlockId, u64>,
    /// Blocks above layer 0.
    pub upper_blocks: u64,
    /// Component instances of blocks.
    pub components: u64,
    /// References to entities.
    pub references: u64,
    /// How many chunks have each number of kinds of blocks.
    pub palettes: BTreeMap<u64, u64>,
    /// The length of each chunk's own bytes, ascending.
    pub chunk_bytes: Vec<u64>,
    /// Bytes of side data after the chunks.
    pub side_bytes: u64,
    /// Bytes of files that the engine keeps for all of the world.
    pub engine_bytes: u64,
}

impl Survey {
    /// Looks at every chunk of a world. Reads and decodes all of it.
    ///
    /// # Errors
    /// If a chunk is damaged, or the store fails.
    pub fn of(world: &World) -> Result<Self, Error> {
        let catalog = world.catalog();
        let mut survey = Self { engine_bytes: file_bytes(&world.usage()?), ..Self::default() };
        let failed = world.read_view(|view| {
            view.for_each_chunk(Area::World, |stored| {
                // Makes sure that the bytes decode, so that a view of them can be made.
                let stored = stored.and_then(|stored| view.decode(stored).map(|_| stored));
                let stored = match stored {
                    Ok(stored) => stored,
                    Err(error) => return ControlFlow::Break(error),
                };
                let schema = catalog.schema(stored.schema_generation);
                let view = schema.map(|schema| ChunkView::new(stored.value, &schema));
                let view = view.and_then(Result::ok).expect("the chunk was just decoded");
                survey.add(&view, stored.value.len() as u64);
                ControlFlow::Continue(())
            })
        })?;
        survey.chunk_bytes.sort_unstable();
        failed.map_or(Ok(survey), Err)
    }

    /// Chunks.
    pub const fn chunks(&self) -> u64 {
        self.chunk_bytes.len() as u64
    }

    /// Blocks of all layers.
    pub const fn blocks(&self) -> u64 {
        self.chunks() * LocalPos::COUNT as u64 + self.upper_blocks
    }

    /// The length of the chunk that is longer than this part of all, from 0 to 1; 0 without chunks.
    pub fn chunk_bytes_at(&self, part: f64) -> u64 {
        let last = self.chunk_bytes.len().saturating_sub(1);
        self.chunk_bytes.get((last as f64 * part) as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, view: &ChunkView<'_>, value_bytes: u64) {
        self.upper_blocks += count(view.upper_layers().map(|(_, block)| block), &mut self.kinds);
        count(LocalPos::all().map(|cell| view.block(cell)), &mut self.kinds);
        self.components += view.components().count() as u64;
        self.references += view.entities().len() as u64;
        *self.palettes.entry(view.palette().len() as u64).or_default() += 1;
        let chunk_bytes = view.chunk_len_bytes() as u64;
        self.chunk_bytes.push(chunk_bytes);
        self.side_bytes += value_bytes - chunk_bytes;
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (chunks, own) = (self.chunks(), self.chunk_bytes.iter().sum::<u64>());
        let raw = chunks * LocalPos::COUNT as u64 * RAW_BYTES_PER_BLOCK;
        let per_chunk = |bytes: u64| bytes as f64 / chunks.max(1) as f64;
        let ratio = |bytes: u64| raw as f64 / bytes.max(1) as f64;
        writeln!(f, "chunks            {chunks:>14}")?;
        writeln!(f, "blocks            {:>14}  {} of them above layer 0", self.blocks(), self.upper_blocks)?;
        writeln!(f, "distinct blocks   {:>14}", self.kinds.len())?;
        writeln!(f, "components        {:>14}", self.components)?;
        writeln!(f, "entities in them  {:>14}", self.references)?;
        writeln!(f, "\nkinds in a chunk    bits  chunks")?;
        let mut widths: BTreeMap<u32, (u64, u64, u64)> = BTreeMap::new();
        for (kinds, count) in &self.palettes {
            let row = widths.entry(width_for(*kinds)).or_insert((*kinds, *kinds, 0));
            (row.1, row.2) = (*kinds, row.2 + count);
        }
        for (width, (least, most, count)) in widths {
            let range = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            writeln!(f, "  {range:<18}{width:>3}{count:>9}  {:>5.1} %", 100.0 * per_chunk(count))?;
        }
        writeln!(
            f,
            "\nbytes of a chunk    {:.0} on average; half under {}, 99 % under {}, longest {}",
            per_chunk(own),
            self.chunk_bytes_at(0.5),
            self.chunk_bytes_at(0.99),
            self.chunk_bytes_at(1.0)
        )?;
        writeln!(f, "bytes of side data  {:.0} on average", per_chunk(self.side_bytes))?;
        writeln!(f, "\n                         total bytes   per chunk  of raw 16 bits a block")?;
        for (what, bytes) in [
            ("raw blocks", raw),
            ("chunks", own),
            ("chunks and sides", own + self.side_bytes),
            ("on disk, all of it", self.engine_bytes),
        ] {
            writeln!(
                f,
                "{what:<20}{bytes:>16}  {:>10.1}  1/{:<6.1} {:>6.2} %",
                per_chunk(bytes),
                ratio(bytes),
                100.0 * bytes as f64 / raw.max(1) as f64
            )?;
        }
        Ok(())
    }
}

/// Counts blocks by kind, and gives their number.
fn count(blocks: impl Iterator<Item = BlockId>, kinds: &mut BTreeMap<BlockId, u64>) -> u64 {
    let mut count = 0;
    for block in blocks {
        *kinds.entry(block).or_default() += 1;
        count += 1;
    }
    count
}

/// Bytes of the engine's files: tables, blobs and log.
fn file_bytes(usage: &Usage) -> u64 {
    let families = usage.families.iter().map(|family| family.table_bytes + family.blob_bytes);
    families.sum::<u64>() + usage.log_bytes
}
