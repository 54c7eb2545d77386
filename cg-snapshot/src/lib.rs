//! Regions out of a world and back into it.
//!
//! A [`Region`] is a box of blocks in one dimension, cut into the 16³ sections in which it is captured and restored.
//! Everything here works through the traits of [`cg_format::source`], on any world, and compiles no storage engine.
#![forbid(unsafe_code)]

pub mod nbt;
mod region;
pub mod schem;

pub use region::{Region, Section};
