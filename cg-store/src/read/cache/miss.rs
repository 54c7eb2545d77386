//! Absence by cubes: which 4³ and 16³ cubes are known to hold nothing, so that no chunk of them is asked for.
//!
//! One entry for each 16³ cube that was asked about: a bit for each of its 64 cubes of 4³, its groups. All bits together
//! are the whole 16³ cube. So an entry of about [`CUBE_BYTES`] bytes says as much as 4,096 entries for single chunks.
//! Once a chunk is saved into a group that held nothing, an entry of its own has a bit for each of the other 63.
//!
//! **Invariant**: a set bit means that no tier and no queued commit has a row of the group, or of the chunk. It is set
//! only if no commit into the 16³ cube has begun since the ticket was taken, and cleared before such a commit is in the
//! queue or in the engine. Moves between tiers make no chunk of what is none.

use cg_format::cluster::Slot;
use cg_format::{ChunkAt, ClusterPos, ClusterTier, Dimension};
use quick_cache::sync::Cache;

/// An entry with the cache's own bookkeeping.
const CUBE_BYTES: u64 = 128;

/// What is known of some cubes; the rest is not known.
#[derive(Debug)]
pub(super) struct AbsentCubes {
    cubes: Cache<(Dimension, ClusterPos), Cube>,
    /// The chunks that are absent in groups that hold something by now.
    groups: Cache<(Dimension, ClusterPos), u64>,
}

/// What is known of a 16³ cube, by groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cube {
    /// Groups that hold nothing.
    absent: u64,
    /// Groups that were asked about, whatever the answer. They are not asked about again.
    asked: u64,
}

/// What a look into the engine said about the cubes around a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The 16³ cube holds nothing.
    WholeCube,
    /// The 4³ cube holds nothing.
    Group,
    /// The 4³ cube holds something.
    Neither,
    /// Nothing can be said of the 16³ cube by groups: it is cold.
    Unknowable,
}

impl AbsentCubes {
    /// Room for entries of so many bytes.
    pub(super) fn new(max_bytes: u64) -> Self {
        let half = || (max_bytes / 2 / CUBE_BYTES) as usize;
        Self { cubes: Cache::new(half()), groups: Cache::new(half()) }
    }

    /// Whether a chunk lies in a cube that is known to hold nothing.
    pub(super) fn has(&self, at: ChunkAt) -> bool {
        let Some(known) = self.cubes.get(&cube(at)) else { return false };
        // Where its cube was forgotten, a group is of no use: nobody says any more that it was asked about.
        known.absent & bit(at) != 0
            || self.groups.get(&group(at)).is_some_and(|absent| absent & chunk_bit(at) != 0)
    }

    /// Notes that a chunk is absent; says whether it is time to ask about its cubes: when another chunk of the 16³ cube
    /// was absent before, and nobody has asked about this group.
    pub(super) fn is_to_be_asked(&self, at: ChunkAt) -> bool {
        let known = self.cubes.get(&cube(at));
        if known.is_none() {
            self.cubes.insert(cube(at), Cube::default());
        }
        known.is_some_and(|cube| cube.asked & bit(at) == 0)
    }

    /// Learns of the cubes around a chunk. The caller has made sure that no commit into them has begun.
    pub(super) fn learn(&self, at: ChunkAt, absence: Absence) {
        let mut known = self.cubes.get(&cube(at)).unwrap_or_default();
        match absence {
            Absence::WholeCube => known.absent = u64::MAX,
            Absence::Group => known.absent |= bit(at),
            Absence::Neither => {}
            Absence::Unknowable => known.asked = u64::MAX,
        }
        known.asked |= known.absent | bit(at);
        self.cubes.insert(cube(at), known);
    }

    /// Forgets that the cube of a chunk holds nothing. The caller has announced a commit of the chunk.
    pub(super) fn forget(&self, at: ChunkAt) {
        let mut absent = self.groups.get(&group(at)).unwrap_or_default();
        if let Some(known) = self.cubes.get(&cube(at)) {
            if known.absent & bit(at) != 0 {
                absent = u64::MAX;
            }
            let left = Cube { absent: known.absent & !bit(at), asked: known.asked | bit(at) };
            // Most chunks that are saved were there before: then nothing is written.
            if left != known {
                self.cubes.insert(cube(at), left);
            }
        }
        if absent & chunk_bit(at) != 0 {
            self.groups.insert(group(at), absent & !chunk_bit(at));
        }
    }

    pub(super) fn clear(&self) {
        self.cubes.clear();
        self.groups.clear();
    }

    /// How many cubes there are entries for.
    pub(super) fn len(&self) -> u64 {
        self.cubes.len() as u64
    }
}

/// The 16³ cube of a chunk.
pub(super) fn cube(at: ChunkAt) -> (Dimension, ClusterPos) {
    (at.dimension, at.pos.cluster(ClusterTier::L2))
}

/// The 4³ cube of a chunk.
fn group(at: ChunkAt) -> (Dimension, ClusterPos) {
    (at.dimension, at.pos.cluster(ClusterTier::L1))
}

/// The bit of a chunk in its group.
fn chunk_bit(at: ChunkAt) -> u64 {
    1 << Slot::of(at.pos, ClusterTier::L2).in_group()
}

/// The bit of a group in its cube.
fn bit(at: ChunkAt) -> u64 {
    1 << Slot::of(at.pos, ClusterTier::L2).group()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::ChunkPos;

    fn at(x: i64) -> ChunkAt {
        ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))
    }

    fn absent(cubes: &AbsentCubes) -> Vec<i64> {
        (0..20).filter(|x| cubes.has(at(*x))).collect()
    }

    #[test]
    fn a_cube_is_asked_about_at_the_second_absence_and_each_group_once() {
        let cubes = AbsentCubes::new(1 << 16);
        assert_eq!([0, 1, 15, 16].map(|x| cubes.is_to_be_asked(at(x))), [false, true, true, false]);
        cubes.learn(at(1), Absence::Neither);
        assert_eq!([0, 3, 4, 16].map(|x| cubes.is_to_be_asked(at(x))), [false, false, true, true]);
        cubes.learn(at(4), Absence::Group);
        assert_eq!(absent(&cubes), [4, 5, 6, 7]);
        cubes.learn(at(8), Absence::Unknowable);
        assert_eq!([8, 12, 15].map(|x| cubes.is_to_be_asked(at(x))), [false; 3]);
        assert_eq!(absent(&cubes), [4, 5, 6, 7]);
    }

    #[test]
    fn a_commit_takes_its_group_out_of_an_absent_cube() {
        let cubes = AbsentCubes::new(1 << 16);
        cubes.forget(at(5));
        assert_eq!(cubes.len(), 0, "nothing was known");
        cubes.learn(at(0), Absence::WholeCube);
        assert_eq!(absent(&cubes), (0..16).collect::<Vec<_>>());
        cubes.forget(at(5));
        assert_eq!(absent(&cubes), [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        cubes.forget(at(7));
        cubes.forget(at(7));
        assert_eq!(absent(&cubes), [0, 1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert!(!cubes.is_to_be_asked(at(5)), "it holds something now");
    }
}
