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
        check_height(lowest, highest)?;
        if self.cache.is_empty_column_again(&at) {
            return self.empty_column(&at);
        }
        match self.cache.column(&at) {
            Ok(column) => {
                self.cache.count_hit();
                Ok(column)
            }
            Err(_) if self.cache.is_empty_column(&at) => self.empty_column(&at),
            Err(ticket) => {
                let places: Vec<_> = places(dimension, x, z, (lowest, highest))?.collect();
                let chunks = self.stored_many(&places).into_iter();
                let chunks = chunks.map(|found| Ok(found?.here().map(|stored| stored.chunk)));
                Ok(self.cache.keep_column(at, ticket, chunks.collect::<Result<_, Error>>()?))
            }
        }
    }

    /// A column whose chunks are all in cubes that are known to be empty.
    fn empty_column(&self, at: &ColumnAt) -> Result<Column, Error> {
        let ColumnAt { dimension, x, z, lowest, highest } = *at;
        self.note_all_asked(places(dimension, x, z, (lowest, highest))?);
        self.cache.count_hit();
        Ok(Column::absent())
    }
}

/// Refuses heights that are too far apart.
///
/// # Errors
/// [`Error::ColumnTooHigh`].
pub fn check_height(lowest: i64, highest: i64) -> Result<(), Error> {
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
