//! The order of a chunk's 4,096 cells in a host's flat array.

use crate::LocalPos;

/// An order of cells, named from the slowest axis to the fastest.
///
/// ```
/// use cg_format::{CellOrder, LocalPos};
/// let cell = LocalPos::new(1, 2, 3);
/// assert_eq!(CellOrder::Yzx.index(cell), 2 * 256 + 3 * 16 + 1);
/// assert_eq!(CellOrder::Yzx.cell(2 * 256 + 3 * 16 + 1), Some(cell));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CellOrder {
    /// `x·256 + y·16 + z`: the order of stored chunks.
    #[default]
    Xyz,
    /// `x·256 + z·16 + y`: columns of blocks are contiguous.
    Xzy,
    /// `y·256 + x·16 + z`.
    Yxz,
    /// `y·256 + z·16 + x`: Minecraft's sections, Sponge schematics.
    Yzx,
    /// `z·256 + x·16 + y`.
    Zxy,
    /// `z·256 + y·16 + x`: Luanti's map blocks.
    Zyx,
}

impl CellOrder {
    /// All six orders.
    pub const ALL: [Self; 6] = [Self::Xyz, Self::Xzy, Self::Yxz, Self::Yzx, Self::Zxy, Self::Zyx];

    /// The axes from the slowest to the fastest: 0 for x, 1 for y, 2 for z.
    pub const fn axes(self) -> [usize; 3] {
        match self {
            Self::Xyz => [0, 1, 2],
            Self::Xzy => [0, 2, 1],
            Self::Yxz => [1, 0, 2],
            Self::Yzx => [1, 2, 0],
            Self::Zxy => [2, 0, 1],
            Self::Zyx => [2, 1, 0],
        }
    }

    /// The index of a cell in the array.
    pub const fn index(self, cell: LocalPos) -> u16 {
        let [x, y, z] = self.shifts();
        (cell.x() as u16) << x | (cell.y() as u16) << y | (cell.z() as u16) << z
    }

    /// The cell at an index of the array; `None` from 4,096 on.
    pub const fn cell(self, index: u16) -> Option<LocalPos> {
        if index >= LocalPos::COUNT as u16 {
            return None;
        }
        let [x, y, z] = self.shifts();
        Some(LocalPos::new((index >> x) as u8 & 15, (index >> y) as u8 & 15, (index >> z) as u8 & 15))
    }

    /// All cells in this order.
    pub fn cells(self) -> impl Iterator<Item = LocalPos> {
        let [x, y, z] = self.shifts();
        (0..LocalPos::COUNT as u16).map(move |index| {
            LocalPos::new((index >> x) as u8 & 15, (index >> y) as u8 & 15, (index >> z) as u8 & 15)
        })
    }

    /// Visits an array of this order front to back, with the value of each cell in an array of the storage order.
    pub(crate) fn out_of_storage<T: Copy, U>(
        self,
        stored: &[T; LocalPos::COUNT],
        out: &mut [U; LocalPos::COUNT],
        put: impl FnMut(&mut U, T),
    ) {
        gather(self.storage_strides(), stored, out, put);
    }

    /// As [`out_of_storage`](Self::out_of_storage), of bytes, which are moved sixteen at a time.
    pub(crate) fn bytes_out_of_storage(
        self,
        stored: &[u8; LocalPos::COUNT],
        out: &mut [u8; LocalPos::COUNT],
    ) {
        match self {
            Self::Xyz => *out = *stored,
            Self::Yxz => self.out_of_storage(stored, out, |out, byte| *out = byte),
            Self::Xzy => transpose::<16, 16, 256, 256>(stored, out),
            Self::Yzx => transpose::<256, 16, 16, 256>(stored, out),
            Self::Zxy => transpose::<16, 256, 256, 16>(stored, out),
            Self::Zyx => transpose::<256, 256, 16, 16>(stored, out),
        }
    }

    /// Visits an array of the storage order front to back, with the value of each cell in an array of this order.
    pub(crate) fn into_storage<T: Copy, U>(
        self,
        cells: &[T; LocalPos::COUNT],
        stored: &mut [U; LocalPos::COUNT],
        put: impl FnMut(&mut U, T),
    ) {
        gather(self.strides(), cells, stored, put);
    }

    /// The strides of the slowest, the middle and the fastest axis of this order in the storage order.
    const fn storage_strides(self) -> [usize; 3] {
        match self {
            Self::Xyz => [256, 16, 1],
            Self::Xzy => [256, 1, 16],
            Self::Yxz => [16, 256, 1],
            Self::Yzx => [16, 1, 256],
            Self::Zxy => [1, 256, 16],
            Self::Zyx => [1, 16, 256],
        }
    }

    /// The strides of x, y and z in this order.
    const fn strides(self) -> [usize; 3] {
        let [x, y, z] = self.shifts();
        [1 << x, 1 << y, 1 << z]
    }

    /// The bits by which x, y and z are shifted for an index.
    const fn shifts(self) -> [u32; 3] {
        match self {
            Self::Xyz => [8, 4, 0],
            Self::Xzy => [8, 0, 4],
            Self::Yxz => [4, 8, 0],
            Self::Yzx => [0, 8, 4],
            Self::Zxy => [4, 0, 8],
            Self::Zyx => [0, 4, 8],
        }
    }
}

/// Reads an array with these strides, which are 1, 16 and 256 in some order, and visits another one front to back.
fn gather<T: Copy, U>(
    strides: [usize; 3],
    from: &[T; LocalPos::COUNT],
    to: &mut [U; LocalPos::COUNT],
    put: impl FnMut(&mut U, T),
) {
    match strides {
        [256, 16, 1] => gather_by::<256, 16, 1, T, U>(from, to, put),
        [256, 1, 16] => gather_by::<256, 1, 16, T, U>(from, to, put),
        [16, 256, 1] => gather_by::<16, 256, 1, T, U>(from, to, put),
        [16, 1, 256] => gather_by::<16, 1, 256, T, U>(from, to, put),
        [1, 256, 16] => gather_by::<1, 256, 16, T, U>(from, to, put),
        _ => gather_by::<1, 16, 256, T, U>(from, to, put),
    }
}

/// [`gather`] with strides that the compiler knows.
#[inline]
fn gather_by<const SLOW: usize, const MIDDLE: usize, const FAST: usize, T: Copy, U>(
    from: &[T; LocalPos::COUNT],
    to: &mut [U; LocalPos::COUNT],
    mut put: impl FnMut(&mut U, T),
) {
    for (a, plane) in to.as_chunks_mut::<256>().0.iter_mut().enumerate() {
        for (b, row) in plane.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            for (c, out) in row.iter_mut().enumerate() {
                // The mask changes nothing; it lets the compiler prove that the index is in bounds.
                let cell = (a * SLOW + b * MIDDLE + c * FAST) & (LocalPos::COUNT - 1);
                if let Some(value) = from.get(cell) {
                    put(out, *value);
                }
            }
        }
    }
}

/// Transposes sixteen squares of 16×16 bytes. `FROM` and `TO` are the distances of the rows of a square, `FROM_NEXT` and
/// `TO_NEXT` those of squares.
fn transpose<const FROM: usize, const TO: usize, const FROM_NEXT: usize, const TO_NEXT: usize>(
    from: &[u8; LocalPos::COUNT],
    to: &mut [u8; LocalPos::COUNT],
) {
    for number in 0..16 {
        let mut square = [0; 256];
        for (place, row) in square.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            if let Some(found) = from.get(number * FROM_NEXT + place * FROM..).and_then(<[u8]>::first_chunk) {
                *row = *found;
            }
        }
        // Each shuffle rotates the eight bits of a byte's place by one; four exchange row and column.
        for _ in 0..4 {
            square = shuffled(&square);
        }
        for (place, row) in square.as_chunks::<16>().0.iter().enumerate() {
            if let Some(out) = to.get_mut(number * TO_NEXT + place * TO..).and_then(<[u8]>::first_chunk_mut) {
                *out = *row;
            }
        }
    }
}

/// The bytes of the first half and of the second one in turns.
#[inline]
fn shuffled(square: &[u8; 256]) -> [u8; 256] {
    let mut out = [0; 256];
    let (first, second) = square.split_at(128);
    for ((pair, one), other) in out.as_chunks_mut::<2>().0.iter_mut().zip(first).zip(second) {
        *pair = [*one, *other];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn each_order_is_what_its_name_says() {
        let cell = LocalPos::new(1, 2, 3);
        let found = CellOrder::ALL.map(|order| order.index(cell));
        assert_eq!(found, [0x123, 0x132, 0x213, 0x231, 0x312, 0x321]);
    }

    #[test]
    fn every_order_reaches_every_cell_once_and_back() {
        for order in CellOrder::ALL {
            let cells: Vec<LocalPos> = order.cells().collect();
            for (index, cell) in (0_u16..).zip(&cells) {
                assert_eq!(order.index(*cell), index, "{order:?}");
                assert_eq!(order.cell(index), Some(*cell), "{order:?}");
            }
            assert_eq!(cells.len(), LocalPos::COUNT);
            let [slow, middle, fast] = order.storage_strides().map(|stride| stride as u16);
            assert_eq!(cells[0xabc].index(), 0xa * slow + 0xb * middle + 0xc * fast, "{order:?}");
            let [x, y, z] = order.strides().map(|stride| stride as u16);
            assert_eq!(order.index(LocalPos::new(3, 4, 5)), 3 * x + 4 * y + 5 * z, "{order:?}");
            assert_eq!(order.cell(4096), None);
        }
        assert!(CellOrder::default().cells().eq(LocalPos::all()));
    }
}
