//! Content that every subject stores: columns of real terrain or of hills from a seed, the names of their blocks, and
//! air.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cg_format::{BlockId, Chunk, Dimension, LocalPos};
use cg_registry::{Catalog, Schema};
use cg_store::cache;

use crate::failure::Failure;
use crate::place::{BOTTOM, HEIGHT, Place};

/// The chunks of a column, without entities: what can be stored at any place.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    chunks: Vec<Arc<Chunk>>,
    /// The same as a host of ours has it. A host of BlazeDB has one pointer too.
    held: cache::Column,
}

impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        self.chunks == other.chunks
    }
}

/// Columns that were gathered once; each measuring process reads them from one file.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) catalog: Catalog,
    pub(crate) schema: Schema,
    pub(crate) dimension: Dimension,
    pub(crate) air: BlockId,
    pub(crate) terrain: Vec<Column>,
    pub(crate) empty: Column,
}

/// Begins the file.
const MAGIC: &[u8] = b"cg-compare columns 1\n";

impl Column {
    /// A column of chunks from the bottom upwards.
    pub(crate) fn new(chunks: Vec<Arc<Chunk>>) -> Self {
        let held = cache::Column::new(BOTTOM, chunks.iter().cloned().map(Some));
        Self { chunks, held }
    }

    /// The chunks from the bottom upwards.
    pub(crate) fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    /// The column as a host of ours has it.
    pub(crate) const fn held(&self) -> &cache::Column {
        &self.held
    }

    /// The same chunks in memory of their own, so that no store can see that they are the same.
    pub(crate) fn copied(&self) -> Self {
        Self::new(self.chunks.iter().map(|chunk| Arc::new(Chunk::clone(chunk))).collect())
    }

    /// Changes one cell of one of its chunks, counted from the bottom.
    ///
    /// # Errors
    /// The block is not registered.
    pub(crate) fn set_block(
        &mut self,
        index: usize,
        cell: LocalPos,
        block: BlockId,
        schema: &Schema,
    ) -> Result<(), Failure> {
        let mut chunks = std::mem::take(&mut self.chunks);
        let mut chunk = Chunk::clone(&chunks[index]);
        chunk.set_block(cell, block, schema)?;
        chunks[index] = Arc::new(chunk);
        *self = Self::new(chunks);
        Ok(())
    }

    /// Bytes of its chunks in their one encoding.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.to_bytes().len() as u64).sum()
    }
}

impl Columns {
    /// All of it, from what was gathered.
    ///
    /// # Errors
    /// The catalog has no block of air.
    pub(crate) fn new(catalog: Catalog, dimension: Dimension, terrain: Vec<Column>) -> Result<Self, Failure> {
        let air = catalog.block_id("minecraft:air").ok_or("the columns have no block of air")?;
        let schema = catalog.current_schema();
        let chunk = Arc::new(Chunk::filled(air, &schema)?);
        let empty = Column::new(std::iter::repeat_n(chunk, HEIGHT).collect());
        Ok(Self { catalog, schema, dimension, air, terrain, empty })
    }

    /// Bytes of all the terrain in its one encoding.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.terrain.iter().map(Column::len_bytes).sum()
    }

    /// The terrain of a place: neighbours are neighbours wherever the columns came from, and repeat after 32.
    pub(crate) fn terrain_at(&self, at: Place) -> &Column {
        let index = at.x.rem_euclid(32) * 32 + at.z.rem_euclid(32);
        &self.terrain[index as usize % self.terrain.len()]
    }

    /// The terrain of a place with one cell of each of its chunks changed, another for each `turn`.
    ///
    /// # Errors
    /// A block is not registered.
    pub(crate) fn changed_at(&self, at: Place, turn: u64) -> Result<Column, Failure> {
        let changed = self.terrain_at(at).chunks.iter().map(|chunk| {
            let mut chunk = Chunk::clone(chunk);
            let (cell, block) = self.change_of(&chunk, turn)?;
            chunk.set_block(cell, block, &self.schema)?;
            chunk.pack();
            Ok::<_, Failure>(Arc::new(chunk))
        });
        Ok(Column::new(changed.collect::<Result<_, _>>()?))
    }

    /// A cell of a chunk, and a block that is not there: a block that the chunk has elsewhere, or air or its neighbour.
    pub(crate) fn change_of(&self, chunk: &Chunk, turn: u64) -> Result<(LocalPos, BlockId), Failure> {
        let index = (turn.wrapping_mul(1_103).wrapping_add(819) % LocalPos::COUNT as u64) as u16;
        let cell = LocalPos::from_index(index).ok_or("a chunk has fewer cells")?;
        let there = chunk.block(cell);
        let other = chunk.palette().iter().map(|kind| kind.block).find(|block| *block != there);
        let neighbour = BlockId::new(self.air.get() ^ 1);
        let spare = if there == self.air { neighbour } else { self.air };
        Ok((cell, other.unwrap_or(spare)))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut out = MAGIC.to_vec();
        let rows = self.catalog.encode_full();
        put_count(&mut out, rows.len())?;
        for (name, row) in &rows {
            put(&mut out, name.as_bytes())?;
            put(&mut out, row)?;
        }
        out.extend(self.dimension.get().to_le_bytes());
        put_count(&mut out, self.terrain.len())?;
        for chunk in self.terrain.iter().flat_map(|column| &column.chunks) {
            put(&mut out, &chunk.to_bytes())?;
        }
        fs::write(path, out).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
    }

    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or is not such a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let mut rest = Input { path, rest: &bytes };
        if rest.take(MAGIC.len())? != MAGIC {
            return Err(format!("{} does not hold columns", path.display()).into());
        }
        let mut rows = Vec::new();
        for _ in 0..rest.count()? {
            rows.push((std::str::from_utf8(rest.bytes()?)?, rest.bytes()?));
        }
        let catalog = Catalog::decode(rows)?;
        let dimension = Dimension::new(rest.number()?);
        let schema = catalog.current_schema();
        let mut terrain = Vec::new();
        for _ in 0..rest.count()? {
            let mut chunks = Vec::with_capacity(HEIGHT);
            for _ in 0..HEIGHT {
                chunks.push(Arc::new(Chunk::decode(rest.bytes()?, &schema)?));
            }
            terrain.push(Column::new(chunks));
        }
        Self::new(catalog, dimension, terrain)
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) -> Result<(), Failure> {
    out.extend(u32::try_from(count)?.to_le_bytes());
    Ok(())
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Failure> {
    put_count(out, bytes.len())?;
    out.extend(bytes);
    Ok(())
}

/// The unread rest of the file.
struct Input<'a> {
    path: &'a Path,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Failure> {
        let short = || format!("{} ends too early: {} bytes are left", self.path.display(), self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn count(&mut self) -> Result<usize, Failure> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into()?) as usize)
    }

    fn number(&mut self) -> Result<u64, Failure> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into()?))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Failure> {
        let count = self.count()?;
        self.take(count)
    }
}
