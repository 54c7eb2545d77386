//! The public modules of the crate: what a host needs for one topic.

pub mod cache {
    //! The cached chunks of a world.
    pub use crate::api::cache::WorldCache;
    pub use crate::api::guards::CachePin;
    pub use crate::commit::pin_load::PinLoad;
    pub use crate::read::cache::{CacheStats, Column};
}

pub mod error {
    //! Parts of errors.
    pub use crate::admin::archive::ArchiveError;
    pub use crate::storage::error::{ConflictKey, Damage, DamageCause, NotResumed};
    pub use crate::storage::location::Location;
}

pub mod metrics {
    //! How a world is doing.
    pub use crate::api::metrics::Metrics;
    pub use crate::rt::stats::{Durations, Stats};
}

pub mod objects {
    //! Versioned objects: bytes under a key of the host's.
    pub use crate::api::objects::Objects;
    pub use crate::kinds::object::{Object, ObjectEntry, ObjectPage, StoredObject};
    pub use crate::storage::object_key::ObjectKey;
}

pub mod opacity {
    //! The map of what is opaque, seen from above.
    pub use crate::api::opacity::OpacityMap;
    pub use crate::kinds::opacity::OpacityColumn;
    pub use crate::storage::opacity_map::Keep;
}

pub mod quarantine {
    //! Damaged rows, taken out of the way and kept.
    pub use crate::admin::quarantine::{
        CHUNK_QUARANTINED, LostChunks, Quarantined, QuarantinedChunks, SalvagedCommit,
    };
    pub use crate::api::admin::Quarantine;
}

pub mod records {
    //! Spatial records: what a host remembers at points of the world.
    pub use crate::api::records::Records;
    pub use crate::kinds::record::RecordQuery;
    pub use crate::storage::record_settings::{NotASetting, RecordSettings};
    pub use crate::storage::record_shape::{RecordShape, ShapeError};
}

pub mod settings {
    //! The settings of a world: name, thumbnail, seed, spawn, times, weather.
    pub use crate::kinds::settings::{Spawn, WorldSettings};
}

pub mod snapshots {
    //! Snapshots of regions, stored in a world.
    pub use crate::api::snapshots::{SnapshotReader, Snapshots};
    pub use crate::kinds::snapshots::{DamagedSnapshot, SavedSnapshot};
}

pub mod tiers {
    //! Where chunks are stored, and what ticks move.
    pub use crate::api::guards::{KeepLoaded, TierPin};
    pub use crate::api::tiers::Tiers;
    pub use crate::maintain::tick::{CompactReport, Compaction, TickReport};
    pub use crate::maintain::tiering::{DamageReport, MoveCounts, TierReport, TracePart};
}

pub mod verify {
    //! Contents of a world, and checks that they are sound.
    pub use crate::admin::census::{Census, TierCensus};
    pub use crate::admin::hash::ContentHash;
    pub use crate::admin::values::ValueReport;
    pub use crate::admin::verify::{Finding, VerifyDepth, VerifyReport};
    pub use crate::storage::value_check::{IllegalValue, ValueCheck, ValuePlace};
}

pub mod view {
    //! Reading many things of one state.
    pub use crate::admin::archive::{Archived, DamagedRows};
    pub use crate::admin::changes::ChunkVersion;
    pub use crate::admin::load::Copied;
    pub use crate::api::read_view::ReadView;
    pub use crate::read::chunk::{Area, StoredChunk};
    pub use crate::read::iterate::StoredPlace;
}
