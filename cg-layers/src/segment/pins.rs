//! Areas whose chunks stay in memory, over borders.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cg_format::{ChunkBox, Dimension};
use cg_store::cache::{CachePin, PinLoad};
use cg_store::layer::{Mutex, rank};
use cg_store::{Error, World};

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
    /// Pins an area in segments that are opened from now on. `loads` loads it.
    pub(super) fn pin(
        self: &Arc<Self>,
        dimension: Dimension,
        area: ChunkBox,
        loads: Arc<dyn LoadsPinned>,
    ) -> SegmentsPin {
        let mut state = self.state.lock();
        state.last += 1;
        let id = state.last;
        state.all.insert(id, Pinned { dimension, area, guards: BTreeMap::new() });
        SegmentsPin { pins: Arc::clone(self), id, area: (dimension, area), loads }
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

/// What loads the chunks of a pinned area. Keeps no world open.
pub(super) trait LoadsPinned: Send + Sync {
    /// See [`SegmentsPin::load`].
    fn load(&self, dimension: Dimension, area: ChunkBox, max_bytes: u64) -> Result<PinLoad, Error>;
}

/// Keeps the chunks of a box in memory, over borders. Made by [`Segments::pin`](crate::Segments::pin).
#[must_use = "the box is pinned until this is dropped"]
pub struct SegmentsPin {
    pins: Arc<Pins>,
    id: u64,
    area: (Dimension, ChunkBox),
    loads: Arc<dyn LoadsPinned>,
}

impl SegmentsPin {
    /// Loads the stored chunks of the pinned box as [`CachePin::load`] does, in the stored segments that the box meets: they
    /// come in the order of [`Segments::list`](crate::Segments::list), and the chunks of each in the order of keys. Ends when
    /// the chunks of all segments together take `max_bytes` of memory: at most 16 chunks more. Says how many are in memory
    /// then, and whether a limit kept others out.
    ///
    /// Opens segments that are closed, and closes others for them, but none with a part of a pinned box: no more than
    /// [`max_open`](crate::SegmentOptions::max_open) are open, beside those that are created for what was submitted to them. A
    /// segment for which there is no room is left out and
    /// [`is_limited`](PinLoad::is_limited) says so. If fewer than `max_bytes` were loaded then, more bytes will not help.
    ///
    /// Each segment is shown what was submitted to it before. Reads each row of the box once; waits until nothing is queued
    /// there.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// use cg_layers::{SegmentOptions, SegmentedWorld};
    /// # let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
    /// # let lobby = world
    /// #     .register(&Registration { dimensions: vec![Name::new("game:lobby")?], ..Registration::default() })?
    /// #     .dimension("game:lobby")
    /// #     .expect("just registered");
    /// let spawn = world.segments().pin(lobby, ChunkBox::around(ChunkPos::new(0, 4, 0)?, 8)?);
    /// let loaded = spawn.load(64 << 20)?;
    /// assert!(!loaded.is_limited, "{} chunks are all that there is room for", loaded.chunks);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`], and those of opening a segment and of its engine. What was loaded before stays in memory.
    pub fn load(&self, max_bytes: u64) -> Result<PinLoad, Error> {
        let (dimension, area) = self.area;
        self.loads.load(dimension, area, max_bytes)
    }
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
