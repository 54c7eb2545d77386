//! Columns, from the cache if possible.

use std::iter::successors;

use cg_format::{ChunkAt, ChunkPos, ClusterTier, Dimension};

use crate::read::cache::{ChunkCache, Column, ColumnAt};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;
use crate::storage::options;

impl ReadState {
    /// The chunks of a column between two heights, both included.
    #[inline]
    pub(crate) fn column(
        &self,
        dimension: Dimension,
        x: i64,
        z: i64,
        (lowest, highest): (i64, i64),
    ) -> Result<Column, Error> {
        let at = ColumnAt { dimension, x, z, lowest, highest };
        match self.cache.column(&at) {
            Ok(column) => {
                self.cache.count_hit();
                Ok(column)
            }
            Err(ticket) => {
                let chunks = check_height(lowest, highest)?;
                let places = places(dimension, x, z, (lowest, highest))?;
                if self.cache.are_in_absent_cubes(one_of_each_group(&at)) {
                    self.note_all_asked(places);
                    Counters::add(&self.shared.counters.cache_hits, chunks);
                    return Ok(ChunkCache::absent_column(&at, ticket));
                }
                let chunks = self.stored_many(&places.collect::<Vec<_>>()).into_iter();
                let chunks = chunks.map(|found| Ok(found?.here().map(|stored| stored.chunk)));
                Ok(self.cache.keep_column(at, ticket, chunks.collect::<Result<_, Error>>()?))
            }
        }
    }
}

/// The number of chunks between two heights. Refuses heights that are too far apart.
fn check_height(lowest: i64, highest: i64) -> Result<u64, Error> {
    let chunks = if highest < lowest { 0 } else { highest.abs_diff(lowest).saturating_add(1) };
    if chunks > options::MAX_COLUMN_CHUNKS { Err(Error::ColumnTooHigh { chunks }) } else { Ok(chunks) }
}

/// The places of a column, from the lowest up.
fn places(
    dimension: Dimension,
    x: i64,
    z: i64,
    (lowest, highest): (i64, i64),
) -> Result<impl Iterator<Item = ChunkAt> + Clone, Error> {
    let at = move |y| ChunkPos::new(x, y, z).map(|pos| ChunkAt::new(dimension, pos));
    if lowest <= highest {
        for y in [lowest, highest] {
            at(y)?;
        }
    }
    Ok((lowest..=highest).map(move |y| at(y).expect("between two places of the world")))
}

/// A place in each 4³ cube that a column passes. The caller has made sure that its ends are in the world.
fn one_of_each_group(column: &ColumnAt) -> impl Iterator<Item = ChunkAt> + use<> {
    const LAST: i64 = ClusterTier::L1.side_chunks() as i64 - 1;
    let ColumnAt { dimension, x, z, lowest, highest } = *column;
    let heights = successors(Some(lowest), |y| (y | LAST).checked_add(1)).take_while(move |y| *y <= highest);
    heights.map(move |y| {
        ChunkAt::new(dimension, ChunkPos::new(x, y, z).expect("between two places of the world"))
    })
}
