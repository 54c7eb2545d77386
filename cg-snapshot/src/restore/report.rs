//! The changes of a restore, by block and in numbers.

use cg_format::{BlockId, BlockPos, ChunkAt, Dimension};

use crate::remap::RemapReport;

/// A block whose kind or components changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockChange {
    /// The dimension.
    pub dimension: Dimension,
    /// The block's position.
    pub pos: BlockPos,
    /// Its layer; 0 is the lowest.
    pub layer: u8,
    /// The old kind; `None` if the cell had no such layer, or there was no chunk.
    pub old: Option<BlockId>,
    /// The new kind; `None` if the cell no longer has such a layer. If it equals the old kind, only the block's
    /// components changed.
    pub new: Option<BlockId>,
}

/// The progress of a restore so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoreReport {
    /// Sections processed.
    pub sections: u64,
    /// Sections that already were as in the snapshot.
    pub unchanged: u64,
    /// Sections that were saved.
    pub changed: u64,
    /// Chunks that were created. They also count as changed sections.
    pub created: u64,
    /// Chunks that were deleted because they were absent in the snapshot.
    pub deleted: u64,
    /// Parts of chunks that were not restored: the chunk is absent now, or was absent at the capture, and
    /// [`RestoreOptions::absent`](super::RestoreOptions::absent) names no block for it.
    pub left_alone: u64,
    /// Sections that could not be verified and were left unchanged.
    pub unverifiable: Vec<ChunkAt>,
    /// Blocks whose kind changed, in all layers.
    pub blocks: u64,
    /// Blocks whose components changed and whose kind did not.
    pub components: u64,
    /// Sections that were left unchanged because of [`Merge::Keep`](super::Merge::Keep).
    pub kept: u64,
    /// Entities that were left unchanged for the same reason.
    pub entities_kept: u64,
    /// Entities that were restored.
    pub entities_put: u64,
    /// Entities that were deleted.
    pub entities_deleted: u64,
    /// The data that has no place, because the target's registry differs.
    pub remap: RemapReport,
}
