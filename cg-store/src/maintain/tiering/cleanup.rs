//! What moves leave behind in colder tiers and among the heat rows: shadowed slots, tombstones that hide nothing, and
//! heat rows of cubes with nothing to demote.

use std::collections::HashMap;
use std::ops::AddAssign;

use cg_tiering::{ClusterAt, CubeAt, GameTick};

/// The maximum number of clusters whose shadows are remembered: the warm and the cold ones around all indexed cubes. So
/// ticks with a complete index forget none.
const REMEMBERED_CLUSTERS: usize = 1 << 17;

/// The shadows of a cluster are counted again after this time, if it is not certain that there are enough of them.
const COUNT_AGAIN_TICKS: u64 = 30 * GameTick::PER_SECOND;

/// What is obsolete and waits to be removed, and what is known of where more is.
#[derive(Debug, Default)]
pub(crate) struct Cleanup {
    /// The rows above clusters.
    above: HashMap<ClusterAt, Above>,
    /// Clusters whose shadows are to be counted, and since when the rows above them are unchanged.
    pub(super) shadowed: Vec<(ClusterAt, GameTick)>,
    /// The number of purgeable tombstones of each cube at the last purge, and the horizon of that purge.
    tombstones: HashMap<CubeAt, (u32, u64)>,
    /// Cubes whose tombstones are to be purged.
    pub(super) marked: Vec<CubeAt>,
    /// Cubes with heat rows and nothing that could move, with their last access.
    pub(super) heat_only: Vec<(CubeAt, GameTick)>,
}

/// Which clusters have waited long enough to be rewritten.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueRewrites {
    now: GameTick,
    /// The time for which the decision is made: now, or later when a world is demoted.
    at: GameTick,
    after_ticks: u64,
}

/// The rows above a cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rows {
    /// Hot rows.
    pub(super) hot: u32,
    /// The maximum number of slots that these and warm clusters could shadow.
    pub(super) most_shadows: u32,
}

/// The recorded state above a cluster.
#[derive(Debug, Clone, Copy)]
struct Above {
    hot: u32,
    /// Since when the number of rows is the same.
    since: GameTick,
    /// Whether its shadows are to be counted again when it has waited long enough to be rewritten.
    waits: bool,
    /// Whether they were not counted since the number of rows changed. All slots may be shadowed then.
    is_uncounted: bool,
    /// When its slots were counted.
    counted_at: GameTick,
    /// The slots of the cluster that hold a chunk, known after its shadows were counted; 0 if there is no cluster. It
    /// is valid until the cluster is rewritten.
    present: Option<u32>,
}

impl DueRewrites {
    pub(super) const fn new(now: GameTick, at: GameTick, after_ticks: u64) -> Self {
        Self { now, at, after_ticks }
    }
}

impl AddAssign for Rows {
    fn add_assign(&mut self, other: Self) {
        self.hot += other.hot;
        self.most_shadows += other.most_shadows;
    }
}

impl Above {
    /// Whether all slots of the cluster may be shadowed, and it is time to count. Until then the change stays
    /// uncounted.
    fn takes_count(&mut self, rows: Rows, due: DueRewrites) -> bool {
        let (is_possible, is_time) = match self.present {
            Some(present) => {
                let has_waited = due.now.since(self.counted_at) >= COUNT_AGAIN_TICKS;
                let is_possible = present > 0 && rows.most_shadows >= present;
                // Demoting a whole world does not wait.
                (is_possible, rows.hot >= present || has_waited || due.at != due.now)
            }
            None => (true, true),
        };
        let takes = self.is_uncounted && is_possible && is_time;
        self.is_uncounted &= is_possible && !takes;
        takes
    }

    /// Whether the cluster has waited long enough to be rewritten, and enough slots may be shadowed. Returns `true`
    /// once.
    fn takes_rewrite(&mut self, rows: Rows, due: DueRewrites) -> bool {
        let takes = self.waits && due.at.since(self.since) >= due.after_ticks;
        self.waits &= !takes;
        let is_quarter = |present| present > 0 && u64::from(rows.most_shadows) * 4 >= u64::from(present);
        takes && self.present.is_none_or(is_quarter)
    }
}

impl Cleanup {
    /// Records the rows above a cluster. Its shadows are counted when the number of rows has changed, because all slots
    /// may be shadowed. They are counted once more when the number has stayed the same for as long as the policy waits.
    /// They are not counted if the rows are too few compared with the counted slots.
    pub(super) fn rows_above(&mut self, cluster: ClusterAt, rows: Rows, due: DueRewrites) {
        if rows.hot == 0 {
            self.above.remove(&cluster);
            return;
        }
        if self.above.len() >= REMEMBERED_CLUSTERS {
            self.above.clear();
        }
        let new = Above {
            hot: rows.hot,
            since: due.now,
            waits: true,
            is_uncounted: true,
            present: None,
            counted_at: due.now,
        };
        let above = self.above.entry(cluster).or_insert(new);
        if above.hot != rows.hot {
            *above = Above { present: above.present, counted_at: above.counted_at, ..new };
        }
        let (takes_rewrite, takes_count) = (above.takes_rewrite(rows, due), above.takes_count(rows, due));
        if takes_rewrite || takes_count {
            self.shadowed.push((cluster, above.since));
        }
    }

    /// Records the number of slots of a counted cluster; 0 if there is no cluster.
    pub(super) fn counted(&mut self, cluster: ClusterAt, present: u32, now: GameTick) {
        if let Some(above) = self.above.get_mut(&cluster) {
            above.present = Some(present);
            above.counted_at = now;
        }
    }

    /// Records the number of purgeable tombstones of a cube. A purge is tried when that number has changed, because
    /// clusters may be below them.
    pub(super) fn old_tombstones(&mut self, cube: CubeAt, count: u32, before: u64) {
        if self.tombstones.len() >= REMEMBERED_CLUSTERS {
            self.tombstones.clear();
        }
        if count == 0 {
            self.tombstones.remove(&cube);
        } else if self.tombstones.insert(cube, (count, before)) != Some((count, before)) {
            self.marked.push(cube);
        }
    }

    /// Forgets the recorded state above a cluster that was rewritten. The same number of rows may shadow other slots
    /// now, and tombstones may hide nothing any more.
    pub(super) fn written_anew(&mut self, cluster: ClusterAt) {
        self.above.remove(&cluster);
        self.tombstones.retain(|cube, _| cube.cluster(cluster.pos.tier()) != cluster);
    }
}
