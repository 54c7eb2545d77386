//! Pinned areas, which stay in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::{ChunkAt, ChunkBox, Dimension};

use crate::rt::lock_order::{RwLock, rank};

/// The id of a pinned area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CachePinId(u64);

/// The areas. A chunk in any of them has no weight in the cache, so it is never evicted for another.
#[derive(Debug, Default)]
pub(super) struct PinnedAreas {
    /// Whether there is any area, readable without the lock.
    any: AtomicBool,
    areas: RwLock<Areas, rank::PinnedAreas>,
}

#[derive(Debug, Default)]
struct Areas {
    next: u64,
    by_id: BTreeMap<CachePinId, (Dimension, ChunkBox)>,
}

impl PinnedAreas {
    pub(super) fn add(&self, dimension: Dimension, area: ChunkBox) -> CachePinId {
        let mut areas = self.areas.write();
        let id = CachePinId(areas.next);
        areas.next += 1;
        areas.by_id.insert(id, (dimension, area));
        self.any.store(true, Ordering::Release);
        id
    }

    /// Returns whether there was such an area.
    pub(super) fn remove(&self, id: CachePinId) -> bool {
        let mut areas = self.areas.write();
        let removed = areas.by_id.remove(&id).is_some();
        self.any.store(!areas.by_id.is_empty(), Ordering::Release);
        removed
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(super) fn has(&self, at: ChunkAt) -> bool {
        let inside =
            |(dimension, area): &(Dimension, ChunkBox)| *dimension == at.dimension && area.contains(at.pos);
        !self.is_empty() && self.areas.read().by_id.values().any(inside)
    }
}
