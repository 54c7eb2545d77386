//! Whole columns from memory, and areas that stay there.

use std::ops::RangeInclusive;

use cg_format::{ChunkAt, ChunkBox, ChunkPos, Dimension};

use crate::api::world::World;
use crate::read::cache::{CacheStats, Column, ColumnAt, KeepId};
use crate::storage::error::Error;
use crate::storage::options;

impl World {
    /// The most chunks that [`column`](Self::column) gives at once: a column of 65,536 blocks.
    pub const MAX_COLUMN_CHUNKS: u64 = options::MAX_COLUMN_CHUNKS;

    /// The chunks of a column between two heights, both included, by one look into memory.
    ///
    /// All of it is of one moment if memory has it, or else if nothing is committed into the column while it is put
    /// together; else each chunk is as [`load`](Self::load) has it. Absent chunks are part of it.
    ///
    /// Costs one look if the same heights were asked for before and nothing was committed into the column since; else
    /// a look for each chunk and [`load_many`](Self::load_many) for those that memory does not have. Columns
    /// hold their chunks themselves, whether or not these are in memory one by one. From the first call on a
    /// quarter of [`cache_bytes`](crate::WorldOptions::cache_bytes) is theirs, so that both together stay under the
    /// bound; what both hold is counted twice. Ask for the same heights each time: other heights are another column.
    ///
    /// # Errors
    /// [`Error::Position`] outside the world; [`Error::ColumnTooHigh`] for more chunks than
    /// [`MAX_COLUMN_CHUNKS`](Self::MAX_COLUMN_CHUNKS); [`Error::Corrupt`] if a chunk of it is damaged, and then ask for its chunks one by one.
    #[inline]
    pub fn column(
        &self,
        dimension: Dimension,
        x: i64,
        z: i64,
        ys: RangeInclusive<i64>,
    ) -> Result<Column, Error> {
        let inner = self.unsettled();
        inner.check_open()?;
        let (lowest, highest) = ys.into_inner();
        if inner.has_hand_overs() {
            inner.settle_for(&[ChunkAt::new(dimension, ChunkPos::new(x, lowest, z)?)])?;
        }
        let at = ColumnAt { dimension, x, z, lowest, highest };
        match inner.cache.column(&at) {
            Ok(column) => {
                inner.cache.count_hit();
                Ok(column)
            }
            Err(ticket) => {
                check_height(lowest, highest)?;
                let heights = lowest..=highest;
                let places = heights.map(|y| Ok(ChunkAt::new(dimension, ChunkPos::new(x, y, z)?)));
                let places = places.collect::<Result<Vec<_>, Error>>()?;
                let chunks = inner.stored_many(&places).into_iter();
                let chunks = chunks.map(|found| Ok(found?.here().map(|stored| stored.chunk)));
                let chunks = chunks.collect::<Result<_, Error>>()?;
                Ok(inner.cache.keep_column(at, ticket, chunks))
            }
        }
    }

    /// Keeps the chunks of a box in memory: what is there and what is loaded or saved later is not evicted, whatever
    /// else is asked for. It loads nothing; [`request`](Self::request) does. Forgotten when the world is closed.
    ///
    /// Kept chunks are beside [`cache_bytes`](crate::WorldOptions::cache_bytes), not under it: the rest of the cache
    /// is as large as before, and [`cache_stats`](Self::cache_stats) says what they take. Not to be confused with
    /// [`pin`](Self::pin) and [`hold`](Self::hold), which say in which tier chunks lie on disk and keep nothing in memory.
    ///
    /// Costs a look at every chunk in memory, and waits for a commit under way.
    pub fn keep_in_memory(&self, dimension: Dimension, place: ChunkBox) -> KeepId {
        self.unsettled().cache.keep(dimension, place)
    }

    /// Lets what was kept be evicted again, unless another kept box has it. Says whether it was kept. Costs as much as
    /// [`keep_in_memory`](Self::keep_in_memory).
    pub fn let_go(&self, id: KeepId) -> bool {
        self.unsettled().cache.let_go(id)
    }

    /// What the chunks in memory take.
    pub fn cache_stats(&self) -> CacheStats {
        self.unsettled().cache.stats()
    }
}

/// Refuses heights that are too far apart.
fn check_height(lowest: i64, highest: i64) -> Result<(), Error> {
    let chunks = if highest < lowest { 0 } else { highest.abs_diff(lowest).saturating_add(1) };
    if chunks > options::MAX_COLUMN_CHUNKS { Err(Error::ColumnTooHigh { chunks }) } else { Ok(()) }
}
