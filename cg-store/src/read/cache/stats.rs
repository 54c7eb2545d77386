//! What the cache holds, counted when somebody asks.

use super::ChunkCache;

/// What a world's chunks in memory take. Counted now, at the cost of a look at each of them if any area is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// The bound: [`WorldOptions::cache_bytes`](crate::WorldOptions::cache_bytes).
    pub limit_bytes: u64,
    /// Chunks, absent ones among them, and columns that may be evicted: never more than the bound.
    pub evictable_bytes: u64,
    /// Chunks that are kept by [`WorldCache::pin`](crate::WorldCache::pin). Not under the bound.
    pub pinned_bytes: u64,
    /// How many those are, absent ones among them.
    pub kept_chunks: u64,
    /// How many chunks memory knows, absent ones among them.
    pub chunks: u64,
    /// How many columns are ready to be handed out.
    pub columns: u64,
    /// 16³ cubes of which it is known, at least in part, whether they hold anything.
    pub cubes: u64,
}

impl ChunkCache {
    /// What memory holds.
    pub(crate) fn stats(&self) -> CacheStats {
        let mut stats = CacheStats {
            limit_bytes: self.max_bytes,
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
                stats.kept_chunks += 1;
            }
        }
        stats
    }
}
