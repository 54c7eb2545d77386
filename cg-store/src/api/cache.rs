//! The chunks in memory: areas that stay there, and what they take.

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
    /// Keeps the chunks of a box in memory: what is there and what is loaded or saved later is not evicted, whatever
    /// else is asked for. It loads nothing; [`load_in_background`](World::load_in_background) does. Forgotten when the world is closed.
    ///
    /// Kept chunks are beside [`cache_bytes`](crate::WorldOptions::cache_bytes), not under it: the rest of the cache
    /// is as large as before, and [`stats`](Self::stats) says what they take. Not to be confused with
    /// [`pin`](Self::pin) and [`hold`](crate::Tiers::hold), which say in which tier chunks lie on disk and keep nothing in memory.
    ///
    /// Costs a look at every chunk in memory, and waits for a commit under way.
    pub fn pin(&self, dimension: Dimension, place: ChunkBox) -> CachePinId {
        self.world.rooms().read.cache.keep(dimension, place)
    }

    /// Lets what was kept be evicted again, unless another kept box has it. Says whether it was kept. Costs as much as
    /// [`pin`](Self::pin).
    pub fn unpin(&self, id: CachePinId) -> bool {
        self.world.rooms().read.cache.unpin_from_cache(id)
    }

    /// What the chunks in memory take.
    pub fn stats(&self) -> CacheStats {
        self.world.rooms().read.cache.stats()
    }

    /// Drops every chunk from memory; the next load of each asks the engine. For tools and benchmarks that measure it.
    pub fn clear(&self) {
        self.world.rooms().read.cache.clear();
    }
}
