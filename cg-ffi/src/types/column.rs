//! Structs of bindings and columns.

use super::{cg_bytes, cg_pos, cg_str};

/// A state of a block that a host knows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_block {
    pub name: cg_str,
    pub flags: u32,
    pub reserved: u32,
}

/// A biome that a host knows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_biome {
    pub name: cg_str,
    pub number: u32,
    pub reserved: u32,
}

/// What a host knows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_binding_desc {
    pub struct_size: u32,
    pub block_count: u32,
    pub blocks: *const cg_block,
    pub biomes: *const cg_biome,
    pub entities: *const cg_str,
    pub biome_count: u32,
    pub entity_count: u32,
    pub placeholder: u32,
    pub air: u32,
    pub biome_placeholder: u32,
    pub layer_count: u8,
    pub order: u8,
    pub word_bits: u8,
    pub biome_side_log2: u8,
    pub widths: u32,
    pub reserved: u32,
}

/// Packed cells of a section.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_cells {
    pub words: *const u8,
    pub words_len: usize,
    pub palette: *const u32,
    pub palette_len: u32,
    pub bits: u8,
    pub word_bits: u8,
    pub order: u8,
    pub side_log2: u8,
}

/// A section: a chunk as a host holds it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_section {
    pub y: i32,
    pub layer_count: u16,
    pub flags: u16,
    pub layers: *const cg_cells,
    pub biomes: cg_cells,
    pub block_light: *const u8,
    pub sky_light: *const u8,
}

/// The data of a block that has more than its state.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_block_entity {
    pub at: cg_pos,
    pub nbt: cg_bytes,
}

/// An entity.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_entity {
    pub id: [u8; 16],
    pub kind: u32,
    pub dimension: u32,
    pub block: cg_pos,
    pub fraction: [f32; 3],
    pub reserved: u32,
    pub nbt: cg_bytes,
}

/// A block that is to be updated at a tick.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_scheduled {
    pub at: cg_pos,
    pub due: i64,
    pub block: u32,
    pub priority: i32,
}

/// The place of a column.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_column_at {
    pub struct_size: u32,
    pub dimension: u32,
    pub x: i64,
    pub z: i64,
    pub min_y: i32,
    pub max_y: i32,
}

/// A column between two heights.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_column {
    pub struct_size: u32,
    pub dimension: u32,
    pub x: i64,
    pub z: i64,
    pub min_y: i32,
    pub max_y: i32,
    pub tick: i64,
    pub sections: *const cg_section,
    pub block_entities: *const cg_block_entity,
    pub entities: *const cg_entity,
    pub scheduled: *const cg_scheduled,
    pub section_count: usize,
    pub block_entity_count: usize,
    pub entity_count: usize,
    pub scheduled_count: usize,
    pub kept: u64,
    pub damaged_sections: u64,
}

/// A column that is stored.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct cg_column_place {
    pub dimension: u32,
    pub reserved: u32,
    pub x: i64,
    pub z: i64,
    pub min_y: i32,
    pub max_y: i32,
}

impl cg_cells {
    /// No cells.
    pub const NONE: Self = Self {
        words: std::ptr::null(),
        words_len: 0,
        palette: std::ptr::null(),
        palette_len: 0,
        bits: 0,
        word_bits: 0,
        order: 0,
        side_log2: 0,
    };
}

impl cg_entity {
    /// No entity.
    pub(crate) const NONE: Self = Self {
        id: [0; 16],
        kind: 0,
        dimension: 0,
        block: cg_pos { x: 0, y: 0, z: 0 },
        fraction: [0.0; 3],
        reserved: 0,
        nbt: cg_bytes::NONE,
    };
}
