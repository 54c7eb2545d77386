//! Cubes of 4×4×4 chunks: the unit of heat and of moves.

use std::fmt;

use cg_format::{BlockBox, ChunkAt, ChunkBox, ClusterPos, ClusterTier, Dimension};

/// An aligned cube of 4×4×4 chunks in a dimension: the chunks of one L1 cluster, or of one group of an L2 cluster.
///
/// ```
/// use cg_format::{ChunkAt, ChunkPos, ClusterTier, Dimension};
/// use cg_tiering::CubeAt;
/// let cube = CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(-1, 4, 17)));
/// assert_eq!(cube.to_string(), "cube -1, 1, 4 of dimension 0");
/// assert_eq!(cube.cluster(ClusterTier::L2).pos.x(), -1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CubeAt {
    dimension: Dimension,
    x: i64,
    y: i64,
    z: i64,
}

/// A cluster in a dimension: a row of tier L1 or L2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterAt {
    /// The dimension.
    pub dimension: Dimension,
    /// The position in it, and the tier.
    pub pos: ClusterPos,
}

impl CubeAt {
    /// The cube that contains a chunk.
    pub const fn of(chunk: ChunkAt) -> Self {
        let pos = chunk.pos.cluster(ClusterTier::L1);
        Self { dimension: chunk.dimension, x: pos.x(), y: pos.y(), z: pos.z() }
    }

    /// The cube of an L1 cluster. For a larger cluster, the cube at its corner with the smallest coordinates.
    pub const fn of_cluster(cluster: ClusterAt) -> Self {
        Self::of(ChunkAt::new(cluster.dimension, cluster.pos.min_chunk()))
    }

    /// A cube from its coordinates in cubes. The caller makes sure that it is in the world.
    pub(crate) const fn within(dimension: Dimension, [x, y, z]: [i64; 3]) -> Self {
        Self { dimension, x, y, z }
    }

    /// The dimension.
    pub const fn dimension(self) -> Dimension {
        self.dimension
    }

    /// The coordinates, in cubes.
    pub(crate) const fn coordinates(self) -> [i64; 3] {
        [self.x, self.y, self.z]
    }

    /// The cluster of a tier that contains the cube: the cube itself, or the L2 cluster around it.
    pub fn cluster(self, tier: ClusterTier) -> ClusterAt {
        let shift = tier.shift_chunks() - ClusterTier::L1.shift_chunks();
        let pos = ClusterPos::new(tier, self.x >> shift, self.y >> shift, self.z >> shift);
        ClusterAt { dimension: self.dimension, pos: pos.expect("a cube is made of chunks of the world") }
    }

    /// The cube's chunks.
    pub fn chunks(self) -> ChunkBox {
        self.cluster(ClusterTier::L1).chunks()
    }
}

impl ClusterAt {
    /// A cluster of a dimension.
    pub const fn new(dimension: Dimension, pos: ClusterPos) -> Self {
        Self { dimension, pos }
    }

    /// The cluster's chunks.
    pub fn chunks(self) -> ChunkBox {
        ChunkBox::new(self.pos.min_chunk(), self.pos.max_chunk())
    }

    /// The cluster's blocks.
    pub fn blocks(self) -> BlockBox {
        self.chunks().blocks()
    }
}

impl fmt::Display for CubeAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cube {}, {}, {} of dimension {}", self.x, self.y, self.z, self.dimension.get())
    }
}

impl fmt::Display for ClusterAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of dimension {}", self.pos, self.dimension.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{BlockPos, ChunkPos};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cube_is_the_cluster_of_its_chunks(x: i64, y: i64, z: i64, l2: bool) {
            let tier = if l2 { ClusterTier::L2 } else { ClusterTier::L1 };
            let chunk = ChunkAt::new(Dimension::new(3), BlockPos::new(x, y, z).chunk());
            let cube = CubeAt::of(chunk);
            prop_assert_eq!(cube.cluster(tier).pos, chunk.pos.cluster(tier));
            prop_assert!(cube.chunks().contains(chunk.pos));
            prop_assert_eq!(cube.chunks().count(), 64);
            prop_assert_eq!(CubeAt::of_cluster(cube.cluster(ClusterTier::L1)), cube);
            prop_assert_eq!(CubeAt::of(ChunkAt::new(chunk.dimension, cube.chunks().max())), cube);
        }
    }

    #[test]
    fn the_corners_of_the_world_have_cubes() {
        for end in [ChunkPos::MIN, ChunkPos::MAX] {
            let cube = CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(end, end, end)));
            let blocks = cube.cluster(ClusterTier::L2).blocks();
            assert!(blocks.contains(ChunkPos::constant(end, end, end).min_block()));
        }
    }
}
