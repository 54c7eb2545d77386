//! A square of 16 by 16 columns, which worlds that lie above one another have parts of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterTier, Dimension, Lookup};

use crate::read::cache::Column;
use crate::read::chunk::{Area, WorldView, check_height, walk_live};
use crate::storage::error::Error;

/// The x and z of a column, in chunks.
pub(crate) type Place = [i64; 2];

/// A chunk of a column, or why it cannot be read.
type Read = Result<Lookup<Arc<Chunk>>, Error>;

/// The columns of a square of 16 by 16, joined from the parts that worlds have of it. It holds all their chunks.
///
/// Damage has the places that [`ReadView::for_each_column`](crate::view::ReadView::for_each_column) gives it.
#[derive(Debug)]
pub struct ColumnSquare {
    square: Place,
    /// The first and the last column along x and z.
    sides: [[i64; 2]; 2],
    behind: Option<Place>,
    /// The columns that have a chunk.
    live: BTreeSet<Place>,
    /// Chunks of those that are left, from the lowest up.
    parts: BTreeMap<Place, (Vec<ChunkAt>, Vec<Read>)>,
    damaged: Vec<Error>,
}

impl ColumnSquare {
    /// The part of a square that lies in an area, without chunks. The columns that come after `behind` are wanted.
    ///
    /// The square is named by the x and z of its columns, divided by 16.
    pub fn new(area: &ChunkBox, square: [i64; 2], behind: Option<[i64; 2]>) -> Self {
        let sides = sides_of(area, square);
        Self { square, sides, behind, live: BTreeSet::new(), parts: BTreeMap::new(), damaged: Vec::new() }
    }

    /// The last square of an area, where damage is shown that hides which squares there are.
    pub fn last(area: &ChunkBox, behind: Option<[i64; 2]>) -> Self {
        Self::new(area, last_of(area), behind)
    }

    /// The x and z of its columns, divided by 16.
    pub const fn square(&self) -> [i64; 2] {
        self.square
    }

    /// Whether a column of it may be wanted.
    pub fn is_left(&self) -> bool {
        self.behind.is_none_or(|behind| self.square >= square_of(behind))
    }

    /// Takes damage that hides chunks of it.
    pub fn add_damage(&mut self, error: Error) {
        self.damaged.push(error);
    }

    /// Reads the part that a world has, between two heights, both included.
    ///
    /// # Errors
    /// If the engine fails. Nothing was taken then.
    pub(crate) fn add(
        &mut self,
        view: &WorldView<'_>,
        dimension: Dimension,
        ys: [i64; 2],
    ) -> Result<(), Error> {
        let Live { mut places, damaged } = view.live_in(dimension, self.sides, ys)?;
        view.read_deltas()?;
        self.damaged.extend(damaged);
        self.live.extend(places.iter().map(column_of));
        places.retain(|at| is_left(column_of(at), self.behind));
        places.sort_unstable_by_key(|at| (column_of(at), at.pos.y()));
        let read = view.reader().chunks(&places, |_, stored| Ok(stored.chunk));
        for (at, chunk) in places.into_iter().zip(read) {
            let (places, chunks) = self.parts.entry(column_of(&at)).or_default();
            places.push(at);
            chunks.push(chunk);
        }
        Ok(())
    }

    /// Its columns and damage, each at a place of its own, in the order of a walk.
    pub fn finish(self) -> BTreeMap<[i64; 2], Result<Column, Error>> {
        let Self { sides, behind, live, parts, damaged, .. } = self;
        let joined = parts.into_iter().map(|(at, (places, chunks))| (at, column_with(&places, chunks)));
        let mut all: BTreeMap<_, _> = joined.collect();
        let damaged = placed(damaged, sides, || live);
        all.extend(
            damaged.into_iter().filter(|(at, _)| is_left(*at, behind)).map(|(at, error)| (at, Err(error))),
        );
        all
    }
}

/// The chunks of a part of a square, and damage that hides others.
pub(crate) struct Live {
    pub(crate) places: Vec<ChunkAt>,
    pub(crate) damaged: Vec<Error>,
}

impl WorldView<'_> {
    /// Lists the chunks of some columns between two heights.
    pub(crate) fn live_in(
        &self,
        dimension: Dimension,
        [x, z]: [[i64; 2]; 2],
        ys: [i64; 2],
    ) -> Result<Live, Error> {
        let inside = ChunkBox::new(ChunkPos::new(x[0], ys[0], z[0])?, ChunkPos::new(x[1], ys[1], z[1])?);
        let mut live = Live { places: Vec::new(), damaged: Vec::new() };
        walk_live(&self.view, &self.world.shared.counters, Area::Box(dimension, inside), |found| {
            match found {
                Ok(found) => live.places.push(found.place().0),
                Err(error) => live.damaged.push(error),
            }
            std::ops::ControlFlow::<()>::Continue(())
        })?;
        Ok(live)
    }
}

const SQUARE_SHIFT: u32 = ClusterTier::L2.shift_chunks();
const SQUARE_LAST: i64 = (1 << SQUARE_SHIFT) - 1;

/// The square of a column.
pub(crate) fn square_of(at: Place) -> Place {
    at.map(|at| at >> SQUARE_SHIFT)
}

/// The last square of an area.
pub(crate) fn last_of(area: &ChunkBox) -> Place {
    square_of([area.max().x(), area.max().z()])
}

/// The first and the last column of an area in a square, along x and z.
pub(crate) fn sides_of(area: &ChunkBox, square: Place) -> [[i64; 2]; 2] {
    let (min, max) = (area.min(), area.max());
    let part = |at: i64, min: i64, max: i64| {
        let first = at << SQUARE_SHIFT;
        [first.max(min), (first + SQUARE_LAST).min(max)]
    };
    [part(square[0], min.x(), max.x()), part(square[1], min.z(), max.z())]
}

pub(crate) fn column_of(at: &ChunkAt) -> Place {
    [at.pos.x(), at.pos.z()]
}

/// Places for the damage of a square, each without a column, from the last one down; where there is none, the last one. What
/// more there is than places is in the log. `live` gives the columns that have a chunk.
pub(crate) fn placed(
    damaged: Vec<Error>,
    [x, z]: [[i64; 2]; 2],
    live: impl FnOnce() -> BTreeSet<Place>,
) -> BTreeMap<Place, Error> {
    let mut all = BTreeMap::new();
    if damaged.is_empty() {
        return all;
    }
    let live = live();
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

/// Whether a walk that goes on after one column, if any, shows another: by their squares, and inside a square by x, then z.
pub(crate) fn is_left(at: Place, behind: Option<Place>) -> bool {
    let order = |place: Place| (square_of(place), place);
    behind.is_none_or(|behind| order(at) > order(behind))
}

/// The column of some places that are not empty, ascending by height.
pub(crate) fn column_with(places: &[ChunkAt], chunks: Vec<Read>) -> Result<Column, Error> {
    let heights = (places[0].pos.y(), places[places.len() - 1].pos.y());
    check_height(heights.0, heights.1)?;
    let mut all = vec![None; (heights.1 - heights.0 + 1) as usize];
    for (at, chunk) in places.iter().zip(chunks) {
        all[(at.pos.y() - heights.0) as usize] = chunk?.here();
    }
    Ok(Column::new(heights.0, all))
}
