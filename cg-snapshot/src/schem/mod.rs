//! Sponge schematics: reads versions 2 and 3, writes version 3.
//!
//! A file is read twice. [`Schematic::read`] reads and checks all of it. It holds everything except the blocks and
//! biomes, and counts the cells of each state. [`Grid::open`] reads the same file again and returns the indices in the
//! file's order, as many at a time as requested. So the order of fields does not matter, nothing is used unchecked, and
//! 10⁹ blocks take no more memory than ten.
//!
//! This module does not decide what a schematic means in a world. States stay text, block entities and entities stay
//! NBT, and positions count from the schematic's lowest corner. Version 1 and the `.schematic` format from before 1.13,
//! which numbers blocks, are refused with an error of their own. `docs/format/schematic.md` describes what is written.

mod cells;
mod error;
mod input;
mod limits;
mod scan;
mod schematic;
mod things;
mod varint;
mod write;

pub use cells::Cells;
pub use error::SchemError;
pub use limits::{MAX_STATES, SchemLimits};
pub use schematic::{Grid, GridShape, Schematic};
pub use things::{BlockEntity, SchemEntity};
pub use varint::VarintProblem;
pub use write::{SchemHead, SchemWriter};
