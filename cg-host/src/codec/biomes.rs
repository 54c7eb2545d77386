//! Biomes of a section as side data: by name, so that a world is read with other numbers.
//!
//! Four blocks wide they are Java's compound `minecraft:biomes`, as an import writes it. For each block they are
//! `bedrock:biomes`, see `docs/format/host.md`.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::wire::{Reader, Writer, bits};
use cg_format::{CellOrder, ChunkAt, DecodeError, LocalPos, Section};
use cg_minecraft::biomes::Biomes;

use crate::binding::Binding;
use crate::column::{Cells, Unpacked};
use crate::error::Error;
use crate::place::ColumnAt;
use crate::problem::ColumnProblem;

/// Names of biomes, and an index for each cell: 4,096 in storage order, or 64 in the game's order.
struct Named {
    names: Vec<Arc<str>>,
    /// Empty if each cell has the first name.
    indices: Vec<u16>,
}

/// The biomes of a chunk in a host's numbers; `None` if it has none of the host's size.
pub(crate) fn load(binding: &Binding, at: ChunkAt, chunk: &Chunk) -> Result<Option<Cells>, Error> {
    let known = binding.known();
    if known.biomes.is_empty() {
        return Ok(None);
    }
    let Some(named) = stored(binding, at, chunk)? else { return Ok(None) };
    let number = |name: &Arc<str>| binding.biome_number(name).unwrap_or(known.biome_placeholder);
    let unpacked = Unpacked { numbers: named.names.iter().map(number).collect(), indices: named.indices };
    let unpacked = match known.biome_side_log2 {
        4 => unpacked.reordered(CellOrder::Xyz, known.form.order),
        _ => unpacked.reordered_coarse(CellOrder::Yzx, known.form.order),
    };
    Ok(Some(Cells::pack(unpacked, known.form, known.biome_side_log2)))
}

/// Puts a section's biomes into a chunk. Cells with the placeholder keep a stored biome that the host does not know.
pub(crate) fn save(
    binding: &Binding,
    column: &ColumnAt,
    at: ChunkAt,
    cells: &Cells,
    old: Option<&Chunk>,
    new: &mut Chunk,
) -> Result<(), Error> {
    let known = binding.known();
    let y = at.pos.y() as i32;
    let part = "biomes";
    let problem = |problem| column.refuse(ColumnProblem::Cells { y, part, problem });
    if cells.side_log2 != known.biome_side_log2 {
        return Err(problem(crate::problem::CellsProblem::Side { found: cells.side_log2 }));
    }
    let unpacked = cells.unpack().map_err(problem)?;
    let unpacked = match known.biome_side_log2 {
        4 => unpacked.reordered(cells.order, CellOrder::Xyz),
        _ => unpacked.reordered_coarse(cells.order, CellOrder::Yzx),
    };
    let mut names = Vec::with_capacity(unpacked.numbers.len());
    for number in &unpacked.numbers {
        let name = binding.biome_name(*number);
        let part = "biome";
        let (number, count) = (*number, binding.biome_count());
        names.push(name.ok_or_else(|| column.refuse(ColumnProblem::Number { part, number, count }))?.clone());
    }
    let mut new_biomes = Named { names, indices: unpacked.indices };
    if let Some(old) = old.map(|old| stored(binding, at, old)).transpose()?.flatten() {
        let placeholder = binding.biome_name(known.biome_placeholder);
        new_biomes.keep_unknown(binding, placeholder, &old, cells.count());
    }
    let (side, bytes) = match known.biome_side_log2 {
        4 => (binding.names.block_biomes, new_biomes.fine()),
        _ => (binding.names.biomes, new_biomes.coarse()),
    };
    let side = side.ok_or_else(|| column.refuse(ColumnProblem::NoName { part, number: 0 }))?;
    let bytes = bytes.ok_or_else(|| {
        Error::Invalid(format!("{column}: section {y} has more biomes, or longer names, than can be stored"))
    })?;
    new.set_side(side, bytes);
    Ok(())
}

fn stored(binding: &Binding, at: ChunkAt, chunk: &Chunk) -> Result<Option<Named>, Error> {
    let side = |kind: Option<_>| kind.and_then(|kind| chunk.side(kind));
    let (name, found) = match binding.known().biome_side_log2 {
        4 => (crate::binding::BLOCK_BIOMES, side(binding.names.block_biomes).map(Named::of_fine)),
        _ => (cg_minecraft::content::BIOMES, side(binding.names.biomes).map(Named::of_coarse)),
    };
    found.map(|named| named.ok_or(Error::Side { at, name })).transpose()
}

impl Named {
    fn index(&self, cell: usize) -> u16 {
        self.indices.get(cell).copied().unwrap_or(0)
    }

    fn name(&self, cell: usize) -> Option<&Arc<str>> {
        self.names.get(usize::from(self.index(cell)))
    }

    /// Takes a stored biome that the host does not know where a cell has the placeholder.
    fn keep_unknown(&mut self, binding: &Binding, placeholder: Option<&Arc<str>>, old: &Self, cells: usize) {
        let is_unknown = |name: &Arc<str>| binding.biome_number(name).is_none();
        if !old.names.iter().any(is_unknown) || !self.names.iter().any(|name| Some(name) == placeholder) {
            return;
        }
        let mut indices = Vec::with_capacity(cells);
        for cell in 0..cells {
            let kept = old.name(cell).filter(|name| is_unknown(name));
            let kept = kept.filter(|_| self.name(cell) == placeholder).cloned();
            indices.push(match kept {
                None => self.index(cell),
                Some(kept) => {
                    let known = self.names.iter().position(|name| *name == kept);
                    known.unwrap_or_else(|| {
                        self.names.push(kept);
                        self.names.len() - 1
                    }) as u16
                }
            });
        }
        self.indices = indices;
    }

    /// `bedrock:biomes`: names and packed indices.
    fn fine(&self) -> Option<Vec<u8>> {
        let used = self.used();
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.u16(u16::try_from(used.names.len()).ok()?);
        for name in &used.names {
            writer.u16(u16::try_from(name.len()).ok()?);
            writer.bytes(name.as_bytes());
        }
        let width = bits::width_for(used.names.len() as u64);
        if width > 0 {
            let mut cells: Vec<u32> = used.indices.iter().copied().map(u32::from).collect();
            cells.resize(LocalPos::COUNT, 0);
            bits::pack(&cells, width, &mut bytes);
        }
        Some(bytes)
    }

    fn of_fine(side: &[u8]) -> Option<Self> {
        let read = || -> Result<Self, DecodeError> {
            let mut reader = Reader::new(side, Section::SideData);
            let count = reader.u16("biomes")?;
            let mut names = Vec::new();
            for _ in 0..count {
                let len_bytes = reader.u16("name length")?;
                let name = reader.take("name", len_bytes.into())?;
                names.push(String::from_utf8_lossy(name).into());
            }
            let width = bits::width_for(count.into());
            let packed = reader.take("indices", bits::len_bytes(LocalPos::COUNT as u64, width) as usize)?;
            reader.end("bytes after the biomes")?;
            let mut cells = vec![0; if width == 0 { 0 } else { LocalPos::COUNT }];
            bits::unpack(packed, width, &mut cells);
            Ok(Self { names, indices: cells.into_iter().map(|index| index as u16).collect() })
        };
        let named = read().ok()?;
        let is_sound = |index: &u16| usize::from(*index) < named.names.len();
        (!named.names.is_empty() && named.indices.iter().all(is_sound)).then_some(named)
    }

    /// The same without names that no cell has.
    fn used(&self) -> Self {
        if self.indices.is_empty() {
            return Self { names: self.names.iter().take(1).cloned().collect(), indices: Vec::new() };
        }
        let unpacked = Unpacked::of_numbers(self.indices.iter().copied().map(u32::from));
        let name = |number: &u32| self.names.get(*number as usize).cloned();
        Self { names: unpacked.numbers.iter().filter_map(name).collect(), indices: unpacked.indices }
    }

    /// `minecraft:biomes`.
    fn coarse(&self) -> Option<Vec<u8>> {
        let used = self.used();
        let indices = std::array::from_fn(|cell| used.index(cell) as u8);
        Biomes { palette: used.names.iter().map(ToString::to_string).collect(), indices }.encode()
    }

    fn of_coarse(side: &[u8]) -> Option<Self> {
        let Biomes { palette, indices } = Biomes::decode(side)?;
        let indices = indices.iter().copied().map(u16::from).collect();
        Some(Self { names: palette.into_iter().map(Arc::from).collect(), indices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_page() {
        let names = ["a:b", "a:cd"].map(Arc::from).to_vec();
        let one = Named { names: names.clone(), indices: Vec::new() }.fine().expect("short");
        assert_eq!(one, b"\x01\x00\x03\x00a:b");
        let mut indices = vec![0; LocalPos::COUNT];
        indices[9] = 1;
        let two = Named { names, indices }.fine().expect("short");
        let (head, cells) = two.split_at(13);
        assert_eq!(head, b"\x02\x00\x03\x00a:b\x04\x00a:cd");
        assert_eq!((cells.len(), &cells[..3]), (512, &[0, 2, 0][..]));
        let read = Named::of_fine(&two).expect("sound");
        assert_eq!((read.names.len(), read.index(9), read.index(8)), (2, 1, 0));
    }

    #[test]
    fn what_is_no_biomes_is_refused() {
        for bytes in [&b""[..], b"\x00\x00", b"\x01\x00\x09\x00a:b", b"\x01\x00\x03\x00a:b\x00"] {
            assert!(Named::of_fine(bytes).is_none(), "{bytes:?}");
        }
        let mut three = b"\x03\x00\x01\x00a\x01\x00b\x01\x00c".to_vec();
        three.extend([0xff; 1024]);
        assert!(Named::of_fine(&three).is_none(), "an index past the names");
    }
}
