//! The stored records about a block kind: one when it is registered, and one for each later change.

use cg_format::{BlockId, ComponentId};
use serde::{Deserialize, Serialize};

/// A stored record about one block kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRow {
    /// The first schema generation in which it is valid.
    pub generation: u32,
    /// The block's id.
    pub block: u64,
    /// Whether a block of this kind hides the blocks behind it.
    pub opaque: bool,
    /// The ids of its components, ascending.
    pub components: Vec<u64>,
}

impl BlockRow {
    /// The maximum number of components of one block kind.
    pub const MAX_COMPONENTS: usize = 4096;

    /// The block's id.
    pub const fn id(&self) -> BlockId {
        BlockId::new(self.block)
    }
}

/// The state of a block in one generation.
#[derive(Debug, Clone)]
pub(crate) struct BlockState {
    pub(crate) generation: u32,
    pub(crate) opaque: bool,
    pub(crate) components: Box<[ComponentId]>,
}

impl From<&BlockRow> for BlockState {
    fn from(row: &BlockRow) -> Self {
        let components = row.components.iter().copied().map(ComponentId::new).collect();
        Self { generation: row.generation, opaque: row.opaque, components }
    }
}

/// The states of one block in all generations.
#[derive(Debug, Clone)]
pub(crate) struct BlockHistory {
    pub(crate) first: BlockState,
    /// Later records, ascending by generation.
    pub(crate) later: Vec<BlockState>,
}

impl BlockHistory {
    /// The state in a generation. The first one is also valid before its own generation, when no chunk can contain the
    /// block.
    pub(crate) fn at(&self, generation: u32) -> &BlockState {
        if self.later.is_empty() {
            return &self.first;
        }
        let count = self.later.partition_point(|state| state.generation <= generation);
        count.checked_sub(1).and_then(|last| self.later.get(last)).unwrap_or(&self.first)
    }

    /// The newest record.
    pub(crate) fn newest(&self) -> &BlockState {
        self.later.last().unwrap_or(&self.first)
    }
}
