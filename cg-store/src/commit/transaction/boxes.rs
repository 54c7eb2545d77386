//! Boxes of blocks in a transaction, from a flat slice in the host's order.

use std::sync::Arc;

use cg_format::chunk::{Chunk, EditError};
use cg_format::{BlockBox, BlockId, CellOrder, ChunkAt, Dimension};

use super::{Tx, TxStore};
use crate::read::boxes::{Layout, Row, cubes, inside, unpacked};
use crate::storage::error::Error;

impl<S: TxStore> Tx<S> {
    /// Writes layer 0 of a box from a flat slice in the host's order. `None` leaves a block as it is.
    ///
    /// Chunks that the box covers only in part must be stored. Chunks that it covers completely are created if absent,
    /// filled with `background`. New blocks get the defaults of their components; unchanged blocks keep their data.
    ///
    /// ```
    /// use cg_format::{BlockBox, BlockPos, CellOrder};
    /// use cg_store::prelude::*;
    /// # let world = World::builder().in_memory()?;
    /// # let overworld = world.registry().register_dimension("game:overworld")?;
    /// let [air, stone] = world.registry().register_blocks(["game:air", "game:stone"])?;
    /// // The generator's own kinds in its own order: y by y, in each z by z, in each x by x.
    /// let area = BlockBox::new(BlockPos::new(0, 64, 0), BlockPos::new(15, 95, 15));
    /// let made = vec![1_u8; 16 * 32 * 16];
    /// world.transaction(|tx| {
    ///     tx.write_box(overworld, area, CellOrder::Yzx, &made, air, |kind: &u8| Some([air, stone][usize::from(*kind)]))
    /// })?;
    /// assert!(world.load(ChunkAt::new(overworld, ChunkPos::new(0, 5, 0)?))?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BoxLength`], [`Error::ChunkAbsent`], [`Error::Edit`] and as [`load`](Self::load).
    pub fn write_box<T>(
        &mut self,
        dimension: Dimension,
        area: BlockBox,
        order: CellOrder,
        values: &[T],
        background: BlockId,
        mut map: impl FnMut(&T) -> Option<BlockId>,
    ) -> Result<(), Error> {
        let layout = Layout::new(area, order, values.len())?;
        let schema = self.catalog().current_schema();
        let mut blocks = unpacked();
        for cube in cubes(area, order) {
            let wanted: Vec<_> = cube.iter().map(|pos| ChunkAt { dimension, pos }).collect();
            for (at, found) in wanted.iter().zip(self.load_many(&wanted)) {
                let chunk = match found? {
                    Some(chunk) => chunk,
                    None if inside(area, at.pos) != [[0; 3], [15; 3]] => {
                        return Err(self.store.refused(Error::ChunkAbsent { at: *at }));
                    }
                    None => Arc::new(Chunk::filled(background, &schema)?),
                };
                chunk.unpack(order, &mut blocks);
                self.save(*at, chunk);
                self.edit(*at, |chunk| {
                    for Row { in_array, in_chunk } in layout.rows(at.pos) {
                        for (value, index) in values[in_array].iter().zip(in_chunk) {
                            if let Some(new) = map(value).filter(|new| *new != blocks[index])
                                && let Some(cell) = order.cell(index as u16)
                            {
                                chunk.set_block(cell, new, &schema)?;
                            }
                        }
                    }
                    Ok::<_, EditError>(())
                })?
                .map_err(|error| self.store.refused(error.into()))?;
            }
        }
        Ok(())
    }
}
