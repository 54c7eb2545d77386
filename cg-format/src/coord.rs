//! Positions: blocks, chunks, clusters and cells, and every conversion between them.
//!
//! A block coordinate is any `i64`. Shifts are arithmetic, so they round towards negative infinity: block −1 is in
//! chunk −1. Inside a chunk the order is x-y-z everywhere in this crate: x is slowest and z fastest.

use crate::{ClusterTier, Dimension, OutOfRange};

/// A block's position in a dimension. Every `i64` is allowed on every axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockPos {
    /// East.
    pub x: i64,
    /// Up; usually the altitude above sea level.
    pub y: i64,
    /// South.
    pub z: i64,
}

impl BlockPos {
    /// A position from its coordinates.
    pub const fn new(x: i64, y: i64, z: i64) -> Self {
        Self { x, y, z }
    }

    /// The chunk that contains the block.
    pub const fn chunk(self) -> ChunkPos {
        ChunkPos { x: self.x >> 4, y: self.y >> 4, z: self.z >> 4 }
    }

    /// The cell inside [`chunk`](Self::chunk).
    pub const fn local(self) -> LocalPos {
        LocalPos::new((self.x & 15) as u8, (self.y & 15) as u8, (self.z & 15) as u8)
    }
}

/// A cell of a chunk, stored as its linear index `x·256 + y·16 + z`.
///
/// ```
/// use cg_format::LocalPos;
/// let cell = LocalPos::new(1, 2, 3);
/// assert_eq!(cell.index(), 256 + 32 + 3);
/// assert_eq!((cell.x(), cell.y(), cell.z()), (1, 2, 3));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LocalPos(u16);

impl LocalPos {
    /// Cells in a chunk.
    pub const COUNT: usize = 4096;

    /// The cell at three coordinates, each taken modulo 16.
    pub const fn new(x: u8, y: u8, z: u8) -> Self {
        Self(((x as u16 & 15) << 8) | ((y as u16 & 15) << 4) | (z as u16 & 15))
    }

    /// The cell at a linear index; `None` from 4,096 on.
    pub const fn from_index(index: u16) -> Option<Self> {
        if index < 4096 { Some(Self(index)) } else { None }
    }

    /// The linear index `x·256 + y·16 + z`.
    pub const fn index(self) -> u16 {
        self.0
    }

    /// 0 to 15.
    pub const fn x(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// 0 to 15.
    pub const fn y(self) -> u8 {
        (self.0 >> 4) as u8 & 15
    }

    /// 0 to 15.
    pub const fn z(self) -> u8 {
        self.0 as u8 & 15
    }

    /// All cells in storage order.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator {
        (0..4096).map(Self)
    }
}

impl core::fmt::Debug for LocalPos {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "LocalPos({}, {}, {})", self.x(), self.y(), self.z())
    }
}

/// A chunk's position: block coordinates divided by 16, so −2^59 to 2^59 − 1 on each axis.
///
/// ```
/// use cg_format::{BlockPos, ChunkPos};
/// assert_eq!(BlockPos::new(-1, 0, 16).chunk(), ChunkPos::new(-1, 0, 1)?);
/// assert!(ChunkPos::new(1 << 59, 0, 0).is_err());
/// # Ok::<(), cg_format::OutOfRange>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChunkPos {
    x: i64,
    y: i64,
    z: i64,
}

impl ChunkPos {
    /// The smallest coordinate, −2^59.
    pub const MIN: i64 = i64::MIN >> 4;
    /// The largest coordinate, 2^59 − 1.
    pub const MAX: i64 = i64::MAX >> 4;

    /// A position from its coordinates.
    ///
    /// # Errors
    /// [`OutOfRange`] names the first axis outside [`MIN`](Self::MIN)..=[`MAX`](Self::MAX).
    #[inline]
    pub const fn new(x: i64, y: i64, z: i64) -> Result<Self, OutOfRange> {
        match checked("chunk", [x, y, z], Self::MIN, Self::MAX) {
            Ok([x, y, z]) => Ok(Self { x, y, z }),
            Err(error) => Err(error),
        }
    }

    /// A position known at compile time.
    ///
    /// # Panics
    /// Outside the world; in a `const` this is a compile error.
    pub const fn constant(x: i64, y: i64, z: i64) -> Self {
        match Self::new(x, y, z) {
            Ok(pos) => pos,
            Err(_) => panic!("chunk coordinate outside the world"),
        }
    }

    /// The x coordinate, in chunks.
    pub const fn x(self) -> i64 {
        self.x
    }

    /// The y coordinate, in chunks.
    pub const fn y(self) -> i64 {
        self.y
    }

    /// The z coordinate, in chunks.
    pub const fn z(self) -> i64 {
        self.z
    }

    /// The block at the chunk's corner with the smallest coordinates.
    pub const fn min_block(self) -> BlockPos {
        BlockPos { x: self.x << 4, y: self.y << 4, z: self.z << 4 }
    }

    /// The block at a cell of the chunk.
    pub const fn block(self, cell: LocalPos) -> BlockPos {
        BlockPos {
            x: (self.x << 4) | cell.x() as i64,
            y: (self.y << 4) | cell.y() as i64,
            z: (self.z << 4) | cell.z() as i64,
        }
    }

    /// The cluster of a tier that contains the chunk.
    pub const fn cluster(self, tier: ClusterTier) -> ClusterPos {
        let shift = tier.shift_chunks();
        ClusterPos { tier, x: self.x >> shift, y: self.y >> shift, z: self.z >> shift }
    }

    /// The chunk moved by `(dx, dy, dz)`; `None` outside the world.
    pub const fn offset(self, dx: i64, dy: i64, dz: i64) -> Option<Self> {
        match (self.x.checked_add(dx), self.y.checked_add(dy), self.z.checked_add(dz)) {
            (Some(x), Some(y), Some(z)) => match Self::new(x, y, z) {
                Ok(pos) => Some(pos),
                Err(_) => None,
            },
            _ => None,
        }
    }

    /// The distance to another chunk on each axis, for hosts whose coordinates are relative to a moving origin.
    ///
    /// The range of chunk coordinates is 2^60, so no difference overflows.
    pub const fn relative_to(self, origin: Self) -> [i64; 3] {
        [self.x - origin.x, self.y - origin.y, self.z - origin.z]
    }
}

impl core::fmt::Debug for ChunkPos {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ChunkPos({}, {}, {})", self.x, self.y, self.z)
    }
}

impl core::fmt::Display for ChunkPos {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}, {}, {}", self.x, self.y, self.z)
    }
}

/// A chunk in one of a world's dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChunkAt {
    /// The dimension.
    pub dimension: Dimension,
    /// The position in it.
    pub pos: ChunkPos,
}

impl ChunkAt {
    /// A chunk of a dimension.
    pub const fn new(dimension: Dimension, pos: ChunkPos) -> Self {
        Self { dimension, pos }
    }
}

impl core::fmt::Display for ChunkAt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "chunk {} of dimension {}", self.pos, self.dimension.get())
    }
}

/// A cluster's position: chunk coordinates divided by the tier's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterPos {
    tier: ClusterTier,
    x: i64,
    y: i64,
    z: i64,
}

impl ClusterPos {
    /// A position from its coordinates, in clusters of the tier.
    ///
    /// # Errors
    /// [`OutOfRange`] if the cluster is outside the world.
    pub const fn new(tier: ClusterTier, x: i64, y: i64, z: i64) -> Result<Self, OutOfRange> {
        let shift = tier.shift_chunks();
        match checked("cluster", [x, y, z], ChunkPos::MIN >> shift, ChunkPos::MAX >> shift) {
            Ok([x, y, z]) => Ok(Self { tier, x, y, z }),
            Err(error) => Err(error),
        }
    }

    /// The tier, which determines the size of the cluster.
    pub const fn tier(self) -> ClusterTier {
        self.tier
    }

    /// The x coordinate, in clusters.
    pub const fn x(self) -> i64 {
        self.x
    }

    /// The y coordinate, in clusters.
    pub const fn y(self) -> i64 {
        self.y
    }

    /// The z coordinate, in clusters.
    pub const fn z(self) -> i64 {
        self.z
    }

    /// The chunk at the cluster's corner with the smallest coordinates.
    pub const fn min_chunk(self) -> ChunkPos {
        let shift = self.tier.shift_chunks();
        ChunkPos { x: self.x << shift, y: self.y << shift, z: self.z << shift }
    }

    /// The chunk at the cluster's corner with the largest coordinates.
    pub const fn max_chunk(self) -> ChunkPos {
        let last = self.tier.side_chunks() as i64 - 1;
        let min = self.min_chunk();
        ChunkPos { x: min.x + last, y: min.y + last, z: min.z + last }
    }
}

impl core::fmt::Display for ClusterPos {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} cluster {}, {}, {}", self.tier, self.x, self.y, self.z)
    }
}

#[inline]
const fn checked(unit: &'static str, at: [i64; 3], min: i64, max: i64) -> Result<[i64; 3], OutOfRange> {
    let [x, y, z] = at;
    if min <= x && x <= max && min <= y && y <= max && min <= z && z <= max {
        Ok(at)
    } else {
        Err(first_outside(unit, at, min, max))
    }
}

/// The error of the first coordinate outside the world.
#[cold]
const fn first_outside(unit: &'static str, [x, y, z]: [i64; 3], min: i64, max: i64) -> OutOfRange {
    let (axis, found) = if x < min || x > max {
        ('x', x)
    } else if y < min || y > max {
        ('y', y)
    } else {
        ('z', z)
    };
    OutOfRange { axis, unit, found, min, max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shifts_round_down_across_zero_and_at_the_ends() {
        for (block, chunk) in [
            (-17, -2),
            (-16, -1),
            (-1, -1),
            (0, 0),
            (15, 0),
            (16, 1),
            (i64::MIN, ChunkPos::MIN),
            (i64::MAX, ChunkPos::MAX),
        ] {
            assert_eq!(BlockPos::new(block, 0, 0).chunk().x(), chunk, "block {block}");
        }
    }

    #[test]
    fn an_axis_outside_is_named() {
        let error = ChunkPos::new(0, ChunkPos::MAX + 1, 0).unwrap_err();
        assert_eq!(
            std::format!("{error}"),
            "y is 576460752303423488, the world's chunk coordinates run from -576460752303423488 to 576460752303423487"
        );
        assert_eq!(ClusterPos::new(ClusterTier::L2, 0, 0, -(1 << 55) - 1).unwrap_err().axis, 'z');
        assert_eq!(ChunkPos::constant(ChunkPos::MAX, 0, 0).offset(1, 0, 0), None);
        assert_eq!(ChunkPos::constant(0, 0, 0).offset(0, i64::MIN, 0), None);
    }

    proptest! {
        #[test]
        fn a_block_is_its_chunk_and_its_cell(x: i64, y: i64, z: i64) {
            let block = BlockPos::new(x, y, z);
            prop_assert_eq!(block.chunk().block(block.local()), block);
        }

        #[test]
        fn a_cluster_spans_its_chunks(x: i64, y: i64, z: i64, l2: bool) {
            let tier = if l2 { ClusterTier::L2 } else { ClusterTier::L1 };
            let chunk = BlockPos::new(x, y, z).chunk();
            let cluster = chunk.cluster(tier);
            prop_assert_eq!(ClusterPos::new(tier, cluster.x(), cluster.y(), cluster.z()), Ok(cluster));
            let (min, max) = (cluster.min_chunk(), cluster.max_chunk());
            prop_assert!(min.x() <= chunk.x() && chunk.x() <= max.x());
            prop_assert!(min.z() <= chunk.z() && chunk.z() <= max.z());
            prop_assert_eq!(max.cluster(tier), cluster);
            prop_assert_eq!(ChunkPos::new(max.x(), max.y(), max.z()), Ok(max));
        }
    }
}
