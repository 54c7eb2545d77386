//! Columns, from the cache if possible.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkPos, Dimension};

use crate::read::cache::{Column, ColumnAt};
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
                check_height(lowest, highest)?;
                let places = places(dimension, x, z, (lowest, highest))?;
                let chunks = self.column_chunks(places)?;
                Ok(self.cache.keep_column(at, ticket, chunks))
            }
        }
    }

    /// The chunks at the places of a column.
    fn column_chunks(
        &self,
        places: impl Iterator<Item = ChunkAt> + Clone,
    ) -> Result<Box<[Option<Arc<Chunk>>]>, Error> {
        if self.cache.are_in_absent_cubes(places.clone()) {
            let absent = |at| {
                self.note_asked(at, true);
                None
            };
            let absent: Box<[_]> = places.map(absent).collect();
            Counters::add(&self.shared.counters.cache_hits, absent.len() as u64);
            return Ok(absent);
        }
        let chunks = self.stored_many(&places.collect::<Vec<_>>()).into_iter();
        chunks.map(|found| Ok(found?.here().map(|stored| stored.chunk))).collect()
    }
}

/// Refuses heights that are too far apart.
fn check_height(lowest: i64, highest: i64) -> Result<(), Error> {
    let chunks = if highest < lowest { 0 } else { highest.abs_diff(lowest).saturating_add(1) };
    if chunks > options::MAX_COLUMN_CHUNKS { Err(Error::ColumnTooHigh { chunks }) } else { Ok(()) }
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
