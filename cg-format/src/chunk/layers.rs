//! Layers 1 and up: the cell and the local id of each block.
//!
//! Blocks of one cell are stored from the lowest layer to the highest, so a layer's number is not stored. Most cells
//! have none, few have more than one.

use alloc::vec::Vec;

use super::MAX_UPPER_LAYERS;
use super::header::out_of_range;
use crate::wire::{Reader, bits};
use crate::{DecodeError, LocalPos, Problem, Section};

/// The low bits of an entry, which hold the cell's index.
pub(super) const CELL_BITS: u32 = 12;

/// A block above layer 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Upper {
    pub(super) cell: LocalPos,
    pub(super) local: u32,
}

/// Stored upper layers, read in place.
#[derive(Debug, Clone)]
pub(super) struct LayersView<'a> {
    width: u32,
    bytes: &'a [u8],
    count: usize,
    /// The positions of the entries in cell order; `None` if they are stored in that order.
    order: Option<Vec<u32>>,
}

impl<'a> LayersView<'a> {
    pub(super) fn read(
        reader: &mut Reader<'a>,
        count: u64,
        width: u32,
        kinds: u32,
    ) -> Result<Self, DecodeError> {
        reader.enter(Section::Layers);
        let offset_bytes = reader.offset_bytes();
        let entry_bits = CELL_BITS + width;
        let bytes = reader.take("layered blocks", bits::len_bytes(count, entry_bits) as usize)?;
        let mut view = Self { width, bytes, count: count as usize, order: None };
        let at = |index: usize| offset_bytes + index as u64 * u64::from(entry_bits) / 8;

        let mut last = 0;
        let mut sorted = true;
        for index in 0..view.count {
            let entry = view.stored(index);
            sorted &= entry.cell.index() >= last;
            last = entry.cell.index();
            if entry.local >= kinds {
                let problem =
                    out_of_range("layered blocks", entry.local.into(), "a local id below palette count");
                return Err(DecodeError::new(Section::Layers, at(index), problem));
            }
        }
        let used_bits = count * u64::from(entry_bits) % 8;
        if let (Some(byte), true) = (bytes.last(), used_bits > 0)
            && byte >> used_bits != 0
        {
            let problem =
                Problem::NotZero { field: "padding of layered blocks", found: (byte >> used_bits).into() };
            return Err(DecodeError::new(Section::Layers, offset_bytes + bytes.len() as u64 - 1, problem));
        }
        if !sorted {
            let mut order: Vec<u32> = (0..count as u32).collect();
            order.sort_by_key(|index| view.stored(*index as usize).cell);
            view.order = Some(order);
        }
        let mut run = 0;
        let mut last = None;
        for index in 0..view.count {
            let cell = view.get(index).cell;
            run = if last == Some(cell) { run + 1 } else { 1 };
            last = Some(cell);
            if run > MAX_UPPER_LAYERS {
                let problem = out_of_range("blocks above one cell", run as u64, "up to 255");
                return Err(DecodeError::new(Section::Layers, at(view.stored_index(index)), problem));
            }
        }
        Ok(view)
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// All entries in order of cells, then layers.
    pub(super) fn iter(&self) -> impl Iterator<Item = Upper> + Clone {
        (0..self.count).map(|index| self.get(index))
    }

    /// The entry of a layer of 1 or more.
    pub(super) fn layer(&self, cell: LocalPos, layer: u8) -> Option<Upper> {
        let index = self.first(cell) + usize::from(layer).checked_sub(1)?;
        (index < self.count).then(|| self.get(index)).filter(|entry| entry.cell == cell)
    }

    /// The number of entries of a cell.
    pub(super) fn count_at(&self, cell: LocalPos) -> usize {
        if self.count == 0 {
            return 0;
        }
        let next = LocalPos::from_index(cell.index() + 1).map_or(self.count, |next| self.first(next));
        next - self.first(cell)
    }

    /// The position of the first entry of a cell or of a later one.
    fn first(&self, cell: LocalPos) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle).cell < cell {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn get(&self, index: usize) -> Upper {
        self.stored(self.stored_index(index))
    }

    fn stored_index(&self, index: usize) -> usize {
        match &self.order {
            None => index,
            Some(order) => order.get(index).map_or(index, |stored| *stored as usize),
        }
    }

    fn stored(&self, index: usize) -> Upper {
        let entry_bits = CELL_BITS + self.width;
        // A chunk has at most 2^20 kinds, so an entry has at most 32 bits.
        let entry = bits::get(self.bytes, entry_bits, index);
        let cell = LocalPos::from_index((entry & 0xfff) as u16).expect("twelve bits are a cell");
        Upper { cell, local: entry >> CELL_BITS }
    }
}

/// Appends entries, which the caller has sorted, in stored form.
pub(super) fn write(entries: impl Iterator<Item = Upper>, width: u32, out: &mut Vec<u8>) {
    let entry_bits = CELL_BITS + width;
    let (mut pending, mut pending_bits) = (0_u64, 0);
    for entry in entries {
        pending |= (u64::from(entry.cell.index()) | u64::from(entry.local) << CELL_BITS) << pending_bits;
        pending_bits += entry_bits;
        while pending_bits >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            pending_bits -= 8;
        }
    }
    if pending_bits > 0 {
        out.push(pending as u8);
    }
}
