//! The chunks in memory: pinned areas and memory use.

use cg_format::{ChunkBox, Dimension};

use crate::api::guards::CachePin;
use crate::api::world::World;
use crate::read::cache::CacheStats;

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
    /// Pins the chunks of a box in memory until the guard is dropped: cached chunks and those loaded or saved later are not
    /// evicted. It loads nothing; [`CachePin::load`] does, up to a limit, and
    /// [`load_in_background`](World::load_in_background) does beside the caller.
    ///
    /// Pinned chunks are not part of [`cache_bytes`](crate::WorldOptions::cache_bytes): the rest of the cache is as
    /// large as before, and [`stats`](Self::stats) reports their size. Do not confuse this with
    /// [`Tiers::pin`](crate::tiers::Tiers::pin) and [`Tiers::keep_loaded`](crate::tiers::Tiers::keep_loaded), which affect the tier
    /// of chunks on disk and keep nothing in memory.
    ///
    /// This and dropping the guard visit every chunk in memory, and wait for a commit in progress.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// # let world = World::builder().in_memory()?;
    /// # let lobby = world.registry().register_dimension("game:lobby")?;
    /// let spawn = world.cache().pin(lobby, ChunkBox::around(ChunkPos::new(0, 4, 0)?, 8)?);
    /// // The spawn stays in memory.
    /// drop(spawn);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pin(&self, dimension: Dimension, place: ChunkBox) -> CachePin {
        let rooms = self.world.rooms();
        let id = rooms.read.cache.keep(dimension, place);
        CachePin::new(&rooms.commit.weak_world, id, (dimension, place))
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
