//! Known absence by cubes: which 4³ and 16³ cubes contain no chunks, so that none of them is looked up.
//!
//! Each 16³ cube that was looked up has one entry, with a bit for each of its 64 groups, which are 4³ cubes. All bits
//! together mean that the whole 16³ cube is empty. So an entry of about [`CUBE_BYTES`] bytes replaces 4,096 entries for
//! single chunks. When a chunk is saved into an empty group, a separate entry has a bit for each of the other 63.
//!
//! **Invariant**: a set bit means that no tier and no queued commit has a row of the group, or of the chunk. It is set
//! only if no commit into the 16³ cube has begun since the ticket was taken. It is cleared before such a commit is in
//! the queue or in the engine. Moves between tiers create no chunks.

use cg_format::cluster::Slot;
use cg_format::{ChunkAt, ClusterPos, ClusterTier, Dimension};
use foldhash::HashSet;
use quick_cache::sync::Cache;

/// The size of an entry, with the overhead of the cache.
const CUBE_BYTES: u64 = 128;

/// Neighbours are learned together if that takes at most this part of the entries.
const REGION_PART: u64 = 8;

/// The known absence in some cubes. All others are unknown.
#[derive(Debug)]
pub(super) struct AbsentCubes {
    cubes: Cache<(Dimension, ClusterPos), Cube>,
    /// The absent chunks in groups that are no longer empty.
    groups: Cache<(Dimension, ClusterPos), u64>,
    /// Whether the cubes of a region, which are 64, take a small part of the entries.
    has_room_for_regions: bool,
}

/// The known absence in a 16³ cube, by groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cube {
    /// Empty groups.
    absent: u64,
    /// Groups that were looked up, whatever the result. They are not looked up again.
    asked: u64,
}

/// The result of a lookup of the cubes around a chunk in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The 16³ cube is empty.
    WholeCube,
    /// The 4³ cube is empty.
    Group,
    /// The 4³ cube contains a chunk.
    Neither,
    /// The 16³ cube is cold, so its groups are unknown.
    Unknowable,
}

impl AbsentCubes {
    /// Creates a cache for at most `max_bytes` of entries.
    pub(super) fn new(max_bytes: u64) -> Self {
        let half = max_bytes / 2 / CUBE_BYTES;
        Self {
            cubes: Cache::new(half as usize),
            groups: Cache::new(half as usize),
            has_room_for_regions: half >= 64 * REGION_PART,
        }
    }

    /// Whether neighbours are learned together.
    pub(super) const fn has_room_for_regions(&self) -> bool {
        self.has_room_for_regions
    }

    /// Whether a chunk is in a cube that is known to be empty.
    pub(super) fn has(&self, at: ChunkAt) -> bool {
        let Some(known) = self.cubes.get(&cube(at)) else { return false };
        // Checked first: without the entry of its cube, the entry of a group is not used.
        known.absent & bit(at) != 0
            || self.groups.get(&group(at)).is_some_and(|absent| absent & chunk_bit(at) != 0)
    }

    /// The groups of a 16³ cube that are known to be empty, by their bits.
    pub(super) fn empty_groups(&self, cube: (Dimension, ClusterPos)) -> u64 {
        self.cubes.get(&cube).map_or(0, |known| known.absent)
    }

    /// Records that a chunk is absent. Returns whether its cubes should be looked up now. That is so if another chunk
    /// of the 16³ cube was absent before, and this group was not looked up.
    pub(super) fn is_to_be_asked(&self, at: ChunkAt) -> bool {
        let known = self.cubes.get(&cube(at));
        if known.is_none() {
            self.cubes.insert(cube(at), Cube::default());
        }
        known.is_some_and(|cube| cube.asked & bit(at) == 0)
    }

    /// Records the result of a lookup. The caller has made sure that no commit into the cubes has begun.
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

    /// Forgets that chunks are absent. The caller has announced a commit of them. Costs two looks for each run of chunks
    /// in one group.
    pub(super) fn forget(&self, at: &[ChunkAt]) {
        for run in at.chunk_by(|one, next| group(*one) == group(*next)) {
            self.forget_in_group(run[0], run.iter().fold(0, |chunks, at| chunks | chunk_bit(*at)));
        }
    }

    /// Forgets that chunks of the group of a chunk are absent.
    fn forget_in_group(&self, at: ChunkAt, chunks: u64) {
        let mut absent = self.groups.get(&group(at)).unwrap_or_default();
        if let Some(known) = self.cubes.get(&cube(at)) {
            if known.absent & bit(at) != 0 {
                absent = u64::MAX;
            }
            let left = Cube { absent: known.absent & !bit(at), asked: known.asked | bit(at) };
            // Most saved chunks existed before; then nothing is written.
            if left != known {
                self.cubes.insert(cube(at), left);
            }
        }
        if absent & chunks != 0 {
            self.groups.insert(group(at), absent & !chunks);
        }
    }

    /// The cubes with an entry.
    pub(super) fn cubes(&self) -> impl Iterator<Item = (Dimension, ClusterPos)> {
        self.cubes.iter().map(|(cube, _)| cube)
    }

    /// Forgets everything about some 16³ cubes. The caller has announced commits into them.
    pub(super) fn forget_cubes(&self, cubes: &HashSet<(Dimension, ClusterPos)>) {
        let around = |group: ClusterPos| group.min_chunk().cluster(ClusterTier::L2);
        self.groups.retain(|(dimension, group), _| !cubes.contains(&(*dimension, around(*group))));
        self.cubes.retain(|cube, _| !cubes.contains(cube));
    }

    pub(super) fn clear(&self) {
        self.cubes.clear();
        self.groups.clear();
    }

    /// The number of cubes with an entry.
    pub(super) fn len(&self) -> u64 {
        self.cubes.len() as u64
    }
}

/// The 16³ cube of a chunk.
pub(crate) fn cube(at: ChunkAt) -> (Dimension, ClusterPos) {
    (at.dimension, at.pos.cluster(ClusterTier::L2))
}

/// The 16³ cubes after the one of a chunk within its region, which is a 64³ cube, in the order of their keys.
pub(super) fn cubes_after(at: ChunkAt) -> impl Iterator<Item = ClusterPos> {
    let own = at.pos.cluster(ClusterTier::L2);
    let axis = |own: i64, index: u32, bit: u32| {
        let offset = i64::from((index >> (bit + 3) & 1) << 1 | index >> bit & 1);
        (own & !3) | offset
    };
    // The order of keys interleaves x, y and z.
    let cubes = (0..64).map(move |index| {
        let [x, y, z] = [(own.x(), 2), (own.y(), 1), (own.z(), 0)].map(|(own, bit)| axis(own, index, bit));
        ClusterPos::new(ClusterTier::L2, x, y, z).expect("the world ends with a region")
    });
    cubes.skip_while(move |cube| *cube != own).skip(1)
}

/// The 4³ cube of a chunk.
fn group(at: ChunkAt) -> (Dimension, ClusterPos) {
    (at.dimension, at.pos.cluster(ClusterTier::L1))
}

/// The bit of a chunk in its group.
fn chunk_bit(at: ChunkAt) -> u64 {
    1 << Slot::of(at.pos, ClusterTier::L2).in_cube()
}

/// The bit of a group in its cube.
pub(super) fn bit(at: ChunkAt) -> u64 {
    1 << Slot::of(at.pos, ClusterTier::L2).cube()
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
        cubes.forget(&[at(5)]);
        assert_eq!(cubes.len(), 0, "nothing was known");
        cubes.learn(at(0), Absence::WholeCube);
        assert_eq!(absent(&cubes), (0..16).collect::<Vec<_>>());
        cubes.forget(&[at(5)]);
        assert_eq!(absent(&cubes), [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        cubes.forget(&[at(7)]);
        cubes.forget(&[at(7)]);
        assert_eq!(absent(&cubes), [0, 1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert!(!cubes.is_to_be_asked(at(5)), "it holds something now");
        cubes.forget(&[at(1), at(2), at(4), at(14)]);
        assert_eq!(absent(&cubes), [0, 3, 6, 8, 9, 10, 11, 12, 13, 15]);
    }
}
