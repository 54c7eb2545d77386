//! Walks over the chunks and entities of all segments.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkBox, EntityId};
use cg_store::Error;
use cg_store::view::{Area, ReadView, StoredChunk};

use super::error::SegmentError;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::segments::Segments;

impl<H: SegmentHome> Segments<'_, H> {
    /// Shows every live chunk of an area as it is stored, over all borders, until `visit` breaks. As
    /// [`ReadView::for_each_chunk`], in each stored segment that the area meets, one after the other: segments come in the
    /// order of [`list`](Self::list), their chunks in Morton order.
    ///
    /// Each segment is shown as of one moment, after what was submitted to it before; the moments of two segments differ. A
    /// walk that ended goes on from a segment if the area is what is left. Opens the segments that are closed, and closes
    /// others for them, as [`SegmentedWorld::load`](crate::SegmentedWorld::load) does. A segment that cannot be opened or
    /// read is shown as one error, and the walk goes on after it. A segment that is deleted meanwhile is left out.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cg_store::prelude::*;
    /// use cg_store::view::Area;
    /// use cg_layers::{SegmentOptions, SegmentedWorld};
    /// # let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
    /// # let names = world.register(&Registration {
    /// #     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
    /// #     dimensions: vec![Name::new("game:overworld")?],
    /// #     ..Registration::default()
    /// # })?;
    /// # let stone = names.block_id("game:stone").expect("just registered");
    /// # let overworld = names.dimension("game:overworld").expect("just registered");
    /// for x in [-1, 0] {
    ///     let at = ChunkAt::new(overworld, ChunkPos::new(x, 0, 0)?);
    ///     let mut batch = WriteBatch::new();
    ///     batch.save(at, Chunk::filled(stone, &names.current_schema())?);
    ///     world.submit(at, batch)?;
    /// }
    /// let spawn = ChunkBox::around(ChunkPos::new(0, 0, 0)?, 4)?;
    /// let mut met = Vec::new();
    /// world.segments().for_each_chunk(Area::Box(overworld, spawn), |stored| {
    ///     met.extend(stored.map(|stored| stored.at.pos.x()));
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(met, [-1, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn for_each_chunk<B>(
        &self,
        area: Area<'_>,
        mut visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.walk(
            area,
            |segment| self.parts().submissions.apply(segment),
            |shown| match shown {
                Ok(view) => view.for_each_chunk(area, &mut visit),
                Err(error) => Ok(visit(Err(error)).break_value()),
            },
        )
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), with the chunks decoded and carried to the current schema generation.
    /// What cannot be decoded is shown as an error.
    ///
    /// # Errors
    /// As [`for_each_chunk`](Self::for_each_chunk).
    pub fn for_each_decoded<B>(
        &self,
        area: Area<'_>,
        mut visit: impl FnMut(Result<(ChunkAt, Chunk), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.walk(
            area,
            |segment| self.parts().submissions.apply(segment),
            |shown| match shown {
                Ok(view) => view.for_each_decoded(area, &mut visit),
                Err(error) => Ok(visit(Err(error)).break_value()),
            },
        )
    }

    /// Shows every entity once, until `visit` breaks: segments come in the order of [`list`](Self::list), their entities
    /// ascending by UUID. A damaged one is shown as an error, and so is a segment that cannot be opened or read.
    ///
    /// An entity that is transferred is not missed: transfers, merges and deletions of segments wait until the walk ends, and
    /// are [`Error::Nested`] inside `visit`. Transactions go on, and each segment is shown as of one moment.
    ///
    /// # Errors
    /// As [`for_each_chunk`](Self::for_each_chunk); [`Error::Nested`] inside a closure of
    /// [`SegmentedWorld::transaction`](crate::SegmentedWorld::transaction) or [`with`](Self::with). Why a transfer that
    /// failed cannot be finished.
    pub fn for_each_entity<B>(
        &self,
        mut visit: impl FnMut(Result<(EntityId, Entity), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let parts = self.parts();
        parts.open.refuse_inside()?;
        let waits = RefCell::new(parts.submissions.apply_each());
        let _none_is_transferred = parts.borders.moving().lock();
        parts.transfers.resolve()?;
        self.walk(
            Area::World,
            |segment| waits.borrow_mut().remove(&segment).map_or(Ok(()), Err),
            |shown| match shown {
                Ok(view) => view.for_each_entity(&mut visit),
                Err(error) => Ok(visit(Err(error)).break_value()),
            },
        )
    }

    /// The stored segments, and those that are created by what waits for them.
    pub(super) fn list_with_waiting(self) -> BTreeSet<SegmentPos> {
        let (waiting, _) = self.parts().submissions.waiting();
        self.list().into_iter().chain(waiting.into_keys()).collect()
    }

    /// Shows a view of each segment that an area meets, or why there is none, until `show` returns a value. `apply` gives a
    /// segment what was submitted to it.
    fn walk<B>(
        self,
        area: Area<'_>,
        apply: impl Fn(SegmentPos) -> Result<(), Error>,
        mut show: impl FnMut(Result<&ReadView<'_>, Error>) -> Result<Option<B>, Error>,
    ) -> Result<Option<B>, Error> {
        let side_chunks = self.parts().root.side_chunks();
        for segment in
            self.list_with_waiting().into_iter().filter(|segment| meets(*segment, area, side_chunks))
        {
            let shown = apply(segment)
                .and_then(|()| self.with_applied(segment, |world| world.read_view(|view| show(Ok(view)))));
            let found = match shown {
                Err(error @ Error::Closed) => return Err(error),
                // It was deleted since it was listed.
                Err(error) if matches!(error.layer(), Some(SegmentError::Missing { .. })) => None,
                Err(error) => self.parts().open.inside(|| show(Err(error)))?,
                Ok(found) => found,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// Whether a segment may have a chunk of an area.
pub(super) fn meets(segment: SegmentPos, area: Area<'_>, side_chunks: u32) -> bool {
    let of_box = |dimension, area: ChunkBox| segment.meets(dimension, area, side_chunks);
    match area {
        Area::World => true,
        Area::Box(dimension, area) => of_box(dimension, area),
        Area::Blocks(dimension, area) => area.chunks().any(|area| of_box(dimension, area)),
    }
}
