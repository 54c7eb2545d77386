//! The parts of the `cg` tool that other programs and the tests use.
//!
//! The layouts of other games are read here and nowhere else: the store's crates know nothing of them.

#![forbid(unsafe_code)]

pub mod anvil;
pub mod export;
pub mod import;
pub mod map;
pub mod mapping;
pub mod new_file;
pub mod schem;
