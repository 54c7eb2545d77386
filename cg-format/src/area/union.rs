//! The union of boxes of blocks.

use alloc::vec;
use alloc::vec::Vec;

use super::{BlockBox, ChunkBox};
use crate::BlockPos;

/// An area of blocks: the union of any number of boxes.
///
/// A block is in a union if it is in at least one of the boxes. Neither their order nor overlaps change what a union
/// contains. The union of no box is empty. All blocks are one [named](Self::everywhere) box, so a selection that is
/// missing never means everything.
///
/// ```
/// use cg_format::{BlockArea, BlockBox, BlockPos};
/// let half = |x| BlockBox::new(BlockPos::new(x, 0, 0), BlockPos::new(x + 7, 15, 15));
/// let area = BlockArea::union([half(8), half(0), half(0)]);
/// assert!(area.contains(BlockPos::new(8, 0, 0)) && !area.contains(BlockPos::new(16, 0, 0)));
/// // The whole chunk, although neither box has all of it.
/// assert!(area.covers(&BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 15, 15))));
/// assert!(BlockArea::union([]).is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlockArea {
    /// Sorted by their corners, and none inside another one.
    boxes: Vec<BlockBox>,
}

impl BlockArea {
    /// All blocks that a world can have.
    pub fn everywhere() -> Self {
        Self { boxes: vec![ChunkBox::EVERYTHING.blocks()] }
    }

    /// The blocks of some boxes: those that are in at least one of them.
    pub fn union(boxes: impl IntoIterator<Item = BlockBox>) -> Self {
        let mut boxes: Vec<BlockBox> = boxes.into_iter().collect();
        // After the boxes that could contain it: those that begin earlier, and of two that begin alike the larger.
        boxes.sort_by_key(|area| {
            let (min, max) = (area.min(), area.max());
            ([min.x, min.y, min.z], [max.x, max.y, max.z].map(core::cmp::Reverse))
        });
        let mut kept: Vec<BlockBox> = Vec::with_capacity(boxes.len());
        for area in boxes {
            if !kept.iter().any(|other| other.intersection(&area) == Some(area)) {
                kept.push(area);
            }
        }
        Self { boxes: kept }
    }

    /// The boxes in an order of their own. Boxes inside another one are left out; others may overlap.
    pub fn boxes(&self) -> &[BlockBox] {
        &self.boxes
    }

    /// Whether no block is in it.
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Whether it is one box of all blocks.
    pub fn is_everywhere(&self) -> bool {
        self.boxes == [ChunkBox::EVERYTHING.blocks()]
    }

    /// Whether a block is inside.
    pub fn contains(&self, block: BlockPos) -> bool {
        self.boxes.iter().any(|area| area.contains(block))
    }

    /// Whether every block of a box is inside, be it in one box or in several that meet.
    pub fn covers(&self, area: &BlockBox) -> bool {
        // What is still to be found, each part with the first box that was not taken from it.
        let mut left = vec![(*area, 0)];
        while let Some((part, first)) = left.pop() {
            let common = (first..).zip(self.boxes.iter().skip(first));
            let mut common = common.filter_map(|(index, other)| Some((index, other.intersection(&part)?)));
            let Some((index, common)) = common.next() else { return false };
            left.extend(without(part, common).into_iter().flatten().map(|rest| (rest, index + 1)));
        }
        true
    }

    /// Whether a block of a box is inside.
    pub fn meets(&self, area: &BlockBox) -> bool {
        self.boxes.iter().any(|other| other.intersection(area).is_some())
    }

    /// The chunks that contain a part of the area, as boxes that may overlap.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkBox> + '_ {
        self.boxes.iter().map(BlockBox::chunks)
    }

    /// The blocks of all chunks that contain a part of the area.
    #[must_use]
    pub fn whole_chunks(&self) -> Self {
        Self::union(self.chunks().map(|area| area.blocks()))
    }

    /// The part of it that is in a box.
    #[must_use]
    pub fn intersection(&self, area: &BlockBox) -> Self {
        Self::union(self.boxes.iter().filter_map(|other| other.intersection(area)))
    }
}

impl From<BlockBox> for BlockArea {
    fn from(area: BlockBox) -> Self {
        Self { boxes: vec![area] }
    }
}

/// The blocks of a box that are not in a box inside it, as boxes without a common block.
fn without(area: BlockBox, hole: BlockBox) -> [Option<BlockBox>; 6] {
    let (min, max, from, to) = (area.min(), area.max(), hole.min(), hole.max());
    let part = |is_there: bool, a: [i64; 3], b: [i64; 3]| {
        let [a, b] = [a, b].map(|[x, y, z]| BlockPos::new(x, y, z));
        is_there.then(|| BlockBox::new(a, b))
    };
    // A coordinate beside the hole is computed without overflow, and used only where there is one.
    let (below, above) = (|at: i64| at.saturating_sub(1), |at: i64| at.saturating_add(1));
    [
        part(min.x < from.x, [min.x, min.y, min.z], [below(from.x), max.y, max.z]),
        part(to.x < max.x, [above(to.x), min.y, min.z], [max.x, max.y, max.z]),
        part(min.y < from.y, [from.x, min.y, min.z], [to.x, below(from.y), max.z]),
        part(to.y < max.y, [from.x, above(to.y), min.z], [to.x, max.y, max.z]),
        part(min.z < from.z, [from.x, from.y, min.z], [to.x, to.y, below(from.z)]),
        part(to.z < max.z, [from.x, from.y, above(to.z)], [to.x, to.y, max.z]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cube(from: [i64; 3], to: [i64; 3]) -> BlockBox {
        let [from, to] = [from, to].map(|[x, y, z]| BlockPos::new(x, y, z));
        BlockBox::new(from, to)
    }

    fn blocks(area: BlockBox) -> impl Iterator<Item = BlockPos> {
        let (min, max) = (area.min(), area.max());
        let plane = move |x| (min.y..=max.y).flat_map(move |y| (min.z..=max.z).map(move |z| (x, y, z)));
        (min.x..=max.x).flat_map(plane).map(|(x, y, z)| BlockPos::new(x, y, z))
    }

    #[test]
    fn nothing_is_not_everything() {
        let (nothing, all) = (BlockArea::union([]), BlockArea::everywhere());
        let one = cube([0; 3], [0; 3]);
        assert!(nothing.is_empty() && !nothing.is_everywhere() && !nothing.contains(one.min()));
        assert!(!nothing.covers(&one) && !nothing.meets(&one) && nothing.chunks().next().is_none());
        assert!(nothing.whole_chunks().is_empty());
        assert!(all.is_everywhere() && !all.is_empty());
        assert!(all.covers(&cube([i64::MIN; 3], [i64::MAX; 3])));
        assert_eq!(BlockArea::union([one, cube([i64::MIN; 3], [i64::MAX; 3])]), all);
        assert!(
            !BlockArea::from(cube([i64::MIN; 3], [i64::MAX - 1; 3]))
                .covers(&cube([i64::MAX; 3], [i64::MAX; 3]))
        );
    }

    #[test]
    fn boxes_are_enlarged_to_chunks() {
        let area = BlockArea::union([cube([0, 0, 0], [16, 0, 0]), cube([3, 3, 3], [4, 4, 4])]);
        assert_eq!(area.boxes().len(), 2);
        assert_eq!(area.whole_chunks(), BlockArea::from(cube([0; 3], [31, 15, 15])));
        assert_eq!(area.intersection(&cube([4, 0, 0], [5, 5, 5])).boxes().len(), 2);
    }

    proptest! {
        #[test]
        fn a_union_is_the_set_of_its_blocks(
            corners in prop::collection::vec([-3_i64..4, -3..4, -3..4, -3..4, -3..4, -3..4], 0..7),
            of in [-3_i64..4, -3..4, -3..4, -3..4, -3..4, -3..4],
        ) {
            let boxes: Vec<_> =
                corners.iter().map(|[a, b, c, d, e, f]| cube([*a, *b, *c], [*d, *e, *f])).collect();
            let area = BlockArea::union(boxes.clone());
            let reversed = boxes.iter().rev().chain(&boxes).copied();
            prop_assert_eq!(&area, &BlockArea::union(reversed));
            for block in blocks(cube([-4; 3], [4; 3])) {
                prop_assert_eq!(area.contains(block), boxes.iter().any(|other| other.contains(block)));
            }
            let of = cube([of[0], of[1], of[2]], [of[3], of[4], of[5]]);
            prop_assert_eq!(area.covers(&of), blocks(of).all(|block| area.contains(block)));
            prop_assert_eq!(area.meets(&of), blocks(of).any(|block| area.contains(block)));
            let part = area.intersection(&of);
            for block in blocks(of) {
                prop_assert_eq!(part.contains(block), area.contains(block));
            }
        }
    }
}
