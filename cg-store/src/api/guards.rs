//! Values that keep something of a world until they are dropped.
//!
//! A guard keeps no world open. After the world is closed, dropping it does nothing. A guard that is to last as long as the
//! world is given to [`std::mem::forget`].

use cg_format::{ChunkBox, Dimension};
use cg_tiering::{HoldId, PinId};

use crate::commit::pin_load::PinLoad;
use crate::commit::state::CommitState;
use crate::maintain::state::MaintainState;
use crate::read::cache::CachePinId;
use crate::rt::weak_world::WeakWorld;
use crate::storage::error::Error;

/// Keeps the chunks of a box in memory. Made by [`WorldCache::pin`](crate::cache::WorldCache::pin).
#[derive(Debug)]
#[must_use = "the box is pinned until this is dropped"]
pub struct CachePin {
    world: WeakWorld<CommitState>,
    id: CachePinId,
    area: (Dimension, ChunkBox),
}

/// Keeps the chunks of a box in the tier that they are in. Made by [`Tiers::pin`](crate::tiers::Tiers::pin).
#[derive(Debug)]
#[must_use = "the box is pinned until this is dropped"]
pub struct TierPin {
    world: WeakWorld<MaintainState>,
    id: PinId,
}

/// Keeps the chunks of a box hot. Made by [`Tiers::keep_loaded`](crate::tiers::Tiers::keep_loaded).
#[derive(Debug)]
#[must_use = "the box is kept until this is dropped"]
pub struct KeepLoaded {
    world: WeakWorld<MaintainState>,
    id: HoldId,
}

impl CachePin {
    pub(super) fn new(world: &WeakWorld<CommitState>, id: CachePinId, area: (Dimension, ChunkBox)) -> Self {
        Self { world: world.clone(), id, area }
    }

    /// Loads the stored chunks of the pinned box, in the order of keys, until they take `max_bytes` of memory: at most 16
    /// chunks more. Says how many are in memory then, and whether the limit kept others out.
    ///
    /// A chunk that is loaded or saved later stays in memory too, whatever the limit;
    /// [`CacheStats::pinned_bytes`](crate::cache::CacheStats::pinned_bytes) has the size of all. What is damaged is left out,
    /// and counted. Reads each row of the box once; waits until nothing is queued.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// # let world = World::builder().in_memory()?;
    /// # let lobby = world.registry().register_dimension("game:lobby")?;
    /// let spawn = world.cache().pin(lobby, ChunkBox::around(ChunkPos::new(0, 4, 0)?, 8)?);
    /// let loaded = spawn.load(64 << 20)?;
    /// assert!(!loaded.is_limited, "{} chunks are all that 64 MiB hold", loaded.chunks);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`], and those of the engine.
    pub fn load(&self, max_bytes: u64) -> Result<PinLoad, Error> {
        let (dimension, area) = self.area;
        let load = |world: &CommitState| {
            world.apply_submitted()?;
            world.load_area(dimension, area, max_bytes)
        };
        self.world.with_world(load).unwrap_or(Err(Error::Closed))
    }
}

impl TierPin {
    pub(super) fn new(world: &WeakWorld<MaintainState>, id: PinId) -> Self {
        Self { world: world.clone(), id }
    }

    /// The number of the pin in a [recorded trace](crate::tiers::Tiers::record_trace).
    pub const fn id(&self) -> PinId {
        self.id
    }
}

impl KeepLoaded {
    pub(super) fn new(world: &WeakWorld<MaintainState>, id: HoldId) -> Self {
        Self { world: world.clone(), id }
    }

    /// Its number in a [recorded trace](crate::tiers::Tiers::record_trace).
    pub const fn id(&self) -> HoldId {
        self.id
    }
}

impl Drop for CachePin {
    fn drop(&mut self) {
        // A world that is gone has nothing pinned.
        let _ = self.world.with_world(|world| world.read.cache.unpin_from_cache(self.id));
    }
}

impl Drop for TierPin {
    fn drop(&mut self) {
        let _ = self.world.with_world(|world| world.activity.tiering.unpin(self.id));
    }
}

impl Drop for KeepLoaded {
    fn drop(&mut self) {
        let _ = self.world.with_world(|world| world.activity.tiering.release(self.id));
    }
}
