//! How a segmented world is doing: each of its open segments, and the sum.

use std::collections::BTreeMap;

use cg_store::metrics::Metrics;

use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::world::SegmentedWorld;

/// How a segmented world is doing. Made by [`SegmentedWorld::metrics`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentedMetrics {
    /// Of the root.
    pub root: Metrics,
    /// Of each open segment since it was opened: how much is written into it, and what waits there. One that is being opened
    /// or closed is left out.
    pub segments: BTreeMap<SegmentPos, Metrics>,
    /// How many batches wait for each segment that has not taken them yet.
    pub waiting: BTreeMap<SegmentPos, u64>,
    /// The memory that they hold.
    pub waiting_bytes: u64,
}

impl SegmentedMetrics {
    /// The sum of a number over the root and the open segments.
    pub fn sum(&self, number: impl Fn(&Metrics) -> u64) -> u64 {
        std::iter::once(&self.root).chain(self.segments.values()).map(number).sum()
    }

    /// Batches that were submitted and are not accepted yet, of all segments.
    pub fn submitted(&self) -> u64 {
        self.sum(|metrics| metrics.submitted) + self.waiting.values().sum::<u64>()
    }

    /// The memory that commits and batches hold until they are written, of all segments.
    pub fn queued_bytes(&self) -> u64 {
        self.sum(|metrics| metrics.queued_bytes) + self.waiting_bytes
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// How the world is doing, as [`World::metrics`](cg_store::World::metrics): the root, each open segment, and what waits
    /// for a segment. The parts are not of one moment. Opens nothing and waits for no segment.
    pub fn metrics(&self) -> SegmentedMetrics {
        let parts = &*self.parts;
        let of = |segment| Some((segment, parts.open.if_open(segment, cg_store::World::metrics)?));
        let segments = parts.open.list().into_iter().filter_map(of).collect();
        let (waiting, waiting_bytes) = parts.submissions.waiting();
        SegmentedMetrics { root: self.root().metrics(), segments, waiting, waiting_bytes }
    }
}
