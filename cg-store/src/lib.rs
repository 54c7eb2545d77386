#![doc = include_str!("../README.md")]
//!
//! A [`World`] keeps its rows in an [engine]. Damaged rows are quarantined by [`Quarantine::chunk`](quarantine::Quarantine::chunk) and its siblings.
//!
//! # Where is the layout?
//! In `cg-format` and `docs/format/`; this crate only puts rows together.
//!
//! # Rooms
//! A room uses the rooms below it, never above; `cargo xtask layers` checks that.
//!
//! ```text
//! layer/     what crates need that put layers over worlds
//! api/       the world as a host sees it: opening, handles, metrics
//! admin/     verify, census, content hash, quarantine
//! maintain/  the tick: which cubes move, the moves, prefetch, tombstones
//! commit/    from a transaction to the disk: preparing, conflicts, numbers, the queue, syncs
//! read/      finding, decoding and caching chunks, alone, in boxes and in views of one state
//! kinds/     what is stored beside chunks: entities, properties, objects, records, names, snapshots
//! storage/   the engine as the world holds it, its directory and own rows, options, limits, errors
//! rt/        threads, parking, re-entrancy, the order of locks, counters, stopwatches
//! ```
#![deny(unsafe_code)]

mod admin;
mod api;
mod commit;
mod kinds;
pub mod layer;
mod maintain;
mod read;
mod rt;
mod storage;

pub use api::prelude;
pub use cg_engine as engine;
pub use cg_engine::ErrorKind;
pub use storage::directory;

pub use api::bind::{Binding, BlockKind};
pub use api::builder::WorldBuilder;
#[cfg(feature = "rocks")]
pub use api::disk::CheckpointFiles;
pub use api::registry::WorldRegistry;
pub use api::topics::{
    cache, error, metrics, objects, opacity, quarantine, records, settings, snapshots, tiers, verify, view,
};
pub use api::world::World;
pub use commit::submit::{Refused, WriteBatch, WriteTicket};
pub use commit::transaction::{Committed, Durable, Transaction, Tx};
pub use kinds::property::Property;
pub use read::chunk::{LoadTicket, Peek};
pub use storage::error::{Error, OpenError};
pub use storage::meta::Identity;
pub use storage::options::{Durability, PrefetchOptions, StoreLimits, WorldOptions};
pub use storage::resources::Resources;
