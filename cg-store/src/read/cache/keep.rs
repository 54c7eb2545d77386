//! Areas that are kept in memory, whatever else is asked for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::{ChunkAt, ChunkBox, Dimension};

use crate::rt::lock_order::{RwLock, rank};

/// An area that is kept in memory: what [`World::let_go`](crate::World::let_go) takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeepId(u64);

/// The areas. A chunk of any of them has no weight in the cache, so it is never evicted for another.
#[derive(Debug, Default)]
pub(super) struct KeptAreas {
    /// Whether there is any, for those who remember what they loaded.
    any: AtomicBool,
    areas: RwLock<Areas, rank::KeptAreas>,
}

#[derive(Debug, Default)]
struct Areas {
    next: u64,
    by_id: BTreeMap<KeepId, (Dimension, ChunkBox)>,
}

impl KeptAreas {
    pub(super) fn add(&self, dimension: Dimension, area: ChunkBox) -> KeepId {
        let mut areas = self.areas.write();
        let id = KeepId(areas.next);
        areas.next += 1;
        areas.by_id.insert(id, (dimension, area));
        self.any.store(true, Ordering::Release);
        id
    }

    /// Says whether there was such an area.
    pub(super) fn remove(&self, id: KeepId) -> bool {
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
