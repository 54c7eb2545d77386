//! Boxes of blocks to and from flat slices, for hosts whose chunks have another shape or order.
//!
//! A host with chunks of 32³ or 16×384×16 needs no code of its own: it names the box, the order of its array and
//! how its values and the world's ids map onto each other.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{
    BlockBox, BlockId, BlockPos, CellOrder, ChunkAt, ChunkBox, ChunkPos, ClusterTier, Dimension, LocalPos,
};

use crate::engine::Engine;
use crate::error::Error;
use crate::transaction::Transaction;
use crate::world::World;

/// The cells of a box as a flat array in some order.
#[derive(Debug, Clone, Copy)]
struct Layout {
    min: BlockPos,
    /// How far apart neighbours along x, y and z lie in the array.
    strides: [usize; 3],
    len: usize,
}

impl Layout {
    /// # Errors
    /// [`Error::BoxLength`] if the slice is not exactly as long as the box has blocks.
    fn new(area: BlockBox, order: CellOrder, len: usize) -> Result<Self, Error> {
        let size = area.size();
        let mut strides = [0; 3];
        let mut stride: u128 = 1;
        // The last axis of an order is the fastest.
        for axis in order.axes().into_iter().rev() {
            strides[axis] = stride as usize;
            stride = stride.saturating_mul(size[axis]);
        }
        if stride != len as u128 {
            return Err(Error::BoxLength { found: len as u64, expected: stride });
        }
        Ok(Self { min: area.min(), strides, len })
    }

    fn index(&self, block: BlockPos) -> usize {
        let [x, y, z] = [
            block.x.abs_diff(self.min.x) as usize,
            block.y.abs_diff(self.min.y) as usize,
            block.z.abs_diff(self.min.z) as usize,
        ];
        let index = x * self.strides[0] + y * self.strides[1] + z * self.strides[2];
        debug_assert!(index < self.len, "the block is inside the box");
        index
    }
}

/// The blocks of one chunk that lie inside a box.
fn cells_inside(area: BlockBox, pos: ChunkPos) -> impl Iterator<Item = (LocalPos, BlockPos)> {
    LocalPos::all().map(move |cell| (cell, pos.block(cell))).filter(move |(_, block)| area.contains(*block))
}

/// The chunks of a box, those of one 16³ cube after those of another, so that each cluster is read once.
///
/// The cubes come in the order of the array, so that it is filled from one end to the other as far as cubes allow.
fn cubes(area: BlockBox, order: CellOrder) -> impl Iterator<Item = ChunkBox> {
    let chunks = area.chunks();
    let (from, to) = (chunks.min(), chunks.max());
    let (from, to) = ([from.x(), from.y(), from.z()], [to.x(), to.y(), to.z()]);
    let side = i64::from(ClusterTier::L2.side_chunks());
    let [slow, middle, fast] = order.axes();
    let parts = move |axis: usize| {
        let first = from[axis].div_euclid(side);
        (first..=to[axis].div_euclid(side))
            .map(move |cube| [from[axis].max(cube * side), to[axis].min(cube * side + side - 1)])
    };
    parts(slow).flat_map(move |s| {
        parts(middle).flat_map(move |m| {
            parts(fast).map(move |f| {
                let corner = |end: usize| {
                    let mut corner = [0; 3];
                    (corner[slow], corner[middle], corner[fast]) = (s[end], m[end], f[end]);
                    let [x, y, z] = corner;
                    ChunkPos::new(x, y, z).expect("it lies in a box of the world")
                };
                ChunkBox::new(corner(0), corner(1))
            })
        })
    })
}

impl<E: Engine> World<E> {
    /// Reads layer 0 of a box into a flat slice in the host's order.
    ///
    /// All of it is of one state of the world, whatever is committed or moved meanwhile. Blocks of chunks that are not
    /// stored are left as they are in the slice; how many chunks those were is returned.
    ///
    /// Costs, for chunks that memory does not have, what [`load_many`](Self::load_many) costs: each cluster is read
    /// once, and only its 4³ groups with chunks of the box are decompressed. Takes memory for one cold cluster at a
    /// time, whatever the size of the box. `map` is called in no order; it may use the world.
    ///
    /// # Errors
    /// [`Error::BoxLength`] if the slice does not fit the box; [`Error::Corrupt`] at the first damaged chunk.
    pub fn read_box<T>(
        &self,
        dimension: Dimension,
        area: BlockBox,
        order: CellOrder,
        out: &mut [T],
        mut map: impl FnMut(BlockId) -> T,
    ) -> Result<u64, Error> {
        let layout = Layout::new(area, order, out.len())?;
        let engine = self.inner().engine()?;
        let still = self.inner().still(&engine)?;
        let mut absent = 0;
        for cube in cubes(area, order) {
            let wanted: Vec<_> = cube.iter().map(|pos| ChunkAt { dimension, pos }).collect();
            absent += still.show(&wanted, |at, chunk| {
                for (cell, block) in cells_inside(area, at.pos) {
                    out[layout.index(block)] = map(chunk.block(cell));
                }
            })?;
        }
        Ok(absent)
    }
}

impl<E: Engine> Transaction<'_, E> {
    /// Writes layer 0 of a box from a flat slice in the host's order; `None` leaves a block as it is.
    ///
    /// Chunks that the box covers only in part must be stored; those that it covers wholly are made if they are not,
    /// filled with `background`. New blocks get their components' defaults, unchanged blocks keep their data.
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
        for cube in cubes(area, order) {
            let wanted: Vec<_> = cube.iter().map(|pos| ChunkAt { dimension, pos }).collect();
            for (at, found) in wanted.iter().zip(self.load_many(&wanted)) {
                let chunk = match found? {
                    Some(chunk) => chunk,
                    None if cells_inside(area, at.pos).count() < LocalPos::COUNT => {
                        return Err(Error::ChunkAbsent { at: *at });
                    }
                    None => Arc::new(Chunk::filled(background, &schema)?),
                };
                self.save(*at, chunk);
                self.edit(*at, |chunk| {
                    for (cell, block) in cells_inside(area, at.pos) {
                        if let Some(new) = map(&values[layout.index(block)])
                            && chunk.block(cell) != new
                        {
                            chunk.set_block(cell, new, &schema)?;
                        }
                    }
                    Ok::<_, Error>(())
                })??;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorldOptions;

    fn stone_and_air() -> (World<crate::engine::MemEngine>, Dimension, [BlockId; 2]) {
        let world = World::temporary(&[], &WorldOptions::default()).unwrap();
        let dimension = world.register_dimension("game:flat").unwrap();
        let blocks = world.register_blocks([":air", "game:stone"]).unwrap();
        (world, dimension, blocks)
    }

    #[test]
    fn a_box_of_another_shape_comes_back_in_every_order() {
        let (world, dimension, [air, stone]) = stone_and_air();
        let area = BlockBox::new(BlockPos::new(-16, -16, 0), BlockPos::new(31, 15, 31));
        let values: Vec<u64> =
            (0..48 * 32 * 32).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63).collect();
        let block = |value: &u64| Some(if *value == 0 { air } else { stone });
        for order in CellOrder::ALL {
            world.transaction(|tx| tx.write_box(dimension, area, order, &values, air, block)).unwrap();
            let mut read = vec![9; values.len()];
            let absent = world.read_box(dimension, area, order, &mut read, BlockId::get).unwrap();
            assert_eq!((absent, &read), (0, &values), "{order:?}");
        }
        let mut one = [9];
        let last = BlockBox::new(area.max(), area.max());
        world.read_box(dimension, last, CellOrder::Xyz, &mut one, BlockId::get).unwrap();
        assert_eq!(one[0], values[values.len() - 1], "the last block is last in every order");
    }

    #[test]
    fn a_slice_of_another_length_and_a_missing_chunk_are_refused() {
        let (world, dimension, [air, stone]) = stone_and_air();
        let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(7, 15, 15));
        let error = world.read_box(dimension, area, CellOrder::Xyz, &mut [0; 7], BlockId::get).unwrap_err();
        assert!(matches!(error, Error::BoxLength { found: 7, expected: 2048 }), "{error}");
        let write = world.transaction(|tx| {
            tx.write_box(dimension, area, CellOrder::Xyz, &[(); 2048], air, |()| Some(stone))
        });
        assert!(matches!(write.unwrap_err(), Error::ChunkAbsent { .. }));
        let mut out = [5; 2048];
        assert_eq!(world.read_box(dimension, area, CellOrder::Xyz, &mut out, BlockId::get).unwrap(), 1);
        assert_eq!(out, [5; 2048], "what is not stored is left alone");
    }
}
