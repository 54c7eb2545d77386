//! Values that keep something of a world until they are dropped.
//!
//! A guard keeps no world open. After the world is closed, dropping it does nothing. A guard that is to last as long as the
//! world is given to [`std::mem::forget`].

use cg_tiering::{HoldId, PinId};

use crate::commit::state::CommitState;
use crate::maintain::state::MaintainState;
use crate::read::cache::CachePinId;
use crate::rt::weak_world::WeakWorld;

/// Keeps the chunks of a box in memory. Made by [`WorldCache::pin`](crate::cache::WorldCache::pin).
#[derive(Debug)]
#[must_use = "the box is pinned until this is dropped"]
pub struct CachePin {
    world: WeakWorld<CommitState>,
    id: CachePinId,
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
    pub(super) fn new(world: &WeakWorld<CommitState>, id: CachePinId) -> Self {
        Self { world: world.clone(), id }
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
