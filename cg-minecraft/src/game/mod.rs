//! The blocks of Minecraft Java Edition: their default states, and which states hide what is behind them.
//!
//! A table, and nothing of saves or worlds. It has the blocks of every release from 1.13 to 26.2.
//! Of newer blocks it knows kinds that look alike, such as slabs; other blocks and those of mods are unknown.

mod blocks;
mod defaults;

pub use blocks::{BLOCKS, Block, Fill, Property, find};
pub use defaults::{complete, default_value, era, is_default, is_known};

/// The newest `DataVersion` whose saves were tested: that of 26.2.
pub const NEWEST_TESTED: i32 = 4903;
