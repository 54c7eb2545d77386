//! Columns, from the cache if possible.

use cg_format::{ChunkAt, ChunkPos, Dimension};

use crate::read::cache::{Column, ColumnAt};
use crate::read::state::ReadState;
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
                let places = (lowest..=highest).map(|y| Ok(ChunkAt::new(dimension, ChunkPos::new(x, y, z)?)));
                let places = places.collect::<Result<Vec<_>, Error>>()?;
                let chunks = self.stored_many(&places).into_iter();
                let chunks = chunks.map(|found| Ok(found?.here().map(|stored| stored.chunk)));
                let chunks = chunks.collect::<Result<_, Error>>()?;
                Ok(self.cache.keep_column(at, ticket, chunks))
            }
        }
    }
}

/// Refuses heights that are too far apart.
fn check_height(lowest: i64, highest: i64) -> Result<(), Error> {
    let chunks = if highest < lowest { 0 } else { highest.abs_diff(lowest).saturating_add(1) };
    if chunks > options::MAX_COLUMN_CHUNKS { Err(Error::ColumnTooHigh { chunks }) } else { Ok(()) }
}
