//! A few layers of blocks at once: as many as one row of chunks has, or as memory allows.

use cg_format::{BlockBox, BlockPos, ChunkPos, LocalPos};

/// Indices that are in memory at once: 128 MiB of them, and as many again where there are biomes.
const SLAB_CELLS: u64 = 64 << 20;

/// A box of blocks, cut into slabs that each lie in one row of chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slabs {
    area: BlockBox,
    /// Blocks along x, y and z.
    size: [u64; 3],
    max_layers: u64,
}

/// Some layers of the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slab {
    pub(super) area: BlockBox,
    /// Blocks along x and z.
    width: usize,
    length: usize,
    /// Whether there is none below it.
    is_lowest: bool,
}

/// The part of a slab that lies in one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) pos: ChunkPos,
    min: [u8; 3],
    max: [u8; 3],
    /// Where the part's first cell is in the slab's cells.
    first: usize,
    width: usize,
    layer: usize,
    /// Whether no slab below has a part of the chunk: of a wide box, a chunk lies in several.
    pub(super) is_lowest: bool,
}

/// A layer that is too wide: its blocks, and how many may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "one layer has {found} blocks, more than the {SLAB_CELLS} that are held at once; cut it along x or z"
)]
pub struct TooWide {
    /// Blocks of one layer.
    pub found: u64,
}

impl Slabs {
    pub(super) fn new(area: BlockBox) -> Result<Self, TooWide> {
        let size = area.size().map(|side| u64::try_from(side).unwrap_or(u64::MAX));
        let layer = size[0].saturating_mul(size[2]);
        if layer > SLAB_CELLS {
            return Err(TooWide { found: layer });
        }
        Ok(Self { area, size, max_layers: (SLAB_CELLS / layer).clamp(1, 16) })
    }

    /// The slabs from the lowest to the highest.
    pub(super) fn iter(self) -> impl Iterator<Item = Slab> {
        let (min, max) = (self.area.min(), self.area.max());
        let mut next = Some(min.y);
        std::iter::from_fn(move || {
            let from = next?;
            let in_row = (15 - from.rem_euclid(16)).min(self.max_layers as i64 - 1);
            let to = from.saturating_add(in_row).min(max.y);
            next = to.checked_add(1).filter(|next| *next <= max.y);
            let area = BlockBox::new(BlockPos::new(min.x, from, min.z), BlockPos::new(max.x, to, max.z));
            let is_lowest = from == min.y;
            Some(Slab { area, width: self.size[0] as usize, length: self.size[2] as usize, is_lowest })
        })
    }
}

impl Slab {
    /// Cells, in the order of a schematic: x first, then z, then y.
    pub(super) fn cells(&self) -> usize {
        self.width * self.length * (self.area.max().y - self.area.min().y + 1) as usize
    }

    /// Cells of one layer.
    pub(super) const fn layer_cells(&self) -> usize {
        self.width * self.length
    }

    /// Its parts, one for each chunk that it touches.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let Self { area, width, length, is_lowest } = *self;
        area.chunks().iter().map(move |pos| {
            let (first, last) = (pos.min_block(), pos.block(LocalPos::new(15, 15, 15)));
            let (min, max) = (area.min(), area.max());
            let from = BlockPos::new(first.x.max(min.x), first.y.max(min.y), first.z.max(min.z));
            let to = BlockPos::new(last.x.min(max.x), last.y.min(max.y), last.z.min(max.z));
            let local = |at: BlockPos| [at.local().x(), at.local().y(), at.local().z()];
            let [x, y, z] = [from.x - min.x, from.y - min.y, from.z - min.z].map(|n| n as usize);
            let first = (y * length + z) * width + x;
            // All of the slab begins at the chunk's bottom, or none.
            let is_lowest = is_lowest || from.local().y() == 0;
            Part { pos, min: local(from), max: local(to), first, width, layer: width * length, is_lowest }
        })
    }
}

impl Part {
    /// Whether the whole chunk is in the slab.
    pub(super) fn is_whole(&self) -> bool {
        self.min == [0; 3] && self.max == [15; 3]
    }

    pub(super) fn contains(&self, cell: LocalPos) -> bool {
        [cell.x(), cell.y(), cell.z()]
            .iter()
            .zip(self.min.iter().zip(&self.max))
            .all(|(at, (min, max))| (min..=max).contains(&at))
    }

    /// Runs of cells along x: the first, how many, and where they are in the slab's cells.
    pub(super) fn rows(self) -> impl Iterator<Item = (LocalPos, usize, usize)> {
        let Self { min, max, first, width, layer, .. } = self;
        let count = usize::from(max[0] - min[0]) + 1;
        (min[1]..=max[1]).flat_map(move |y| {
            (min[2]..=max[2]).map(move |z| {
                let at = first + usize::from(y - min[1]) * layer + usize::from(z - min[2]) * width;
                (LocalPos::new(min[0], y, z), count, at)
            })
        })
    }

    /// The one value of all its cells, if they have one.
    pub(super) fn only<T: Copy + PartialEq>(self, slab: &[T]) -> Option<T> {
        let mut rows = self.rows().map(|(_, count, at)| slab.get(at..at + count).unwrap_or_default());
        let first = rows.next()?;
        // Neighbours are compared, which is comparing memory.
        let is_even = first.get(1..) == first.get(..first.len() - 1);
        (is_even && rows.all(|row| row == first)).then(|| first.first().copied())?
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_cell_of_the_box_is_in_one_slab_and_one_part(
            corner in prop_oneof![Just(i64::MAX - 40), Just(i64::MIN), -40_i64..40],
            size in (0_i64..40, 0_i64..40, 0_i64..40),
        ) {
            let min = BlockPos::new(corner, corner, corner);
            let area = BlockBox::new(min, BlockPos::new(corner + size.0, corner + size.1, corner + size.2));
            let (mut cells, mut expected) = (0, 0);
            for slab in Slabs::new(area).expect("small").iter() {
                let mut seen = vec![false; slab.cells()];
                expected += seen.len();
                for part in slab.parts() {
                    let inside = LocalPos::all().filter(|cell| part.contains(*cell)).count();
                    prop_assert_eq!(part.is_whole(), inside == LocalPos::COUNT);
                    let mut in_rows = 0;
                    for (first, count, at) in part.rows() {
                        for step in 0..count {
                            let cell = LocalPos::new(first.x() + step as u8, first.y(), first.z());
                            prop_assert!(part.contains(cell));
                            let block = part.pos.block(cell);
                            let [x, y, z] = [block.x - slab.area.min().x, block.y - slab.area.min().y, block.z - slab.area.min().z];
                            let place = x + (z + y * (size.2 + 1)) * (size.0 + 1);
                            prop_assert_eq!(at + step, place as usize);
                            prop_assert!(!std::mem::replace(&mut seen[at + step], true));
                            in_rows += 1;
                        }
                    }
                    prop_assert_eq!(in_rows, inside);
                    cells += inside;
                }
                prop_assert!(seen.iter().all(|seen| *seen));
            }
            prop_assert_eq!(cells, expected);
            prop_assert_eq!(cells as u128, area.size().iter().product::<u128>());
        }
    }

    #[test]
    fn wide_boxes_have_thin_slabs_and_too_wide_ones_are_refused() {
        let area = |side: i64, height: i64| {
            BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(side - 1, height - 1, side - 1))
        };
        let layers = |side: i64| {
            let slabs = Slabs::new(area(side, 20))?;
            Ok::<Vec<_>, TooWide>(slabs.iter().map(|slab| slab.cells() / slab.layer_cells()).collect())
        };
        assert_eq!(layers(1000), Ok(vec![16, 4]));
        assert_eq!(layers(4096), Ok(vec![4; 5]));
        assert_eq!(layers(8192), Ok(vec![1; 20]));
        assert_eq!(layers(8193), Err(TooWide { found: 8193 * 8193 }));
    }

    #[test]
    fn a_chunk_has_one_lowest_part_however_thin_the_slabs_are() {
        let (min, max) = (BlockPos::new(-5, 9, 3), BlockPos::new(4090, 52, 4098));
        let slabs = Slabs::new(BlockBox::new(min, max)).expect("4 layers at once");
        let heights: Vec<_> = slabs.iter().map(|slab| slab.cells() / slab.layer_cells()).collect();
        assert_eq!(heights, [4, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1]);
        let lowest = |slab: &Slab| slab.parts().take(3).map(|part| part.is_lowest).collect::<Vec<_>>();
        let seen: Vec<_> = slabs.iter().map(|slab| lowest(&slab)).collect();
        let of_slabs = [0, 2, 6, 10];
        for (index, seen) in seen.into_iter().enumerate() {
            assert_eq!(seen, [of_slabs.contains(&index); 3], "slab {index}");
        }
    }

    #[test]
    fn one_value_is_seen() {
        let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(16, 1, 0));
        let slab = Slabs::new(area).expect("small").iter().next().expect("one");
        let mut cells = vec![7; slab.cells()];
        let only = |cells: &[u16]| slab.parts().map(|part| part.only(cells)).collect::<Vec<_>>();
        assert_eq!(only(&cells), [Some(7), Some(7)]);
        cells[17] = 3;
        assert_eq!(only(&cells), [None, Some(7)]);
        cells[33] = 3;
        assert_eq!(only(&cells), [None, None]);
    }
}
