#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod biomes;
pub mod content;
pub mod game;
pub mod kind;
pub mod name;
pub mod packed;
pub mod palette;
pub mod section;
pub mod state;
pub mod water;
