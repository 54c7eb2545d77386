//! A column that a caller gave. All lengths are checked before anything is allocated.

use cg_format::{ChunkAt, ChunkPos, Dimension, EntityId};
use cg_host::{
    Binding, BlockEntity, Cells, CellsProblem, Column, ColumnAt, ColumnEntity, ColumnProblem, Error,
    Scheduled, Section,
};

use crate::error::Fault;
use crate::memory::{self, Values};
use crate::place;
use crate::text;
use crate::types::{cg_cells, cg_column, cg_column_at, cg_section};

/// The longest words of cells: 4,096 numbers of 32 bits.
const MAX_WORDS_BYTES: usize = 4096 * 4;
/// The longest palette.
const MAX_PALETTE: usize = 1 << 16;
/// The bytes of light of a section.
const LIGHT_BYTES: usize = 2048;

/// The place of a column.
pub(crate) fn at(given: &cg_column_at) -> Result<ColumnAt, Fault> {
    let cg_column_at { dimension, x, z, min_y, max_y, .. } = *given;
    let at = ColumnAt { dimension: Dimension::new(dimension.into()), x, z, min_y, max_y };
    let heights = heights(&at);
    if !(1..=ColumnAt::MAX_HEIGHTS).contains(&heights) {
        return Err(Error::Column { at, problem: ColumnProblem::Heights { heights } }.into());
    }
    Ok(at)
}

fn heights(at: &ColumnAt) -> i64 {
    i64::from(at.max_y) - i64::from(at.min_y) + 1
}

/// A column, in the numbers of a binding.
///
/// # Safety
/// The caller keeps the header's rules of memory.
pub(crate) unsafe fn read(column: *const cg_column, binding: &Binding) -> Result<Column, Fault> {
    // SAFETY: as the caller says.
    let given = unsafe { memory::sized(column, "column") }?;
    let cg_column { struct_size, dimension, x, z, min_y, max_y, .. } = given;
    let at = at(&cg_column_at { struct_size, dimension, x, z, min_y, max_y })?;
    let reader = Reader { at, binding };
    // SAFETY: as the caller says.
    unsafe { reader.column(&given) }.map_err(|fault| fault.at(reader.chunk(at.min_y)))
}

struct Reader<'c> {
    at: ColumnAt,
    binding: &'c Binding,
}

impl Reader<'_> {
    fn chunk(&self, y: i32) -> Option<ChunkAt> {
        let pos = ChunkPos::new(self.at.x, y.into(), self.at.z).ok()?;
        Some(ChunkAt::new(self.at.dimension, pos))
    }

    fn refuse(&self, problem: ColumnProblem) -> Fault {
        Error::Column { at: self.at, problem }.into()
    }

    unsafe fn column(&self, given: &cg_column) -> Result<Column, Fault> {
        let mut column = Column::new(self.at);
        column.tick = given.tick;
        // SAFETY: the caller keeps the header's rules of memory.
        unsafe {
            let sections = Values::new(given.sections, given.section_count, "sections")?;
            let heights = heights(&self.at);
            if sections.len() as u64 > heights as u64 {
                let found = sections.len();
                let message = format!("{} has {found} sections, and {heights} heights", self.at);
                return Err(Fault::invalid(message));
            }
            for section in sections.iter() {
                let read = self.section(&section);
                column.sections.push(read.map_err(|fault| fault.at(self.chunk(section.y)))?);
            }
            let all = Values::new(given.block_entities, given.block_entity_count, "block_entities")?;
            for one in all.iter() {
                let nbt = text::bytes(one.nbt, "the NBT of a block entity")?.to_vec();
                column.block_entities.push(BlockEntity { at: place::block(one.at), nbt });
            }
            for one in Values::new(given.entities, given.entity_count, "entities")?.iter() {
                place::reserved(one.reserved, "an entity")?;
                if u64::from(one.dimension) != self.at.dimension.get() {
                    let message = format!("{}: an entity is in dimension {}", self.at, one.dimension);
                    return Err(Fault::invalid(message));
                }
                column.entities.push(ColumnEntity {
                    id: EntityId::from_bytes(one.id),
                    kind: one.kind,
                    position: place::point(one.dimension, one.block, one.fraction)?,
                    nbt: text::bytes(one.nbt, "the NBT of an entity")?.to_vec(),
                });
            }
            for one in Values::new(given.scheduled, given.scheduled_count, "scheduled")?.iter() {
                let (at, due) = (place::block(one.at), one.due);
                column.scheduled.push(Scheduled { at, due, block: one.block, priority: one.priority });
            }
        }
        Ok(column)
    }

    unsafe fn section(&self, given: &cg_section) -> Result<Section, Fault> {
        let y = given.y;
        let most = self.binding.known().layer_count;
        if given.layer_count > u16::from(most) {
            let found = given.layer_count.into();
            return Err(self.refuse(ColumnProblem::Layers { y, found, most }));
        }
        // SAFETY: the caller keeps the header's rules of memory.
        unsafe {
            let mut layers = Vec::new();
            for cells in Values::new(given.layers, given.layer_count.into(), "layers of a section")?.iter() {
                layers.push(self.cells(y, "blocks", &cells)?);
            }
            let has_biomes = given.biomes.palette_len > 0
                || !given.biomes.palette.is_null()
                || given.biomes.words_len > 0
                || !given.biomes.words.is_null();
            let biomes = has_biomes.then(|| self.cells(y, "biomes", &given.biomes)).transpose()?;
            let light = |light: *const u8| -> Result<Option<Box<[u8]>>, Fault> {
                if light.is_null() {
                    return Ok(None);
                }
                Ok(Some(Values::new(light, LIGHT_BYTES, "light")?.bytes().into()))
            };
            let (block_light, sky_light) = (light(given.block_light)?, light(given.sky_light)?);
            Ok(Section { y, layers, biomes, block_light, sky_light })
        }
    }

    unsafe fn cells(&self, y: i32, part: &'static str, given: &cg_cells) -> Result<Cells, Fault> {
        let cg_cells { words_len, palette_len, bits, side_log2, .. } = *given;
        let refuse = |problem| self.refuse(ColumnProblem::Cells { y, part, problem });
        // Words of no bits have no width.
        let word_bits = if bits == 0 { self.binding.form().word_bits } else { given.word_bits };
        let order = place::order(given.order.into())?;
        // SAFETY: the caller keeps the header's rules of memory.
        unsafe {
            let what = format!("words of {part} of section {y}");
            let words = Values::new(given.words, words_len, &what)?;
            if words_len > MAX_WORDS_BYTES {
                let per_word = usize::from(word_bits.checked_div(bits).unwrap_or(0)).max(1);
                let count = if side_log2 == 2 { 64_usize } else { 4096 };
                let expected =
                    if bits == 0 { 0 } else { count.div_ceil(per_word) * usize::from(word_bits / 8) };
                return Err(refuse(CellsProblem::Length { found: words_len, expected }));
            }
            let what = format!("palette of {part} of section {y}");
            let palette = Values::new(given.palette, palette_len as usize, &what)?;
            if palette.len() > MAX_PALETTE {
                return Err(refuse(CellsProblem::PaletteLength { found: palette.len() }));
            }
            let palette = (!given.palette.is_null()).then(|| palette.iter().collect());
            Ok(Cells { words: words.bytes().to_vec(), palette, bits, word_bits, order, side_log2 })
        }
    }
}
