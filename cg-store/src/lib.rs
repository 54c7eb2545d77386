#![doc = include_str!("../README.md")]
//!
//! A [`World`] keeps its rows in an [engine]. Damaged rows are quarantined by [`Quarantine::chunk`] and its siblings.
//!
//! # Where is the layout?
//! In `cg-format` and `docs/format/`; this crate only puts rows together.
//!
//! # Rooms
//! A room uses the rooms below it, never above; `cargo xtask layers` checks that.
//!
//! ```text
//! sync/      a world as a cache of another
//! segment/   one world for each region under a root
//! overlay/   layers over a world: arenas by lease, differences, merges
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
mod maintain;
mod overlay;
mod read;
mod rt;
mod segment;
mod storage;
mod sync;

pub use api::prelude;
pub use cg_engine as engine;
pub use cg_engine::ErrorKind;
pub use storage::directory;

pub use admin::census::{Census, TierCensus};
pub use admin::hash::ContentHash;
#[cfg(feature = "rocks")]
pub use admin::quarantine::SalvagedCommit;
pub use admin::quarantine::{CHUNK_QUARANTINED, LostChunks, Quarantined, QuarantinedChunks};
pub use admin::verify::{Finding, VerifyDepth, VerifyReport};
pub use api::bind::{Binding, BlockKind};
pub use api::cache::WorldCache;
pub use api::metrics::Metrics;
pub use api::objects::Objects;
pub use api::opacity::OpacityMap;
pub use api::quarantine::Quarantine;
pub use api::records::Records;
pub use api::registry::WorldRegistry;
pub use api::snapshots::SnapshotReader;
pub use api::snapshots::Snapshots;
pub use api::tiers::Tiers;
pub use api::world::World;
pub use commit::submit::{Refused, WriteBatch, WriteTicket};
pub use commit::transaction::{Committed, Durable, RELEASED, Transaction, Tx, TxStore, ValueStore};
pub use kinds::object::{Object, ObjectEntry, ObjectPage, StoredObject};
pub use kinds::opacity::OpacityColumn;
pub use kinds::property::Property;
pub use kinds::record::RecordQuery;
pub use kinds::snapshots::{DamagedSnapshot, SavedSnapshot};
pub use maintain::tick::TickReport;
pub use maintain::tiering::{DamageReport, MoveCounts, TierReport, TracePart};
pub use overlay::{
    ArenaInfo, Arenas, Base, Difference, EntityDifference, Found, Identity, MergeTarget, Merged, Overlay,
    OverlayDiff, OverlayError, OverlayMerge, OverlayMerged, OverlayStats, OverlayTransaction,
};
pub use read::cache::{CachePinId, CacheStats, Column};
pub use read::chunk::{Area, LoadTicket, Peek, ReadView, StoredChunk};
pub use read::iterate::StoredPlace;
pub use rt::durations::Durations;
pub use rt::stats::Stats;
#[cfg(feature = "rocks")]
pub use segment::OnDisk;
pub use segment::{
    InMemory, SegmentError, SegmentHome, SegmentOptions, SegmentPos, SegmentTransaction, SegmentedWorld,
};
pub use storage::durability::Durability;
pub use storage::error::{ConflictKey, Damage, DamageCause, Error, NotResumed, OpenError};
pub use storage::object_key::ObjectKey;
pub use storage::options::{PrefetchOptions, StoreLimits, WorldOptions};
pub use storage::record_shape::{RecordSettings, RecordShape, ShapeError};
pub use storage::resources::Resources;
pub use sync::{
    MessageError, SYNC_VERSION, SyncClient, SyncError, SyncLimits, SyncOutcome, SyncReply, SyncRequest,
    SyncServerLimits,
};
