//! One chunk while it is drawn: features draw in the coordinates of the world, and what lies outside is dropped.
//!
//! So a tree on a border is drawn once for each chunk it reaches into, and the parts fit.

use cg_format::chunk::CellLayer;
use cg_format::{BlockId, BlockPos, CellOrder, Chunk, ChunkPos, ComponentId, LocalPos, SchemaView};

/// A chunk's cells, and what is to be put into them later.
#[derive(Debug)]
pub(super) struct Canvas {
    pos: ChunkPos,
    cells: Box<[BlockId; LocalPos::COUNT]>,
    /// Blocks above layer 0, from the lowest layer up.
    above: Vec<(LocalPos, BlockId)>,
    components: Vec<(LocalPos, ComponentId, Vec<u8>)>,
}

impl Canvas {
    pub(super) fn new(pos: ChunkPos, block: BlockId) -> Self {
        let cells = vec![block; LocalPos::COUNT].into_boxed_slice();
        let cells = cells.try_into().expect("as long as it was just made");
        Self { pos, cells, above: Vec::new(), components: Vec::new() }
    }

    pub(super) const fn pos(&self) -> ChunkPos {
        self.pos
    }

    /// The chunk's corner of smallest coordinates.
    pub(super) const fn corner(&self) -> BlockPos {
        self.pos.min_block()
    }

    /// Whether any of these heights lies in the chunk.
    pub(super) const fn meets(&self, lowest: i64, highest: i64) -> bool {
        let bottom = self.corner().y;
        lowest <= bottom + 15 && highest >= bottom
    }

    /// Whether a block lies in the chunk.
    pub(super) fn holds(&self, at: BlockPos) -> bool {
        at.chunk() == self.pos
    }

    /// The block of a cell, or `None` outside.
    pub(super) fn get(&self, at: BlockPos) -> Option<BlockId> {
        self.holds(at).then(|| self.cells[usize::from(at.local().index())])
    }

    /// Puts a block into a cell; what was there is gone, with all that was above it or said of it.
    pub(super) fn set(&mut self, at: BlockPos, block: BlockId) {
        if self.holds(at) {
            let cell = at.local();
            self.cells[usize::from(cell.index())] = block;
            self.above.retain(|(above, _)| *above != cell);
            self.components.retain(|(described, ..)| *described != cell);
        }
    }

    /// Puts a block above what is in a cell, for example the water around a fence.
    pub(super) fn cover(&mut self, at: BlockPos, block: BlockId) {
        if self.holds(at) {
            self.above.push((at.local(), block));
        }
    }

    /// Gives the block of a cell a component's bytes.
    pub(super) fn describe(&mut self, at: BlockPos, component: ComponentId, bytes: Vec<u8>) {
        if self.holds(at) {
            self.components.push((at.local(), component, bytes));
        }
    }

    pub(super) fn finish(self, schema: &impl SchemaView) -> Chunk {
        let known = "the generator's ids come from the catalog of its schema";
        let mut chunk = Chunk::from_blocks(&self.cells, CellOrder::Xyz, schema).expect(known);
        for (cell, block) in self.above {
            chunk.push_layer(cell, block, schema).expect(known);
        }
        for (cell, component, bytes) in self.components {
            let described = chunk.set_component(CellLayer::base(cell), component, &bytes);
            described.expect("features describe only the blocks that they have just drawn");
        }
        chunk.pack();
        chunk
    }
}
