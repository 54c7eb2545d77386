//! A region: a box of blocks in one dimension, and its sections.

use cg_format::{BlockBox, BlockPos, ChunkAt, Dimension, LocalPos};

/// A box of blocks in one dimension. It need not be aligned to chunks.
///
/// ```
/// use cg_format::{BlockBox, BlockPos, Dimension};
/// use cg_snapshot::Region;
/// let arena = Region::new(Dimension::new(0), BlockBox::new(BlockPos::new(-8, 60, 0), BlockPos::new(8, 90, 15)));
/// assert_eq!(arena.sections().count(), 2 * 3 * 1);
/// assert_eq!(arena.sections().map(|section| section.cell_count()).sum::<u32>(), 17 * 31 * 16);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Region {
    dimension: Dimension,
    area: BlockBox,
}

/// The part of a region in one chunk: one unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Section {
    /// The chunk.
    pub at: ChunkAt,
    min: LocalPos,
    max: LocalPos,
}

impl Region {
    /// Creates a region.
    pub const fn new(dimension: Dimension, area: BlockBox) -> Self {
        Self { dimension, area }
    }

    /// Its dimension.
    pub const fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// Its box.
    pub const fn area(&self) -> BlockBox {
        self.area
    }

    /// Whether the region consists of whole chunks.
    pub fn is_whole_chunks(&self) -> bool {
        let (min, max) = (self.area.min().local(), self.area.max().local());
        min == LocalPos::new(0, 0, 0) && max == LocalPos::new(15, 15, 15)
    }

    /// The number of its sections.
    pub fn section_count(&self) -> u128 {
        self.area.chunks().count()
    }

    /// Whether both regions have a block in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.dimension == other.dimension && self.area.intersection(&other.area).is_some()
    }

    /// The same box moved by whole chunks, in the given dimension; `None` if it is outside the world.
    pub fn moved(&self, dimension: Dimension, by_chunks: [i64; 3]) -> Option<Self> {
        let shift = |pos: BlockPos| {
            let [x, y, z] = by_chunks.map(|chunks| chunks.checked_mul(16));
            Some(BlockPos::new(pos.x.checked_add(x?)?, pos.y.checked_add(y?)?, pos.z.checked_add(z?)?))
        };
        let area = BlockBox::new(shift(self.area.min())?, shift(self.area.max())?);
        Some(Self { dimension, area })
    }

    /// Its sections, chunk by chunk in x-y-z order. Lazy: allocates nothing.
    pub fn sections(&self) -> impl Iterator<Item = Section> + use<> {
        let Self { dimension, area } = *self;
        area.chunks().iter().map(move |pos| {
            let (first, last) = (pos.min_block(), pos.block(LocalPos::new(15, 15, 15)));
            let (min, max) = (area.min(), area.max());
            let min = BlockPos::new(first.x.max(min.x), first.y.max(min.y), first.z.max(min.z));
            let max = BlockPos::new(last.x.min(max.x), last.y.min(max.y), last.z.min(max.z));
            Section { at: ChunkAt { dimension, pos }, min: min.local(), max: max.local() }
        })
    }
}

impl Section {
    /// Whether the whole chunk belongs to the region.
    pub fn is_whole(&self) -> bool {
        self.cell_count() as usize == LocalPos::COUNT
    }

    /// The number of cells that belong to the region: 1 to 4,096.
    pub fn cell_count(&self) -> u32 {
        let side = |min: u8, max: u8| u32::from(max - min) + 1;
        side(self.min.x(), self.max.x()) * side(self.min.y(), self.max.y()) * side(self.min.z(), self.max.z())
    }

    /// The same part moved by whole chunks, in the given dimension; `None` if it is outside the world.
    pub(crate) fn moved(&self, dimension: Dimension, by_chunks: [i64; 3]) -> Option<Self> {
        let [x, y, z] = by_chunks;
        Some(Self { at: ChunkAt { dimension, pos: self.at.pos.offset(x, y, z)? }, ..*self })
    }

    /// Whether a cell of the chunk belongs to the region.
    pub fn contains(&self, cell: LocalPos) -> bool {
        (self.min.x()..=self.max.x()).contains(&cell.x())
            && (self.min.y()..=self.max.y()).contains(&cell.y())
            && (self.min.z()..=self.max.z()).contains(&cell.z())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_block_of_the_region_is_in_exactly_one_section(
            corner in prop_oneof![Just(i64::MAX - 40), Just(i64::MIN), -40_i64..40],
            size in (0_i64..40, 0_i64..40, 0_i64..40),
        ) {
            let min = BlockPos::new(corner, corner, corner);
            let area = BlockBox::new(min, BlockPos::new(corner + size.0, corner + size.1, corner + size.2));
            let region = Region::new(Dimension::new(0), area);
            let mut cells = 0;
            for section in region.sections() {
                let inside = LocalPos::all().filter(|cell| section.contains(*cell));
                for cell in inside {
                    prop_assert!(area.contains(section.at.pos.block(cell)));
                    cells += 1;
                }
                prop_assert_eq!(section.is_whole(), section.cell_count() == 4096);
            }
            prop_assert_eq!(cells, area.size().iter().product::<u128>());
        }
    }
}
