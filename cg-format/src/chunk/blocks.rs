//! Layer 0: one packed local id per cell.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::header::out_of_range;
use crate::wire::{Reader, bits};
use crate::{DecodeError, LocalPos, Section};

/// The local ids of layer 0, one per cell, in storage order.
pub(super) type LocalIds = [u32; LocalPos::COUNT];

/// The local ids of a chunk with one kind.
pub(super) static ALL_OF_ONE: LocalIds = [0; LocalPos::COUNT];

/// Stored layer 0, read in place.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlocksView<'a> {
    pub(super) width: u32,
    pub(super) bytes: &'a [u8],
}

impl<'a> BlocksView<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, width: u32) -> Result<Self, DecodeError> {
        reader.enter(Section::Blocks);
        let len_bytes = bits::len_bytes(LocalPos::COUNT as u64, width);
        let bytes = reader.take("block ids", len_bytes as usize)?;
        Ok(Self { width, bytes })
    }

    pub(super) fn get(&self, cell: LocalPos) -> u32 {
        bits::get(self.bytes, self.width, cell.index().into())
    }

    pub(super) fn unpack(&self, out: &mut LocalIds) {
        bits::unpack(self.bytes, self.width, out);
    }
}

/// Checks that all local ids are in a palette.
///
/// Returns whether the ids first appear in the order 0, 1, 2… and all appear: then the palette is canonical. A group of
/// cells whose largest id appeared before is skipped without a check of each id.
pub(super) fn check(ids: &LocalIds, kinds: u32, width: u32, offset_bytes: u64) -> Result<bool, DecodeError> {
    let (mut next, mut ascending) = (0, true);
    for (group, start) in ids.as_chunks::<64>().0.iter().zip((0_u64..).step_by(64)) {
        let largest = group.iter().copied().fold(0, u32::max);
        if largest < next {
            continue;
        }
        if largest >= kinds {
            let (cell, local) =
                (start..).zip(group).find(|(_, local)| **local >= kinds).unwrap_or((start, &largest));
            return Err(DecodeError::new(
                Section::Blocks,
                offset_bytes + cell * u64::from(width) / 8,
                out_of_range("block ids", (*local).into(), "below palette count"),
            ));
        }
        for local in group {
            ascending &= *local <= next;
            next = next.max(*local + 1);
        }
    }
    Ok(ascending && next == kinds)
}

/// Layer 0 of an owned chunk, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blocks {
    width: u32,
    bytes: Vec<u8>,
}

impl Blocks {
    /// The number of cells with the same x.
    pub(super) const PLANE_CELLS: usize = LocalPos::COUNT / 16;

    /// All cells have local id 0.
    pub(super) const fn uniform() -> Self {
        Self { width: 0, bytes: Vec::new() }
    }

    pub(super) fn pack(ids: &LocalIds, width: u32) -> Self {
        let mut bytes = Vec::new();
        bits::pack(ids, width, &mut bytes);
        Self { width, bytes }
    }

    pub(super) const fn width(&self) -> u32 {
        self.width
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    pub(super) fn get(&self, cell: LocalPos) -> u32 {
        bits::get(&self.bytes, self.width, cell.index().into())
    }

    /// Sets the local id of a cell. Packs all ids again with more bits if the id needs them.
    pub(super) fn set(&mut self, cell: LocalPos, local: u32) {
        let needed = u32::BITS - local.leading_zeros();
        if needed > self.width {
            let ids = self.unpacked();
            *self = Self::pack(&ids, needed);
        }
        bits::set(&mut self.bytes, self.width, cell.index().into(), local);
    }

    pub(super) fn unpack(&self, out: &mut LocalIds) {
        bits::unpack(&self.bytes, self.width, out);
    }

    /// Unpacks the cells of one x.
    pub(super) fn unpack_plane(&self, x: u8, out: &mut [u32; Self::PLANE_CELLS]) {
        bits::unpack(self.plane(x), self.width, out);
    }

    /// Whether every cell has the same local id. Chunks of one kind have no packed cells to compare.
    pub(super) fn has_ids_of(&self, other: &Self) -> bool {
        if self.width == other.width {
            return self.width == 0 || self.bytes == other.bytes;
        }
        if self.width == 0 || other.width == 0 {
            // Of one of them all ids are 0, which is packed as zeros.
            return self.bytes.iter().chain(&other.bytes).all(|byte| *byte == 0);
        }
        let (mut ours, mut theirs) = ([0; Self::PLANE_CELLS], [0; Self::PLANE_CELLS]);
        (0..16).all(|x| {
            self.unpack_plane(x, &mut ours);
            other.unpack_plane(x, &mut theirs);
            ours == theirs
        })
    }

    /// Whether the cells of one x have the same local ids, packed in the same width.
    pub(super) fn has_plane_of(&self, other: &Self, x: u8) -> bool {
        self.width == other.width && self.plane(x) == other.plane(x)
    }

    /// The packed cells of one x. They take a whole number of bytes: 32 times the width in bits.
    fn plane(&self, x: u8) -> &[u8] {
        let len_bytes = Self::PLANE_CELLS / 8 * self.width as usize;
        let start = usize::from(x) * len_bytes;
        self.bytes.get(start..start + len_bytes).unwrap_or_default()
    }

    pub(super) fn unpacked(&self) -> Box<LocalIds> {
        let mut ids = Box::new([0; LocalPos::COUNT]);
        self.unpack(&mut ids);
        ids
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl From<BlocksView<'_>> for Blocks {
    fn from(view: BlocksView<'_>) -> Self {
        Self { width: view.width, bytes: view.bytes.to_vec() }
    }
}
