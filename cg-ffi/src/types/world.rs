//! Structs of worlds and names.

use super::{cg_pos, cg_str};

/// How a world is opened.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_options {
    pub struct_size: u32,
    pub mode: u32,
    pub durability: u32,
    pub on_damage: u32,
    pub cache_bytes: u64,
    pub queue_bytes: u64,
    pub min_free_bytes: u64,
    pub held_bytes: u64,
    pub group_ms: u32,
    pub reserved: u32,
    pub game: cg_str,
    pub signature: cg_str,
    pub manifests: *const cg_str,
    pub manifest_count: usize,
}

/// What a world is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_world_info {
    pub struct_size: u32,
    pub read_only: u32,
    pub id: [u8; 16],
    pub incarnation: [u8; 16],
    pub last_commit: u64,
    pub abi_version: u32,
    pub durability: u32,
}

/// What a world takes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_usage {
    pub struct_size: u32,
    pub reserved: u32,
    pub bytes_on_disk: u64,
    pub memory_bytes: u64,
    pub free_bytes: u64,
}

/// A player's place, in blocks.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_player_at {
    pub id: [u8; 16],
    pub dimension: u32,
    pub reserved: u32,
    pub block: cg_pos,
}

/// What a tick did.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_tick_report {
    pub struct_size: u32,
    pub is_idle: u32,
    pub chunks_moved: u64,
    pub chunks_prefetched: u64,
}

/// A name to register.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct cg_name {
    pub name: cg_str,
    pub flags: u32,
    pub width: u32,
    pub components: *const cg_str,
    pub component_count: usize,
}

impl cg_options {
    /// The options of a caller that gives none.
    pub const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        mode: 0,
        durability: 0,
        on_damage: 0,
        cache_bytes: 0,
        queue_bytes: 0,
        min_free_bytes: 0,
        held_bytes: 0,
        group_ms: 0,
        reserved: 0,
        game: cg_str::NONE,
        signature: cg_str::NONE,
        manifests: std::ptr::null(),
        manifest_count: 0,
    };
}
