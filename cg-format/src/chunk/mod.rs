//! A chunk: 16×16×16 cells of layered blocks, with component data, entity references and side data.
//!
//! [`Chunk`] is owned and can be edited. [`ChunkView`] borrows a stored value and checks all of it once. Then it reads
//! any block, any component of any cell and layer, and any side data without decoding the rest.
//!
//! | offset | width | section |
//! |---|---|---|
//! | 0 | 40 | header: format version, component offset, entity offset, layered block count, palette count |
//! | 40 | 8·p | palette: the global id of each local id |
//! | | 512·b | layer 0: 4,096 local ids of b = ⌈log₂ p⌉ bits |
//! | | ⌈l·(12+b)/8⌉ | the blocks of layers 1 and up, each with its cell |
//! | component offset | | one column per component, ids ascending |
//! | entity offset | 8+16·e | entity references |
//! | | to the end | [side data](crate::side) |
//!
//! All integers are little-endian. The tables of every field, with figures and a worked example, are in
//! `docs/format/chunk.md`.
//!
//! # Canonical bytes
//! Equal chunks give equal bytes. The palette is in order of first appearance and has no unused entries. Layered blocks
//! are sorted by cell, columns and side data by id, entity references by their bytes. Unused bits are zero. Readers
//! accept any palette order, unused palette entries, any order of layered blocks and of entity references. Any other
//! deviation from the canonical form is an error.

mod blocks;
mod canonical;
mod column;
mod columns;
mod components;
mod difference;
mod edit;
mod entities;
mod header;
mod instances;
mod layers;
mod owned;
mod packed;
mod palette;
mod validate;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use difference::ChangedBlock;
pub use edit::EditError;
pub(crate) use header::Header;
pub use instances::CellLayer;
pub use owned::Chunk;
pub use packed::Packed;
pub use palette::PaletteEntry;
pub use validate::Mismatch;
pub use view::{ChunkView, trace};

/// The layout version that is written, and the only one that is read.
pub const FORMAT_VERSION: u64 = 1;

/// The maximum number of blocks of one cell above layer 0.
pub const MAX_UPPER_LAYERS: usize = 255;
