//! Compaction of several segments of a running world, one after the other.

use std::fmt;
use std::time::{Duration, Instant};

use cg_store::layer::{CompactionSteps, begin_compaction, run_compaction};
use cg_store::tiers::CompactReport;
use cg_store::view::Area;
use cg_store::{Error, World};

use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::segments::Segments;

/// A compaction of segments and the root in progress; see [`Segments::compaction`].
#[must_use = "nothing is compacted until it is run"]
pub struct SegmentsCompaction<'w, H: SegmentHome> {
    segments: Segments<'w, H>,
    /// The worlds that are left, the last one first. `None`: the root.
    left: Vec<Option<SegmentPos>>,
    /// How far the last of them is.
    steps: Option<CompactionSteps>,
    /// Of the worlds before it.
    done: CompactReport,
}

impl<'w, H: SegmentHome> Segments<'w, H> {
    /// Begins to give bytes back in segments, and in the root, as [`Tiers::compaction`](cg_store::tiers::Tiers::compaction) does
    /// in a world. [`SegmentsCompaction::run`] does the work, one world after the other, within budgets.
    ///
    /// Compact those that are [open](Self::list_open) while players are there, and [all](Self::list) when the world has time: a
    /// closed one is opened, and the least recently used one is closed for it. One that is deleted meanwhile is passed over.
    ///
    /// ```
    /// use std::time::Duration;
    /// use cg_layers::{SegmentOptions, SegmentedWorld};
    /// let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
    /// let mut compaction = world.segments().compaction(world.segments().list_open());
    /// while compaction.run(Duration::from_millis(50))? {}
    /// println!("{} bytes given back", compaction.report().freed_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compaction(&self, segments: impl IntoIterator<Item = SegmentPos>) -> SegmentsCompaction<'w, H> {
        let mut left: Vec<_> = segments.into_iter().map(Some).collect();
        left.push(None);
        left.reverse();
        SegmentsCompaction { segments: *self, left, steps: None, done: CompactReport::default() }
    }
}

impl<H: SegmentHome> SegmentsCompaction<'_, H> {
    /// Compacts for about as long as the budget. Returns whether something is left. Exceeds the budget as
    /// [`Compaction::run`](cg_store::tiers::Compaction::run) does, and by the opening of a closed segment.
    ///
    /// # Errors
    /// Those of opening a segment and of the engines. The world that failed is left as it is, and another call goes on with the
    /// next one.
    pub fn run(&mut self, budget: Duration) -> Result<bool, Error> {
        let deadline = Instant::now().checked_add(budget);
        while let Some(next) = self.left.last().copied() {
            let left = deadline.map_or(budget, |deadline| deadline.saturating_duration_since(Instant::now()));
            let (segments, steps) = (self.segments, &mut self.steps);
            let ran = match next {
                Some(segment) => segments.with_if_stored(segment, |world| run_in(world, steps, left)),
                None => run_in(segments.root(), steps, left),
            };
            if !matches!(ran, Ok(true)) {
                self.left.pop();
                self.done += self.steps.take().map_or_else(CompactReport::default, |steps| steps.report());
            }
            ran?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
        }
        Ok(!self.left.is_empty())
    }

    /// The world that is compacted now; `None` for the root, and at the end. After an error, the one after the world that failed.
    pub fn segment(&self) -> Option<SegmentPos> {
        self.left.last().copied().flatten()
    }

    /// What was done so far, in all worlds that were begun.
    pub fn report(&self) -> CompactReport {
        let mut report = self.done;
        if let Some(steps) = &self.steps {
            report += steps.report();
        }
        report
    }
}

fn run_in(world: &World, steps: &mut Option<CompactionSteps>, budget: Duration) -> Result<bool, Error> {
    let steps = match steps {
        Some(steps) => steps,
        None => steps.insert(begin_compaction(world, Area::World)?),
    };
    run_compaction(world, steps, budget)
}

impl<H: SegmentHome> fmt::Debug for SegmentsCompaction<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segments: _, left, steps, done } = self;
        f.debug_struct("SegmentsCompaction")
            .field("left", left)
            .field("steps", steps)
            .field("done", done)
            .finish()
    }
}
