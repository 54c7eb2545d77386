//! Decoded rows of chunks in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use cg_store::layer::{Mutex, MutexGuard, rank};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::row::Row;

/// The rows of chunks in memory, each equal to the one in the engine.
pub(super) struct RowCache {
    rows: Cache<(u64, ChunkAt), Row<Arc<Chunk>>, Weight>,
    /// Held while rows are written and replaced in memory.
    publishing: Mutex<(), rank::OverlayPublishing>,
    /// How many batches were written or have failed.
    written: AtomicU64,
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<(u64, ChunkAt), Row<Arc<Chunk>>> for Weight {
    fn weight(&self, _: &(u64, ChunkAt), row: &Row<Arc<Chunk>>) -> u64 {
        /// The size of an entry without its chunk.
        const ENTRY_BYTES: usize = 160;
        let bytes = match &row.value {
            Lookup::Found(chunk) => chunk.memory_bytes(),
            Lookup::Tombstone | Lookup::NotFound => 0,
        };
        (ENTRY_BYTES + bytes) as u64
    }
}

/// Rows are written until this is dropped. Readers insert nothing meanwhile.
pub(super) struct Publishing<'c> {
    cache: &'c RowCache,
    _guard: MutexGuard<'c, ()>,
}

impl RowCache {
    pub(super) fn new(cache_bytes: u64) -> Self {
        /// The size of a typical decoded chunk; only a hint for the size of the tables.
        const TYPICAL_BYTES: u64 = 2048;
        let capacity = (cache_bytes / TYPICAL_BYTES) as usize;
        let rows = Cache::with_weighter(capacity, cache_bytes, Weight);
        Self { rows, publishing: Mutex::default(), written: AtomicU64::default() }
    }

    pub(super) fn get(&self, lease: u64, at: ChunkAt) -> Option<Row<Arc<Chunk>>> {
        self.rows.get(&(lease, at))
    }

    /// Begins a read of the engine. [`read`](Self::read) takes the returned number.
    pub(super) fn begin_read(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Inserts a row that was read, unless something was written since the read began.
    pub(super) fn read(&self, before: u64, lease: u64, at: ChunkAt, row: &Row<Arc<Chunk>>) {
        if let Some(_nothing_is_written) = self.publishing.try_lock()
            && self.written.load(Ordering::Acquire) == before
        {
            self.rows.insert((lease, at), row.clone());
        }
    }

    /// Waits for the right to write rows of chunks, and removes them from memory.
    pub(super) fn write<'a>(&self, lease: u64, at: impl Iterator<Item = &'a ChunkAt>) -> Publishing<'_> {
        let publishing = Publishing { cache: self, _guard: self.publishing.lock() };
        at.for_each(|at| drop(self.rows.remove(&(lease, *at))));
        publishing
    }
}

impl Publishing<'_> {
    /// Inserts a row that was written.
    pub(super) fn insert(&self, lease: u64, at: ChunkAt, row: Row<Arc<Chunk>>) {
        self.cache.rows.insert((lease, at), row);
    }
}

impl Drop for Publishing<'_> {
    /// A failed batch may be visible. It is counted too, so that memory never differs from the rows.
    fn drop(&mut self) {
        self.cache.written.fetch_add(1, Ordering::AcqRel);
    }
}
