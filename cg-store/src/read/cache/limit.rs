//! The limit of the cache, which a layer changes while the cache is used, and the division of it between chunks and
//! columns.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::column::{self, Columns};
use super::{ChunkCache, bounded};
use crate::rt::lock_order::{Mutex, rank};

/// The part of the limit that columns take, after the first column was requested.
const COLUMNS_PART: u64 = 4;

/// The limit of a cache.
#[derive(Debug)]
pub(super) struct Limit {
    bytes: AtomicU64,
    /// The limit that the cache was created with. It determines the number of locks, which does not change.
    first_bytes: u64,
    /// Held while the limit is changed and while the columns are created. So neither misses the other.
    changing: Mutex<(), rank::CacheLimit>,
}

impl Limit {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self { bytes: AtomicU64::new(max_bytes), first_bytes: max_bytes, changing: Mutex::default() }
    }
}

impl ChunkCache {
    /// The maximum size of what may be evicted. If it is 0, nothing else is cached than pinned chunks.
    #[inline]
    pub(crate) fn max_bytes(&self) -> u64 {
        self.limit.bytes.load(Relaxed)
    }

    /// Sets the limit, and evicts what exceeds it. Known absence keeps the memory for which the cache was created.
    pub(crate) fn set_limit(&self, max_bytes: u64) {
        let _no_other_change = self.limit.changing.lock();
        if self.limit.bytes.swap(max_bytes, Relaxed) != max_bytes {
            self.apply_limit();
        }
    }

    /// The cached columns. The first call moves a part of the memory from chunks to columns.
    pub(super) fn columns_or_new(&self) -> &Columns {
        self.columns.get().unwrap_or_else(|| self.make_columns())
    }

    #[cold]
    fn make_columns(&self) -> &Columns {
        /// Few, because a column may be as large as all its chunks.
        const SHARDS: usize = 16;
        /// The size of a usual column.
        const TYPICAL_BYTES: u64 = 24 * 2048;
        let _no_other_change = self.limit.changing.lock();
        let bytes = self.limit.first_bytes / COLUMNS_PART;
        let columns = self.columns.get_or_init(|| bounded(SHARDS, bytes, TYPICAL_BYTES, column::Weight));
        self.apply_limit();
        columns
    }

    /// Gives chunks and columns their parts of the limit. The caller holds [`Limit::changing`].
    fn apply_limit(&self) {
        let (max_bytes, columns) = (self.max_bytes(), self.columns.get());
        if max_bytes == 0 {
            // The capacities stay. The cache crate changes the sizes of its lists in proportion to the capacity, so that
            // they would stay 0 for ever. An insertion that runs meanwhile looks at the limit again.
            self.entries.retain(|_, entry| entry.is_kept);
            self.absent.clear();
            if let Some(columns) = columns {
                columns.clear();
            }
            return;
        }
        let of_columns = columns.map_or(0, |_| max_bytes / COLUMNS_PART);
        self.entries.set_capacity(max_bytes - of_columns);
        if let Some(columns) = columns {
            columns.set_capacity(of_columns.max(1));
        }
    }
}
