#![doc = include_str!("../README.md")]
//!
//! # How a save is walked
//! From the outside in; what is named here knows nothing of worlds:
//!
//! 1. [`save::find`] lists the region files of a folder with their dimension,
//! 2. [`Region`] reads one slot of one file, so memory does not grow with the file,
//! 3. [`Decoder`] turns the slot's NBT into a [`Column`] or the entities of one,
//! 4. [`entity::split`] takes riders off their vehicles, [`water::split`](cg_minecraft::water::split) takes water out
//!    of waterlogged states,
//! 5. [`mod@write`] and [`RegionWriter`] are the way back.
//!
//! Every input gives a value or a typed error that names the slot's fault. Nothing panics on damaged bytes, and
//! nothing is allocated because a length asked for it.

#![forbid(unsafe_code)]

mod codec;
pub mod column;
pub mod entity;
pub mod export;
pub mod folder;
pub mod import;
pub mod level;
pub mod mapping;
pub mod new_file;
pub mod region;
pub mod save;
pub mod schem;
mod settings;
pub mod write;

/// Trees as a save has them; they lie lower, because schematics are made of them too.
pub use cg_snapshot::nbt;

pub use codec::{
    ColumnCodec, ColumnEntities, ColumnParts, ColumnReport, DecodedColumn, EncodedColumn, SlotContent,
};
pub use column::{Column, ColumnError, Decoder, Payload};
pub use entity::EntityRecord;
pub use level::Level;
pub use region::{ColumnPos, Region, RegionWriter, Slot, SlotError};
