//! Columns: all chunks of one x and z between two heights, returned together.
//!
//! **Invariant**: a column belongs to one epoch, which its chunks share. It is the committed state as long as the epoch
//! is the same.

use std::sync::Arc;

use cg_format::Dimension;
use cg_format::chunk::Chunk;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::epoch::Epoch;

/// The chunks of a column at one moment. Cheap to clone; later commits do not change it.
#[derive(Debug, Clone)]
pub struct Column(Option<Arc<Held>>);

#[derive(Debug)]
struct Held {
    lowest: i64,
    chunks: Box<[Option<Arc<Chunk>>]>,
    epoch: Epoch,
    /// Includes its chunks, as if they were not shared.
    bytes: u64,
}

impl Column {
    pub(super) fn new(lowest: i64, chunks: Box<[Option<Arc<Chunk>>]>, epoch: Epoch) -> Self {
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

    /// The epoch in which it was read; `None` of an absent one, which is not cached.
    #[inline]
    pub(super) fn epoch(&self) -> Option<Epoch> {
        Some(self.0.as_ref()?.epoch)
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
        column.0.as_ref().map_or(0, |held| held.bytes)
    }
}
