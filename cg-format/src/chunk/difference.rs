//! In what two chunks differ, as long as that is little.

use alloc::vec::Vec;

use super::blocks::Blocks;
use super::instances::CellLayer;
use super::owned::Chunk;
use crate::{BlockId, LocalPos};

/// A block that is another one now; `old` is `None` for a layer that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangedBlock {
    pub(crate) at: CellLayer,
    pub(crate) old: Option<BlockId>,
    pub(crate) new: BlockId,
}

impl Chunk {
    /// Whether components and side data, all that lies beside blocks and references, are the same.
    pub(crate) fn is_equal_beside_blocks(&self, other: &Self) -> bool {
        self.columns == other.columns && self.unread == other.unread && self.sides == other.sides
    }

    /// The blocks in which a later chunk differs; `None` if there are more than a few, or a layer was taken away.
    ///
    /// Costs one look at every cell of both, less where they differ much.
    pub(crate) fn blocks_changed_in(&self, later: &Self, at_most: usize) -> Option<Vec<ChangedBlock>> {
        let mut changed = self.base_changed_in(later, at_most)?;
        let mut old = self.upper_layers().peekable();
        for (at, block) in later.upper_layers() {
            // An old layer that the later chunk passed by is gone.
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
        const ELSEWHERE: u32 = u32::MAX;
        let mut changed = Vec::new();
        if self.palette.ids() == later.palette.ids() && self.blocks == later.blocks {
            return Some(changed);
        }
        // What a local id of the old chunk is in the later one.
        let same: Vec<u32> =
            self.palette.ids().iter().map(|block| later.palette.find(*block).unwrap_or(ELSEWHERE)).collect();
        let (mut old_plane, mut new_plane) = ([0; Blocks::PLANE_CELLS], [0; Blocks::PLANE_CELLS]);
        for x in 0..16_u8 {
            self.blocks.unpack_plane(x, &mut old_plane);
            later.blocks.unpack_plane(x, &mut new_plane);
            let first = u16::from(x) * Blocks::PLANE_CELLS as u16;
            for ((old, new), index) in old_plane.iter().zip(&new_plane).zip(first..) {
                if same.get(*old as usize) == Some(new) {
                    continue;
                }
                let cell = LocalPos::from_index(index)?;
                let (old, new) = (self.palette.get(*old), later.palette.get(*new));
                changed.push(ChangedBlock { at: CellLayer::base(cell), old: Some(old), new });
                if changed.len() > at_most {
                    return None;
                }
            }
        }
        Some(changed)
    }
}
