//! Sponge schematics: versions 2 and 3 are read, version 3 is written.
//!
//! A file is read twice. [`Schematic::read`] goes through all of it once, checks everything, and holds everything but
//! the blocks and biomes, of which it only counts how often each state is shown. [`Grid::open`] goes through the same
//! file again and hands out the indices in the file's order, as many at a time as asked for. So the order of fields
//! does not matter, nothing is believed before it is known, and 10⁹ blocks take no more memory than ten.
//!
//! What a schematic means in a world is not decided here: states stay text, block entities and entities stay NBT, and
//! positions count from the schematic's lowest corner. Version 1 and the `.schematic` of before 1.13, which numbers
//! blocks, are refused by name. `docs/format/schematic.md` describes what is written.

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
