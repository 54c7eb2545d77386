//! The types of the header, by its names and in its layout.
//!
//! A test compares each with what a C compiler makes of the header.

mod column;
mod rest;
mod world;

use std::ffi::c_char;

pub use column::{
    cg_binding_desc, cg_biome, cg_block, cg_block_entity, cg_cells, cg_column, cg_column_at, cg_column_place,
    cg_entity, cg_scheduled, cg_section,
};
pub use rest::{cg_cell, cg_component, cg_done, cg_record, cg_row, cg_settings};
pub use world::{cg_name, cg_options, cg_player_at, cg_tick_report, cg_usage, cg_world_info};

/// The version of the header: major · 65536 + minor.
pub const CG_ABI_VERSION: u32 = 1;
/// No id: the answer for a name that the world does not have.
pub const CG_NO_ID: u64 = u64::MAX;

/// A number that stands for something of the library.
pub type cg_handle = u64;

/// Plain data: any bytes are a value, and a copy of the bytes is a copy of the value.
///
/// # Safety
/// Of structs of integers, floats and raw pointers alone.
pub(crate) unsafe trait Plain: Copy + 'static {}

/// Structs that begin with their size.
///
/// # Safety
/// The first field is `struct_size: u32`, and bytes of zeros are a value.
pub(crate) unsafe trait Sized32: Plain {
    /// The bytes that it had in version 1 of the header. No caller has fewer.
    const FIRST_BYTES: usize;
}

/// Text: UTF-8 with a length.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_str {
    pub ptr: *const c_char,
    pub len: usize,
}

/// Bytes with a length.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_bytes {
    pub ptr: *const u8,
    pub len: usize,
}

/// A position in blocks or in chunks.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct cg_pos {
    pub x: i64,
    pub y: i64,
    pub z: i64,
}

/// A box; both corners belong to it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct cg_box {
    pub min: cg_pos,
    pub max: cg_pos,
}

/// Why a call failed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_error {
    pub struct_size: u32,
    pub kind: i32,
    pub retryable: u32,
    pub has_place: u32,
    pub dimension: u32,
    pub message_full_len: u32,
    pub chunk: cg_pos,
    pub message_len: u32,
    pub message: [c_char; 1000],
}

impl cg_str {
    /// No text.
    pub const NONE: Self = Self { ptr: std::ptr::null(), len: 0 };
}

impl cg_bytes {
    /// No bytes.
    pub const NONE: Self = Self { ptr: std::ptr::null(), len: 0 };
}

macro_rules! plain {
    ($($name:ty),+ $(,)?) => {
        $(
            // SAFETY: integers, floats, raw pointers and arrays and structs of them.
            unsafe impl Plain for $name {}
        )+
    };
}

macro_rules! sized {
    ($($name:ty),+ $(,)?) => {
        $(
            // SAFETY: the size comes first, and zeros are zeros and null pointers.
            unsafe impl Sized32 for $name {
                // None has grown since. One that grows gets the offset of its first new field.
                const FIRST_BYTES: usize = size_of::<Self>();
            }
        )+
    };
}

// SAFETY: any bytes are a pointer.
unsafe impl<T: 'static> Plain for *const T {}
plain!(u8, u16, u32, u64, i32, i64, usize, [u8; 16]);
plain!(cg_str, cg_bytes, cg_pos, cg_box, cg_error, cg_options, cg_world_info, cg_usage, cg_player_at);
plain!(cg_tick_report, cg_name, cg_block, cg_biome, cg_binding_desc, cg_cells, cg_section, cg_block_entity);
plain!(cg_entity, cg_scheduled, cg_column_at, cg_column, cg_column_place, cg_settings, cg_record, cg_row);
plain!(cg_cell, cg_component, cg_done);

sized!(
    cg_error,
    cg_options,
    cg_world_info,
    cg_usage,
    cg_tick_report,
    cg_binding_desc,
    cg_column_at,
    cg_column
);
sized!(cg_settings);
