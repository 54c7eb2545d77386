//! Saves of real worlds and made ones: what the `cg` tool reads and writes, seen from outside.

mod corrupt;
mod maker;
mod traps;
mod worlds;
