//! Slots: the places of a cluster, and its 4³ cubes.
//!
//! A slot's index is `(x·s + y)·s + z` with the side s = 4 or 16 and coordinates inside the cluster. Its cube and its
//! place in the cube follow the same rule with side 4. A cube is aligned: the chunks of one L1 cluster.

use crate::frame::head;
use crate::{ChunkPos, ClusterPos, ClusterTier};

/// Slots of one cube.
pub(super) const CUBE_SLOT_COUNT: usize = head::CUBE_SLOT_COUNT as usize;

/// The data of each chunk in a stored cluster, in addition to its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotInfo {
    /// The commit that last changed the chunk; moves between tiers keep it.
    pub version: u64,
    /// The schema generation with which the chunk's bytes were encoded.
    pub schema_generation: u32,
}

/// A chunk's place in a cluster of a tier. The order is the seed form's.
///
/// ```
/// use cg_format::cluster::Slot;
/// use cg_format::{ChunkPos, ClusterTier};
/// let chunk = ChunkPos::new(-1, 20, 5)?;
/// let slot = Slot::of(chunk, ClusterTier::L2);
/// assert_eq!(slot.index(), (15 * 16 + 4) * 16 + 5);
/// assert_eq!((slot.cube(), slot.in_cube()), ((3 * 4 + 1) * 4 + 1, (3 * 4 + 0) * 4 + 1));
/// assert_eq!(slot.chunk(chunk.cluster(ClusterTier::L2)), Some(chunk));
/// # Ok::<(), cg_format::OutOfRange>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    tier: ClusterTier,
    index: u16,
}

impl Slot {
    /// The slot at an index; `None` from 64 (L1) or 4,096 (L2) on.
    pub const fn new(tier: ClusterTier, index: u16) -> Option<Self> {
        if (index as usize) < tier.slot_count() { Some(Self { tier, index }) } else { None }
    }

    /// The slot of a chunk in its cluster of a tier.
    pub const fn of(chunk: ChunkPos, tier: ClusterTier) -> Self {
        let mask = tier.side_chunks() as i64 - 1;
        let [x, y, z] = [chunk.x() & mask, chunk.y() & mask, chunk.z() & mask];
        Self { tier, index: index_of([x as u16, y as u16, z as u16], tier.shift_chunks()) }
    }

    /// The slot at a place of a cube; `None` outside the cluster's cubes or the cube's 64 places.
    pub const fn in_cube_of(tier: ClusterTier, cube: u8, place: u8) -> Option<Self> {
        let cube_count = tier.slot_count() / CUBE_SLOT_COUNT;
        if cube as usize >= cube_count || place as usize >= CUBE_SLOT_COUNT {
            return None;
        }
        let [cube_x, cube_y, cube_z] = coordinates_of(cube as u16, 2);
        let [x, y, z] = coordinates_of(place as u16, 2);
        let cell = [cube_x << 2 | x, cube_y << 2 | y, cube_z << 2 | z];
        Some(Self { tier, index: index_of(cell, tier.shift_chunks()) })
    }

    /// The tier whose clusters have this slot.
    pub const fn tier(self) -> ClusterTier {
        self.tier
    }

    /// The index in the seed form: 0 to 63 or 0 to 4,095.
    pub const fn index(self) -> u16 {
        self.index
    }

    /// The 4³ cube of the slot in its cluster: 0 for L1, 0 to 63 for L2.
    pub const fn cube(self) -> u8 {
        let [x, y, z] = coordinates_of(self.index, self.tier.shift_chunks());
        index_of([x >> 2, y >> 2, z >> 2], 2) as u8
    }

    /// The place in the cube, 0 to 63.
    pub const fn in_cube(self) -> u8 {
        let [x, y, z] = coordinates_of(self.index, self.tier.shift_chunks());
        index_of([x & 3, y & 3, z & 3], 2) as u8
    }

    /// The chunk at this slot of a cluster; `None` if the cluster is of another tier.
    pub fn chunk(self, cluster: ClusterPos) -> Option<ChunkPos> {
        let [x, y, z] = coordinates_of(self.index, self.tier.shift_chunks());
        (cluster.tier() == self.tier)
            .then(|| cluster.min_chunk().offset(x.into(), y.into(), z.into()))
            .flatten()
    }

    /// Every slot of a tier, in the seed form's order.
    pub fn all(tier: ClusterTier) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        (0..tier.slot_count() as u16).map(move |index| Self { tier, index })
    }

    /// The place in a directory: cube by cube. Each group has consecutive ones.
    pub(super) const fn stored_order(self) -> u16 {
        self.cube() as u16 * CUBE_SLOT_COUNT as u16 + self.in_cube() as u16
    }

    /// The slot at a place in a directory; `None` past the last one.
    pub(super) const fn at_stored_order(tier: ClusterTier, order: u16) -> Option<Self> {
        let slot_count = CUBE_SLOT_COUNT as u16;
        // A tier has at most 64 cubes.
        if order as usize >= tier.slot_count() {
            return None;
        }
        Self::in_cube_of(tier, (order / slot_count) as u8, (order % slot_count) as u8)
    }
}

impl core::fmt::Debug for Slot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [x, y, z] = coordinates_of(self.index, self.tier.shift_chunks());
        write!(f, "Slot({:?}: {x}, {y}, {z})", self.tier)
    }
}

/// `(x·s + y)·s + z` for a side of `1 << shift`.
const fn index_of([x, y, z]: [u16; 3], shift: u32) -> u16 {
    ((x << shift) | y) << shift | z
}

const fn coordinates_of(index: u16, shift: u32) -> [u16; 3] {
    let mask = (1 << shift) - 1;
    [index >> (2 * shift), (index >> shift) & mask, index & mask]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn an_l1_cluster_is_one_cube() {
        for slot in Slot::all(ClusterTier::L1) {
            assert_eq!((slot.cube(), u16::from(slot.in_cube())), (0, slot.index()));
        }
    }

    #[test]
    fn cubes_share_out_the_slots() {
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            let places: BTreeSet<_> = Slot::all(tier).map(Slot::stored_order).collect();
            assert!(places.into_iter().eq(0..tier.slot_count() as u16));
            for slot in Slot::all(tier) {
                assert_eq!(Slot::in_cube_of(tier, slot.cube(), slot.in_cube()), Some(slot));
                assert_eq!(Slot::at_stored_order(tier, slot.stored_order()), Some(slot));
            }
            assert_eq!(Slot::new(tier, tier.slot_count() as u16), None);
            assert_eq!(Slot::at_stored_order(tier, tier.slot_count() as u16), None);
            assert_eq!(Slot::in_cube_of(tier, (tier.slot_count() / 64) as u8, 0), None);
            assert_eq!(Slot::in_cube_of(tier, 0, 64), None);
        }
    }

    #[test]
    fn a_cube_is_one_l1_cluster() {
        let cluster = ClusterPos::new(ClusterTier::L2, -1, 0, 3).unwrap();
        for cube in 0..64 {
            let chunks: Vec<_> = (0..64)
                .map(|place| Slot::in_cube_of(ClusterTier::L2, cube, place).unwrap())
                .map(|slot| slot.chunk(cluster).unwrap())
                .collect();
            let warm = chunks[0].cluster(ClusterTier::L1);
            for (place, chunk) in chunks.iter().enumerate() {
                assert_eq!(chunk.cluster(ClusterTier::L1), warm);
                assert_eq!(usize::from(Slot::of(*chunk, ClusterTier::L1).index()), place);
            }
        }
    }

    proptest! {
        #[test]
        fn a_chunk_is_its_cluster_and_its_slot(x: i64, y: i64, z: i64) {
            let chunk = crate::BlockPos::new(x, y, z).chunk();
            for tier in [ClusterTier::L1, ClusterTier::L2] {
                let slot = Slot::of(chunk, tier);
                prop_assert_eq!(slot.chunk(chunk.cluster(tier)), Some(chunk));
                prop_assert_eq!(Slot::new(tier, slot.index()), Some(slot));
            }
            let warm = chunk.cluster(ClusterTier::L1);
            prop_assert_eq!(Slot::of(chunk, ClusterTier::L2).chunk(warm), None, "another tier");
        }
    }
}
