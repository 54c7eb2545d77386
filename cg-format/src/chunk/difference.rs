//! The differences between two chunks, if they are few.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::blocks::Blocks;
use super::instances::CellLayer;
use super::owned::Chunk;
use crate::{BlockId, LocalPos};

/// A block that changed; `old` is `None` for an added layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangedBlock {
    pub(crate) at: CellLayer,
    pub(crate) old: Option<BlockId>,
    pub(crate) new: BlockId,
}

impl Chunk {
    /// Whether components and side data are equal. That is everything stored except blocks and references.
    pub(crate) fn is_equal_beside_blocks(&self, other: &Self) -> bool {
        self.columns == other.columns && self.unread == other.unread && self.sides == other.sides
    }

    /// The blocks in which a later chunk differs; `None` if there are more than `at_most`, or a layer was removed.
    ///
    /// Costs one comparison of every cell, less if the chunks differ much. If one chunk is an edit of the other, equal
    /// planes of cells are compared as bytes, or as ids if the edit has widened them.
    pub(crate) fn blocks_changed_in(&self, later: &Self, at_most: usize) -> Option<Vec<ChangedBlock>> {
        let mut changed = self.base_changed_in(later, at_most)?;
        let mut old = self.upper_layers().peekable();
        for (at, block) in later.upper_layers() {
            // The later chunk does not have this old layer.
            let old = match old.peek() {
                Some((old_at, _)) if *old_at < at => return None,
                Some((old_at, _)) if *old_at == at => old.next().map(|(_, block)| block),
                _ => None,
            };
            if old != Some(block) {
                changed.push(ChangedBlock { at, old, new: block });
            }
        }
        (old.next().is_none() && changed.len() <= at_most).then_some(changed)
    }

    fn base_changed_in(&self, later: &Self, at_most: usize) -> Option<Vec<ChangedBlock>> {
        let mut changed = Vec::new();
        let ended = self.visit_base_differences(later, |cell, old, new| {
            changed.push(ChangedBlock { at: CellLayer::base(cell), old: Some(old), new });
            if changed.len() > at_most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        ended.is_continue().then_some(changed)
    }

    /// Visits every block in which a later chunk differs, with its old and its new kind; `None` where a cell has no
    /// such layer. Layer 0 comes first, by cell, then the upper layers by cell and layer. Components are not compared.
    ///
    /// Costs one comparison of every cell. Allocates only a table as long as the palette.
    ///
    /// ```
    /// use cg_format::chunk::Chunk;
    /// use cg_format::schema::NoComponents;
    /// use cg_format::{BlockId, LocalPos};
    /// let (air, stone) = (BlockId::new(0), BlockId::new(1));
    /// let before = Chunk::filled(air, &NoComponents)?;
    /// let mut after = before.clone();
    /// after.set_block(LocalPos::new(1, 2, 3), stone, &NoComponents)?;
    /// let mut seen = Vec::new();
    /// before.for_each_difference(&after, |at, old, new| seen.push((at.cell, old, new)));
    /// assert_eq!(seen, [(LocalPos::new(1, 2, 3), Some(air), Some(stone))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each_difference(
        &self,
        later: &Self,
        mut visit: impl FnMut(CellLayer, Option<BlockId>, Option<BlockId>),
    ) {
        let _always_continues = self.visit_base_differences(later, |cell, old, new| {
            visit(CellLayer::base(cell), Some(old), Some(new));
            ControlFlow::Continue(())
        });
        let mut old = self.upper_layers().peekable();
        for (at, block) in later.upper_layers() {
            while let Some((gone, was)) = old.next_if(|(old_at, _)| *old_at < at) {
                visit(gone, Some(was), None);
            }
            let was = old.next_if(|(old_at, _)| *old_at == at).map(|(_, was)| was);
            if was != Some(block) {
                visit(at, was, Some(block));
            }
        }
        for (gone, was) in old {
            visit(gone, Some(was), None);
        }
    }

    fn visit_base_differences(
        &self,
        later: &Self,
        mut visit: impl FnMut(LocalPos, BlockId, BlockId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        const ELSEWHERE: u32 = u32::MAX;
        let shares_ids = self.shares_local_ids(later);
        // The local id in the later chunk for each local id of the old one; empty if it is the same id.
        let in_later = |block: &BlockId| later.palette.find(*block).unwrap_or(ELSEWHERE);
        let renamed: Vec<u32> =
            if shares_ids { Vec::new() } else { self.palette.ids().iter().map(in_later).collect() };
        let (mut old_plane, mut new_plane) = ([0; Blocks::PLANE_CELLS], [0; Blocks::PLANE_CELLS]);
        for x in 0..16_u8 {
            if shares_ids && self.blocks.has_plane_of(&later.blocks, x) {
                continue;
            }
            self.blocks.unpack_plane(x, &mut old_plane);
            later.blocks.unpack_plane(x, &mut new_plane);
            // Where an edit has widened the ids, equal planes are not packed as equal bytes.
            if shares_ids && old_plane == new_plane {
                continue;
            }
            let first = u16::from(x) * Blocks::PLANE_CELLS as u16;
            for ((old, new), index) in old_plane.iter().zip(&new_plane).zip(first..) {
                if renamed.get(*old as usize).unwrap_or(old) == new {
                    continue;
                }
                let Some(cell) = LocalPos::from_index(index) else { continue };
                visit(cell, self.palette.get(*old), later.palette.get(*new))?;
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellOrder;
    use crate::schema::NoComponents;
    use proptest::prelude::*;

    proptest! {
        /// Chunks with the same packed cells and other kinds, and edits of a chunk.
        #[test]
        fn differences_are_those_of_each_cell_compared_alone(
            kinds in 1_u64..20,
            renamed in 0_u64..3,
            edits in prop::collection::vec((0_u16..4096, 0_u64..20), 0..8),
            is_packed in any::<bool>(),
        ) {
            let chunk = |first: u64| {
                let cells: Vec<_> =
                    (0..4096).map(|cell| BlockId::new(first + cell / 300 % kinds)).collect();
                let cells = cells.as_slice().try_into().unwrap();
                Chunk::from_blocks(cells, CellOrder::Xyz, &NoComponents).unwrap()
            };
            let (old, mut new) = (chunk(0), chunk(renamed));
            for (index, block) in edits {
                let cell = LocalPos::from_index(index).unwrap();
                new.set_block(cell, BlockId::new(block), &NoComponents).unwrap();
            }
            if is_packed {
                new.pack();
            }
            let mut found = Vec::new();
            old.for_each_difference(&new, |at, before, after| found.push((at.cell, before, after)));
            let all = LocalPos::all().map(|cell| (cell, Some(old.block(cell)), Some(new.block(cell))));
            prop_assert_eq!(found, all.filter(|(_, before, after)| before != after).collect::<Vec<_>>());
        }
    }
}
