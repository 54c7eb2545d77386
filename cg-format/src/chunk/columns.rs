//! The cells of a chunk that contain a kind of a certain set, as bits: the outline of the chunk.

use super::blocks::Blocks;
use super::owned::Chunk;
use crate::BlockId;

/// One bit per cell: column `x·16 + z`, bit y.
pub(crate) type Columns = [u16; 256];

impl Chunk {
    /// The cells with a wanted kind in any layer. `is_wanted` is called once for each palette entry.
    pub(crate) fn columns_of(&self, mut is_wanted: impl FnMut(BlockId) -> bool) -> Columns {
        let wanted: alloc::vec::Vec<bool> =
            self.palette.ids().iter().map(|block| is_wanted(*block)).collect();
        if wanted.iter().all(|wanted| !wanted) {
            return [0; 256];
        }
        if wanted.iter().all(|wanted| *wanted) {
            return [u16::MAX; 256];
        }
        // The local ids of most chunks fit a byte. An index of one byte is always inside a table of 256.
        let mut table = [0_u16; 256];
        for (entry, wanted) in table.iter_mut().zip(&wanted) {
            *entry = (*wanted).into();
        }
        if wanted.len() <= table.len() {
            self.columns_by(|local| table.get(usize::from(local as u8)).copied().unwrap_or(0))
        } else {
            self.columns_by(|local| wanted.get(local as usize).copied().unwrap_or(false).into())
        }
    }

    /// The same, with a lookup that returns 1 for a wanted local id and 0 for another.
    #[inline]
    fn columns_by(&self, look_up: impl Fn(u32) -> u16) -> Columns {
        let mut plane = [0; Blocks::PLANE_CELLS];
        let mut columns = [0_u16; 256];
        for (x, columns) in (0..).zip(columns.as_chunks_mut::<16>().0) {
            self.blocks.unpack_plane(x, &mut plane);
            for (y, row) in plane.as_chunks::<16>().0.iter().enumerate() {
                for (column, local) in columns.iter_mut().zip(row) {
                    *column |= look_up(*local) << y;
                }
            }
        }
        for entry in &self.upper {
            let index = usize::from(entry.cell.x()) << 4 | usize::from(entry.cell.z());
            if let Some(column) = columns.get_mut(index) {
                *column |= look_up(entry.local) << entry.cell.y();
            }
        }
        columns
    }
}
