//! The segments of a segmented world, as the host sees them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use cg_format::key::Family;
use cg_format::{ChunkAt, ChunkBox, Dimension};
use cg_store::engine::ALL_KEYS;
use cg_store::{Error, World};

use super::home::SegmentHome;
use super::parts::Parts;
use super::pinned_loads::PinnedLoads;
use super::pins::SegmentsPin;
use super::pos::SegmentPos;
use super::rows::SegmentState;

/// The segments of a segmented world: those that are stored, each as a world, and what is done with a whole one. See
/// [`SegmentedWorld::segments`](crate::SegmentedWorld::segments).
///
/// ```
/// use cg_store::prelude::*;
/// use cg_layers::{SegmentOptions, SegmentedWorld};
/// let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
/// let names = world.register(&Registration {
///     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
///     dimensions: vec![Name::new("game:overworld")?],
///     ..Registration::default()
/// })?;
/// let stone = names.block_id("game:stone").expect("just registered");
/// let overworld = names.dimension("game:overworld").expect("just registered");
/// let at = ChunkAt::new(overworld, ChunkPos::new(0, 0, 0)?);
/// world.transaction(at, |tx| {
///     tx.save(at, tx.new_chunk(stone)?);
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
/// let [segment] = world.segments().list()[..] else { panic!("one is stored") };
/// assert_eq!(segment, world.segment_of(at));
/// assert!(world.segments().with(segment, |world| world.load(at))?.is_some());
/// world.segments().delete(segment)?;
/// assert!(world.load(at)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Segments<'w, H: SegmentHome> {
    parts: &'w Parts<H>,
}

impl<'w, H: SegmentHome> Segments<'w, H> {
    pub(super) const fn of(parts: &'w Parts<H>) -> Self {
        Self { parts }
    }

    pub(super) const fn parts(self) -> &'w Parts<H> {
        self.parts
    }

    /// The segments that are stored, ascending. One that is created by what was
    /// [submitted](crate::SegmentedWorld::submit) to it is not among them before it has taken that.
    pub fn list(&self) -> Vec<SegmentPos> {
        self.parts.root.segments(SegmentState::There)
    }

    /// The segments that are open, ascending, and those that are being opened or closed.
    pub fn list_open(&self) -> Vec<SegmentPos> {
        self.parts.open.list()
    }

    /// How many segments are open.
    pub fn open_count(&self) -> usize {
        self.parts.open.count()
    }

    /// Calls a function with a segment's world, for what only worlds can do. Writes outside
    /// [`SegmentedWorld::transaction`](crate::SegmentedWorld::transaction) must not put entities, properties, objects or
    /// records: the root would not know them.
    ///
    /// # Errors
    /// [`SegmentError::Missing`](crate::SegmentError::Missing), and as
    /// [`SegmentedWorld::load`](crate::SegmentedWorld::load).
    pub fn with<T>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.parts.submissions.apply(segment)?;
        self.with_applied(segment, show)
    }

    /// As [`with`](Self::with), without what was submitted and waits.
    pub(super) fn with_applied<T>(
        self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let open = &self.parts.open;
        open.with_there(segment, |world| open.inside(|| show(world)))
    }

    /// As [`with_applied`](Self::with_applied); `false` if the segment is not stored.
    pub(super) fn with_if_stored(
        self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let open = &self.parts.open;
        Ok(open.with_stored(segment, |world| open.inside(|| show(world)))?.unwrap_or(false))
    }

    pub(super) fn root(self) -> &'w World {
        self.parts.root.world()
    }

    /// Opens the stored segments of chunks in the background. [`SegmentedWorld::tick`](crate::SegmentedWorld::tick) does where
    /// players will reach one, if prefetch is asked for.
    pub fn open_ahead(&self, at: &[ChunkAt]) {
        let segments: BTreeSet<_> = at.iter().map(|at| self.parts.root.segment_of(*at)).collect();
        self.parts.open.open_ahead(segments);
    }

    /// Pins the chunks of a box in memory until the guard is dropped, as [`WorldCache::pin`](cg_store::cache::WorldCache::pin)
    /// does in each segment that the box meets. It loads nothing and opens nothing:
    /// [`SegmentsPin::load`] does, up to a limit, and
    /// [`load_in_background`](crate::SegmentedWorld::load_in_background).
    ///
    /// Segments with a part of the box stay open once they are open: they are not closed for lack of room, and more than
    /// [`max_open`](crate::SegmentOptions::max_open) are open if the box meets more. In a segment that is opened or
    /// created later its part is pinned then.
    ///
    /// Waits for segments that are being opened, and as `WorldCache::pin` does in each.
    pub fn pin(&self, dimension: Dimension, area: ChunkBox) -> SegmentsPin {
        let open = &self.parts.open;
        let pin = open.pins().pin(dimension, area, Arc::new(PinnedLoads::of(self.parts)));
        let side_chunks = open.root().side_chunks();
        open.for_each_open_segment(|segment, world| {
            if segment.meets(dimension, area, side_chunks) {
                open.pins().pin_in(segment, world, side_chunks);
            }
        });
        pin
    }

    /// Rewrites a segment's files without overwritten and deleted rows, also where little is to be gained. May take minutes;
    /// reads and writes continue. [`compaction`](Self::compaction) works within budgets and says what it gave back.
    ///
    /// Kinds of row with a damaged file are left as they are: see
    /// [`FamilyUsage::is_held`](cg_store::engine::FamilyUsage::is_held).
    ///
    /// # Errors
    /// [`SegmentError::Missing`](crate::SegmentError::Missing), and the errors of the engine.
    pub fn compact(&self, segment: SegmentPos) -> Result<(), Error> {
        self.with(segment, |world| {
            self.parts.open.flush(world)?;
            for family in Family::ALL {
                world.engine().compact(family, ALL_KEYS)?;
            }
            Ok(())
        })
    }

    /// Deletes a segment with everything in it: its chunks, entities, properties, objects and records. An object that is put
    /// again begins at version 0.
    ///
    /// Waits for users of the segment. A deletion that a crash interrupts is finished when the world is opened.
    ///
    /// # Errors
    /// [`SegmentError::Missing`](crate::SegmentError::Missing), and the errors of the disk; [`Error::Nested`] inside a
    /// closure of [`SegmentedWorld::transaction`](crate::SegmentedWorld::transaction) or [`with`](Self::with).
    pub fn delete(&self, segment: SegmentPos) -> Result<(), Error> {
        let parts = self.parts;
        parts.open.refuse_inside()?;
        parts.open.check()?;
        parts.submissions.apply_before_deletion(segment);
        let _alone = parts.borders.moving().lock();
        parts.transfers.resolve_except(segment)?;
        // The segment is released first: a call that puts entities reads it while it blocks transfers.
        parts.open.delete(segment)?;
        parts.borders.forget_places_of(segment)?;
        parts.transfers.resolve()
    }
}

impl<H: SegmentHome> Clone for Segments<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: SegmentHome> Copy for Segments<'_, H> {}

impl<H: SegmentHome> fmt::Debug for Segments<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Segments").field(&self.list()).finish()
    }
}
