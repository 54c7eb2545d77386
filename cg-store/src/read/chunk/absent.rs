//! Learning that whole cubes hold nothing, so that the next chunk of them costs no look into the engine.

use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;
use cg_format::{ChunkAt, ChunkPos, ClusterTier, Space, key};

use crate::engine::{Readable, ReadableExt as _};
use crate::read::cache::{Absence, Ticket};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

impl ReadState {
    /// Asks about the cubes of a chunk that was found absent, if it is time to; says whether they are known to hold
    /// nothing now.
    ///
    /// Costs up to five looks into the engine, for each 4³ cube at most once.
    pub(super) fn learn_absence(&self, at: ChunkAt, ticket: Ticket) -> bool {
        // What is queued is not in the engine. Asked after the ticket: what is queued later is announced after it.
        if !self.cache.is_cube_to_be_asked(at) || !self.pending.is_empty() {
            return false;
        }
        // Whatever fails here fails whoever asks for a chunk: of its cubes nothing is learnt.
        self.ask_about_cubes(at).is_ok_and(|absence| self.cache.learn_absence(at, ticket, absence))
    }

    fn ask_about_cubes(&self, at: ChunkAt) -> Result<Absence, Error> {
        // Between two looks a move may carry rows from where the second looks to where the first has looked.
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
