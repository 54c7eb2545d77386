//! An index of the cubes that could move, so that a tick reads nothing where nothing is due.
//!
//! **Invariant**: every cube with hot rows or a heat row is in the index or in an [unscanned](super::unscanned) range.
//! Cubes whose rows cannot be read are exceptions; they stay where they are. `rows` has the place of each hot row. It
//! may contain rows that are gone: before a move of a cube that is not sure, its rows are read.
//!
//! Commits report the rows that they put, and moves the cubes that they changed. A [search](super::search), a little in
//! each tick, finds what existed when the world was opened. When more cubes could move than the index holds, whole cold
//! clusters become unscanned again, each with the time of its next scan.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use cg_format::ClusterTier;
use cg_tiering::{ClusterAt, CubeAt, GameTick};

use super::cleanup::Rows;
use super::search::Hot;
use super::unscanned::{CubeRange, UnscannedRanges};
use crate::storage::recent_puts::{Overflow, Puts};

/// The maximum number of indexed cubes, some hundred bytes each: four million chunks if the cubes are full. Above it
/// the tick evicts some.
const REMEMBERED_CUBES: usize = 1 << 16;
/// The maximum number of clusters that are left alone. Above it, those whose time ends first are tried again.
const LEFT_ALONE_CLUSTERS: usize = 1 << 17;
/// An offer to the plan that was neither done nor given up is repeated after this time.
const OFFER_AGAIN_TICKS: u64 = 30 * GameTick::PER_SECOND;

/// The maximum number of clusters that one call considers for eviction.
const CLUSTERS_TRIED: usize = 64;

/// A cube that could move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexedCube {
    pub(super) cube: CubeAt,
    /// The places are up to date. Bytes and purgeable tombstones are as of the last read.
    pub(super) hot: Hot,
    /// The tombstone horizon at that time.
    tombstones_kept_from: u64,
    /// Whether it has a warm cluster, if that is known.
    pub(super) warm: Option<bool>,
    /// Whether no commit has put a row since the rows were read.
    pub(super) is_sure: bool,
    /// Whether a move may have removed rows since they were read.
    must_look: bool,
    /// Whether it had no heat row when the rows were read. Then it is not searched for one again.
    pub(super) has_no_heat: bool,
    /// When it was offered to the plan.
    offered_at: Option<GameTick>,
}

impl IndexedCube {
    const fn new(cube: CubeAt, warm: Option<bool>) -> Self {
        Self {
            cube,
            hot: Hot::NONE,
            tombstones_kept_from: 0,
            warm,
            is_sure: false,
            must_look: false,
            has_no_heat: false,
            offered_at: None,
        }
    }

    /// Whether its rows must be read, due or not: a move changed them, or more tombstones may be purged than before.
    pub(super) const fn must_look(&self, tombstone_horizon: u64) -> bool {
        let has_tombstones = self.hot.rows & !self.hot.chunks != 0;
        self.must_look || (has_tombstones && self.tombstones_kept_from != tombstone_horizon)
    }

    /// Whether it waits in the plan.
    pub(super) fn is_offered(&self, now: GameTick) -> bool {
        self.offered_at.is_some_and(|at| now.since(at) < OFFER_AGAIN_TICKS)
    }

    /// The rows above its cold cluster.
    pub(super) const fn rows_above(&self) -> Rows {
        let hot = self.hot.rows.count_ones();
        let most_shadows = match self.warm {
            Some(false) => hot,
            Some(true) | None => u64::BITS,
        };
        Rows { hot, most_shadows }
    }
}

/// The cubes that could move, by the cold clusters around them.
#[derive(Debug)]
pub(crate) struct CubeIndex {
    clusters: BTreeMap<ClusterAt, Vec<IndexedCube>>,
    count: usize,
    capacity: usize,
    pub(super) unscanned: UnscannedRanges,
    /// The cluster that was considered last.
    considered: Option<ClusterAt>,
    /// The cluster that was considered for eviction last.
    evicted: Option<ClusterAt>,
    /// Clusters from or into which nothing could be moved, and until when they are left alone.
    left_alone: HashMap<ClusterAt, GameTick>,
    /// The same, by the end of their time.
    left_alone_by_end: BTreeSet<(GameTick, ClusterAt)>,
}

impl Default for CubeIndex {
    fn default() -> Self {
        Self {
            clusters: BTreeMap::new(),
            count: 0,
            capacity: REMEMBERED_CUBES,
            unscanned: UnscannedRanges::default(),
            considered: None,
            evicted: None,
            left_alone: HashMap::new(),
            left_alone_by_end: BTreeSet::new(),
        }
    }
}

impl CubeIndex {
    /// Forgets all rows, so that they are read again. Clusters that are left alone stay so.
    pub(super) fn begin_again(&mut self) {
        let left_alone = std::mem::take(&mut self.left_alone);
        let left_alone_by_end = std::mem::take(&mut self.left_alone_by_end);
        *self = Self { capacity: self.capacity, left_alone, left_alone_by_end, ..Self::default() };
    }

    /// Records that the world has no rows.
    pub(super) fn nothing_there(&mut self) {
        self.unscanned.clear();
    }

    /// Whether every cube of a cold cluster that could move is indexed.
    pub(super) fn is_whole(&self, cluster: ClusterAt) -> bool {
        !self.unscanned.touches(cluster)
    }

    /// Whether nothing is left to search.
    #[cfg(test)]
    pub(super) fn is_searched(&self) -> bool {
        self.unscanned.is_empty()
    }

    /// Records the rows that commits put.
    pub(super) fn note(&mut self, written: Result<BTreeMap<CubeAt, Puts>, Overflow>) {
        let written = written.unwrap_or_else(|Overflow(rest)| {
            self.unscanned.everything();
            // A move that failed may have been written after all.
            self.clusters.values_mut().flatten().for_each(|known| known.warm = None);
            rest
        });
        for (cube, Puts { chunks, tombstones }) in written {
            let known = self.entry(cube);
            known.hot.rows |= chunks | tombstones;
            known.hot.chunks = (known.hot.chunks | chunks) & !tombstones;
            known.is_sure = false;
        }
    }

    /// Records that a cube has a heat row.
    pub(super) fn note_heat(&mut self, cube: CubeAt) {
        self.entry(cube).has_no_heat = false;
    }

    /// Records what was read of a cube, and returns its current entry.
    pub(super) fn learn(
        &mut self,
        cube: CubeAt,
        hot: Hot,
        has_heat: bool,
        tombstone_horizon: u64,
    ) -> IndexedCube {
        let is_new = self.get_mut(cube).is_none();
        let known = self.entry(cube);
        *known = IndexedCube {
            hot,
            tombstones_kept_from: tombstone_horizon,
            is_sure: true,
            must_look: false,
            has_no_heat: !has_heat,
            // The cube was not reported before, so its warm cluster is unknown.
            warm: if is_new { None } else { known.warm },
            ..*known
        };
        *known
    }

    /// Records whether a cube has a warm cluster.
    pub(super) fn learn_warm(&mut self, cube: CubeAt, warm: Option<bool>) {
        if let Some(known) = self.get_mut(cube) {
            known.warm = warm;
        }
    }

    /// Records that a move of a cube ended: its rows and clusters changed, or a commit changed them.
    pub(super) fn moved(&mut self, cube: CubeAt) {
        let known = self.entry(cube);
        known.must_look = true;
        known.warm = None;
        known.offered_at = None;
    }

    /// Records that a cube was offered to the plan.
    pub(super) fn offered(&mut self, cube: CubeAt, now: GameTick) {
        if let Some(known) = self.get_mut(cube) {
            known.offered_at = Some(now);
        }
    }

    /// Removes a cube with nothing to move.
    pub(super) fn forget(&mut self, cube: CubeAt) {
        let cluster = cube.cluster(ClusterTier::L2);
        if let Some(cubes) = self.clusters.get_mut(&cluster)
            && let Ok(index) = cubes.binary_search_by_key(&cube, |known| known.cube)
        {
            cubes.remove(index);
            self.count -= 1;
            if cubes.is_empty() {
                self.clusters.remove(&cluster);
            }
        }
    }

    /// Moves nothing to a cluster until a tick, and nothing out of it if it is a warm one.
    pub(super) fn leave_cluster_alone(&mut self, cluster: ClusterAt, until: GameTick) {
        if let Some(before) = self.left_alone.insert(cluster, until) {
            self.left_alone_by_end.remove(&(before, cluster));
        }
        self.left_alone_by_end.insert((until, cluster));
        if self.left_alone.len() > LEFT_ALONE_CLUSTERS
            && let Some((_, first)) = self.left_alone_by_end.pop_first()
        {
            self.left_alone.remove(&first);
        }
    }

    pub(super) fn is_left_alone(&self, cluster: ClusterAt, now: GameTick) -> bool {
        self.left_alone.get(&cluster).is_some_and(|until| *until > now)
    }

    /// The next cold cluster to evict when the index is too large. It is completely indexed, and none of its cubes
    /// waits in the plan.
    pub(super) fn too_much(&mut self, now: GameTick) -> Option<ClusterAt> {
        if self.count <= self.capacity {
            return None;
        }
        let after = self.evicted.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.clusters.range((after, Bound::Unbounded)).chain(&self.clusters).take(CLUSTERS_TRIED);
        let (mut tried, mut found) = (None, None);
        for (cluster, cubes) in next {
            tried = Some(*cluster);
            if !self.unscanned.touches(*cluster) && !cubes.iter().any(|known| known.is_offered(now)) {
                found = tried;
                break;
            }
        }
        self.evicted = tried;
        found
    }

    /// Removes the cubes of a cold cluster. It is not scanned again before `not_before`.
    pub(super) fn evict(&mut self, cluster: ClusterAt, since: GameTick, not_before: GameTick) {
        self.count -= self.clusters.remove(&cluster).map_or(0, |cubes| cubes.len());
        self.unscanned.add(CubeRange::of_cluster(cluster, since, not_before));
    }

    /// Sets the maximum number of cubes.
    #[cfg(test)]
    pub(super) fn with_capacity(self, capacity: usize) -> Self {
        Self { capacity, ..self }
    }

    /// The next cluster in a cycle over all clusters. Its cubes are in [`cubes_in`](Self::cubes_in).
    pub(super) fn next_cluster(&self) -> Option<ClusterAt> {
        let after = self.considered.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.clusters.range((after, Bound::Unbounded)).next();
        next.or_else(|| self.clusters.first_key_value()).map(|(cluster, _)| *cluster)
    }

    /// The cold clusters with cubes that could move, from the next one of the cycle on.
    pub(super) fn clusters_in_turn(&self) -> impl Iterator<Item = (ClusterAt, &[IndexedCube])> {
        let after = self.considered.map_or(Bound::Unbounded, Bound::Excluded);
        let to_end = self.clusters.range((after, Bound::Unbounded));
        to_end.chain(&self.clusters).take(self.clusters.len()).map(|(cluster, cubes)| (*cluster, &cubes[..]))
    }

    /// Continues the cycle after a cluster.
    pub(super) const fn advance_past(&mut self, cluster: ClusterAt) {
        self.considered = Some(cluster);
    }

    /// The cubes of a cold cluster that could move.
    pub(super) fn cubes_in(&self, cluster: ClusterAt) -> &[IndexedCube] {
        self.clusters.get(&cluster).map_or(&[], |cubes| cubes)
    }

    fn get_mut(&mut self, cube: CubeAt) -> Option<&mut IndexedCube> {
        let cubes = self.clusters.get_mut(&cube.cluster(ClusterTier::L2))?;
        let index = cubes.binary_search_by_key(&cube, |known| known.cube).ok()?;
        cubes.get_mut(index)
    }

    /// The entry of a cube, created if it does not exist.
    fn entry(&mut self, cube: CubeAt) -> &mut IndexedCube {
        // A warm cluster has a heat row, so a cube that had no row until now has no warm cluster.
        let warm = (!self.unscanned.holds(cube)).then_some(false);
        let cubes = self.clusters.entry(cube.cluster(ClusterTier::L2)).or_default();
        let index = cubes.partition_point(|known| known.cube < cube);
        if cubes.get(index).is_none_or(|known| known.cube != cube) {
            cubes.insert(index, IndexedCube::new(cube, warm));
            self.count += 1;
        }
        cubes.get_mut(index).expect("found or inserted")
    }
}

#[cfg(test)]
mod tests;
