//! Clears damaged rows after their chunks were quarantined.
//!
//! A quarantined chunk has a tombstone in the hottest tier, so no lookup goes below it. Damage below still affects
//! listings of rows, moves and compactions. It is not needed: the quarantine has a copy of what could be read.

use std::ops::Bound;

use cg_format::cluster::StoredCluster;
use cg_format::{ChunkBox, ClusterPos, ClusterTier, Dimension, Limits, Space, key};
use cg_tiering::ClusterAt;

use crate::admin::Admin;
use crate::engine::{Batch, EngineError, Guard, KeyRange, Level};
use crate::maintain::move_tier::{Outcome, drop_shadows, past_damage};
use crate::read::chunk::{clusters_of, keys_of};
use crate::storage::error::Error;

/// An empty range: nothing is rewritten, but the engine checks again whether a held family is still damaged.
const NO_KEYS: KeyRange<'static> = (Bound::Excluded(&[]), Bound::Excluded(&[]));

impl Admin<'_> {
    /// Clears the damage of a box, as far as no chunk is lost by it. Returns whether no damage is left. Moves wait
    /// meanwhile.
    pub(super) fn clear(&self, dimension: Dimension, bounds: ChunkBox) -> Result<bool, Error> {
        let mut is_clear = true;
        let corners = [bounds.min(), bounds.max()];
        for tier in [None, Some(ClusterTier::L1), Some(ClusterTier::L2)] {
            let space = tier.map_or(Space::ChunkL0, Space::of_cluster);
            is_clear &= self.close_gaps(space, keys_of(tier, dimension, corners))?;
        }
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            for cluster in clusters_of(bounds, tier) {
                is_clear &= self.clear_cluster(dimension, cluster)?;
            }
        }
        let engine = self.shared.engine()?;
        if is_clear && !engine.caps().read_only {
            for held in engine.usage()?.families.iter().filter(|family| family.is_held) {
                engine.compact(held.family, NO_KEYS)?;
            }
        }
        Ok(is_clear)
    }

    /// Rewrites a cluster without its damaged groups, or deletes it if all of it is damaged. Does nothing if it still
    /// has chunks to quarantine.
    fn clear_cluster(&self, dimension: Dimension, pos: ClusterPos) -> Result<bool, Error> {
        let engine = self.shared.engine()?;
        let (space, row_key) = (Space::of_cluster(pos.tier()), key::cluster(dimension, pos));
        let guard = match engine.get(space, &row_key) {
            Ok(None) => return Ok(true),
            Ok(Some(row)) => {
                if let Ok(cluster) = StoredCluster::open(pos.tier(), &row_key, &row) {
                    let is_sound = |group| cluster.group(group, &mut Limits::default()).is_ok();
                    if cluster.groups().all(is_sound) {
                        return Ok(true);
                    }
                    drop(row);
                    let cluster = ClusterAt { dimension, pos };
                    let view = engine.snapshot_of_now()?;
                    let counters = &self.shared.counters;
                    let end = past_damage(drop_shadows(&*engine, &view, counters, cluster, |_| true))?;
                    return Ok(matches!(end, Outcome::Done(_)));
                }
                Guard::same(space, row_key, &row)
            }
            // The row is in a gap that could not be closed.
            Err(EngineError::Corrupt { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if !self.is_quarantined(space, &row_key)? {
            return Ok(false);
        }
        let mut batch = Batch::new();
        batch.delete(space, row_key);
        match engine.commit(batch.maintenance(), &[guard], Level::Process) {
            Ok(_) => Ok(true),
            Err(EngineError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
