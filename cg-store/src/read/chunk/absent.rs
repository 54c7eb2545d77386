//! Finds out that whole cubes are empty, so that the next chunk of them needs no read from the engine.

use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;
use cg_format::{ChunkAt, ChunkPos, ClusterPos, ClusterTier, Space, key};

use crate::engine::{Readable, ReadableExt as _};
use crate::read::cache::{Absence, Ticket};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

impl ReadState {
    /// Looks up the cubes of an absent chunk if that is due. Returns whether they are now known to be empty.
    ///
    /// Costs up to five reads from the engine, at most once for each 4³ cube.
    pub(in crate::read) fn learn_absence(&self, at: ChunkAt, ticket: Ticket) -> bool {
        // Queued changes are not in the engine. Checked after the ticket was taken: later commits announce their places
        // after it.
        if !self.cache.is_cube_to_be_asked(at) || !self.pending.is_empty() {
            return false;
        }
        let has_row = |view: &dyn Readable, family, first: &[u8], last: &[u8]| -> Result<bool, Error> {
            Counters::add(&self.shared.counters.engine_reads, 1);
            let range = (Bound::Included(first), Bound::Included(last));
            let found = view.scan_first(family, range, 1, |_, _| ControlFlow::Break(()))?.is_some();
            Counters::add(&self.shared.counters.keys_scanned, u64::from(found));
            Ok(found)
        };
        let holds_any = |view: &dyn Readable, cube: ClusterPos| -> Result<bool, Error> {
            let cluster = |pos: ChunkPos| key::cluster(at.dimension, pos.cluster(ClusterTier::L1));
            let chunk = |pos| key::chunk(ChunkAt::new(at.dimension, pos));
            let (first, last) = (cube.min_chunk(), cube.max_chunk());
            Ok(has_row(view, Family::ChunkL1, &cluster(first), &cluster(last))?
                || has_row(view, Family::ChunkL0, &chunk(first), &chunk(last))?)
        };
        let look_up = || -> Result<Absence, Error> {
            // One snapshot, because a move between two reads could carry rows to a place that was already read.
            let engine = self.shared.engine()?;
            let view = engine.snapshot_of_now()?;
            let cold = at.pos.cluster(ClusterTier::L2);
            Counters::add(&self.shared.counters.engine_reads, 1);
            Ok(if view.get(Space::ClusterL2, &key::cluster(at.dimension, cold))?.is_some() {
                Absence::Unknowable
            } else if !holds_any(&view, cold)? {
                Absence::WholeCube
            } else if !holds_any(&view, at.pos.cluster(ClusterTier::L1))? {
                Absence::Group
            } else {
                Absence::Neither
            })
        };
        // An error here is ignored. A load of a chunk reports it.
        look_up().is_ok_and(|absence| self.cache.learn_absence(at, ticket, absence))
    }
}
