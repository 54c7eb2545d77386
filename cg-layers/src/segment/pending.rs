//! Reads after pending writes: what was submitted is given to its segment first.

use std::ops::RangeInclusive;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkPos, Dimension, Lookup};
use cg_store::cache::Column;
use cg_store::error::ConflictKey;
use cg_store::layer::check_height;
use cg_store::{Error, World};

use super::home::SegmentHome;
use super::parts::Parts;
use super::transfers::Transfers;
use super::world::SegmentedWorld;

impl<H: SegmentHome> Parts<H> {
    /// Looks a chunk up in its segment.
    pub(super) fn look_up<T>(
        &self,
        at: ChunkAt,
        find: impl FnOnce(&World) -> Result<Lookup<T>, Error>,
    ) -> Result<Lookup<T>, Error> {
        self.submissions.apply_for(&[at])?;
        self.transfers.look_up(at, find)
    }

    /// Looks many chunks up, those of one segment in one call of `find`. If what was submitted to a segment still waits,
    /// only its chunks get the reason.
    pub(super) fn look_up_many<T>(
        &self,
        at: &[ChunkAt],
        find: impl Fn(&World, &[ChunkAt]) -> Vec<Result<Lookup<T>, Error>>,
    ) -> Vec<Result<Lookup<T>, Error>> {
        if self.submissions.apply_for(at).is_ok() {
            return self.transfers.look_up_many(at, find);
        }
        let alone = |at: &ChunkAt| {
            self.submissions.apply_for(&[*at])?;
            let mut found = self.transfers.look_up_many(&[*at], &find);
            found.pop().unwrap_or(Ok(Lookup::NotFound))
        };
        at.iter().map(alone).collect()
    }

    /// Calls a function with the segment of a key. An entity is not transferred meanwhile.
    pub(super) fn at_rest<T>(
        &self,
        key: &ConflictKey,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.value_at(key)?.at_rest(key, show)
    }

    /// The reads of the value of a key.
    ///
    /// # Errors
    /// Why the segment that has it does not take what was submitted to it.
    pub(super) fn value_at(&self, key: &ConflictKey) -> Result<&Transfers<H>, Error> {
        let transfers = self.values();
        if !self.submissions.is_empty()
            && let Some(segment) = self.root.segment_with(key)?
        {
            self.submissions.apply(segment)?;
        }
        Ok(transfers)
    }

    /// The reads of values of many keys.
    pub(super) fn values(&self) -> &Transfers<H> {
        self.submissions.apply_values();
        &self.transfers
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// The chunks of a column between two heights, both included, as [`World::column`]. Opens the segments that it
    /// crosses.
    ///
    /// Costs one look into memory if all heights are in one segment. Else the parts are joined: a look in each segment, and a
    /// count for each chunk. Each part is of one moment, and a commit in another segment may come between two parts.
    ///
    /// # Errors
    /// As [`World::column`], and as [`load`](Self::load).
    pub fn column(
        &self,
        dimension: Dimension,
        x: i64,
        z: i64,
        ys: RangeInclusive<i64>,
    ) -> Result<Column, Error> {
        let (lowest, highest) = ys.into_inner();
        check_height(lowest, highest)?;
        if highest < lowest {
            return Ok(Column::new(lowest, []));
        }
        let at = |y| Ok::<_, Error>(ChunkAt::new(dimension, ChunkPos::new(x, y, z)?));
        let (first, last) = (at(lowest)?, at(highest)?);
        if self.segment_of(first) == self.segment_of(last) {
            return self.part(first, highest);
        }
        let side = i64::from(self.side_chunks());
        let mut joined: Vec<Option<Arc<Chunk>>> = Vec::new();
        let mut y = lowest;
        while y <= highest {
            let end = y.div_euclid(side).saturating_mul(side).saturating_add(side - 1).min(highest);
            let part = self.part(at(y)?, end)?;
            joined.extend((y..=end).map(|y| part.chunk(y).cloned()));
            y = end + 1;
        }
        Ok(Column::new(lowest, joined))
    }

    /// The part of a column in one segment, from its lowest chunk up.
    fn part(&self, lowest: ChunkAt, highest: i64) -> Result<Column, Error> {
        let segment = self.segment_of(lowest);
        self.parts.submissions.apply(segment)?;
        self.parts.transfers.try_to_resolve();
        let (pos, ys) = (lowest.pos, lowest.pos.y()..=highest);
        let part = self
            .parts
            .open
            .with_stored(segment, |world| world.column(lowest.dimension, pos.x(), pos.z(), ys))?;
        Ok(part.unwrap_or_else(|| Column::new(pos.y(), [])))
    }
}
