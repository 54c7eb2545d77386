//! The chunks in memory: pinned areas and memory use.

use cg_format::{ChunkBox, Dimension};

use crate::api::world::World;
use crate::read::cache::{CachePinId, CacheStats};

/// The chunks that a world has in memory.
#[derive(Debug, Clone, Copy)]
pub struct WorldCache<'w> {
    world: &'w World,
}

impl World {
    /// The chunks in memory.
    pub fn cache(&self) -> WorldCache<'_> {
        WorldCache { world: self }
    }
}

impl WorldCache<'_> {
    /// Pins the chunks of a box in memory: cached chunks and those loaded or saved later are not evicted. It loads
    /// nothing; [`load_in_background`](World::load_in_background) does. Pins end when the world is closed.
    ///
    /// Pinned chunks are not part of [`cache_bytes`](crate::WorldOptions::cache_bytes): the rest of the cache is as
    /// large as before, and [`stats`](Self::stats) reports their size. Do not confuse this with
    /// [`Tiers::pin`](crate::Tiers::pin) and [`Tiers::hold`](crate::Tiers::hold), which affect the tier of chunks on
    /// disk and keep nothing in memory.
    ///
    /// Visits every chunk in memory, and waits for a commit in progress.
    pub fn pin(&self, dimension: Dimension, place: ChunkBox) -> CachePinId {
        self.world.rooms().read.cache.keep(dimension, place)
    }

    /// Unpins a box. Its chunks may be evicted again, unless another pinned box has them. Returns whether it was
    /// pinned. Costs as much as [`pin`](Self::pin).
    pub fn unpin(&self, id: CachePinId) -> bool {
        self.world.rooms().read.cache.unpin_from_cache(id)
    }

    /// The memory of the cached chunks.
    pub fn stats(&self) -> CacheStats {
        self.world.rooms().read.cache.stats()
    }

    /// Removes every chunk from memory; the next load of each reads from the engine. For tools and benchmarks that
    /// measure it.
    pub fn clear(&self) {
        self.world.rooms().read.cache.clear();
    }
}
