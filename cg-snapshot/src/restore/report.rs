//! What a restore changed, block by block and in numbers.

use cg_format::{BlockId, BlockPos, ChunkAt, Dimension};

use crate::remap::RemapReport;

/// A block that is another one now, or whose components are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockChange {
    /// The dimension.
    pub dimension: Dimension,
    /// The block's position.
    pub pos: BlockPos,
    /// Its layer; 0 is the lowest.
    pub layer: u8,
    /// The kind that was there; `None` if the cell had no such layer, or there was no chunk.
    pub old: Option<BlockId>,
    /// The kind that is there now; `None` if the cell has no such layer any more. If it is the old one, only the components
    /// of the block have changed.
    pub new: Option<BlockId>,
}

/// What a restore has done so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoreReport {
    /// Sections looked at.
    pub sections: u64,
    /// Sections that were as in the snapshot.
    pub unchanged: u64,
    /// Sections that were saved.
    pub changed: u64,
    /// Chunks that were made, which count as changed sections.
    pub created: u64,
    /// Chunks that were deleted because there was none when the snapshot was taken.
    pub deleted: u64,
    /// Parts of chunks that could not be restored: there is no chunk now to hold the rest, or there was none then.
    pub left_alone: u64,
    /// Sections that could not be verified and stayed as they are.
    pub unverifiable: Vec<ChunkAt>,
    /// Blocks that are of another kind now, in all layers.
    pub blocks: u64,
    /// Blocks of which only the components are other ones.
    pub components: u64,
    /// Sections that stayed as they are because there was a chunk and [`Merge::Keep`](super::Merge::Keep) was asked for.
    pub kept: u64,
    /// Entities that stayed as they are for the same reason.
    pub entities_kept: u64,
    /// Entities that were put back.
    pub entities_put: u64,
    /// Entities that were deleted.
    pub entities_deleted: u64,
    /// What was left behind because the target's registry differs.
    pub remap: RemapReport,
}
