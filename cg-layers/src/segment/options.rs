//! The options of a segmented world.

use cg_store::WorldOptions;

/// The options of a segmented world.
#[derive(Debug, Clone)]
pub struct SegmentOptions {
    /// The side of a segment in chunks: a multiple of 16. Default 32. An existing world keeps its own.
    pub side_chunks: u32,
    /// At most this many segments are open at once, unless more are in use. Default 16. Each has its own write buffer
    /// and three threads; all share one [`Resources`](cg_store::Resources). Only open segments work in a
    /// [`tick`](crate::SegmentedWorld::tick).
    pub max_open: usize,
    /// The options of the root and of every segment. `cache_bytes` is divided equally among the segments that are open, and
    /// again whenever one is opened or closed: a single one has all of it. The root has no chunks and needs none.
    /// The 64th for known absent cubes is divided by `max_open`.
    pub world: WorldOptions,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self { side_chunks: 32, max_open: 16, world: WorldOptions::default() }
    }
}
