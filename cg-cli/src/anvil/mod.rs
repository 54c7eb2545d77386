//! Minecraft Java saves, in and out: region files, their NBT, columns of sections, entities.
//!
//! This layer is pure: it knows region files and columns, and nothing of a world's store.
//! A save is walked from the outside in:
//!
//! 1. [`save::find`] lists the region files of a folder with their dimension,
//! 2. [`Region`] reads one slot of one file, so memory does not grow with the file,
//! 3. [`Decoder`] turns the slot's NBT into a [`Column`] or the entities of one,
//! 4. [`entity::split`] takes riders off their vehicles, [`water::split`](cg_minecraft::water::split) takes water out of waterlogged states,
//! 5. [`mod@write`] and [`RegionWriter`] are the way back.
//!
//! Every input gives a value or a typed error that names the slot's fault. Nothing panics on damaged bytes, and
//! nothing is allocated because a length asked for it.

pub mod column;
pub mod entity;
pub mod level;
/// Trees as a save has them; they lie lower, because schematics are made of them too.
pub use cg_snapshot::nbt;
pub mod region;
pub mod save;
pub mod write;

pub use column::{Column, ColumnError, Decoder, Payload};
pub use entity::EntityRecord;
pub use level::Level;
pub use region::{Region, RegionWriter, Slot, SlotError};
