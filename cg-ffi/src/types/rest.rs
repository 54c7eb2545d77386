//! Structs of settings, records, chunks and queues.

use super::{cg_bytes, cg_column, cg_entity, cg_handle, cg_pos, cg_str};

/// The settings of a world.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_settings {
    pub struct_size: u32,
    pub reserved: u32,
    pub present: u64,
    pub name: cg_str,
    pub engine: cg_str,
    pub game_mode: cg_str,
    pub difficulty: cg_str,
    pub thumbnail: cg_bytes,
    pub spawn_dimension: cg_str,
    pub spawn_block: cg_pos,
    pub created_ms: i64,
    pub changed_ms: i64,
    pub seed: i64,
    pub time: i64,
    pub game_time: i64,
    pub rain_time: i64,
    pub thunder_time: i64,
    pub required_sleep_ticks: i64,
    pub tick_range: i64,
    pub time_cycle: u8,
    pub raining: u8,
    pub thundering: u8,
    pub weather_cycle: u8,
    pub reserved2: u32,
}

/// A spatial record.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_record {
    pub id: [u8; 16],
    pub dimension: u32,
    pub fraction: [f32; 3],
    pub block: cg_pos,
    pub timestamp: i64,
    pub kind: cg_str,
    pub bytes: cg_bytes,
}

/// A row of a cursor.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_row {
    pub key: cg_bytes,
    pub bytes: cg_bytes,
    pub version: i64,
    pub record: cg_record,
    pub entity: cg_entity,
}

/// A cell of a chunk and a layer of it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_cell {
    pub x: u8,
    pub y: u8,
    pub z: u8,
    pub layer: u8,
}

/// A component of a block.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_component {
    pub component: u64,
    pub at: cg_cell,
    pub reserved: u32,
    pub bytes: cg_bytes,
}

/// An answer of a queue.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_done {
    pub tag: u64,
    pub result: i32,
    pub flags: u32,
    pub dimension: u32,
    pub reserved: u32,
    pub chunk: cg_pos,
    pub column: cg_handle,
    pub view: *const cg_column,
    pub commit: u64,
    pub message: cg_handle,
}

impl cg_record {
    /// No record.
    pub(crate) const NONE: Self = Self {
        id: [0; 16],
        dimension: 0,
        fraction: [0.0; 3],
        block: cg_pos { x: 0, y: 0, z: 0 },
        timestamp: 0,
        kind: cg_str::NONE,
        bytes: cg_bytes::NONE,
    };
}

impl cg_row {
    /// No row.
    pub(crate) const NONE: Self = Self {
        key: cg_bytes::NONE,
        bytes: cg_bytes::NONE,
        version: 0,
        record: cg_record::NONE,
        entity: cg_entity::NONE,
    };
}
