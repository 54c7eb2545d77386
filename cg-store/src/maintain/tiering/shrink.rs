//! Rewriting clusters without the slots that hotter tiers shadow: a warm one within a tick, a cold one in the
//! background.

use cg_format::ClusterTier;
use cg_tiering::{ClusterAt, GameTick, ShadowedSlots};

use super::{Due, MoveCounts, Work};
use crate::maintain::background::{Awaited, Background};
use crate::maintain::move_tier::{Outcome, drop_shadows, past_damage, row_of};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The one cold cluster that a thread of the pool may be counting and rewriting. It is as large as 64 cubes.
#[derive(Debug)]
pub(super) struct Shrinking {
    cluster: ClusterAt,
    end: Background<Shrunk>,
}

/// The result of that.
#[derive(Debug)]
struct Shrunk {
    end: Outcome,
    /// The slots of the cluster that hold a chunk; 0 if there is no cluster.
    present: u32,
}

impl MaintainState {
    /// Rewrites a cluster without its shadowed slots, if the policy selects it for the state above it since `since`. A
    /// thread of the pool does it for an existing cold cluster.
    pub(super) fn shrink(
        &self,
        work: &mut Work,
        (cluster, since): (ClusterAt, GameTick),
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let at = due.at();
        let (space, row_key) = row_of(cluster);
        // Usually there is no cluster, and no thread is needed.
        let is_absent = !self.shared.engine()?.may_have(space, &row_key);
        if cluster.pos.tier() == ClusterTier::L1 || is_absent {
            for shrunk in self.shared.pool.each(&[cluster], |cluster| self.shrunk(*cluster, since, at)) {
                self.end_shrinking(work, cluster, shrunk?, counts);
            }
            return Ok(());
        }
        let operation = "writing a cluster without its shadows";
        let end = self.in_background(operation, move |world| world.shrunk(cluster, since, at));
        work.shrinking = Some(Shrinking { cluster, end });
        Ok(())
    }

    /// Waits for the cold cluster that is being rewritten. Returns `false` if the deadline comes first.
    pub(super) fn await_shrinking(
        &self,
        work: &mut Work,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        let Some(Shrinking { cluster, end }) = work.shrinking.take() else { return Ok(true) };
        match end.wait(due) {
            Awaited::Done(shrunk) => {
                self.end_shrinking(work, cluster, shrunk?, counts);
                Ok(true)
            }
            Awaited::Running(end) => {
                work.shrinking = Some(Shrinking { cluster, end });
                Ok(false)
            }
        }
    }

    fn shrunk(&self, cluster: ClusterAt, since: GameTick, at: GameTick) -> Result<Shrunk, Error> {
        let policy = self.activity.tiering.observers(|seen| *seen.policy());
        let mut present = 0;
        let should_rewrite = |slots: ShadowedSlots| {
            present = slots.present;
            policy.should_rewrite(slots, since, at)
        };
        let end = past_damage(drop_shadows(
            &*self.shared.engine()?,
            &self.shared.counters,
            cluster,
            should_rewrite,
        ))?;
        Ok(Shrunk { end, present })
    }

    fn end_shrinking(&self, work: &mut Work, cluster: ClusterAt, shrunk: Shrunk, counts: &mut MoveCounts) {
        match shrunk.end {
            Outcome::Done(moved) => {
                counts.shadows_dropped += counts.add(moved);
                work.cleanup.written_anew(cluster);
            }
            Outcome::Conflict => counts.conflicts += 1,
            Outcome::Damaged(damage) => {
                work.damage_log.report(&damage);
                counts.refused += 1;
            }
            Outcome::TooLarge => counts.refused += 1,
            // Without a cluster the policy is not asked, and `present` stays 0.
            Outcome::Nothing => work.cleanup.counted(cluster, shrunk.present, self.activity.tiering.now()),
        }
    }
}
