//! What ticks know of the cubes that could move, so that a tick reads nothing where nothing can come of it.
//!
//! **Invariant**: every cube with hot rows or a heat row is in it, or lies in a part that is [unread](super::unscanned); but not
//! cubes whose rows nobody can read, which stay where they are. `rows` has the place of each hot row. It may name rows that
//! are gone: who acts on a cube that is not sure reads first.
//!
//! Commits tell what they put, moves which cubes they changed, and a [search](super::search), a little in each tick, finds
//! what was there when the world was opened. When more cubes could move than are remembered, cold clusters of them become
//! unread again, with the moment from which they are to be looked at.

use std::collections::BTreeMap;
use std::ops::Bound;

use cg_format::ClusterTier;
use cg_tiering::{ClusterAt, CubeAt, GameTick};

use super::sweep::Hot;
use super::unscanned::{CubeRange, UnscannedRanges};
use crate::storage::recent_puts::{Overflow, Puts};

/// So many cubes are remembered before the tick makes some unread, some hundred bytes each: four million chunks if they are
/// full.
const REMEMBERED_CUBES: usize = 1 << 16;
/// What was offered to the plan and neither done nor given up by then is looked at again.
const OFFER_AGAIN_TICKS: u64 = 30 * GameTick::PER_SECOND;

/// So many clusters are asked at once whether they can be made unread.
const CLUSTERS_TRIED: usize = 64;

/// A cube that could move. Sets of places have a bit for each of its 64 chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexedCube {
    pub(super) cube: CubeAt,
    /// The places with hot rows, tombstones and damaged rows among them.
    pub(super) rows: u64,
    /// Those of them with chunks.
    pub(super) chunks: u64,
    /// Bytes of the chunks' rows when they were last read.
    pub(super) bytes: u64,
    /// Tombstones that were allowed to be forgotten when the rows were last read.
    pub(super) old_tombstones: u32,
    /// The first commit whose deletions were kept then.
    tombstones_kept_from: u64,
    /// Whether it has a warm cluster, if that is known.
    pub(super) warm: Option<bool>,
    /// Whether no commit has put a row since they were read.
    pub(super) is_sure: bool,
    /// Whether a move may have taken rows away since they were read.
    must_look: bool,
    /// Whether it had no heat row when they were read: there is no use in looking for one again.
    pub(super) has_no_heat: bool,
    /// When it was offered to the plan.
    offered_at: Option<GameTick>,
    /// The round in which it was last met.
    round: u64,
}

impl IndexedCube {
    const fn new(cube: CubeAt, warm: Option<bool>, round: u64) -> Self {
        Self {
            cube,
            rows: 0,
            chunks: 0,
            bytes: 0,
            old_tombstones: 0,
            tombstones_kept_from: 0,
            warm,
            is_sure: false,
            must_look: false,
            has_no_heat: false,
            offered_at: None,
            round,
        }
    }

    /// Whether its rows are to be read, due or not: a move changed them, or marks may be forgotten that might not before.
    pub(super) const fn must_look(&self, tombstone_horizon: u64) -> bool {
        let has_tombstones = self.rows & !self.chunks != 0;
        self.must_look || (has_tombstones && self.tombstones_kept_from != tombstone_horizon)
    }

    /// Whether it waits in the plan.
    pub(super) fn is_offered(&self, now: GameTick) -> bool {
        self.offered_at.is_some_and(|at| now.since(at) < OFFER_AGAIN_TICKS)
    }

    /// The slots of a colder cluster that its rows and its warm cluster could shadow at most.
    pub(super) const fn most_shadows(&self) -> u32 {
        match self.warm {
            Some(false) => self.rows.count_ones(),
            Some(true) | None => u64::BITS,
        }
    }
}

/// The cubes that could move, by the cold clusters around them.
#[derive(Debug)]
pub(crate) struct CubeIndex {
    clusters: BTreeMap<ClusterAt, Vec<IndexedCube>>,
    count: usize,
    capacity: usize,
    pub(super) unscanned: UnscannedRanges,
    /// Whether a round over all rows was begun and not ended: nobody knows what it has not met yet.
    in_round: bool,
    /// Whether something was written in the round of which nobody told.
    has_missed: bool,
    /// Rounds over the rows that were begun.
    round: u64,
    /// The cluster that was gone through last.
    behind: Option<ClusterAt>,
    /// The cluster that was to be made unread last.
    evicted: Option<ClusterAt>,
}

impl Default for CubeIndex {
    fn default() -> Self {
        Self {
            clusters: BTreeMap::new(),
            count: 0,
            capacity: REMEMBERED_CUBES,
            unscanned: UnscannedRanges::default(),
            in_round: false,
            has_missed: false,
            round: 0,
            behind: None,
            evicted: None,
        }
    }
}

impl CubeIndex {
    /// All there is to know of a world without rows.
    pub(super) fn nothing_there(&mut self) {
        self.unscanned.clear();
    }

    /// Whether every cube of a cold cluster is known that could move.
    pub(super) fn is_whole(&self, cluster: ClusterAt) -> bool {
        !self.in_round && !self.unscanned.touches(cluster)
    }

    /// Whether there is nothing to search for.
    #[cfg(test)]
    pub(super) fn is_searched(&self) -> bool {
        !self.in_round && self.unscanned.is_empty()
    }

    /// Notes what commits put.
    pub(super) fn note(&mut self, written: Result<BTreeMap<CubeAt, Puts>, Overflow>) {
        let written = written.unwrap_or_else(|Overflow(rest)| {
            self.miss();
            // A move that was told to have failed may have been written after all.
            self.clusters.values_mut().flatten().for_each(|known| known.warm = None);
            rest
        });
        for (cube, Puts { chunks, tombstones }) in written {
            let known = self.entry(cube);
            known.rows |= chunks | tombstones;
            known.chunks = (known.chunks | chunks) & !tombstones;
            known.is_sure = false;
        }
    }

    /// Notes that a cube has a heat row.
    pub(super) fn note_heat(&mut self, cube: CubeAt) {
        self.entry(cube).has_no_heat = false;
    }

    /// Notes what was read of a cube, and returns all that is known of it now.
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
            rows: hot.rows,
            chunks: hot.chunks,
            bytes: hot.bytes,
            old_tombstones: hot.old_tombstones,
            tombstones_kept_from: tombstone_horizon,
            is_sure: true,
            must_look: false,
            has_no_heat: !has_heat,
            // Nobody told of it before, so nobody told of its warm cluster.
            warm: if is_new { None } else { known.warm },
            ..*known
        };
        *known
    }

    /// Notes whether a cube has a warm cluster.
    pub(super) fn learn_warm(&mut self, cube: CubeAt, warm: Option<bool>) {
        if let Some(known) = self.get_mut(cube) {
            known.warm = warm;
        }
    }

    /// Notes that a move of a cube ended: its rows and clusters are others now, or somebody else's.
    pub(super) fn moved(&mut self, cube: CubeAt) {
        let known = self.entry(cube);
        known.must_look = true;
        known.warm = None;
        known.offered_at = None;
    }

    /// Notes that a cube was offered to the plan.
    pub(super) fn offered(&mut self, cube: CubeAt, now: GameTick) {
        if let Some(known) = self.get_mut(cube) {
            known.offered_at = Some(now);
        }
    }

    /// Notes that the plan was dropped.
    pub(super) fn take_offers_back(&mut self) {
        self.clusters.values_mut().flatten().for_each(|known| known.offered_at = None);
    }

    /// Forgets a cube with nothing to move.
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

    /// Begins a round over the rows, which meets all of them.
    pub(super) fn begin_round(&mut self) {
        self.round += 1;
        self.in_round = true;
        self.has_missed = false;
        self.unscanned.clear();
    }

    /// Ends a round in which every cube with rows was met: what was not met has none any more.
    pub(super) fn end_round(&mut self) {
        let round = self.round;
        self.clusters.retain(|_, cubes| {
            cubes.retain(|known| known.round == round);
            !cubes.is_empty()
        });
        self.count = self.clusters.values().map(Vec::len).sum();
        self.in_round = false;
        if self.has_missed {
            self.unscanned.everything();
        }
    }

    /// Gives up a round that nobody ended, because something failed in it.
    pub(super) fn leave_round(&mut self) {
        if std::mem::take(&mut self.in_round) {
            self.unscanned.everything();
        }
    }

    /// The next cold cluster that is to be made unread, as more cubes are remembered than should be: one of which
    /// everything is known and nothing waits in the plan.
    pub(super) fn too_much(&mut self, now: GameTick) -> Option<ClusterAt> {
        if self.count <= self.capacity {
            return None;
        }
        let behind = self.evicted.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.clusters.range((behind, Bound::Unbounded)).chain(&self.clusters).take(CLUSTERS_TRIED);
        let (mut tried, mut found) = (None, None);
        for (cluster, cubes) in next {
            tried = Some(*cluster);
            // What a round has met may be forgotten again, and be read when it is due.
            if !self.unscanned.touches(*cluster) && !cubes.iter().any(|known| known.is_offered(now)) {
                found = tried;
                break;
            }
        }
        self.evicted = tried;
        found
    }

    /// Forgets the cubes of a cold cluster, of which nothing is to be looked at before a tick.
    pub(super) fn evict(&mut self, cluster: ClusterAt, since: GameTick, not_before: GameTick) {
        self.count -= self.clusters.remove(&cluster).map_or(0, |cubes| cubes.len());
        self.unscanned.add(CubeRange::of_cluster(cluster, since, not_before));
    }

    /// Remembers so many cubes.
    #[cfg(test)]
    pub(super) fn with_capacity(self, capacity: usize) -> Self {
        Self { capacity, ..self }
    }

    /// The cluster that comes next, after the last the first; its cubes are in [`cubes_in`](Self::cubes_in).
    pub(super) fn next_cluster(&self) -> Option<ClusterAt> {
        let behind = self.behind.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.clusters.range((behind, Bound::Unbounded)).next();
        next.or_else(|| self.clusters.first_key_value()).map(|(cluster, _)| *cluster)
    }

    /// Goes on after a cluster.
    pub(super) const fn go_on_behind(&mut self, cluster: ClusterAt) {
        self.behind = Some(cluster);
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

    /// What is known of a cube, made if it is not known.
    fn entry(&mut self, cube: CubeAt) -> &mut IndexedCube {
        // A warm cluster has a heat row, so what had no row until now has none.
        let warm = (!self.in_round && !self.unscanned.holds(cube)).then_some(false);
        let cubes = self.clusters.entry(cube.cluster(ClusterTier::L2)).or_default();
        let index = cubes.partition_point(|known| known.cube < cube);
        if cubes.get(index).is_none_or(|known| known.cube != cube) {
            cubes.insert(index, IndexedCube::new(cube, warm, self.round));
            self.count += 1;
        }
        let known = cubes.get_mut(index).expect("found or inserted");
        known.round = self.round;
        known
    }

    fn miss(&mut self) {
        self.has_missed = true;
        if !self.in_round {
            self.unscanned.everything();
        }
    }
}

#[cfg(test)]
mod tests;
