//! How much of a file is taken before it is refused.

use crate::nbt;

/// What a schematic may take. Everything is checked against the bytes that are really there, never believed.
///
/// Blocks and biomes stream through and cost no memory of their own, however many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemLimits {
    /// Bytes that are held in memory: palettes, metadata, block entities and entities. Default: 256 MiB.
    pub held_bytes: u64,
    /// Bytes of fields that no schematic has, which are passed over. Default: 512 MiB.
    pub skipped_bytes: u64,
    /// Width × height × length. Default: 2³².
    pub cells: u64,
    /// Depth and number of elements of the NBT. Default: 512 levels, 8 Mi elements.
    pub nbt: nbt::Limits,
}

/// Entries of a palette, and so the states that a cell's index can name.
pub const MAX_STATES: usize = 1 << 16;

impl Default for SchemLimits {
    fn default() -> Self {
        Self { held_bytes: 256 << 20, skipped_bytes: 512 << 20, cells: 1 << 32, nbt: nbt::Limits::default() }
    }
}
