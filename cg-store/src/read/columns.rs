//! A walk over the columns of a view, square by square.
//!
//! Damage may hide which columns there are. It is shown at a place of its square where no column is known, so that each place is
//! shown once, in one order, and a walk that goes on behind any place shows what one walk would have shown.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use cg_format::{ChunkAt, ChunkBox, Dimension};

use crate::read::cache::Column;
use crate::read::chunk::{Area, Cubes, WorldView};
use crate::read::square::{
    Live, Place, column_of, column_with, is_left, last_of, placed, sides_of, square_of,
};
use crate::storage::error::Error;

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
        let (mut squares, mut damaged) = self.squares(dimension, area)?;
        let last = last_of(area);
        if !damaged.is_empty() {
            // What it hides may be anywhere in the area.
            squares.insert(last);
        }
        self.read_deltas()?;
        for square in squares {
            if behind.is_some_and(|behind| square < square_of(behind)) {
                continue;
            }
            let damaged = if square == last { std::mem::take(&mut damaged) } else { Vec::new() };
            let shown = self.square(dimension, area, square, behind, damaged, &mut visit)?;
            if let ControlFlow::Break(value) = shown {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The squares of 16 columns on each side that may have chunks of an area, and damage that hides others.
    pub(crate) fn squares(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
    ) -> Result<(BTreeSet<Place>, Vec<Error>), Error> {
        let (mut squares, mut damaged) = (BTreeSet::new(), Vec::new());
        let mut cubes = Cubes::of(Area::Box(dimension, *area));
        let counters = &self.world.shared.counters;
        while let Some((_, cube)) = cubes.next_past_damage(&self.view, counters, &mut damaged)? {
            squares.insert([cube.x(), cube.z()]);
        }
        Ok((squares, damaged))
    }

    /// Shows the columns of a square, and damage: `damaged`, and what hides chunks of the square.
    fn square<B>(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        square: Place,
        behind: Option<Place>,
        mut damaged: Vec<Error>,
        visit: &mut impl FnMut(Place, Result<Column, Error>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, Error> {
        let sides = sides_of(area, square);
        let Live { mut places, damaged: hidden } =
            self.live_in(dimension, sides, [area.min().y(), area.max().y()])?;
        damaged.extend(hidden);
        let is_left = |at: Place| is_left(at, behind);
        let mut damaged = placed(damaged, sides, || places.iter().map(column_of).collect());
        damaged.retain(|at, _| is_left(*at));
        places.retain(|at| is_left(column_of(at)));
        places.sort_unstable_by_key(|at| (column_of(at), at.pos.y()));
        let strip_of = |at: &ChunkAt| at.pos.x().div_euclid(READ_TOGETHER);
        for strip in places.chunk_by(|a, b| strip_of(a) == strip_of(b)) {
            let read = self.reader().chunks(strip, |_, stored| Ok(stored.chunk));
            let mut read = read.into_iter();
            for column in strip.chunk_by(|a, b| column_of(a) == column_of(b)) {
                let chunks: Vec<_> = read.by_ref().take(column.len()).collect();
                let at = column_of(&column[0]);
                while let Some(before) = damaged.first_entry().filter(|damage| *damage.key() < at) {
                    let (at, error) = before.remove_entry();
                    if let ControlFlow::Break(value) = visit(at, Err(error)) {
                        return Ok(ControlFlow::Break(value));
                    }
                }
                let column = damaged.remove(&at).map_or_else(|| column_with(column, chunks), Err);
                if let ControlFlow::Break(value) = visit(at, column) {
                    return Ok(ControlFlow::Break(value));
                }
            }
        }
        for (at, error) in damaged {
            if let ControlFlow::Break(value) = visit(at, Err(error)) {
                return Ok(ControlFlow::Break(value));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
