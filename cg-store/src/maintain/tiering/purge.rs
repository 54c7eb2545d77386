//! Purging of tombstones. It runs in the background if there is a cold cluster below, because an engine reads that row
//! as a whole.

use std::sync::atomic::Ordering;

use cg_format::ClusterTier;
use cg_tiering::CubeAt;

use super::{Due, MoveCounts, Work};
use crate::maintain::background::{Awaited, Background};
use crate::maintain::move_tier::{Outcome, past_damage, purge_tombstones, row_of};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The one cube whose tombstones a thread of the pool may be purging. No chunk is moved meanwhile.
#[derive(Debug)]
pub(super) struct Purge {
    cube: CubeAt,
    end: Background<Outcome>,
}

impl MaintainState {
    /// Purges the tombstones of a cube that are before the horizon and hide nothing. A thread of the pool does it if
    /// there may be a cold cluster below.
    pub(super) fn purge_tombstones(
        &self,
        work: &mut Work,
        cube: CubeAt,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let (space, row_key) = row_of(cube.cluster(ClusterTier::L2));
        if !self.shared.engine()?.may_have(space, &row_key) {
            let end = self.forgotten(cube)?;
            end_purge(work, cube, end, counts);
            return Ok(());
        }
        let end = self.in_background("forgetting tombstones", move |world| world.forgotten(cube));
        work.purge = Some(Purge { cube, end });
        Ok(())
    }

    fn forgotten(&self, cube: CubeAt) -> Result<Outcome, Error> {
        let before = self.shared.tombstone_horizon.load(Ordering::Relaxed);
        past_damage(purge_tombstones(&*self.shared.engine()?, &self.shared.counters, cube, before))
    }
}

/// Waits for the cube whose tombstones are being purged. Returns `false` if the deadline comes first.
pub(super) fn await_purge(work: &mut Work, due: Due, counts: &mut MoveCounts) -> Result<bool, Error> {
    let Some(Purge { cube, end }) = work.purge.take() else { return Ok(true) };
    match end.wait(due) {
        Awaited::Done(Ok(end)) => {
            end_purge(work, cube, end, counts);
            Ok(true)
        }
        Awaited::Done(Err(error)) => {
            // They may have been deleted.
            work.cube_index.moved(cube);
            Err(error)
        }
        Awaited::Running(end) => {
            work.purge = Some(Purge { cube, end });
            Ok(false)
        }
    }
}

/// Records the result.
fn end_purge(work: &mut Work, cube: CubeAt, end: Outcome, counts: &mut MoveCounts) {
    match end {
        Outcome::Done(moved) => {
            counts.tombstones_purged += counts.add(moved);
            work.cube_index.moved(cube);
        }
        // A saved chunk has no tombstone any more. The others are counted again when the rows are read.
        Outcome::Conflict => {
            counts.conflicts += 1;
            work.cube_index.moved(cube);
        }
        Outcome::Damaged(damage) => work.damage_log.report(&damage),
        Outcome::Nothing | Outcome::TooLarge => {}
    }
}
