//! The world on disk: chunks, entities, properties and registries, committed together.
//!
//! A [`World`] keeps an unbounded world of 16³ chunks in an [engine]: RocksDB, or memory. Everything a
//! host changes, it changes in a [transaction](World::transaction) that is seen whole or not at all after any crash.
//!
//! What it is *not*: it generates nothing, simulates nothing and knows no game. It opens no network connection, and
//! one process at a time has a world open.
//!
//! # Three answers
//! A chunk is there (`Ok(Some)`), absent (`Ok(None)`: generate it) or damaged (`Err(Corrupt)`: never overwritten
//! blindly, never taken for absent; see [`World::set_aside`] and its siblings).
//!
//! # Where is the layout?
//! In `cg-format` and `docs/format/`; this crate only puts rows together.
#![deny(unsafe_code)]

mod bind;
mod boxes;
mod cache;
mod census;
mod chunk;
mod commit_log;
mod delta;
pub mod directory;
#[cfg(feature = "rocks")]
mod disk;
mod durability;
mod durations;
mod entity;
mod error;
mod forget;
mod gate;
mod gather;
mod hand_over;
mod handle;
mod hash;
mod inside;
mod iterate;
mod lease;
mod lock_order;
mod maintain;
mod meta;
mod metrics;
mod move_tier;
mod nap;
mod object;
mod opacity;
mod options;
mod overlay;
mod pool;
mod prefetch;
mod property;
mod quarantine;
mod recent;
mod record;
mod registry;
mod resources;
mod resume;
mod segment;
mod snapshots;
mod source;
mod space;
mod staged;
mod stats;
mod steady_sync;
mod sync;
mod tiering;
mod transaction;
mod unfinished;
mod verify;
mod world;
mod write_behind;

pub mod prelude {
    //! Everything that a host needs, in one import.
    pub use cg_format::chunk::{CellLayer, Chunk};
    pub use cg_format::entity::{Entity, EntityPos, Owner};
    pub use cg_format::{
        BlockBox, BlockId, BlockPos, ChunkAt, ChunkBox, ChunkPos, ComponentId, Dimension, EntityId,
        EntityTypeId, LocalPos, RecordId, SideKind,
    };
    pub use cg_registry::{BlockOffer, Catalog, ComponentOffer, Name, PackManifest, Registration};

    pub use crate::{
        Binding, BlockKind, Committed, Durability, Error, OpenError, Peek, Property, Transaction, World,
        WorldOptions, WriteBatch,
    };
}

pub use cg_engine as engine;

pub use bind::{Binding, BlockKind};
pub use cache::{CacheStats, Column, KeepId};
pub use census::{Census, TierCensus};
pub use chunk::{Area, Peek, PendingChunks, Still, StoredChunk};
pub use durability::Durability;
pub use durations::Durations;
pub use error::{ConflictKey, Damage, DamageCause, Error, NotResumed, OpenError};
pub use hand_over::{HandedOver, Refused, WriteBatch};
pub use hash::ContentHash;
pub use iterate::StoredPlace;
pub use maintain::TickReport;
pub use metrics::Metrics;
pub use object::{Object, ObjectEntry, ObjectKey, ObjectPage, Objects, StoredObject};
pub use opacity::OpacityColumn;
pub use options::{StoreLimits, WorldOptions};
pub use overlay::{
    ArenaInfo, Arenas, Base, Difference, EntityDifference, Found, Identity, Merged, Overlay, OverlayDiff,
    OverlayError, OverlayStats, OverlayTransaction, PromoteTarget, Promoted, Promotion,
};
pub use prefetch::PrefetchOptions;
pub use property::Property;
#[cfg(feature = "rocks")]
pub use quarantine::CommitInPart;
pub use quarantine::{CHUNK_SET_ASIDE, ChunksSetAside, LostChunks, Quarantined};
pub use record::{RecordQuery, RecordSettings, RecordShape, Records, ShapeError};
pub use resources::Resources;
#[cfg(feature = "rocks")]
pub use segment::OnDisk;
pub use segment::{
    InMemory, SegmentError, SegmentHome, SegmentOptions, SegmentPos, SegmentTransaction, SegmentedWorld,
};
pub use snapshots::{DamagedSnapshot, KeptSnapshot, SnapshotReader};
pub use stats::Stats;
pub use sync::{
    AnswerLimits, Applied, MessageError, SYNC_VERSION, SyncClient, SyncError, SyncLimits, SyncReply,
    SyncRequest,
};
pub use tiering::{DamageMet, MoveCounts, TierReport, TracePart};
pub use transaction::{Committed, Durable, RELEASED, Transaction};
pub use verify::{Finding, VerifyDepth, VerifyReport};
pub use world::World;
