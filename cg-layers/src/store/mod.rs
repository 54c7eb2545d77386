//! The rows of overlays: one engine for all arenas over a base.
//!
//! | row | family | key | value |
//! |---|---|---|---|
//! | head | `worldMeta` | `overlay` | the base, and how many of its names are known |
//! | names | `worldMeta` | as in a world | as in a world |
//! | leases | `worldMeta` | `leases` | u64: the next lease when an arena was last removed; absent before |
//! | openings | `worldMeta` | as in a world | as in a world: which opening for writing made which commit |
//! | arena | `worldMeta` | `arena/` ‖ number as 8 hex digits | its lease and its holder |
//! | merge | `worldMeta` | `merge/` ‖ lease as 16 hex digits | u64: the last commit when the lease's merge began |
//! | chunk | `chunkl0` | lease ‖ chunk key | origin, and the chunk, its delta to the base's chunk, or its deletion |
//! | ancestor | `chunkDelta` | lease ‖ chunk key | the same origin, and the base's chunk of it or the delta back to it |
//! | entity | `entity` | lease ‖ UUID | origin, and the entity or its deletion |
//! | object | `object` | lease ‖ the object's key | origin, and the object as a world stores it, even if deleted |
//! | property | `worldProperties` | lease ‖ its key in a world | origin, and its bytes or its deletion |
//! | record's place | `record` | lease ‖ key of the place | origin, and the record's leaf or its deletion |
//! | record | `record` | lease ‖ key of the record | the record |
//!
//! The room knows leases and no arenas: which leases are whose is known above.
//!
//! **Invariants**.
//! - An ancestor belongs to the chunk's row of the same origin. Every commit that writes that row writes the ancestor
//!   too, or deletes it.
//! - A row in memory equals the row in the engine. A writer removes it from memory before the write and inserts it
//!   after the write, under one lock. A reader inserts a row only if nothing was written since before it read.

mod ancestor;
mod cache;
mod chunk;
mod edits;
mod engine;
mod error;
mod head;
mod kept;
mod kind;
mod lease_view;
mod merge_note;
mod names;
mod row;
mod scan;
mod state;
mod stats;
mod store_names;
mod writer;

pub(crate) use edits::{Edits, Written};
pub(crate) use engine::RowEngine;
pub use error::OverlayError;
#[cfg(feature = "rocks")]
pub(crate) use head::holds_overlays;
pub(crate) use kept::Kept;
pub(crate) use kind::{Edit, OverlayKind, value_of};
pub(crate) use lease_view::LeaseView;
pub(crate) use row::Row;
pub(crate) use scan::key_of;
pub(crate) use state::Store;
pub use stats::OverlayStats;
pub(crate) use store_names::StoreNames;
