//! Reads and writes boxes of blocks as flat slices, for hosts whose chunks have another shape or order.
//!
//! A host with chunks of 32³ or 16×384×16 needs no code of its own. It gives the box, the order of its array, and a
//! mapping between its values and the world's ids.

use std::ops::Range;

use cg_format::{
    BlockBox, BlockId, BlockPos, CellOrder, ChunkAt, ChunkBox, ChunkPos, ClusterTier, Dimension, LocalPos,
};

use crate::read::chunk::WorldView;
use crate::storage::error::Error;

/// The cells of a box as a flat array in some order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    area: BlockBox,
    order: CellOrder,
    /// The distances in the array of neighbours along x, y and z.
    strides: [usize; 3],
}

/// Blocks that are adjacent in the array of a box, and in a chunk that is unpacked in the same order.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) in_array: Range<usize>,
    pub(crate) in_chunk: Range<usize>,
}

impl Layout {
    /// # Errors
    /// [`Error::BoxLength`] if the length of the slice is not the number of blocks of the box.
    pub(crate) fn new(area: BlockBox, order: CellOrder, len: usize) -> Result<Self, Error> {
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
        Ok(Self { area, order, strides })
    }

    /// The index of a block in the array.
    fn index(&self, block: BlockPos) -> usize {
        let from_min =
            [(block.x, self.area.min().x), (block.y, self.area.min().y), (block.z, self.area.min().z)];
        let parts = from_min.into_iter().zip(self.strides);
        parts.map(|((at, min), stride)| at.abs_diff(min) as usize * stride).sum()
    }

    /// The rows of a chunk that overlaps the box.
    ///
    /// Most chunks have 256 of them, so the start of a row is computed by additions from the first row.
    pub(crate) fn rows(&self, pos: ChunkPos) -> impl Iterator<Item = Row> + use<> {
        let [first, last] = inside(self.area, pos);
        let [slow, middle, fast] = self.order.axes();
        let steps = |axis: usize| usize::from(last[axis] - first[axis]);
        let (planes, lines, len) = (steps(slow), steps(middle), steps(fast) + 1);
        let [x, y, z] = first;
        let cell = LocalPos::new(x, y, z);
        let (in_array, in_chunk) = (self.index(pos.block(cell)), usize::from(self.order.index(cell)));
        let (plane_stride, line_stride) = (self.strides[slow], self.strides[middle]);
        (0..=planes).flat_map(move |a| {
            let (in_array, in_chunk) = (in_array + a * plane_stride, in_chunk + a * 256);
            (0..=lines).map(move |b| {
                let (in_array, in_chunk) = (in_array + b * line_stride, in_chunk + b * 16);
                Row { in_array: in_array..in_array + len, in_chunk: in_chunk..in_chunk + len }
            })
        })
    }
}

/// The first and the last cell of a chunk inside a box, by axis.
pub(crate) fn inside(area: BlockBox, pos: ChunkPos) -> [[u8; 3]; 2] {
    let (origin, min, max) = (pos.min_block(), area.min(), area.max());
    let axes = [(origin.x, min.x, max.x), (origin.y, min.y, max.y), (origin.z, min.z, max.z)];
    // Block positions reach to the ends of i64, so the box is clipped before the subtraction.
    [
        axes.map(|(origin, min, _)| (min.max(origin) - origin) as u8),
        axes.map(|(origin, _, max)| (max.min(origin + 15) - origin) as u8),
    ]
}

/// The chunks of a box, grouped by 16³ cubes, so that each cluster is read once.
///
/// The cubes are in the order of the array, so that it is filled from one end to the other as far as possible.
pub(crate) fn cubes(area: BlockBox, order: CellOrder) -> impl Iterator<Item = ChunkBox> {
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

/// A buffer for the blocks of a chunk. It is too large for a host's stack.
pub(crate) fn unpacked() -> Box<[BlockId; LocalPos::COUNT]> {
    vec![BlockId::default(); LocalPos::COUNT].try_into().expect("it is as long as it was made")
}

impl WorldView<'_> {
    /// See [`ReadView::read_box`](crate::view::ReadView::read_box).
    pub(crate) fn read_box<T>(
        &self,
        dimension: Dimension,
        area: BlockBox,
        order: CellOrder,
        out: &mut [T],
        mut map: impl FnMut(BlockId) -> T,
    ) -> Result<u64, Error> {
        let layout = Layout::new(area, order, out.len())?;
        let (mut absent, mut blocks) = (0, unpacked());
        for cube in cubes(area, order) {
            let wanted: Vec<_> = cube.iter().map(|pos| ChunkAt { dimension, pos }).collect();
            absent += self.show(&wanted, |at, chunk| {
                chunk.unpack(order, &mut blocks);
                layout.rows(at.pos).for_each(|Row { in_array, in_chunk }| {
                    for (out, block) in out[in_array].iter_mut().zip(&blocks[in_chunk]) {
                        *out = map(*block);
                    }
                });
            })?;
        }
        Ok(absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use cg_format::chunk::Chunk;

    fn stone_and_air() -> (World, Dimension, [BlockId; 2]) {
        let world = World::builder().in_memory().unwrap();
        let dimension = world.registry().register_dimension("game:flat").unwrap();
        let blocks = world.registry().register_blocks([":air", "game:stone"]).unwrap();
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
            let absent = world
                .read_view(|view| view.read_box(dimension, area, order, &mut read, BlockId::get))
                .unwrap();
            assert_eq!((absent, &read), (0, &values), "{order:?}");
        }
        let mut one = [9];
        let last = BlockBox::new(area.max(), area.max());
        world
            .read_view(|view| view.read_box(dimension, last, CellOrder::Xyz, &mut one, BlockId::get))
            .unwrap();
        assert_eq!(one[0], values[values.len() - 1], "the last block is last in every order");
    }

    #[test]
    fn any_part_of_a_box_is_read_and_written_in_every_order() {
        let (world, dimension, [air, stone]) = stone_and_air();
        let all = BlockBox::new(BlockPos::new(-16, -16, 0), BlockPos::new(31, 15, 31));
        let is_stone = |at: BlockPos| (at.x * 31 + at.y * 17 + at.z * 7).rem_euclid(5) < 2;
        world
            .transaction(|tx| {
                for pos in all.chunks().iter() {
                    tx.save(ChunkAt { dimension, pos }, Chunk::filled(air, &tx.catalog().current_schema())?);
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        let corners = [([-16, -16, 0], [31, 15, 31]), ([-3, -9, 2], [17, 14, 30]), ([4, 5, 6], [4, 5, 20])];
        for (order, ([x, y, z], [to_x, to_y, to_z])) in CellOrder::ALL.into_iter().zip(corners.iter().cycle())
        {
            let part = BlockBox::new(BlockPos::new(*x, *y, *z), BlockPos::new(*to_x, *to_y, *to_z));
            // Every cell of the part, in the order of the array, computed from the axes alone.
            let [slow, middle, fast] = order.axes();
            let (min, max) = ([*x, *y, *z], [*to_x, *to_y, *to_z]);
            let cells: Vec<_> = (min[slow]..=max[slow])
                .flat_map(|a| (min[middle]..=max[middle]).map(move |b| (a, b)))
                .flat_map(|(a, b)| (min[fast]..=max[fast]).map(move |c| (a, b, c)))
                .map(|(a, b, c)| {
                    let mut at = [0; 3];
                    (at[slow], at[middle], at[fast]) = (a, b, c);
                    BlockPos::new(at[0], at[1], at[2])
                })
                .collect();
            let values: Vec<_> = cells.iter().map(|at| is_stone(*at)).collect();
            let block = |is_stone: &bool| Some(if *is_stone { stone } else { air });
            world.transaction(|tx| tx.write_box(dimension, part, order, &values, air, block)).unwrap();
            for at in &cells {
                let stored = world.load(ChunkAt { dimension, pos: at.chunk() }).unwrap().unwrap();
                assert_eq!(stored.block(at.local()) == stone, is_stone(*at), "{order:?} {at:?}");
            }
            let mut read = vec![false; values.len()];
            assert_eq!(world.read_view(|view| view.read_box(dimension, part, order, &mut read, |found| found == stone)).unwrap(), 0);
            assert_eq!(read, values, "{order:?}");
            // Cells outside the part were not changed. This makes the part air again for the next one.
            let undone = |is_stone: &bool| is_stone.then_some(air);
            world.transaction(|tx| tx.write_box(dimension, part, order, &values, air, undone)).unwrap();
            let len = all.size().into_iter().product::<u128>() as usize;
            let mut rest = vec![stone; len];
            world.read_view(|view| view.read_box(dimension, all, order, &mut rest, |found| found)).unwrap();
            assert!(rest.iter().all(|found| *found == air), "{order:?}");
        }
    }

    #[test]
    fn a_box_at_the_end_of_the_world_is_read() {
        let (world, dimension, [air, stone]) = stone_and_air();
        let end = BlockPos::new(i64::MAX, i64::MAX, i64::MAX);
        world
            .transaction(|tx| {
                let chunk = Chunk::filled(air, &tx.catalog().current_schema())?;
                tx.save(ChunkAt { dimension, pos: end.chunk() }, chunk);
                tx.set_block(dimension, end, stone)
            })
            .unwrap();
        let area = BlockBox::new(BlockPos::new(i64::MAX - 2, i64::MAX, i64::MAX), end);
        let mut read = [BlockId::new(9); 3];
        assert_eq!(
            world
                .read_view(|view| view.read_box(dimension, area, CellOrder::Zyx, &mut read, |found| found))
                .unwrap(),
            0
        );
        assert_eq!(read, [air, air, stone]);
    }

    #[test]
    fn a_slice_of_another_length_and_a_missing_chunk_are_refused() {
        let (world, dimension, [air, stone]) = stone_and_air();
        let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(7, 15, 15));
        let error = world
            .read_view(|view| view.read_box(dimension, area, CellOrder::Xyz, &mut [0; 7], BlockId::get))
            .unwrap_err();
        assert!(matches!(error, Error::BoxLength { found: 7, expected: 2048 }), "{error}");
        let write = world.transaction(|tx| {
            tx.write_box(dimension, area, CellOrder::Xyz, &[(); 2048], air, |()| Some(stone))
        });
        assert!(matches!(write.unwrap_err(), Error::ChunkAbsent { .. }));
        let mut out = [5; 2048];
        assert_eq!(
            world
                .read_view(|view| view.read_box(dimension, area, CellOrder::Xyz, &mut out, BlockId::get))
                .unwrap(),
            1
        );
        assert_eq!(out, [5; 2048], "what is not stored is left alone");
    }
}
