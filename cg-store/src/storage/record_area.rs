//! The leaves that an area of blocks touches, and the ranges of keys that have them.

use std::ops::Range;

use cg_format::key::{self, RecordLeaf, RecordPath};
use cg_format::{BlockArea, Dimension, morton};

use crate::storage::record_shape::{Cover, RecordShape};

/// The nodes that are looked at for each range that there may be. More of them, such as the tables of the whole world, are
/// too many, however few ranges they make.
const NODES_PER_RANGE: usize = 16;

/// The leaves that an area of blocks touches, in the order of their keys, each once.
#[derive(Debug, Clone)]
pub(crate) struct AreaCover {
    covers: Vec<Cover>,
    level_count: usize,
}

impl AreaCover {
    pub(crate) fn new(shape: RecordShape, dimension: Dimension, area: &BlockArea) -> Self {
        let covers = area.boxes().iter().map(|area| Cover::new(shape, dimension, area)).collect();
        Self { covers, level_count: shape.settings().num_levels as usize }
    }

    /// The first leaf.
    pub(crate) fn first(&self) -> Option<RecordLeaf> {
        self.least(Cover::first)
    }

    /// The last leaf.
    pub(crate) fn last(&self) -> Option<RecordLeaf> {
        self.covers.iter().map(|cover| cover.last).max_by_key(key::record_leaf)
    }

    /// The first covered leaf that is not before `leaf`; `leaf` itself if it is covered.
    pub(crate) fn first_from(&self, leaf: &RecordLeaf) -> Option<RecordLeaf> {
        self.least(|cover| cover.first_from(leaf))
    }

    fn least(&self, leaf: impl Fn(&Cover) -> Option<RecordLeaf>) -> Option<RecordLeaf> {
        self.covers.iter().filter_map(leaf).min_by_key(key::record_leaf)
    }

    /// At most `max` ranges of keys that have all covered leaves, in their order. They have no other leaves, unless
    /// these are too many ranges: then they have whole nodes of the tree. `None` if even the tables are too many. Costs a
    /// bounded number of steps, whatever the size of the area.
    pub(crate) fn ranges(&self, prefix: &[u8], max: usize) -> Option<Vec<Range<Vec<u8>>>> {
        (0..=self.level_count).rev().find_map(|level_count| self.ranges_of(level_count, prefix, max))
    }

    /// The ranges of nodes of one level.
    fn ranges_of(&self, level_count: usize, prefix: &[u8], max: usize) -> Option<Vec<Range<Vec<u8>>>> {
        let mut ranges: Vec<Range<Vec<u8>>> = Vec::new();
        let mut leaf = self.first();
        let mut adjacent = None;
        let mut nodes_left = max.saturating_mul(NODES_PER_RANGE);
        while let Some(first) = leaf {
            nodes_left = nodes_left.checked_sub(1)?;
            let node = above(&first, level_count);
            // No record has a key of the greatest path in the last table of the last dimension.
            let end = after(&node).map_or_else(|| vec![u8::MAX], |after| key::record_leaf(&after));
            let end = [prefix, &end].concat();
            let is_full = ranges.len() == max;
            match ranges.last_mut().filter(|_| adjacent == Some(node)) {
                Some(range) => range.end = end,
                None if is_full => return None,
                None => ranges.push([prefix, &key::record_leaf(&first)].concat()..end),
            }
            adjacent = after(&node);
            leaf = adjacent.and_then(|after| self.first_from(&after));
        }
        Some(ranges)
    }
}

/// The node of a level that has a leaf.
fn above(leaf: &RecordLeaf, level_count: usize) -> RecordLeaf {
    let numbers = leaf.path.numbers().iter().take(level_count);
    let path = numbers.fold(RecordPath::EMPTY, |path, number| path.child(*number).unwrap_or(path));
    RecordLeaf { path, ..*leaf }
}

/// The node after another one in the order of keys. It may be none of the tree: one child more than a node has.
fn after(node: &RecordLeaf) -> Option<RecordLeaf> {
    let Some((last, above)) = node.path.numbers().split_last() else {
        return Some(RecordLeaf { table: morton::next_3d(node.table)?, ..*node });
    };
    let path = above.iter().try_fold(RecordPath::EMPTY, |path, number| path.child(*number))?;
    Some(RecordLeaf { path: path.child(last.checked_add(1)?)?, ..*node })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::record_settings::RecordSettings;
    use cg_format::{BlockBox, BlockPos};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_have_each_covered_leaf_once(
            levels in 1_u32..4,
            roots in prop::sample::select(vec![1_u32, 8]),
            boxes in prop::collection::vec((prop::array::uniform3(-60_i64..60), prop::array::uniform3(0_i64..24)), 1..3),
            max in 1_usize..40,
        ) {
            let settings = RecordSettings {
                leaf_square_size: 4, tree_degree: 8, num_levels: levels, roots_per_table: roots,
            };
            let shape = RecordShape::new(settings).unwrap();
            let boxes = boxes.into_iter().map(|([x, y, z], side)| {
                BlockBox::new(BlockPos::new(x, y, z), BlockPos::new(x + side[0], y + side[1], z + side[2]))
            });
            let area = BlockArea::union(boxes);
            let cover = AreaCover::new(shape, Dimension::new(1), &area);
            let mut covered = std::collections::BTreeSet::new();
            for area in area.boxes() {
                for x in (area.min().x..=area.max().x + 3).step_by(4) {
                    for y in (area.min().y..=area.max().y + 3).step_by(4) {
                        for z in (area.min().z..=area.max().z + 3).step_by(4) {
                            let block = BlockPos::new(
                                x.min(area.max().x), y.min(area.max().y), z.min(area.max().z),
                            );
                            covered.insert(key::record_leaf(&shape.leaf(Dimension::new(1), block)));
                        }
                    }
                }
            }
            let exact = cover.ranges(b"p", usize::MAX).unwrap();
            for ranges in [&exact, &cover.ranges(b"p", max).unwrap_or_default()] {
                if ranges.is_empty() { continue }
                let inside = |range: &Range<Vec<u8>>| {
                    covered.iter().filter(|leaf| range.contains(&[b"p", &leaf[..], &[9; 16]].concat())).count()
                };
                prop_assert_eq!(ranges.iter().map(inside).sum::<usize>(), covered.len());
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
                prop_assert!(ranges.iter().all(|range| inside(range) > 0));
            }
            prop_assert!(exact.len() <= covered.len());
            prop_assert!(cover.ranges(b"p", max).is_none_or(|ranges| ranges.len() <= max));
            // Leaves that are not covered are in no range.
            let other = |x| shape.leaf(Dimension::new(1), BlockPos::new(x, 61, 0));
            for x in -80..90 {
                let leaf = key::record_leaf(&other(x));
                let key = [b"p", &leaf[..], &[0; 16]].concat();
                let is_inside = exact.iter().any(|range| range.contains(&key));
                prop_assert_eq!(is_inside, covered.contains(&leaf));
            }
        }
    }

    #[test]
    fn a_large_area_has_ranges_of_nodes_or_none() {
        let (shape, dimension) = (RecordShape::default(), Dimension::new(0));
        let cube = |side| {
            let area =
                BlockArea::from(BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(side, side, side)));
            AreaCover::new(shape, dimension, &area)
        };
        let count = |side, max| cube(side).ranges(&[], max).map(|ranges| ranges.len());
        // Runs of leaves along z; the root that has them.
        assert_eq!([count(40, 512), count(40, 4)], [Some(9), Some(1)]);
        // The roots of eight tables, as the leaves are too many; eight tables that lie one after the other.
        assert_eq!([count(511, 64), count(511, 7)], [Some(8), Some(1)]);
        assert_eq!([count(5000, 512), count(5000, 38)], [Some(39), None]);
        // All tables lie one after the other.
        assert_eq!(count(65535, 512), None);
        let everywhere = AreaCover::new(shape, dimension, &BlockArea::everywhere());
        assert_eq!(everywhere.ranges(&[], 512), None);
    }
}
