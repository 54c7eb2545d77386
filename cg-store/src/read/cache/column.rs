//! Columns: the chunks above each other, handed out together.
//!
//! **Invariant**: a column is of one epoch, and its chunks share that epoch: it is what is committed for as long as
//! the epoch stays the same.

use std::sync::Arc;

use cg_format::Dimension;
use cg_format::chunk::Chunk;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::epoch::Epoch;

/// Chunks that stand above each other, as they were at one moment. Cheap to clone; later commits do not change it.
#[derive(Debug, Clone)]
pub struct Column(Arc<Held>);

#[derive(Debug)]
struct Held {
    lowest: i64,
    chunks: Box<[Option<Arc<Chunk>>]>,
    epoch: Epoch,
    /// With its chunks, as if nobody else had them.
    bytes: u64,
}

impl Column {
    pub(super) fn new(lowest: i64, chunks: Box<[Option<Arc<Chunk>>]>, epoch: Epoch) -> Self {
        /// The key, the entry, the column itself and the cache's own bookkeeping.
        const ENTRY_BYTES: usize = 192;
        let content: usize = chunks.iter().flatten().map(|chunk| chunk.memory_bytes()).sum();
        let bytes = (ENTRY_BYTES + size_of_val(&*chunks) + content) as u64;
        Self(Arc::new(Held { lowest, chunks, epoch, bytes }))
    }

    /// When it was true.
    #[inline]
    pub(super) fn epoch(&self) -> Epoch {
        self.0.epoch
    }

    /// The chunk at a height in chunks; `None` if it is not stored, or lies outside what was asked for.
    pub fn chunk(&self, y: i64) -> Option<&Arc<Chunk>> {
        let index = usize::try_from(y.checked_sub(self.0.lowest)?).ok()?;
        self.0.chunks.get(index)?.as_ref()
    }

    /// The stored chunks with their heights, from the lowest up.
    pub fn chunks<'c>(&'c self) -> impl DoubleEndedIterator<Item = (i64, &'c Arc<Chunk>)> {
        let lowest = self.0.lowest;
        let stored = move |(index, chunk): (usize, &'c Option<Arc<Chunk>>)| {
            Some((lowest + index as i64, chunk.as_ref()?))
        };
        self.0.chunks.iter().enumerate().filter_map(stored)
    }

    /// Whether nothing of it is stored.
    pub fn is_absent(&self) -> bool {
        self.0.chunks.iter().all(Option::is_none)
    }
}

/// Which column is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ColumnAt {
    pub(crate) dimension: Dimension,
    pub(crate) x: i64,
    pub(crate) z: i64,
    pub(crate) lowest: i64,
    pub(crate) highest: i64,
}

/// The columns in memory, by what was asked for.
pub(super) type Columns = Cache<ColumnAt, Column, Weight>;

#[derive(Debug, Clone)]
pub(super) struct Weight;

impl Weighter<ColumnAt, Column> for Weight {
    fn weight(&self, _: &ColumnAt, column: &Column) -> u64 {
        column.0.bytes
    }
}
