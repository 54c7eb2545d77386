//! A walk over the columns of a view, square by square.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterTier, Dimension, Lookup};

use crate::read::cache::Column;
use crate::read::chunk::{Area, Cubes, WorldView, check_height, walk_live};
use crate::storage::error::Error;

/// The x and z of a column, in chunks.
type Place = [i64; 2];

/// The chunks of this many neighbours along x are read together, each with the 16 columns along z of its square.
const READ_TOGETHER: i64 = 4;

impl WorldView<'_> {
    /// See [`ReadView::for_each_column`](crate::view::ReadView::for_each_column).
    pub(crate) fn for_each_column<B>(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        behind: Option<Place>,
        mut visit: impl FnMut(Place, Result<Column, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let (squares, damaged) = self.squares(dimension, area)?;
        let first = [area.min().x(), area.min().z()];
        // A walk that goes on has shown it.
        let damaged = damaged.into_iter().filter(|_| behind.is_none());
        for error in damaged {
            if let ControlFlow::Break(value) = visit(first, Err(error)) {
                return Ok(Some(value));
            }
        }
        self.read_deltas()?;
        for square in squares {
            if behind.is_some_and(|behind| square < behind.map(|at| at >> SQUARE_SHIFT)) {
                continue;
            }
            if let ControlFlow::Break(value) = self.square(dimension, area, square, behind, &mut visit)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The squares of 16 columns on each side that may have chunks of an area, and damage that hides others.
    fn squares(&self, dimension: Dimension, area: &ChunkBox) -> Result<(BTreeSet<Place>, Vec<Error>), Error> {
        let (mut squares, mut damaged) = (BTreeSet::new(), Vec::new());
        let mut cubes = Cubes::of(Area::Box(dimension, *area));
        let counters = &self.world.shared.counters;
        while let Some((_, cube)) = cubes.next_past_damage(&self.view, counters, &mut damaged)? {
            squares.insert([cube.x(), cube.z()]);
        }
        Ok((squares, damaged))
    }

    /// Shows the columns of a square.
    fn square<B>(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        square: Place,
        behind: Option<Place>,
        visit: &mut impl FnMut(Place, Result<Column, Error>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, Error> {
        let (min, max) = (area.min(), area.max());
        let part = |at: i64, min: i64, max: i64| {
            let first = at << SQUARE_SHIFT;
            [first.max(min), (first + SQUARE_LAST).min(max)]
        };
        let [x, z] = [part(square[0], min.x(), max.x()), part(square[1], min.z(), max.z())];
        let inside = ChunkBox::new(ChunkPos::new(x[0], min.y(), z[0])?, ChunkPos::new(x[1], max.y(), z[1])?);
        let mut places = Vec::new();
        let area = Area::Box(dimension, inside);
        // Damage is shown before the columns of its square.
        let is_new = behind.is_none_or(|behind| square != behind.map(|at| at >> SQUARE_SHIFT));
        let stopped = walk_live(&self.view, &self.world.shared.counters, area, |live| match live {
            Ok(live) => {
                places.push(live.place().0);
                ControlFlow::Continue(())
            }
            Err(error) if is_new => visit([x[0], z[0]], Err(error)),
            Err(_) => ControlFlow::Continue(()),
        })?;
        if let Some(value) = stopped {
            return Ok(ControlFlow::Break(value));
        }
        let column_of = |at: &ChunkAt| [at.pos.x(), at.pos.z()];
        places.retain(|at| behind.is_none_or(|behind| is_behind(column_of(at), behind)));
        places.sort_unstable_by_key(|at| (column_of(at), at.pos.y()));
        let strip_of = |at: &ChunkAt| at.pos.x().div_euclid(READ_TOGETHER);
        for strip in places.chunk_by(|a, b| strip_of(a) == strip_of(b)) {
            let read = self.reader().chunks(strip, |_, stored| Ok(stored.chunk));
            let mut read = read.into_iter();
            for column in strip.chunk_by(|a, b| column_of(a) == column_of(b)) {
                let chunks: Vec<_> = read.by_ref().take(column.len()).collect();
                if let ControlFlow::Break(value) = visit(column_of(&column[0]), column_with(column, chunks)) {
                    return Ok(ControlFlow::Break(value));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

const SQUARE_SHIFT: u32 = ClusterTier::L2.shift_chunks();
const SQUARE_LAST: i64 = (1 << SQUARE_SHIFT) - 1;

/// Whether a column comes after another: by their squares, and inside a square by x, then z.
fn is_behind(at: Place, other: Place) -> bool {
    let order = |place: Place| (place.map(|at| at >> SQUARE_SHIFT), place);
    order(at) > order(other)
}

/// The column of some places that are not empty, ascending by height.
fn column_with(places: &[ChunkAt], chunks: Vec<Result<Lookup<Arc<Chunk>>, Error>>) -> Result<Column, Error> {
    let heights = (places[0].pos.y(), places[places.len() - 1].pos.y());
    check_height(heights.0, heights.1)?;
    let mut all = vec![None; (heights.1 - heights.0 + 1) as usize];
    for (at, chunk) in places.iter().zip(chunks) {
        all[(at.pos.y() - heights.0) as usize] = chunk?.here();
    }
    Ok(Column::new(heights.0, all))
}
