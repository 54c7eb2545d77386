//! Ranges of the world that are not in the index: so the index is bounded, and its knowledge is still complete.
//!
//! **Invariant**: ranges do not overlap, and are in the order of keys. There are at most [`MAX_RANGES`]: above that,
//! neighbours become one range, of which less is known.

use std::collections::BTreeMap;
use std::ops::Bound;

use cg_format::{ChunkAt, ClusterTier, key};
use cg_tiering::{ClusterAt, CubeAt, GameTick, TierPolicy};

use crate::maintain::move_tier::row_of;

/// The maximum number of ranges, some hundred bytes each.
const MAX_RANGES: usize = 1 << 16;

/// The keys of warm clusters sort cubes in the same order as the keys of their chunks.
pub(super) type CubeKey = [u8; key::CHUNK_LEN_BYTES];

/// Where a range begins: at a cube, or after it. Every edge is at or after [`Edge::FIRST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    key: CubeKey,
    is_behind: bool,
}

impl Edge {
    const FIRST: Self = Self { key: [0; key::CHUNK_LEN_BYTES], is_behind: false };

    pub(super) fn of(from: Bound<CubeAt>) -> Self {
        match from {
            Bound::Unbounded => Self::FIRST,
            Bound::Included(cube) => Self { key: key_of(cube), is_behind: false },
            Bound::Excluded(cube) => Self { key: key_of(cube), is_behind: true },
        }
    }
}

/// A range of cubes, some of which may have something that could move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CubeRange {
    pub(super) from: Bound<CubeAt>,
    /// `None`: to the end of the world.
    pub(super) last: Option<CubeAt>,
    /// A lower bound for the first access to a cube in it; `None`: not searched yet.
    pub(super) since: Option<GameTick>,
    /// It is not scanned before this time.
    pub(super) not_before: GameTick,
}

impl CubeRange {
    /// The whole world, not searched.
    const EVERYTHING: Self =
        Self { from: Bound::Unbounded, last: None, since: None, not_before: GameTick::new(0) };

    /// The cubes of a cold cluster, with what is known of them as a whole.
    pub(super) fn of_cluster(cluster: ClusterAt, since: GameTick, not_before: GameTick) -> Self {
        let [first, last] = ends(cluster);
        Self { from: Bound::Included(first), last: Some(last), since: Some(since), not_before }
    }

    /// Whether it is time to scan it: something may be due in it at `at`, or it was not searched.
    pub(super) fn is_due(&self, policy: &TierPolicy, now: GameTick, at: GameTick) -> bool {
        now >= self.not_before && self.since.is_none_or(|since| policy.may_demote(since, at))
    }

    /// The cold cluster around the range, if that is one with a known access time. Then its cubes are read; otherwise
    /// the range is searched for clusters.
    pub(super) fn cluster(&self) -> Option<ClusterAt> {
        let (Bound::Included(first) | Bound::Excluded(first)) = self.from else { return None };
        self.since?;
        let cluster = first.cluster(ClusterTier::L2);
        (self.last?.cluster(ClusterTier::L2) == cluster).then_some(cluster)
    }

    /// Whether its cold cluster is known.
    pub(super) fn is_found(&self) -> bool {
        self.cluster().is_some()
    }

    /// Whether it was indexed before, and evicted.
    pub(super) fn was_evicted(&self) -> bool {
        self.not_before > GameTick::new(0)
    }

    /// Whether a cube that is not before the range is in it.
    pub(super) fn reaches(&self, cube: CubeAt) -> bool {
        self.last.is_none_or(|last| key_of(cube) <= key_of(last))
    }

    /// The rest of the range after a cube.
    fn behind(self, cube: CubeAt) -> Option<Self> {
        let is_end = self.last.is_some_and(|last| key_of(last) <= key_of(cube));
        (!is_end).then_some(Self { from: Bound::Excluded(cube), ..self })
    }
}

/// The unscanned ranges.
#[derive(Debug)]
pub(super) struct UnscannedRanges {
    ranges: BTreeMap<Edge, CubeRange>,
    /// The start of the range that was checked last.
    asked: Edge,
    most: usize,
}

impl Default for UnscannedRanges {
    fn default() -> Self {
        Self { ranges: [(Edge::FIRST, CubeRange::EVERYTHING)].into(), asked: Edge::FIRST, most: MAX_RANGES }
    }
}

impl UnscannedRanges {
    /// Records that everything is indexed.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Records that nothing is indexed.
    pub(super) fn everything(&mut self) {
        *self = Self { most: self.most, ..Self::default() };
    }

    /// Whether everything is indexed.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a cube is in an unscanned range.
    pub(super) fn holds(&self, cube: CubeAt) -> bool {
        self.meets(cube, cube)
    }

    /// Whether a cube of a cold cluster is in an unscanned range.
    pub(super) fn touches(&self, cluster: ClusterAt) -> bool {
        let [first, last] = ends(cluster);
        self.meets(first, last)
    }

    fn meets(&self, first: CubeAt, last: CubeAt) -> bool {
        // Of all ranges that begin no later, the last one ends last.
        let begun = self.ranges.range(..=Edge::of(Bound::Included(last))).next_back();
        begun.is_some_and(|(_, range)| range.last.is_none_or(|end| key_of(end) >= key_of(first)))
    }

    /// The next due range among at most `among` ranges, starting at the range that was checked last.
    pub(super) fn next(&mut self, among: usize, is_due: impl Fn(&CubeRange) -> bool) -> Option<CubeRange> {
        let (behind, before) = (self.ranges.range(self.asked..), self.ranges.range(..self.asked));
        let mut asked = self.asked;
        let found = behind.chain(before).take(among).find_map(|(edge, range)| {
            asked = *edge;
            is_due(range).then_some(*range)
        });
        self.asked = asked;
        found
    }

    /// Records that a range was read up to a cube; `None`: up to its end.
    pub(super) fn read(&mut self, range: CubeRange, up_to: Option<CubeAt>) {
        self.ranges.remove(&Edge::of(range.from));
        if let Some(rest) = up_to.and_then(|cube| range.behind(cube)) {
            self.insert(rest);
        }
    }

    /// Records that the first cube with rows in a range is in a cold cluster, with a lower bound for the accesses to
    /// that cluster.
    pub(super) fn found(&mut self, range: CubeRange, first: CubeAt, since: GameTick) {
        self.ranges.remove(&Edge::of(range.from));
        let [_, end] = ends(first.cluster(ClusterTier::L2));
        let last = range.last.filter(|last| key_of(*last) < key_of(end)).unwrap_or(end);
        self.insert(CubeRange {
            from: Bound::Included(first),
            last: Some(last),
            since: Some(since),
            not_before: range.not_before,
        });
        if let Some(rest) = range.behind(last) {
            self.insert(rest);
        }
        self.shrink();
    }

    /// Adds a range that overlaps no other.
    pub(super) fn add(&mut self, range: CubeRange) {
        self.insert(range);
        self.shrink();
    }

    fn insert(&mut self, range: CubeRange) {
        self.ranges.insert(Edge::of(range.from), range);
    }

    /// If there are too many ranges, merges neighbours in pairs, together with the indexed gap between them.
    fn shrink(&mut self) {
        if self.ranges.len() <= self.most {
            return;
        }
        let mut ranges = std::mem::take(&mut self.ranges).into_values();
        while let Some(range) = ranges.next() {
            // Ranges that were not searched stay separate.
            let next = if range.since.is_some() { ranges.next() } else { None };
            match next {
                Some(CubeRange { last, since: Some(since), not_before, .. }) => self.insert(CubeRange {
                    last,
                    since: range.since.map(|first| first.min(since)),
                    not_before: range.not_before.min(not_before),
                    ..range
                }),
                next => {
                    self.insert(range);
                    if let Some(next) = next {
                        self.insert(next);
                    }
                }
            }
        }
    }
}

pub(super) fn key_of(cube: CubeAt) -> CubeKey {
    row_of(cube.cluster(ClusterTier::L1)).1
}

/// The first and the last cube of a cold cluster, in the order of keys.
pub(super) fn ends(cluster: ClusterAt) -> [CubeAt; 2] {
    let cube = |chunk| CubeAt::of(ChunkAt::new(cluster.dimension, chunk));
    [cube(cluster.pos.min_chunk()), cube(cluster.pos.max_chunk())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, Dimension};

    /// Cubes along an axis on which keys sort like coordinates; four are in one cold cluster.
    fn cube(n: i64) -> CubeAt {
        CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 4 * n)))
    }

    fn cluster(n: i64) -> ClusterAt {
        cube(4 * n).cluster(ClusterTier::L2)
    }

    fn at(tick: u64) -> GameTick {
        GameTick::new(tick)
    }

    fn unscanned(ranges: impl IntoIterator<Item = CubeRange>, most: usize) -> UnscannedRanges {
        let mut unscanned = UnscannedRanges { most, ..UnscannedRanges::default() };
        unscanned.clear();
        ranges.into_iter().for_each(|range| unscanned.add(range));
        unscanned
    }

    #[test]
    fn a_world_is_found_cluster_by_cluster_and_read_cube_by_cube() {
        let mut unscanned = UnscannedRanges::default();
        let any = |_: &CubeRange| true;
        let all = unscanned.next(9, any).unwrap();
        assert!(all == CubeRange::EVERYTHING && !all.is_found() && unscanned.touches(cluster(7)));
        unscanned.found(all, cube(5), at(3));
        // The cursor is at the start of the range, and the cluster follows it.
        let found = unscanned.next(9, any).unwrap();
        assert_eq!(
            (found.from, found.since, found.is_found()),
            (Bound::Included(cube(5)), Some(at(3)), true)
        );
        assert!(!unscanned.holds(cube(4)) && unscanned.holds(cube(5)) && unscanned.touches(cluster(1)));
        unscanned.read(found, Some(cube(6)));
        assert_eq!([4, 5, 6, 7].map(|n| unscanned.holds(cube(n))), [false, false, false, true]);
        let rest = unscanned.next(9, CubeRange::is_found).unwrap();
        assert_eq!(rest.from, Bound::Excluded(cube(6)));
        unscanned.read(rest, None);
        assert!(!unscanned.touches(cluster(1)) && unscanned.touches(cluster(2)));
        let rest = unscanned.next(9, any).unwrap();
        assert!(!rest.is_found());
        unscanned.read(rest, None);
        assert!(unscanned.is_empty() && unscanned.next(9, any).is_none());
        unscanned.everything();
        assert!(unscanned.holds(cube(0)));
    }

    #[test]
    fn what_is_found_waits_until_something_may_be_due() {
        let range = CubeRange::of_cluster(cluster(0), at(100), at(0));
        let policy = TierPolicy::default();
        let earliest = (0..100_000).find(|now| policy.may_demote(at(100), at(*now))).unwrap();
        assert!(!range.is_due(&policy, at(earliest - 1), at(earliest - 1)));
        assert!(
            range.is_due(&policy, at(earliest), at(earliest)) && range.is_due(&policy, at(0), at(earliest))
        );
        let later = CubeRange { not_before: at(earliest + 5), ..range };
        assert!(!later.is_due(&policy, at(earliest + 4), at(earliest + 4)));
        assert!(CubeRange::EVERYTHING.is_due(&policy, at(0), at(0)));
    }

    #[test]
    fn neighbours_become_one_where_there_are_too_many() {
        let range = |n: i64| CubeRange::of_cluster(cluster(n), at(50 - n as u64), at(n as u64));
        let unscanned = unscanned([1, 3, 5, 6, 9].map(range), 4);
        let ranges: Vec<_> = unscanned.ranges.values().map(|range| (range.since, range.not_before)).collect();
        assert_eq!(ranges, [(Some(at(47)), at(1)), (Some(at(44)), at(5)), (Some(at(41)), at(9))]);
        let touched: Vec<_> = (0..11).filter(|n| unscanned.touches(cluster(*n))).collect();
        assert_eq!(touched, [1, 2, 3, 5, 6, 9], "what lies between is unknown, too");
        assert!(unscanned.ranges.values().map(CubeRange::is_found).eq([false, false, true]));
    }

    #[test]
    fn parts_that_nobody_has_looked_at_stay_as_they_are() {
        let mut unscanned = UnscannedRanges { most: 3, ..UnscannedRanges::default() };
        for n in 0..40 {
            let rest = unscanned.next(99, |range| range.since.is_none()).unwrap();
            unscanned.found(rest, cube(8 * n), at(7));
            assert!(
                unscanned.ranges.len() <= 4
                    && unscanned.ranges.values().filter(|range| range.since.is_none()).count() == 1
            );
            assert!((0..=n).all(|n| unscanned.holds(cube(8 * n))) && unscanned.holds(cube(8 * n + 4)));
        }
    }

    #[test]
    fn all_come_in_turn() {
        let mut unscanned =
            unscanned((0..5).map(|n| CubeRange::of_cluster(cluster(2 * n), at(0), at(n as u64))), 9);
        let mut met = Vec::new();
        for now in 0..30 {
            // Each call checks only a few ranges.
            if let Some(range) = unscanned.next(3, |range| range.not_before == at(now % 5)) {
                met.push(range.not_before.get());
            }
        }
        met.sort_unstable();
        met.dedup();
        assert_eq!(met, [0, 1, 2, 3, 4]);
    }
}
