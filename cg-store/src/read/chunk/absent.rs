//! Finds out that whole cubes are empty, so that the next chunk of them needs no read from the engine.

use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;
use cg_format::{ChunkAt, ChunkPos, ClusterTier, Space, key};

use crate::engine::{Readable, ReadableExt as _};
use crate::read::cache::{Absence, Ticket};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

impl ReadState {
    /// Looks up the cubes of an absent chunk if that is due. Returns whether they are now known to be empty.
    ///
    /// Costs up to five reads from the engine, at most once for each 4³ cube.
    pub(super) fn learn_absence(&self, at: ChunkAt, ticket: Ticket) -> bool {
        // Queued changes are not in the engine. Checked after the ticket was taken: later commits announce their places
        // after it.
        if !self.cache.is_cube_to_be_asked(at) || !self.pending.is_empty() {
            return false;
        }
        // An error here is ignored. A load of a chunk reports it.
        self.ask_about_cubes(at).is_ok_and(|absence| self.cache.learn_absence(at, ticket, absence))
    }

    fn ask_about_cubes(&self, at: ChunkAt) -> Result<Absence, Error> {
        // One snapshot, because a move between two reads could carry rows to a place that was already read.
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        let cold = at.pos.cluster(ClusterTier::L2);
        Counters::add(&self.shared.counters.engine_reads, 1);
        if view.get(Space::ClusterL2, &key::cluster(at.dimension, cold))?.is_some() {
            return Ok(Absence::Unknowable);
        }
        let holds_any = |first: ChunkPos, last: ChunkPos| -> Result<bool, Error> {
            let cluster = |pos: ChunkPos| key::cluster(at.dimension, pos.cluster(ClusterTier::L1));
            let chunk = |pos| key::chunk(ChunkAt::new(at.dimension, pos));
            Ok(self.has_row(&view, Family::ChunkL1, [&cluster(first), &cluster(last)])?
                || self.has_row(&view, Family::ChunkL0, [&chunk(first), &chunk(last)])?)
        };
        if !holds_any(cold.min_chunk(), cold.max_chunk())? {
            return Ok(Absence::WholeCube);
        }
        let group = at.pos.cluster(ClusterTier::L1);
        Ok(if holds_any(group.min_chunk(), group.max_chunk())? { Absence::Neither } else { Absence::Group })
    }

    /// Whether there is any row from one key to another.
    fn has_row(&self, view: &dyn Readable, family: Family, keys: [&[u8]; 2]) -> Result<bool, Error> {
        Counters::add(&self.shared.counters.engine_reads, 1);
        let [first, last] = keys.map(Bound::Included);
        let found = view.scan_first(family, (first, last), 1, |_, _| {
            Counters::add(&self.shared.counters.keys_scanned, 1);
            ControlFlow::Break(())
        })?;
        Ok(found.is_some())
    }
}
