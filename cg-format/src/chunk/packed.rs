//! Layer 0 as a palette and an index for each cell, without an id for each cell.

use super::blocks::Blocks;
use super::edit::EditError;
use super::owned::Chunk;
use super::palette::FirstMet;
use crate::wire::bits;
use crate::{BlockId, CellOrder, LocalPos, SchemaView};

/// Layer 0 of a chunk as the chunk holds it.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'c> {
    /// The kinds of block. After edits an entry may be unused.
    pub palette: &'c [BlockId],
    /// Bits of an index; 0 if each cell shows the first entry.
    pub width: u32,
    /// The index of each cell in the order [`CellOrder::Xyz`], as [`bits`] packs them.
    pub bytes: &'c [u8],
}

impl Packed<'_> {
    /// The index of each cell, in the given order.
    pub fn unpack(&self, order: CellOrder, out: &mut [u16; LocalPos::COUNT]) {
        let mut ids = [0; LocalPos::COUNT];
        bits::unpack(self.bytes, self.width, &mut ids);
        order.out_of_storage(&ids, out, |out, id| *out = id as u16);
    }

    /// As [`unpack`](Self::unpack), with each index in a byte. Costs a quarter of its time.
    ///
    /// # Panics
    /// If the [width](Self::width) is above 8.
    pub fn unpack_bytes(&self, order: CellOrder, out: &mut [u8; LocalPos::COUNT]) {
        let mut ids = [0; LocalPos::COUNT];
        bits::unpack_bytes(self.bytes, self.width, &mut ids);
        order.bytes_out_of_storage(&ids, out);
    }
}

impl Chunk {
    /// A chunk whose layer 0 is given as a palette and an index of it for each cell; components have their default bytes.
    ///
    /// Palette entries may repeat or be unused. Costs one pass over the cells, and one look-up for each entry.
    ///
    /// ```
    /// use cg_format::chunk::Chunk;
    /// use cg_format::schema::NoComponents;
    /// use cg_format::{BlockId, CellOrder, LocalPos};
    /// let (air, stone) = (BlockId::new(0), BlockId::new(7));
    /// let mut indices = [0; LocalPos::COUNT];
    /// indices[usize::from(CellOrder::Yzx.index(LocalPos::new(1, 2, 3)))] = 1;
    /// let chunk = Chunk::from_indices(&[air, stone], &indices, CellOrder::Yzx, &NoComponents)?;
    /// assert_eq!(chunk.block(LocalPos::new(1, 2, 3)), stone);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EditError::NoPaletteEntry`] for an index past the palette, and as [`from_blocks`](Self::from_blocks).
    pub fn from_indices(
        palette: &[BlockId],
        indices: &[u16; LocalPos::COUNT],
        order: CellOrder,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<Self, EditError> {
        /// The local id of a palette entry that no cell has shown yet.
        const UNMET: u32 = u32::MAX;
        let largest = indices.iter().copied().fold(0, u16::max);
        if usize::from(largest) >= palette.len() {
            return Err(EditError::NoPaletteEntry { index: largest, count: palette.len() });
        }
        if largest == 0 {
            return Self::filled(palette.first().copied().unwrap_or_default(), schema);
        }
        let mut first_met = FirstMet::new();
        let mut locals = alloc::vec![UNMET; usize::from(largest) + 1];
        let mut ids = [0; LocalPos::COUNT];
        order.into_storage(indices, &mut ids, |id, index| {
            let Some(local) = locals.get_mut(usize::from(index)) else { return };
            if *local == UNMET {
                *local = first_met.local(palette.get(usize::from(index)).copied().unwrap_or_default());
            }
            *id = *local;
        });
        let palette = first_met.into_ids();
        let blocks = Blocks::pack(&ids, bits::width_for(palette.len() as u64));
        Self::from_packed(palette, blocks, schema)
    }

    /// Layer 0 as the chunk holds it. Copies nothing.
    ///
    /// For hosts that hold chunks in the same way, and need no id for each cell.
    ///
    /// ```
    /// use cg_format::chunk::Chunk;
    /// use cg_format::schema::NoComponents;
    /// use cg_format::{BlockId, CellOrder, LocalPos};
    /// let mut chunk = Chunk::filled(BlockId::new(3), &NoComponents)?;
    /// chunk.set_block(LocalPos::new(1, 2, 3), BlockId::new(9), &NoComponents)?;
    /// let packed = chunk.packed();
    /// let mut indices = [0; LocalPos::COUNT];
    /// packed.unpack(CellOrder::Xyz, &mut indices);
    /// let index = indices[usize::from(LocalPos::new(1, 2, 3).index())];
    /// assert_eq!((packed.palette[usize::from(index)], packed.width), (BlockId::new(9), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn packed(&self) -> Packed<'_> {
        let bytes = if self.blocks.width() == 0 { &[] } else { self.blocks.as_bytes() };
        Packed { palette: self.palette.ids(), width: self.blocks.width(), bytes }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::schema::NoComponents;

    fn id(number: u16) -> BlockId {
        BlockId::new(number.into())
    }

    #[test]
    fn indices_of_any_order_and_palette_make_the_chunk_that_ids_make() {
        for kinds in [1_u16, 2, 3, 16, 17, 255, 256, 257, 4096] {
            // Each third entry repeats the one before it, and the last one is unused.
            let palette: Vec<BlockId> =
                (0..=kinds).map(|entry| id(entry - u16::from(entry % 3 == 2))).collect();
            for order in CellOrder::ALL {
                let mut indices = [0; LocalPos::COUNT];
                let ids = alloc::vec![BlockId::default(); LocalPos::COUNT];
                let mut ids: alloc::boxed::Box<[BlockId; LocalPos::COUNT]> =
                    ids.try_into().expect("its length");
                for (cell, (index, id)) in indices.iter_mut().zip(ids.iter_mut()).enumerate() {
                    *index = (cell * 7 / 3) as u16 % kinds;
                    *id = palette[usize::from(*index)];
                }
                let made = Chunk::from_indices(&palette, &indices, order, &NoComponents).expect("known");
                let expected = Chunk::from_blocks(&ids, order, &NoComponents).expect("known");
                assert_eq!(made.to_bytes(), expected.to_bytes(), "{kinds} kinds, {order:?}");
                let packed = made.packed();
                let mut back = [0; LocalPos::COUNT];
                packed.unpack(order, &mut back);
                assert!(
                    back.iter().zip(ids.iter()).all(|(index, id)| packed.palette[usize::from(*index)] == *id)
                );
                if packed.width <= 8 {
                    let mut bytes = [0; LocalPos::COUNT];
                    packed.unpack_bytes(order, &mut bytes);
                    assert!(bytes.iter().copied().map(u16::from).eq(back), "{kinds} kinds, {order:?}");
                }
            }
        }
    }

    #[test]
    fn an_index_past_the_palette_is_refused() {
        let mut indices = [0; LocalPos::COUNT];
        indices[4095] = 2;
        let made = Chunk::from_indices(&[id(1), id(2)], &indices, CellOrder::Xyz, &NoComponents);
        assert_eq!(made.err(), Some(EditError::NoPaletteEntry { index: 2, count: 2 }));
        let made = Chunk::from_indices(&[], &[0; LocalPos::COUNT], CellOrder::Xyz, &NoComponents);
        assert_eq!(made.err(), Some(EditError::NoPaletteEntry { index: 0, count: 0 }));
    }
}
