//! Statistics of the cache, computed on request.

use super::ChunkCache;

/// The memory of a world's cached chunks. Computed on request; if any area is pinned, this visits each chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// The bound: [`WorldOptions::cache_bytes`](crate::WorldOptions::cache_bytes), or the part of it that a segment of a
    /// segmented world has at present.
    pub limit_bytes: u64,
    /// The size of chunks, including absent ones, and columns that may be evicted: never more than the bound.
    pub evictable_bytes: u64,
    /// The size of chunks that are pinned by [`WorldCache::pin`](crate::cache::WorldCache::pin). Not included in the bound.
    pub pinned_bytes: u64,
    /// The number of pinned chunks, including absent ones.
    pub pinned_chunks: u64,
    /// The number of cached chunks, including absent ones.
    pub chunks: u64,
    /// The number of cached columns.
    pub columns: u64,
    /// 16³ cubes whose absent groups are known, at least in part.
    pub cubes: u64,
}

impl ChunkCache {
    /// The statistics of the cache.
    pub(crate) fn stats(&self) -> CacheStats {
        let mut stats = CacheStats {
            limit_bytes: self.max_bytes(),
            evictable_bytes: self.entries.weight(),
            chunks: self.entries.len() as u64,
            cubes: self.absent.len(),
            ..CacheStats::default()
        };
        if let Some(columns) = self.columns.get() {
            stats.columns = columns.len() as u64;
            stats.evictable_bytes += columns.weight();
        }
        if !self.kept.is_empty() {
            for (_, entry) in self.entries.iter().filter(|(_, entry)| entry.is_kept) {
                stats.pinned_bytes += u64::from(entry.bytes);
                stats.pinned_chunks += 1;
            }
        }
        stats
    }
}
