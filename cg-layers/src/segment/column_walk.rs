//! A walk over the columns of all segments, joined over their borders.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::{ChunkBox, ChunkPos, Dimension};
use cg_store::Error;
use cg_store::cache::Column;
use cg_store::layer::columns::{ColumnSquare, add_part, squares};
use cg_store::view::ReadView;

use super::error::SegmentError;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::segments::Segments;

impl<H: SegmentHome> Segments<'_, H> {
    /// Shows the columns of a box that have a chunk in it, over all borders, until `visit` breaks. As
    /// [`ReadView::for_each_column`]; what several segments have of a column is joined.
    ///
    /// Pillars of segments, which lie above one another, ascend by x and then z. Inside a pillar columns come in squares of 16
    /// by 16, which ascend by x and then z, and inside a square in that order too. Each position is shown once, and a walk that
    /// goes on behind any of them shows the rest: `behind`, also in a later call.
    ///
    /// Damage that hides which chunks a segment has is shown at a position of its square, or of the last square that the pillar
    /// has in the box, where no segment has a column that is known; if there is none, in place of the last column. So is a
    /// segment that cannot be opened or read, and the walk goes on. The columns of that square, or of the pillar, may lack
    /// chunks.
    ///
    /// Where a pillar has one segment in the box, its columns are of one moment. Else each part of a square is of one moment of
    /// its segment; the moments of two segments differ. Each segment is shown after what was submitted to it before. A segment
    /// that is deleted meanwhile is left out, and what is created meanwhile may be.
    ///
    /// Costs and memory are those of [`ReadView::for_each_column`] where a pillar has one segment. Else it holds the chunks of
    /// one square, and asks each segment of the pillar once for each square of it. Opens the segments that are closed, and
    /// closes others for them, as [`SegmentedWorld::load`](crate::SegmentedWorld::load) does: let
    /// [`max_open`](crate::SegmentOptions::max_open) be at least the segments of a pillar, or they are opened for each square.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cg_store::prelude::*;
    /// use cg_layers::{SegmentOptions, SegmentedWorld};
    /// # let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
    /// # let names = world.register(&Registration {
    /// #     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
    /// #     dimensions: vec![Name::new("game:overworld")?],
    /// #     ..Registration::default()
    /// # })?;
    /// # let stone = names.block_id("game:stone").expect("just registered");
    /// # let overworld = names.dimension("game:overworld").expect("just registered");
    /// for y in [-1, 0] {
    ///     let at = ChunkAt::new(overworld, ChunkPos::new(3, y, 5)?);
    ///     let mut batch = WriteBatch::new();
    ///     batch.save(at, Chunk::filled(stone, &names.current_schema())?);
    ///     world.submit(at, batch)?;
    /// }
    /// let mut met = Vec::new();
    /// world.segments().for_each_column(overworld, &ChunkBox::EVERYTHING, None, |at, column| {
    ///     met.push((at, column.map(|column| column.chunks().count())));
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert!(matches!(met[..], [([3, 5], Ok(2))]), "{met:?}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`]. A column with more than 4,096 heights between its lowest and its highest chunk is shown as
    /// [`Error::ColumnTooHigh`].
    pub fn for_each_column<B>(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        behind: Option<[i64; 2]>,
        mut visit: impl FnMut([i64; 2], Result<Column, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let side_chunks = self.parts().root.side_chunks();
        let mut pillars: BTreeMap<[i64; 2], Vec<SegmentPos>> = BTreeMap::new();
        for segment in self.list_with_waiting() {
            if segment.meets(dimension, *area, side_chunks) {
                pillars.entry([segment.x, segment.z]).or_default().push(segment);
            }
        }
        let pillar_of = |at: [i64; 2]| at.map(|at| at.div_euclid(side_chunks.into()));
        for (pillar, segments) in pillars {
            let behind = match behind.map(|behind| (behind, pillar_of(behind).cmp(&pillar))) {
                Some((_, Ordering::Greater)) => continue,
                Some((behind, Ordering::Equal)) => Some(behind),
                Some((_, Ordering::Less)) | None => None,
            };
            let parts: Vec<_> = segments
                .into_iter()
                .map(|segment| Part { segment, area: clipped(segment, area, side_chunks) })
                .collect();
            let pillar = Pillar { segments: *self, dimension, behind };
            let found = match &parts[..] {
                [part] => pillar.walk_one(part, &mut visit)?,
                parts => pillar.walk_joined(parts, &mut visit)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// A segment and its part of an area.
struct Part {
    segment: SegmentPos,
    area: ChunkBox,
}

/// A walk over the segments that lie above one another.
struct Pillar<'w, H: SegmentHome> {
    segments: Segments<'w, H>,
    dimension: Dimension,
    behind: Option<[i64; 2]>,
}

impl<H: SegmentHome> Pillar<'_, H> {
    /// Walks over the only segment.
    fn walk_one<B>(
        &self,
        part: &Part,
        visit: &mut impl FnMut([i64; 2], Result<Column, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let walked = self.apply(part).and_then(|()| {
            self.read(part, |view| view.for_each_column(self.dimension, &part.area, self.behind, &mut *visit))
        });
        match unless_closed(walked)? {
            Ok(found) => Ok(found.flatten()),
            Err(error) => {
                let mut last = ColumnSquare::last(&part.area, self.behind);
                last.add_damage(error);
                Ok(self.show(last, visit))
            }
        }
    }

    /// Walks over several, from the lowest up, square by square.
    fn walk_joined<B>(
        &self,
        parts: &[Part],
        visit: &mut impl FnMut([i64; 2], Result<Column, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let (mut all, mut hidden): (BTreeMap<[i64; 2], Vec<&Part>>, _) = (BTreeMap::new(), Vec::new());
        for part in parts {
            let listed = self
                .apply(part)
                .and_then(|()| self.read(part, |view| squares(view, self.dimension, &part.area)));
            match unless_closed(listed)? {
                Ok(Some((found, damaged))) => {
                    for square in found {
                        all.entry(square).or_default().push(part);
                    }
                    hidden.extend(damaged);
                }
                Ok(None) => {}
                Err(error) => hidden.push(error),
            }
        }
        // All parts are equal along x and z.
        let area = &parts[0].area;
        let last = ColumnSquare::last(area, self.behind).square();
        if !hidden.is_empty() {
            all.entry(last).or_default();
        }
        for (square, parts) in all {
            let mut columns = ColumnSquare::new(area, square, self.behind);
            if !columns.is_left() {
                continue;
            }
            if square == last {
                for error in hidden.drain(..) {
                    columns.add_damage(error);
                }
            }
            for part in parts {
                let ys = [part.area.min().y(), part.area.max().y()];
                let read = self.read(part, |view| add_part(&mut columns, view, self.dimension, ys));
                if let Err(error) = unless_closed(read)? {
                    columns.add_damage(error);
                }
            }
            let found = self.show(columns, visit);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Gives a segment what was submitted to it.
    fn apply(&self, part: &Part) -> Result<(), Error> {
        self.segments.parts().submissions.apply(part.segment)
    }

    /// Reads a view of a segment; `None` if it was deleted.
    fn read<T>(
        &self,
        part: &Part,
        read: impl FnOnce(&ReadView<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match self.segments.with_applied(part.segment, |world| world.read_view(read)) {
            Err(error) if matches!(error.layer(), Some(SegmentError::Missing { .. })) => Ok(None),
            read => read.map(Some),
        }
    }

    /// Shows the columns of a square.
    fn show<B>(
        &self,
        square: ColumnSquare,
        visit: &mut impl FnMut([i64; 2], Result<Column, Error>) -> ControlFlow<B>,
    ) -> Option<B> {
        let shown = || square.finish().into_iter().find_map(|(at, column)| visit(at, column).break_value());
        self.segments.parts().open.inside(shown)
    }
}

/// Splits off that the world is closed, which ends a walk.
fn unless_closed<T>(read: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match read {
        Err(error @ Error::Closed) => Err(error),
        read => Ok(read),
    }
}

/// The part of an area in a segment that it meets.
fn clipped(segment: SegmentPos, area: &ChunkBox, side_chunks: u32) -> ChunkBox {
    let side = i64::from(side_chunks);
    let (from, to) = (area.min(), area.max());
    let part = |place: i64, min: i64, max: i64| {
        let first = place.saturating_mul(side);
        [first.max(min), first.saturating_add(side - 1).min(max)]
    };
    let x = part(segment.x, from.x(), to.x());
    let y = part(segment.y, from.y(), to.y());
    let z = part(segment.z, from.z(), to.z());
    let corner = |end: usize| ChunkPos::new(x[end], y[end], z[end]).expect("it lies in a box of the world");
    ChunkBox::new(corner(0), corner(1))
}
