//! Areas whose chunks stay in memory, over borders.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cg_format::{ChunkBox, Dimension};
use cg_store::World;
use cg_store::cache::CachePin;
use cg_store::layer::{Mutex, rank};

use super::pos::SegmentPos;

/// The pinned areas of a segmented world.
#[derive(Debug, Default)]
pub(super) struct Pins {
    state: Mutex<State, rank::SegmentPins>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    all: BTreeMap<u64, Pinned>,
}

#[derive(Debug)]
struct Pinned {
    dimension: Dimension,
    area: ChunkBox,
    /// Those of the segments that are open.
    guards: BTreeMap<SegmentPos, CachePin>,
}

impl Pins {
    /// Pins an area in segments that are opened from now on.
    pub(super) fn pin(self: &Arc<Self>, dimension: Dimension, area: ChunkBox) -> SegmentsPin {
        let mut state = self.state.lock();
        state.last += 1;
        let id = state.last;
        state.all.insert(id, Pinned { dimension, area, guards: BTreeMap::new() });
        SegmentsPin { pins: Arc::clone(self), id }
    }

    fn remove(&self, id: u64) {
        let removed = self.state.lock().all.remove(&id);
        // Visits what is in memory, without the lock.
        drop(removed);
    }

    /// Whether a segment has a chunk of a pinned area, so that it stays open.
    pub(super) fn keep_open(&self, segment: SegmentPos, side_chunks: u32) -> bool {
        let state = self.state.lock();
        state.all.values().any(|pinned| segment.meets(pinned.dimension, pinned.area, side_chunks))
    }

    /// Pins the areas in a segment that is opened.
    pub(super) fn pin_in(&self, segment: SegmentPos, world: &World, side_chunks: u32) {
        let state = self.state.lock();
        let meet =
            state.all.iter().filter(|(_, pinned)| segment.meets(pinned.dimension, pinned.area, side_chunks));
        let wanted: Vec<_> = meet.map(|(id, pinned)| (*id, pinned.dimension, pinned.area)).collect();
        drop(state);
        for (id, dimension, area) in wanted {
            let guard = world.cache().pin(dimension, area);
            let mut state = self.state.lock();
            let before = match state.all.get_mut(&id) {
                Some(pinned) => pinned.guards.insert(segment, guard),
                None => Some(guard),
            };
            drop(state);
            drop(before);
        }
    }
}

/// Keeps the chunks of a box in memory, over borders. Made by [`Segments::pin`](crate::Segments::pin).
#[must_use = "the box is pinned until this is dropped"]
pub struct SegmentsPin {
    pins: Arc<Pins>,
    id: u64,
}

impl Drop for SegmentsPin {
    fn drop(&mut self) {
        self.pins.remove(self.id);
    }
}

impl fmt::Debug for SegmentsPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentsPin").field("id", &self.id).finish_non_exhaustive()
    }
}
