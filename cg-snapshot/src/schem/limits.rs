//! The limits for reading a schematic.

use crate::nbt;

/// The limits of a schematic. Claimed sizes are always checked against the bytes that exist.
///
/// Blocks and biomes are streamed and take no memory of their own, regardless of their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemLimits {
    /// Bytes that are held in memory: palettes, metadata, block entities and entities. Default: 256 MiB.
    pub held_bytes: u64,
    /// Bytes of unknown fields, which are skipped. Default: 512 MiB.
    pub skipped_bytes: u64,
    /// Width × height × length. Default: 2³².
    pub cells: u64,
    /// Depth and number of elements of the NBT. Default: 512 levels, 8 Mi elements.
    pub nbt: nbt::Limits,
}

/// The maximum number of palette entries, and so of the states that a cell's index can name.
pub const MAX_STATES: usize = 1 << 16;

impl Default for SchemLimits {
    fn default() -> Self {
        Self { held_bytes: 256 << 20, skipped_bytes: 512 << 20, cells: 1 << 32, nbt: nbt::Limits::default() }
    }
}
