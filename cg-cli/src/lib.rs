#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod anvil;
pub mod export;
pub mod folder;
pub mod import;
pub mod mapping;
pub mod new_file;
pub mod schem;
