//! Parts of the world that are not known cube by cube: so knowledge has bounds, and is whole all the same.
//!
//! **Invariant**: parts do not overlap, and lie in the order of keys. There are so many at most: neighbours become one part
//! then, of which less is known.

use std::collections::BTreeMap;
use std::ops::Bound;

use cg_format::{ChunkAt, ClusterTier, key};
use cg_tiering::{ClusterAt, CubeAt, GameTick, TierPolicy};

use crate::maintain::move_tier::row_of;

/// So many parts at most, some hundred bytes each.
const PARTS: usize = 1 << 16;

/// Cubes sort by the keys of their warm clusters as by those of their chunks.
type CubeKey = [u8; key::CHUNK_LEN_BYTES];

/// Where a part begins: at a cube, or behind it. Nothing is behind [`Edge::FIRST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    key: CubeKey,
    is_behind: bool,
}

impl Edge {
    const FIRST: Self = Self { key: [0; key::CHUNK_LEN_BYTES], is_behind: false };

    fn of(from: Bound<CubeAt>) -> Self {
        match from {
            Bound::Unbounded => Self::FIRST,
            Bound::Included(cube) => Self { key: key_of(cube), is_behind: false },
            Bound::Excluded(cube) => Self { key: key_of(cube), is_behind: true },
        }
    }
}

/// A range of cubes, some of which may have something that could move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from: Bound<CubeAt>,
    /// `None`: to the end of the world.
    pub(super) last: Option<CubeAt>,
    /// When a cube in it was accessed first, at the earliest; `None`: nobody has looked there.
    pub(super) since: Option<GameTick>,
    /// Before that it is left alone.
    pub(super) not_before: GameTick,
}

impl Part {
    /// All there is, and nothing known of it.
    const EVERYTHING: Self =
        Self { from: Bound::Unbounded, last: None, since: None, not_before: GameTick::new(0) };

    /// The cubes of a cold cluster, with what is known of them as a whole.
    pub(super) fn of_cluster(cluster: ClusterAt, since: GameTick, not_before: GameTick) -> Self {
        let [first, last] = ends(cluster);
        Self { from: Bound::Included(first), last: Some(last), since: Some(since), not_before }
    }

    /// Whether it is time to look at it: something may be due there at a moment, or nobody knows.
    pub(super) fn is_due(&self, policy: &TierPolicy, now: GameTick, at: GameTick) -> bool {
        now >= self.not_before && self.since.is_none_or(|since| policy.may_grow_colder(since, at))
    }

    /// Whether all of it lies in one cold cluster of which it is known when it was accessed, so that its cubes are to be
    /// read; otherwise its clusters are to be found.
    pub(super) fn is_found(&self) -> bool {
        let (Bound::Included(first) | Bound::Excluded(first), Some(last)) = (self.from, self.last) else {
            return false;
        };
        self.since.is_some() && first.cluster(ClusterTier::L2) == last.cluster(ClusterTier::L2)
    }

    /// What is left of it behind a cube.
    fn behind(self, cube: CubeAt) -> Option<Self> {
        let is_end = self.last.is_some_and(|last| key_of(last) <= key_of(cube));
        (!is_end).then_some(Self { from: Bound::Excluded(cube), ..self })
    }
}

/// The parts.
#[derive(Debug)]
pub(super) struct Unread {
    parts: BTreeMap<Edge, Part>,
    /// Where the part begins that was asked for last.
    asked: Edge,
    most: usize,
}

impl Default for Unread {
    fn default() -> Self {
        Self { parts: [(Edge::FIRST, Part::EVERYTHING)].into(), asked: Edge::FIRST, most: PARTS }
    }
}

impl Unread {
    /// Everything is known.
    pub(super) fn clear(&mut self) {
        self.parts.clear();
    }

    /// Nothing is known.
    pub(super) fn everything(&mut self) {
        *self = Self { most: self.most, ..Self::default() };
    }

    /// Whether everything is known.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether a cube lies in a part.
    pub(super) fn holds(&self, cube: CubeAt) -> bool {
        self.meets(cube, cube)
    }

    /// Whether a cube of a cold cluster lies in a part.
    pub(super) fn touches(&self, cluster: ClusterAt) -> bool {
        let [first, last] = ends(cluster);
        self.meets(first, last)
    }

    fn meets(&self, first: CubeAt, last: CubeAt) -> bool {
        // Of all parts that begin no later, the last ends last.
        let begun = self.parts.range(..=Edge::of(Bound::Included(last))).next_back();
        begun.is_some_and(|(_, part)| part.last.is_none_or(|end| key_of(end) >= key_of(first)))
    }

    /// The next part, of a few, that is to be looked at, from the one that was asked for last on.
    pub(super) fn next(&mut self, among: usize, is_due: impl Fn(&Part) -> bool) -> Option<Part> {
        let (behind, before) = (self.parts.range(self.asked..), self.parts.range(..self.asked));
        let mut asked = self.asked;
        let found = behind.chain(before).take(among).find_map(|(edge, part)| {
            asked = *edge;
            is_due(part).then_some(*part)
        });
        self.asked = asked;
        found
    }

    /// Notes that nothing of a part is unknown any more up to a cube; `None`: up to its end.
    pub(super) fn read(&mut self, part: Part, up_to: Option<CubeAt>) {
        self.parts.remove(&Edge::of(part.from));
        if let Some(rest) = up_to.and_then(|cube| part.behind(cube)) {
            self.insert(rest);
        }
    }

    /// Notes that the first cube with anything in a part lies in a cold cluster, and since when what lies there may have
    /// been left alone.
    pub(super) fn found(&mut self, part: Part, first: CubeAt, since: GameTick) {
        self.parts.remove(&Edge::of(part.from));
        let [_, end] = ends(first.cluster(ClusterTier::L2));
        let last = part.last.filter(|last| key_of(*last) < key_of(end)).unwrap_or(end);
        self.insert(Part {
            from: Bound::Included(first),
            last: Some(last),
            since: Some(since),
            not_before: part.not_before,
        });
        if let Some(rest) = part.behind(last) {
            self.insert(rest);
        }
        self.shrink();
    }

    /// Adds a part that touches no other.
    pub(super) fn add(&mut self, part: Part) {
        self.insert(part);
        self.shrink();
    }

    fn insert(&mut self, part: Part) {
        self.parts.insert(Edge::of(part.from), part);
    }

    /// Makes one of every two neighbours if there are too many, and of what lies between them, which is known.
    fn shrink(&mut self) {
        if self.parts.len() <= self.most {
            return;
        }
        let mut parts = std::mem::take(&mut self.parts).into_values();
        while let Some(part) = parts.next() {
            // Where nobody has looked he shall go on.
            let next = if part.since.is_some() { parts.next() } else { None };
            match next {
                Some(Part { last, since: Some(since), not_before, .. }) => self.insert(Part {
                    last,
                    since: part.since.map(|first| first.min(since)),
                    not_before: part.not_before.min(not_before),
                    ..part
                }),
                next => {
                    self.insert(part);
                    if let Some(next) = next {
                        self.insert(next);
                    }
                }
            }
        }
    }
}

fn key_of(cube: CubeAt) -> CubeKey {
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

    /// Cubes along an axis on which they sort as their coordinates do; four lie in one cold cluster.
    fn cube(n: i64) -> CubeAt {
        CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 4 * n)))
    }

    fn cluster(n: i64) -> ClusterAt {
        cube(4 * n).cluster(ClusterTier::L2)
    }

    fn at(tick: u64) -> GameTick {
        GameTick::new(tick)
    }

    fn unread(parts: impl IntoIterator<Item = Part>, most: usize) -> Unread {
        let mut unread = Unread { most, ..Unread::default() };
        unread.clear();
        parts.into_iter().for_each(|part| unread.add(part));
        unread
    }

    #[test]
    fn a_world_is_found_cluster_by_cluster_and_read_cube_by_cube() {
        let mut unread = Unread::default();
        let any = |_: &Part| true;
        let all = unread.next(9, any).unwrap();
        assert!(all == Part::EVERYTHING && !all.is_found() && unread.touches(cluster(7)));
        unread.found(all, cube(5), at(3));
        // The cursor stands where the part began; the cluster is what comes behind it.
        let found = unread.next(9, any).unwrap();
        assert_eq!(
            (found.from, found.since, found.is_found()),
            (Bound::Included(cube(5)), Some(at(3)), true)
        );
        assert!(!unread.holds(cube(4)) && unread.holds(cube(5)) && unread.touches(cluster(1)));
        unread.read(found, Some(cube(6)));
        assert_eq!([4, 5, 6, 7].map(|n| unread.holds(cube(n))), [false, false, false, true]);
        let rest = unread.next(9, Part::is_found).unwrap();
        assert_eq!(rest.from, Bound::Excluded(cube(6)));
        unread.read(rest, None);
        assert!(!unread.touches(cluster(1)) && unread.touches(cluster(2)));
        let rest = unread.next(9, any).unwrap();
        assert!(!rest.is_found());
        unread.read(rest, None);
        assert!(unread.is_empty() && unread.next(9, any).is_none());
        unread.everything();
        assert!(unread.holds(cube(0)));
    }

    #[test]
    fn what_is_found_waits_until_something_may_be_due() {
        let part = Part::of_cluster(cluster(0), at(100), at(0));
        let policy = TierPolicy::default();
        let earliest = (0..100_000).find(|now| policy.may_grow_colder(at(100), at(*now))).unwrap();
        assert!(!part.is_due(&policy, at(earliest - 1), at(earliest - 1)));
        assert!(
            part.is_due(&policy, at(earliest), at(earliest)) && part.is_due(&policy, at(0), at(earliest))
        );
        let later = Part { not_before: at(earliest + 5), ..part };
        assert!(!later.is_due(&policy, at(earliest + 4), at(earliest + 4)));
        assert!(Part::EVERYTHING.is_due(&policy, at(0), at(0)));
    }

    #[test]
    fn neighbours_become_one_where_there_are_too_many() {
        let part = |n: i64| Part::of_cluster(cluster(n), at(50 - n as u64), at(n as u64));
        let unread = unread([1, 3, 5, 6, 9].map(part), 4);
        let parts: Vec<_> = unread.parts.values().map(|part| (part.since, part.not_before)).collect();
        assert_eq!(parts, [(Some(at(47)), at(1)), (Some(at(44)), at(5)), (Some(at(41)), at(9))]);
        let touched: Vec<_> = (0..11).filter(|n| unread.touches(cluster(*n))).collect();
        assert_eq!(touched, [1, 2, 3, 5, 6, 9], "what lies between is unknown, too");
        assert!(unread.parts.values().map(Part::is_found).eq([false, false, true]));
    }

    #[test]
    fn parts_that_nobody_has_looked_at_stay_as_they_are() {
        let mut unread = Unread { most: 3, ..Unread::default() };
        for n in 0..40 {
            let rest = unread.next(99, |part| part.since.is_none()).unwrap();
            unread.found(rest, cube(8 * n), at(7));
            assert!(
                unread.parts.len() <= 4
                    && unread.parts.values().filter(|part| part.since.is_none()).count() == 1
            );
            assert!((0..=n).all(|n| unread.holds(cube(8 * n))) && unread.holds(cube(8 * n + 4)));
        }
    }

    #[test]
    fn all_come_in_turn() {
        let mut unread = unread((0..5).map(|n| Part::of_cluster(cluster(2 * n), at(0), at(n as u64))), 9);
        let mut met = Vec::new();
        for now in 0..30 {
            // Only one of a few is asked at a time.
            if let Some(part) = unread.next(3, |part| part.not_before == at(now % 5)) {
                met.push(part.not_before.get());
            }
        }
        met.sort_unstable();
        met.dedup();
        assert_eq!(met, [0, 1, 2, 3, 4]);
    }
}
