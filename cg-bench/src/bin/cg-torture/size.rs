//! The size of the world under test: how much of each thing there is, and where.

/// Places where a chunk may be.
pub(crate) const PLACES: u8 = 48;
/// Entities that are never made nor deleted, only moved.
pub(crate) const ITEMS: u16 = 64;
/// Items, and behind them the creatures, which come and go.
pub(crate) const ENTITIES: u16 = ITEMS + 16;
/// Players, which hold coins.
pub(crate) const PLAYERS: u8 = 4;
/// Coins with which each player begins. They are never made nor lost, only moved.
pub(crate) const COINS_EACH: u64 = 1000;
/// Properties that come and go.
pub(crate) const NOTES: u8 = 24;
/// Block kinds that chunks are made of: air, the chest, and stones.
pub(crate) const KINDS: u64 = 40;
/// The chest's block id. Every chunk has one chest, in cell 0.
pub(crate) const CHEST: u64 = 1;
/// The cell that some chunks have a second layer in, and the block there.
pub(crate) const LAYERED_CELL: u16 = 5;
/// The block of that second layer.
pub(crate) const LAYERED_BLOCK: u64 = 3;
