//! Biomes of single blocks, which a schematic has, in sections whose biomes are four blocks wide.
//!
//! Side data [`BIOMES`](cg_minecraft::content::BIOMES) says one biome for each 4×4×4 blocks, as the game does. Where a
//! schematic says more, side data [`BLOCK_BIOMES`](cg_minecraft::content::BLOCK_BIOMES) says the rest: a compound of `palette`
//! (names), `cells` (4,096 u16, little-endian, in the order y, z, x: 0 for what `biomes` says, else one more than the
//! index into the palette) and `of`, the `biomes` that it refines. When those are changed, it is no longer believed.

use std::collections::HashMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{CellOrder, LocalPos};

use super::slab::Part;
use crate::mapping::Ids;
use crate::nbt::{self, Compound, Value};

/// Cells of 4×4×4 blocks in a section.
const COARSE: usize = 64;

/// The biome of each block of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Biomes {
    names: Vec<Arc<str>>,
    /// In the order y, z, x: 0 for none, else one more than the name's index.
    cells: Box<[u16; LocalPos::COUNT]>,
}

impl Biomes {
    fn none() -> Self {
        let cells = vec![0; LocalPos::COUNT].try_into().expect("it was made with this length");
        Self { names: Vec::new(), cells }
    }

    /// Biomes of a chunk; `None` when it says none, or none that can be read.
    pub(super) fn read(chunk: &Chunk, ids: &Ids) -> Option<Self> {
        let raw = chunk.side(ids.biomes?)?;
        let mut biomes = Self::coarse(raw)?;
        if let Some(fine) = ids.block_biomes.and_then(|kind| chunk.side(kind)) {
            biomes.refine(fine, raw);
        }
        Some(biomes)
    }

    /// The biome of a block.
    pub(super) fn at(&self, cell: LocalPos) -> Option<&Arc<str>> {
        let number = *self.cells.get(usize::from(CellOrder::Yzx.index(cell)))?;
        self.names.get(usize::from(number).checked_sub(1)?)
    }

    fn coarse(raw: &[u8]) -> Option<Self> {
        let biomes = Compound::parse(raw, &nbt::Limits::default()).ok()?;
        let names = biomes.list("palette")?.values();
        let names: Option<Vec<Arc<str>>> =
            names.map(|name| Some(name.as_text()?.decode()?.as_ref().into())).collect();
        let names = names.filter(|names| !names.is_empty() && names.len() <= COARSE)?;
        let mut indices = vec![0_usize; COARSE];
        let bits = bits_for(names.len());
        if let Some(per_word) = 64_u32.checked_div(bits) {
            let Some(Value::LongArray(words)) = biomes.get("data") else { return None };
            let per_word = per_word as usize;
            let words = words.values().map(i64::cast_unsigned);
            for (mut word, indices) in words.zip(indices.chunks_mut(per_word)) {
                for index in indices {
                    *index = (word & ((1 << bits) - 1)) as usize;
                    word >>= bits;
                }
            }
        }
        if indices.iter().any(|index| *index >= names.len()) {
            return None;
        }
        let mut out = Self { names, ..Self::none() };
        for (number, cell) in out.cells.iter_mut().zip(CellOrder::Yzx.cells()) {
            *number = indices.get(coarse_of(cell)).map_or(0, |index| *index as u16 + 1);
        }
        Some(out)
    }

    fn refine(&mut self, fine: &[u8], of: &[u8]) {
        let Ok(fine) = Compound::parse(fine, &nbt::Limits::default()) else { return };
        let (Some(Value::ByteArray(was)), Some(Value::ByteArray(cells)), Some(palette)) =
            (fine.get("of"), fine.get("cells"), fine.list("palette"))
        else {
            return;
        };
        let names: Vec<Arc<str>> = palette
            .values()
            .map(|name| name.as_text().map(|name| name.lossy().as_ref().into()).unwrap_or_default())
            .collect();
        if was != of || cells.len() != 2 * LocalPos::COUNT {
            return;
        }
        let numbers: Vec<u16> = names.iter().map(|name| self.number(name)).collect();
        for (number, bytes) in self.cells.iter_mut().zip(cells.as_chunks::<2>().0) {
            let index = usize::from(u16::from_le_bytes(*bytes)).checked_sub(1);
            if let Some(fine) = index.and_then(|index| numbers.get(index)) {
                *number = *fine;
            }
        }
    }

    fn number(&mut self, name: &Arc<str>) -> u16 {
        let found = self.names.iter().position(|known| known == name);
        let index = found.unwrap_or_else(|| {
            self.names.push(Arc::clone(name));
            self.names.len() - 1
        });
        index as u16 + 1
    }

    /// Puts the biomes of a slab's part over those of a chunk.
    ///
    /// `slab` is the slab's indices into `palette`; a slab of columns is one layer that counts for all.
    pub(super) fn paste(
        chunk: &mut Chunk,
        ids: &Ids,
        part: &Part,
        slab: &[u16],
        palette: &HashMap<u16, Arc<str>>,
    ) {
        let mut biomes = Self::read(chunk, ids).unwrap_or_else(Self::none);
        let mut numbers = HashMap::new();
        for (first, count, at) in part.rows() {
            let row = slab.get(at..at + count).unwrap_or_default();
            let from = usize::from(CellOrder::Yzx.index(first));
            for (index, to) in row.iter().zip(from..) {
                let number = *numbers
                    .entry(*index)
                    .or_insert_with(|| palette.get(index).map_or(0, |name| biomes.number(name)));
                if let Some(cell) = biomes.cells.get_mut(to) {
                    *cell = number;
                }
            }
        }
        biomes.write(chunk, ids);
    }

    fn write(&self, chunk: &mut Chunk, ids: &Ids) {
        let (Some(kind), Some(fine_kind)) = (ids.biomes, ids.block_biomes) else { return };
        // What a block of each 4×4×4 says first, and for those of which none says anything, what most blocks say.
        let mut coarse = [0_u16; COARSE];
        let mut counts = vec![0_u32; self.names.len() + 1];
        for (number, cell) in self.cells.iter().zip(CellOrder::Yzx.cells()) {
            if let Some(first) = coarse.get_mut(coarse_of(cell)).filter(|first| **first == 0) {
                *first = *number;
            }
            if let Some(count) = counts.get_mut(usize::from(*number)).filter(|_| *number > 0) {
                *count += 1;
            }
        }
        let most = (0..).zip(&counts).max_by_key(|(_, count)| **count).map_or(0, |(number, _)| number);
        coarse.iter_mut().filter(|number| **number == 0).for_each(|number| *number = most);
        let raw = self.coarse_bytes(&coarse);
        let is_exact = self.cells.iter().zip(CellOrder::Yzx.cells()).all(|(number, cell)| {
            *number == 0 || coarse.get(coarse_of(cell)).is_some_and(|coarse| coarse == number)
        });
        if is_exact {
            chunk.remove_side(fine_kind);
        } else {
            let fine = nbt::payload(|out| {
                out.byte_array("of", &raw);
                // They were read from NBT, so they fit.
                let _ = out.strings("palette", self.names.iter().map(AsRef::as_ref));
                let cells: Vec<u8> = self.cells.iter().flat_map(|number| number.to_le_bytes()).collect();
                out.byte_array("cells", &cells);
            });
            chunk.set_side(fine_kind, fine);
        }
        chunk.set_side(kind, raw);
    }

    /// The compound as the game writes it.
    fn coarse_bytes(&self, coarse: &[u16; COARSE]) -> Vec<u8> {
        let mut palette: Vec<u16> = Vec::new();
        let indices: Vec<u64> = coarse
            .iter()
            .map(|number| {
                let found = palette.iter().position(|known| known == number);
                found.unwrap_or_else(|| {
                    palette.push(*number);
                    palette.len() - 1
                }) as u64
            })
            .collect();
        let bits = bits_for(palette.len());
        nbt::payload(|out| {
            let name =
                |number: &u16| usize::from(*number).checked_sub(1).and_then(|index| self.names.get(index));
            let names: Vec<&str> = palette.iter().filter_map(name).map(AsRef::as_ref).collect();
            let _ = out.strings("palette", names.into_iter());
            if let Some(per_word) = 64_u32.checked_div(bits) {
                let words = indices.chunks(per_word as usize).map(|indices| {
                    let word = indices.iter().rev().fold(0, |word, index| word << bits | index);
                    word.cast_signed()
                });
                out.long_array("data", &words.collect::<Vec<_>>());
            }
        })
    }
}

/// Bits of an index into a palette of this many biomes; none for one.
const fn bits_for(names: usize) -> u32 {
    usize::BITS - names.saturating_sub(1).leading_zeros()
}

/// The 4×4×4 blocks that a block lies in, in the game's order.
const fn coarse_of(cell: LocalPos) -> usize {
    (cell.y() as usize / 4) * 16 + (cell.z() as usize / 4) * 4 + cell.x() as usize / 4
}
