//! The palette: the global id of each local id of a chunk.

use alloc::vec::Vec;

use super::blocks::LocalIds;
use crate::wire::Reader;
use crate::{BlockId, DecodeError, Problem, Section};

/// A kind of block in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaletteEntry {
    /// The kind.
    pub block: BlockId,
    /// The number of blocks of this kind in all layers; at least 1.
    pub count: u32,
}

/// A stored palette, read in place.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaletteView<'a> {
    ids: &'a [[u8; 8]],
}

impl<'a> PaletteView<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, count: u64) -> Result<Self, DecodeError> {
        reader.enter(Section::Palette);
        let offset_bytes = reader.offset_bytes();
        let (ids, _) = reader.take_items("palette ids", count, 8)?.as_chunks();
        let palette = Self { ids };
        match palette.repeated() {
            None => Ok(palette),
            Some((index, block)) => Err(DecodeError::new(
                Section::Palette,
                offset_bytes + 8 * index as u64,
                Problem::Duplicate { field: "palette id", found: block.get() },
            )),
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn get(&self, local: u32) -> Option<BlockId> {
        self.ids.get(local as usize).map(|id| BlockId::new(u64::from_le_bytes(*id)))
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = BlockId> + use<'a> {
        self.ids.iter().map(|id| BlockId::new(u64::from_le_bytes(*id)))
    }

    /// The second position of an id that appears twice.
    fn repeated(&self) -> Option<(usize, BlockId)> {
        // Most chunks have few kinds. For those, comparing all pairs is faster than sorting.
        if self.count() <= 32 {
            return self.iter().enumerate().find(|(index, id)| self.iter().take(*index).any(|e| e == *id));
        }
        let mut sorted: Vec<(BlockId, usize)> =
            self.iter().enumerate().map(|(index, id)| (id, index)).collect();
        sorted.sort_unstable();
        sorted.iter().zip(sorted.iter().skip(1)).filter(|(a, b)| a.0 == b.0).map(|(_, b)| (b.1, b.0)).min()
    }
}

/// An editable palette. Local ids do not change while blocks are added and removed, until it is packed again.
///
/// An entry without blocks is dead. Once the blocks are counted, the next new kind replaces it.
#[derive(Debug, Clone)]
pub(super) struct Palette {
    ids: Vec<BlockId>,
    /// The number of blocks of each entry; empty until an edit needs it.
    counts: Vec<u32>,
    /// The number of dead entries. Until the blocks are counted, edits have left at most that many.
    dead: usize,
}

impl Palette {
    pub(super) const fn new(ids: Vec<BlockId>) -> Self {
        Self { ids, counts: Vec::new(), dead: 0 }
    }

    pub(super) fn ids(&self) -> &[BlockId] {
        &self.ids
    }

    pub(super) fn get(&self, local: u32) -> BlockId {
        *self.ids.get(local as usize).expect("local ids lie in the palette: checked when they were written")
    }

    pub(super) fn find(&self, block: BlockId) -> Option<u32> {
        self.ids.iter().position(|id| *id == block).map(|local| local as u32)
    }

    /// Whether a block of this kind is left.
    pub(super) fn is_alive(&self, block: BlockId) -> bool {
        self.find(block).is_some_and(|local| self.counts.get(local as usize) != Some(&0))
    }

    /// The kinds with at least one block, if the blocks were counted; otherwise every kind.
    pub(super) fn alive(&self) -> impl Iterator<Item = BlockId> {
        let counts = self.counts.iter().copied().chain(core::iter::repeat(1));
        self.ids.iter().zip(counts).filter(|(_, count)| *count > 0).map(|(id, _)| *id)
    }

    /// The ids, for replacement. The caller must keep them different.
    pub(super) fn ids_mut(&mut self) -> &mut [BlockId] {
        &mut self.ids
    }

    pub(super) const fn is_counted(&self) -> bool {
        !self.counts.is_empty()
    }

    /// Counts the blocks of each entry.
    pub(super) fn count(&mut self, cells: &LocalIds, upper: impl Iterator<Item = u32>) {
        self.counts = count(self.ids.len(), cells, upper);
        self.dead = self.counts.iter().filter(|count| **count == 0).count();
    }

    /// Adds a block of a kind and returns its local id. Without counts no entry is known to be dead.
    pub(super) fn acquire(&mut self, block: BlockId) -> u32 {
        let known = self.find(block);
        if !self.is_counted() {
            return known.unwrap_or_else(|| {
                self.ids.push(block);
                self.ids.len() as u32 - 1
            });
        }
        let local = match known {
            Some(local) => local as usize,
            None if self.dead > 0 => {
                self.counts.iter().position(|count| *count == 0).unwrap_or(self.ids.len())
            }
            None => self.ids.len(),
        };
        if let (Some(id), Some(count)) = (self.ids.get_mut(local), self.counts.get_mut(local)) {
            *id = block;
            self.dead -= usize::from(*count == 0);
            *count += 1;
        } else {
            self.ids.push(block);
            self.counts.push(1);
        }
        local as u32
    }

    /// Removes a block of a kind.
    pub(super) fn release(&mut self, local: u32) {
        match self.counts.get_mut(local as usize) {
            Some(count) => {
                *count -= 1;
                self.dead += usize::from(*count == 0);
            }
            None => self.dead += 1,
        }
    }

    /// Whether the counts are equal to these, if there are any.
    pub(super) fn agrees_with(&self, counts: &[u32]) -> bool {
        let dead = counts.iter().filter(|count| **count == 0).count();
        !self.is_counted() || (self.counts == counts && self.dead == dead)
    }

    /// Whether enough entries are dead that packing the chunk again is worth its cost; they may be, if the blocks are not
    /// counted.
    pub(super) const fn is_mostly_dead(&self) -> bool {
        self.dead > 8 && self.dead * 2 > self.ids.len()
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.ids.capacity() * size_of::<BlockId>() + self.counts.capacity() * size_of::<u32>()
    }
}

/// Counts each of `kinds` local ids in layer 0 and above. All of them are below `kinds`.
pub(super) fn count(kinds: usize, cells: &LocalIds, upper: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut counts = if kinds <= FEW { count_few(kinds, cells) } else { alloc::vec![0; kinds] };
    let rest = if kinds <= FEW { &[][..] } else { cells };
    for local in rest.iter().copied().chain(upper) {
        if let Some(count) = counts.get_mut(local as usize) {
            *count += 1;
        }
    }
    counts
}

/// The number of kinds that fit a byte.
const FEW: usize = 1 << u8::BITS;

fn count_few(kinds: usize, cells: &LocalIds) -> Vec<u32> {
    // Neighbours are usually equal, and consecutive additions to one counter wait for each other. Four alternating
    // counters avoid that.
    let mut counts = [[0_u16; FEW]; 4];
    for quad in cells.chunks_exact(4) {
        for (counts, local) in counts.iter_mut().zip(quad) {
            if let Some(count) = counts.get_mut(usize::from(*local as u8)) {
                *count += 1;
            }
        }
    }
    let [one, two, three, four] = counts;
    let sums = one.iter().zip(two).zip(three).zip(four);
    sums.take(kinds)
        .map(|(((one, two), three), four)| u32::from(*one) + u32::from(two + three + four))
        .collect()
}

/// Assigns local ids to kinds in the order of first appearance.
#[derive(Debug)]
pub(super) struct FirstMet {
    ids: Vec<BlockId>,
    /// Open addressing over local ids plus one. The length is a power of two and at least twice the number of ids.
    slots: Vec<u32>,
    last: Option<(BlockId, u32)>,
}

impl FirstMet {
    pub(super) fn new() -> Self {
        Self { ids: Vec::new(), slots: alloc::vec![0; 64], last: None }
    }

    #[inline]
    pub(super) fn local(&mut self, block: BlockId) -> u32 {
        match self.last {
            // Neighbours are usually equal.
            Some((last, local)) if last == block => local,
            _ => {
                let local = self.look_up(block);
                self.last = Some((block, local));
                local
            }
        }
    }

    pub(super) fn into_ids(self) -> Vec<BlockId> {
        self.ids
    }

    fn look_up(&mut self, block: BlockId) -> u32 {
        let mut at = Self::home(block, self.slots.len());
        loop {
            match self.slots.get(at).copied() {
                None => at = 0,
                Some(0) => break,
                Some(slot) if self.ids.get(slot as usize - 1) == Some(&block) => return slot - 1,
                Some(_) => at += 1,
            }
        }
        let local = self.ids.len() as u32;
        self.ids.push(block);
        if self.ids.len() * 2 > self.slots.len() {
            self.grow();
        } else if let Some(slot) = self.slots.get_mut(at) {
            *slot = local + 1;
        }
        local
    }

    fn grow(&mut self) {
        let mut slots = alloc::vec![0; self.slots.len() * 4];
        for (slot, id) in (1..).zip(&self.ids) {
            let mut at = Self::home(*id, slots.len());
            while slots.get(at).is_some_and(|taken| *taken != 0) {
                at = (at + 1) % slots.len();
            }
            if let Some(free) = slots.get_mut(at) {
                *free = slot;
            }
        }
        self.slots = slots;
    }

    fn home(block: BlockId, slots: usize) -> usize {
        (block.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - slots.trailing_zeros())) as usize
    }
}
