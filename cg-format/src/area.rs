//! Boxes of blocks and of chunks, given by two corners.
//!
//! Both corners belong to the box. So a box can contain the last block of the world, and an empty box cannot exist.

mod union;

use core::fmt;

use crate::{BlockPos, ChunkPos, OutOfRange};

pub use union::BlockArea;

/// A box of blocks: every block between two corners, both included.
///
/// ```
/// use cg_format::{BlockBox, BlockPos};
/// let yard = BlockBox::new(BlockPos::new(-1, 0, 0), BlockPos::new(16, 7, 15));
/// assert_eq!(yard.size(), [18, 8, 16]);
/// assert_eq!(yard.chunks().count(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockBox {
    min: BlockPos,
    max: BlockPos,
}

impl BlockBox {
    /// The box between two corners, given in any order.
    pub fn new(a: BlockPos, b: BlockPos) -> Self {
        Self {
            min: BlockPos::new(a.x.min(b.x), a.y.min(b.y), a.z.min(b.z)),
            max: BlockPos::new(a.x.max(b.x), a.y.max(b.y), a.z.max(b.z)),
        }
    }

    /// The corner with the smallest coordinates.
    pub const fn min(&self) -> BlockPos {
        self.min
    }

    /// The corner with the largest coordinates. It is inside.
    pub const fn max(&self) -> BlockPos {
        self.max
    }

    /// Blocks along x, y and z, each at least 1.
    pub const fn size(&self) -> [u128; 3] {
        const fn side(min: i64, max: i64) -> u128 {
            max.abs_diff(min) as u128 + 1
        }
        [side(self.min.x, self.max.x), side(self.min.y, self.max.y), side(self.min.z, self.max.z)]
    }

    /// Whether a block is inside.
    pub fn contains(&self, block: BlockPos) -> bool {
        (self.min.x..=self.max.x).contains(&block.x)
            && (self.min.y..=self.max.y).contains(&block.y)
            && (self.min.z..=self.max.z).contains(&block.z)
    }

    /// The common part; `None` if there is none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let (a, b) = (self.min, other.min);
        let min = BlockPos::new(a.x.max(b.x), a.y.max(b.y), a.z.max(b.z));
        let (a, b) = (self.max, other.max);
        let max = BlockPos::new(a.x.min(b.x), a.y.min(b.y), a.z.min(b.z));
        (min.x <= max.x && min.y <= max.y && min.z <= max.z).then_some(Self { min, max })
    }

    /// The chunks that contain a part of the box.
    pub fn chunks(&self) -> ChunkBox {
        ChunkBox::new(self.min.chunk(), self.max.chunk())
    }
}

impl fmt::Debug for BlockBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = (self.min, self.max);
        write!(f, "BlockBox({}, {}, {} to {}, {}, {})", a.x, a.y, a.z, b.x, b.y, b.z)
    }
}

/// A box of chunks: every chunk between two corners, both included.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkBox {
    min: ChunkPos,
    max: ChunkPos,
}

impl ChunkBox {
    /// All chunks that a world can have.
    pub const EVERYTHING: Self = Self {
        min: ChunkPos::constant(ChunkPos::MIN, ChunkPos::MIN, ChunkPos::MIN),
        max: ChunkPos::constant(ChunkPos::MAX, ChunkPos::MAX, ChunkPos::MAX),
    };

    /// The box between two corners, given in any order.
    pub fn new(a: ChunkPos, b: ChunkPos) -> Self {
        let pick = |f: fn(i64, i64) -> i64| {
            ChunkPos::new(f(a.x(), b.x()), f(a.y(), b.y()), f(a.z(), b.z()))
                .expect("both corners are in the world")
        };
        Self { min: pick(i64::min), max: pick(i64::max) }
    }

    /// The chunks within a distance of one, the same on every axis.
    ///
    /// # Errors
    /// [`OutOfRange`] if the box is not completely in the world.
    pub fn around(center: ChunkPos, radius_chunks: u32) -> Result<Self, OutOfRange> {
        let r = i64::from(radius_chunks);
        Ok(Self {
            min: ChunkPos::new(center.x() - r, center.y() - r, center.z() - r)?,
            max: ChunkPos::new(center.x() + r, center.y() + r, center.z() + r)?,
        })
    }

    /// The corner with the smallest coordinates.
    pub const fn min(&self) -> ChunkPos {
        self.min
    }

    /// The corner with the largest coordinates. It is inside.
    pub const fn max(&self) -> ChunkPos {
        self.max
    }

    /// The number of chunks. Saturates at `u128::MAX`, which only boxes of nearly the whole world reach.
    pub const fn count(&self) -> u128 {
        let [x, y, z] = self.max.relative_to(self.min);
        (x as u128 + 1).saturating_mul(y as u128 + 1).saturating_mul(z as u128 + 1)
    }

    /// Whether a chunk is inside.
    pub fn contains(&self, pos: ChunkPos) -> bool {
        (self.min.x()..=self.max.x()).contains(&pos.x())
            && (self.min.y()..=self.max.y()).contains(&pos.y())
            && (self.min.z()..=self.max.z()).contains(&pos.z())
    }

    /// Whether a chunk is in both boxes.
    pub fn intersects(&self, other: &Self) -> bool {
        let overlap = |axis: fn(ChunkPos) -> i64| {
            axis(self.min) <= axis(other.max) && axis(other.min) <= axis(self.max)
        };
        overlap(ChunkPos::x) && overlap(ChunkPos::y) && overlap(ChunkPos::z)
    }

    /// The blocks of the box's chunks.
    pub const fn blocks(&self) -> BlockBox {
        let last = self.max.min_block();
        BlockBox { min: self.min.min_block(), max: BlockPos::new(last.x | 15, last.y | 15, last.z | 15) }
    }

    /// Every chunk, in x-y-z order.
    pub fn iter(&self) -> impl Iterator<Item = ChunkPos> + use<> {
        let (min, max) = (self.min, self.max);
        (min.x()..=max.x()).flat_map(move |x| {
            (min.y()..=max.y()).flat_map(move |y| {
                (min.z()..=max.z())
                    .map(move |z| ChunkPos::new(x, y, z).expect("between two corners in the world"))
            })
        })
    }
}

impl fmt::Debug for ChunkBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkBox({} to {})", self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn corners_may_come_in_any_order() {
        let a = BlockBox::new(BlockPos::new(5, -1, 3), BlockPos::new(-5, 1, 3));
        assert_eq!((a.min(), a.max()), (BlockPos::new(-5, -1, 3), BlockPos::new(5, 1, 3)));
        assert!(a.contains(BlockPos::new(5, 1, 3)) && !a.contains(BlockPos::new(5, 1, 4)));
    }

    #[test]
    fn the_whole_world_has_a_box() {
        let all = BlockBox::new(
            BlockPos::new(i64::MIN, i64::MIN, i64::MIN),
            BlockPos::new(i64::MAX, i64::MAX, i64::MAX),
        );
        assert_eq!(all.size(), [1 << 64; 3]);
        assert_eq!(all.chunks(), ChunkBox::EVERYTHING);
        assert_eq!(ChunkBox::EVERYTHING.blocks(), all);
        assert_eq!(ChunkBox::EVERYTHING.count(), u128::MAX, "2^180 saturates");
    }

    #[test]
    fn boxes_meet_or_do_not() {
        let cube =
            |from: i64, to: i64| BlockBox::new(BlockPos::new(from, from, from), BlockPos::new(to, to, to));
        assert_eq!(cube(0, 9).intersection(&cube(9, 12)), Some(cube(9, 9)));
        assert_eq!(cube(0, 9).intersection(&cube(10, 12)), None);
        let chunks = |from: [i64; 3], to: [i64; 3]| {
            let [from, to] = [from, to].map(|[x, y, z]| ChunkPos::constant(x, y, z));
            ChunkBox::new(from, to)
        };
        let all = chunks([0; 3], [9; 3]);
        assert!(all.intersects(&chunks([9; 3], [12; 3])) && chunks([9; 3], [12; 3]).intersects(&all));
        for beside in [[10, 0, 0], [0, 10, 0], [0, 0, 10]] {
            assert!(!all.intersects(&chunks(beside, [12; 3])), "{beside:?}");
            assert!(!chunks(beside, [12; 3]).intersects(&all), "{beside:?}");
        }
    }

    #[test]
    fn chunks_come_in_storage_order() {
        let b = ChunkBox::around(ChunkPos::constant(0, 0, 0), 1).unwrap();
        let all: Vec<_> = b.iter().collect();
        assert_eq!((all.len() as u128, b.count()), (27, 27));
        assert!(all.is_sorted());
        assert!(all.iter().all(|pos| b.contains(*pos)));
        assert!(ChunkBox::around(ChunkPos::constant(ChunkPos::MAX, 0, 0), 1).is_err());
    }
}
