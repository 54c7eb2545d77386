//! Columns: all chunks of one x and z between two heights, returned together.
//!
//! **Invariant**: a column belongs to one epoch, which its chunks share. It is the committed state as long as the epoch
//! is the same.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkPos, Dimension};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::epoch::Epoch;
use crate::storage::error::Error;

/// The chunks of a column at one moment. Cheap to clone; later commits do not change it.
///
/// A host that keeps its columns in this form [saves](crate::WriteBatch::save_column) one without a look at its chunks.
///
/// ```
/// use cg_store::cache::Column;
/// use cg_store::prelude::*;
/// # let world = World::builder().in_memory()?;
/// # let overworld = world.registry().register_dimension("game:overworld")?;
/// # let [stone] = world.registry().register_blocks([":stone"])?;
/// let chunk = std::sync::Arc::new(Chunk::filled(stone, &world.catalog().current_schema())?);
/// let column = Column::new(-4, [Some(chunk.clone()), None, Some(chunk)]);
/// let mut batch = WriteBatch::new();
/// batch.save_column(overworld, 7, 9, column.clone())?;
/// world.submit(batch)?;
/// assert_eq!(world.column(overworld, 7, 9, -4..=-2)?.chunk(-2), column.chunk(-2));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Column(Option<Arc<Held>>);

#[derive(Debug)]
struct Held {
    lowest: i64,
    chunks: Box<[Option<Arc<Chunk>>]>,
    /// `None` if the host made it.
    epoch: Option<Epoch>,
    /// Includes its chunks, as if they were not shared.
    bytes: u64,
}

impl Column {
    /// A column of the host, from its lowest height in chunks upwards; `None` is a height without a chunk.
    ///
    /// Costs a look at the size of each chunk.
    pub fn new(lowest: i64, chunks: impl IntoIterator<Item = Option<Arc<Chunk>>>) -> Self {
        Self::held(lowest, chunks.into_iter().collect(), None)
    }

    /// A column that was read in an epoch.
    pub(super) fn read(lowest: i64, chunks: Box<[Option<Arc<Chunk>>]>, epoch: Epoch) -> Self {
        Self::held(lowest, chunks, Some(epoch))
    }

    fn held(lowest: i64, chunks: Box<[Option<Arc<Chunk>>]>, epoch: Option<Epoch>) -> Self {
        /// The key, the entry, the column itself and the overhead of the cache.
        const ENTRY_BYTES: usize = 192;
        let content: usize = chunks.iter().flatten().map(|chunk| chunk.memory_bytes()).sum();
        let bytes = (ENTRY_BYTES + size_of_val(&*chunks) + content) as u64;
        Self(Some(Arc::new(Held { lowest, chunks, epoch, bytes })))
    }

    /// A column whose chunks are all in cubes that are known to be empty. It is not cached: its cubes are.
    pub(in crate::read) const fn absent() -> Self {
        Self(None)
    }

    /// The epoch in which it was read; `None` if it is not cached: an absent one, or one of the host.
    #[inline]
    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.0.as_ref()?.epoch
    }

    /// The place of its lowest height; `None` if it has no height.
    ///
    /// # Errors
    /// [`Error::Position`] if it ends outside the world.
    pub(crate) fn place(&self, dimension: Dimension, x: i64, z: i64) -> Result<Option<ChunkAt>, Error> {
        let Some(held) = &self.0 else { return Ok(None) };
        let Some(above) = held.chunks.len().checked_sub(1) else { return Ok(None) };
        let lowest = ChunkPos::new(x, held.lowest, z)?;
        ChunkPos::new(x, held.lowest.saturating_add(above as i64), z)?;
        Ok(Some(ChunkAt::new(dimension, lowest)))
    }

    /// About the memory that it takes with its chunks.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |held| held.bytes)
    }

    /// The number of heights that it has, with or without a chunk.
    pub(crate) fn height_count(&self) -> usize {
        self.0.as_ref().map_or(0, |held| held.chunks.len())
    }

    /// The chunk at a height in chunks; `None` if it is not stored, or outside the requested heights.
    pub fn chunk(&self, y: i64) -> Option<&Arc<Chunk>> {
        let held = self.0.as_ref()?;
        let index = usize::try_from(y.checked_sub(held.lowest)?).ok()?;
        held.chunks.get(index)?.as_ref()
    }

    /// The stored chunks with their heights, in ascending order.
    pub fn chunks<'c>(&'c self) -> impl DoubleEndedIterator<Item = (i64, &'c Arc<Chunk>)> {
        let (lowest, chunks) = self.0.as_ref().map_or((0, &[][..]), |held| (held.lowest, &*held.chunks));
        let stored = move |(index, chunk): (usize, &'c Option<Arc<Chunk>>)| {
            Some((lowest + index as i64, chunk.as_ref()?))
        };
        chunks.iter().enumerate().filter_map(stored)
    }

    /// The chunks with their places, in ascending order.
    ///
    /// # Errors
    /// [`Error::Position`] if it ends outside the world.
    pub(crate) fn placed(
        &self,
        dimension: Dimension,
        x: i64,
        z: i64,
    ) -> Result<impl Iterator<Item = (ChunkAt, &Arc<Chunk>)>, Error> {
        self.place(dimension, x, z)?;
        let at = move |y| ChunkPos::new(x, y, z).expect("between two places of the world");
        Ok(self.chunks().map(move |(y, chunk)| (ChunkAt::new(dimension, at(y)), chunk)))
    }

    /// Whether no chunk of it is stored.
    pub fn is_absent(&self) -> bool {
        self.chunks().next().is_none()
    }
}

/// The key of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ColumnAt {
    pub(crate) dimension: Dimension,
    pub(crate) x: i64,
    pub(crate) z: i64,
    pub(crate) lowest: i64,
    pub(crate) highest: i64,
}

/// The cached columns by key.
pub(super) type Columns = Cache<ColumnAt, Column, Weight>;

#[derive(Debug, Clone)]
pub(super) struct Weight;

impl Weighter<ColumnAt, Column> for Weight {
    fn weight(&self, _: &ColumnAt, column: &Column) -> u64 {
        column.memory_bytes()
    }
}
