//! A walk over the columns of a view, square by square.
//!
//! Damage may hide which columns there are. It is shown at a place of its square where no column is known, so that each place is
//! shown once, in one order, and a walk that goes on behind any place shows what one walk would have shown.

use std::collections::{BTreeMap, BTreeSet};
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
        let (mut squares, mut damaged) = self.squares(dimension, area)?;
        let last = [area.max().x(), area.max().z()].map(|at| at >> SQUARE_SHIFT);
        if !damaged.is_empty() {
            // What it hides may be anywhere in the area.
            squares.insert(last);
        }
        self.read_deltas()?;
        for square in squares {
            if behind.is_some_and(|behind| square < behind.map(|at| at >> SQUARE_SHIFT)) {
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
    fn squares(&self, dimension: Dimension, area: &ChunkBox) -> Result<(BTreeSet<Place>, Vec<Error>), Error> {
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
        let (min, max) = (area.min(), area.max());
        let part = |at: i64, min: i64, max: i64| {
            let first = at << SQUARE_SHIFT;
            [first.max(min), (first + SQUARE_LAST).min(max)]
        };
        let [x, z] = [part(square[0], min.x(), max.x()), part(square[1], min.z(), max.z())];
        let inside = ChunkBox::new(ChunkPos::new(x[0], min.y(), z[0])?, ChunkPos::new(x[1], max.y(), z[1])?);
        let mut places = Vec::new();
        walk_live(&self.view, &self.world.shared.counters, Area::Box(dimension, inside), |live| {
            match live {
                Ok(live) => places.push(live.place().0),
                Err(error) => damaged.push(error),
            }
            ControlFlow::<()>::Continue(())
        })?;
        let is_left = |at: Place| behind.is_none_or(|behind| is_behind(at, behind));
        let mut damaged = placed(damaged, [x, z], &places);
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

const SQUARE_SHIFT: u32 = ClusterTier::L2.shift_chunks();
const SQUARE_LAST: i64 = (1 << SQUARE_SHIFT) - 1;

fn column_of(at: &ChunkAt) -> Place {
    [at.pos.x(), at.pos.z()]
}

/// Places for the damage of a square, each without a column, from the last one down; where there is none, the last one. What
/// more there is than places is in the log.
fn placed(damaged: Vec<Error>, [x, z]: [[i64; 2]; 2], live: &[ChunkAt]) -> BTreeMap<Place, Error> {
    let mut all = BTreeMap::new();
    if damaged.is_empty() {
        return all;
    }
    let live: BTreeSet<_> = live.iter().map(column_of).collect();
    let every = (x[0]..=x[1]).rev().flat_map(|x| (z[0]..=z[1]).rev().map(move |z| [x, z]));
    let mut free = every.filter(|at| !live.contains(at));
    for error in damaged {
        match free.next() {
            Some(at) => drop(all.insert(at, error)),
            None if all.is_empty() => drop(all.insert([x[1], z[1]], error)),
            None => tracing::warn!(%error, "a walk by columns has no place to show damage at"),
        }
    }
    all
}

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
