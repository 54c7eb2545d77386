//! Columns that a program gives.

use std::ptr::null;

use cherrygrove::*;

use super::given::{Given, HUGE};
use super::padded::Padded;

impl Given<'_> {
    fn cells(&mut self) -> cg_cells {
        let (bits, word_bits) = match self.byte() {
            255 => (self.byte(), self.byte()),
            byte => (byte & 3, [16, 32, 64, 8][usize::from(byte >> 6)]),
        };
        let entries = if self.byte() == 255 { self.byte() } else { 1 << bits.min(3) };
        let palette: Box<[u32]> = (0..entries).map(|_| self.small() & 3).collect();
        let expected = match (bits, word_bits) {
            (0, _) => 0,
            (bits, word_bits) => {
                4096_usize.div_ceil(usize::from(word_bits / bits).max(1)) * usize::from(word_bits / 8)
            }
        };
        let words_len = match self.byte() {
            0 => usize::from(self.byte()),
            1 => HUGE,
            _ => expected,
        };
        let is_huge = words_len == HUGE;
        let cells = cg_cells {
            words: if self.byte() == 0 { null() } else { self.room[1..].as_ptr() },
            words_len: if is_huge { HUGE } else { words_len.min(self.room.len() - 1) },
            palette: if self.byte() == 0 { null() } else { palette.as_ptr() },
            palette_len: palette.len() as u32,
            bits,
            word_bits,
            order: self.below(3),
            side_log2: if self.byte() == 0 { 2 } else { 4 },
        };
        self.palettes.push(palette);
        cells
    }

    fn section(&mut self, y: i32) -> cg_section {
        let count = self.below(3).min(9);
        let layers: Box<[cg_cells]> = (0..count).map(|_| self.cells()).collect();
        let (first, len) = self.array(&layers);
        self.cells.push(layers);
        let biomes = match self.byte() {
            0..=15 => cg_cells { side_log2: 2, ..self.cells() },
            _ => cg_cells::NONE,
        };
        let light = if self.byte() == 1 { self.room.as_ptr() } else { null() };
        let y = if self.byte() == 255 { self.number() as i32 } else { y };
        // A count of 16 bits is believed, so only a null pointer can have one that lies.
        let layer_count = if len == HUGE { u16::from(count) } else { len as u16 };
        cg_section { y, layer_count, flags: 0, layers: first, biomes, block_light: light, sky_light: null() }
    }

    pub(super) fn column(&mut self) -> Box<Padded<cg_column>> {
        let (min_y, max_y) = self.heights();
        let (x, z) = (self.position(), self.position());
        let heights = max_y.wrapping_sub(min_y).wrapping_add(1).clamp(1, 4) as u8;
        let count = i32::from(self.below(heights + 1).min(9));
        let sections: Box<[cg_section]> = (0..count).map(|at| self.section(min_y.wrapping_add(at))).collect();
        let count = if sections.is_empty() { 0 } else { self.byte() & 1 };
        let block_entities: Box<[cg_block_entity]> =
            (0..count).map(|_| cg_block_entity { at: self.pos_in(x, min_y, z), nbt: self.bytes() }).collect();
        let count = if sections.is_empty() { 0 } else { self.byte() & 1 };
        let entities: Box<[cg_entity]> = (0..count).map(|_| self.entity()).collect();
        let count = if sections.is_empty() { 0 } else { self.byte() & 1 };
        let scheduled: Box<[cg_scheduled]> = (0..count)
            .map(|_| cg_scheduled {
                at: self.pos_in(x, min_y, z),
                due: self.position(),
                block: self.small() & 3,
                priority: 0,
            })
            .collect();
        let (of_sections, section_count) = self.array(&sections);
        let (of_block_entities, block_entity_count) = self.array(&block_entities);
        let (of_entities, entity_count) = self.array(&entities);
        let (of_scheduled, scheduled_count) = self.array(&scheduled);
        let column = cg_column {
            struct_size: 0,
            dimension: u32::from(self.byte() == 255),
            x,
            z,
            min_y,
            max_y,
            tick: self.position(),
            sections: of_sections,
            block_entities: of_block_entities,
            entities: of_entities,
            scheduled: of_scheduled,
            section_count,
            block_entity_count,
            entity_count,
            scheduled_count,
            kept: 0,
            damaged_sections: 0,
        };
        self.sections.push(sections);
        self.block_entities.push(block_entities);
        self.entities.push(entities);
        self.scheduled.push(scheduled);
        self.sized(column)
    }
}
