//! The reads for a tick thread, which wait for no disk, and columns.

use std::ops::RangeInclusive;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkPos, Dimension};
use cg_store::cache::Column;
use cg_store::layer::{Base, Found, batch, check_height, origin_of};
use cg_store::{Error, LoadTicket, Peek};

use super::background::spawn_when_applied;
use super::handle::Overlay;

impl<S: Base> Overlay<S> {
    /// A chunk as the overlay reads it, if memory has it, here and in the base, as
    /// [`World::peek`](cg_store::World::peek). Never reads from disk and never waits for it.
    pub fn peek(&self, at: ChunkAt) -> Peek {
        match self.peek_layered(at) {
            Some(found) => found.here().map_or(Peek::Absent, |(chunk, _)| Peek::Here(chunk)),
            None => Peek::NotLoaded,
        }
    }

    /// What memory has of a chunk, here and in the base; `None` if it does not say.
    pub(super) fn peek_layered(&self, at: ChunkAt) -> Option<Found<Arc<Chunk>>> {
        let peek = |lease| {
            let Some(row) = self.store().cached_chunk(lease, at) else { return Ok(None) };
            if row.is_absent() {
                return Ok(self.base().peek_chunk(at));
            }
            // A delta is over the base's chunk as it was.
            if let Some(over) = row.over
                && self.base().peek_chunk(at).is_none_or(|below| origin_of(&below) != over)
            {
                return Ok(None);
            }
            Ok(Some(self.here(row).found))
        };
        if self.arena.submitted.may_concern(at) {
            return None;
        }
        self.of_one_lease_now(peek).ok().flatten()
    }

    /// Starts to load chunks in the background, as
    /// [`World::load_in_background`](cg_store::World::load_in_background): the rows of the overlay and the chunks of its base
    /// are in memory when the answer is ready. If the last handle of the overlay is dropped before the load has begun, the
    /// answer is [`Error::Closed`].
    pub fn load_in_background(&self, at: &[ChunkAt]) -> LoadTicket {
        let (pool, arena) = (Arc::downgrade(&self.pool), Arc::downgrade(&self.arena));
        let tenancy = self.tenancy;
        batch::load_by(
            |job| spawn_when_applied(&self.pool, &self.arena, job),
            at,
            move |at, applied| {
                let overlay = Self::uncounted(&pool.upgrade()?, &arena.upgrade()?, tenancy);
                Some(match applied {
                    Ok(()) => overlay.load_many(at),
                    Err(error) => at.iter().map(|_| Err(overlay.not_written(&error))).collect(),
                })
            },
        )
    }

    /// The chunks of a column between two heights, both included, as [`World::column`](cg_store::World::column). Costs
    /// [`load_many`](Self::load_many) of them: each chunk is as that has it.
    ///
    /// # Errors
    /// As `World::column`, and as [`load`](Self::load).
    pub fn column(
        &self,
        dimension: Dimension,
        x: i64,
        z: i64,
        ys: RangeInclusive<i64>,
    ) -> Result<Column, Error> {
        let (lowest, highest) = ys.into_inner();
        check_height(lowest, highest)?;
        let at = |y| Ok::<_, Error>(ChunkAt::new(dimension, ChunkPos::new(x, y, z)?));
        let places: Vec<_> = (lowest..=highest).map(at).collect::<Result<_, _>>()?;
        let chunks: Vec<_> = self.load_many(&places).into_iter().collect::<Result<_, _>>()?;
        Ok(Column::new(lowest, chunks))
    }
}
