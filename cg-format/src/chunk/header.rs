//! The fixed 40 bytes at the start of a chunk.

use super::FORMAT_VERSION;
use crate::wire::{Reader, Writer, bits};
use crate::{DecodeError, LocalPos, Problem, Section};

/// The counts of a chunk, and the offsets of its sections.
///
/// The offsets follow from the counts. They are stored so that a reader can go directly to a section, and are checked
/// against the sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// From the start of the chunk.
    pub(super) component_offset_bytes: u64,
    /// From the start of the chunk.
    pub(super) entity_offset_bytes: u64,
    pub(crate) layered_count: u64,
    pub(crate) palette_count: u64,
}

impl Header {
    pub(crate) const LEN_BYTES: u64 = 40;
    pub(crate) const MAX_LAYERED: u64 = (LocalPos::COUNT * super::MAX_UPPER_LAYERS) as u64;

    /// The header for this many kinds and upper layers; the entity offset is not known yet.
    pub(super) const fn of_blocks(palette_count: u64, layered_count: u64) -> Self {
        let header = Self { component_offset_bytes: 0, entity_offset_bytes: 0, layered_count, palette_count };
        Self { component_offset_bytes: header.end_of_blocks(), ..header }
    }

    /// The header for counts and the length of the component section; `None` if a reader would refuse the counts.
    pub(crate) const fn of_counts(
        palette_count: u64,
        layered_count: u64,
        components_len_bytes: u64,
    ) -> Option<Self> {
        if Self::has_valid_counts(palette_count, layered_count) {
            let header = Self::of_blocks(palette_count, layered_count);
            let entity_offset_bytes = header.component_offset_bytes + components_len_bytes;
            Some(Self { entity_offset_bytes, ..header })
        } else {
            None
        }
    }

    const fn has_valid_counts(palette_count: u64, layered_count: u64) -> bool {
        layered_count <= Self::MAX_LAYERED
            && palette_count > 0
            && palette_count <= LocalPos::COUNT as u64 + layered_count
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.enter(Section::ChunkHeader);
        reader.version_u64("format version", FORMAT_VERSION)?;
        let at_component_offset = reader.clone();
        let component_offset_bytes = reader.u64("component offset")?;
        let at_entity_offset = reader.clone();
        let entity_offset_bytes = reader.u64("entity offset")?;
        let at = reader.clone();
        let layered_count = reader.u64("layered block count")?;
        if layered_count > Self::MAX_LAYERED {
            return Err(at.error(out_of_range("layered block count", layered_count, "up to 1044480")));
        }
        let at = reader.clone();
        let palette_count = reader.u64("palette count")?;
        if !Self::has_valid_counts(palette_count, layered_count) {
            let allowed = "1 to 4096 + layered block count";
            return Err(at.error(out_of_range("palette count", palette_count, allowed)));
        }
        let header = Self { component_offset_bytes, entity_offset_bytes, layered_count, palette_count };
        let expected = header.end_of_blocks();
        if component_offset_bytes != expected {
            return Err(at_component_offset.error(Problem::Disagrees {
                field: "component offset",
                found: component_offset_bytes,
                expected,
            }));
        }
        if entity_offset_bytes < component_offset_bytes {
            let allowed = "component offset or more";
            return Err(at_entity_offset.error(out_of_range("entity offset", entity_offset_bytes, allowed)));
        }
        Ok(header)
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(FORMAT_VERSION);
        writer.u64(self.component_offset_bytes);
        writer.u64(self.entity_offset_bytes);
        writer.u64(self.layered_count);
        writer.u64(self.palette_count);
    }

    /// The width of a local id, in bits.
    pub(crate) const fn width(&self) -> u32 {
        bits::width_for(self.palette_count)
    }

    /// The length of layer 0.
    pub(crate) const fn blocks_len_bytes(&self) -> usize {
        bits::len_bytes(LocalPos::COUNT as u64, self.width()) as usize
    }

    /// The length of the component section.
    pub(crate) const fn components_len_bytes(&self) -> u64 {
        self.entity_offset_bytes - self.component_offset_bytes
    }

    /// The end of the sections whose lengths follow from the counts.
    pub(super) const fn end_of_blocks(&self) -> u64 {
        let width = self.width();
        Self::LEN_BYTES
            + 8 * self.palette_count
            + bits::len_bytes(LocalPos::COUNT as u64, width)
            + bits::len_bytes(self.layered_count, super::layers::CELL_BITS + width)
    }
}

pub(super) const fn out_of_range(field: &'static str, found: u64, allowed: &'static str) -> Problem {
    Problem::OutOfRange { field, found, allowed }
}
