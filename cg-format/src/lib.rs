#![doc = include_str!("../README.md")]
//!
//! The bytes of a block id do not define its components; a [`SchemaView`] does. The [`frame`] surrounds every stored
//! value. [`source`] contains the traits.
//!
//! # Untrusted bytes
//! Every decoder accepts bytes from untrusted writers. Any input gives a value or a [`DecodeError`] with the section,
//! the offset and the value found. No input panics, and no input makes a decoder allocate more than a small multiple of
//! its own length or of the given [`Limits`].
//!
//! # Where is the layout?
//! In the table at the start of each module, and with figures and worked examples in `docs/format/`.
#![forbid(unsafe_code)]
#![no_std]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

extern crate alloc;
// The C library of Zstandard needs it anyway.
#[cfg(any(test, feature = "zstd"))]
extern crate std;

pub mod archive;
pub mod area;
pub mod chunk;
pub mod cluster;
pub mod codec;
pub mod coord;
pub mod delta;
pub mod entity;
mod error;
pub mod frame;
pub mod id;
pub mod key;
pub mod limits;
pub mod lineage;
pub mod morton;
pub mod object;
pub mod opacity;
pub mod order;
pub mod overlay;
pub mod record;
pub mod schema;
pub mod side;
pub mod source;
pub mod staged;
#[cfg(test)]
mod testing;
pub mod tier;
pub mod wire;

pub use area::{BlockArea, BlockBox, ChunkBox};
pub use chunk::{CellLayer, Chunk, ChunkView};
pub use coord::{BlockPos, ChunkAt, ChunkPos, ClusterPos, LocalPos};
pub use error::{DecodeError, OutOfRange, Problem, Section};
pub use id::{
    BlockId, ComponentId, Dimension, EntityId, EntityTypeId, LocalBlockId, RecordId, SideKind, StructureId,
};
pub use key::Space;
pub use limits::Limits;
pub use order::CellOrder;
pub use schema::{ComponentShape, SchemaView};
pub use source::{ChunkSink, ChunkSource, Editor, EntitySource, Lookup};
pub use tier::{ClusterTier, Tier};
