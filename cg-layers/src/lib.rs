#![doc = include_str!("../README.md")]
//!
//! # Rooms
//! A room uses the rooms below it, never above; `cargo xtask layers` checks that.
//!
//! ```text
//! restore/  the host of a restore queue over a world or an overlay
//! segment/  one world for each region under a root
//! overlay/  layers over a base, in arenas
//! merge/    an overlay's rows beside the base's values: what differs, what is merged, and how
//! store/    the rows of overlays in an engine
//! ```
#![forbid(unsafe_code)]

mod merge;
mod overlay;
pub mod restore;
mod segment;
mod store;

pub use cg_store::layer::{Base, Found, Identity};
pub use merge::{
    Difference, EntityDifference, MergeLock, MergeTarget, Merged, OverlayChoice, OverlayDiff, OverlayMerge,
};
pub use overlay::{
    ArenaInfo, ArenaPolicy, ArenaReport, Arenas, CHUNK_RESET, Overlay, OverlayMerged, OverlayRebased,
    OverlayTransaction, ResetChunks,
};
pub use segment::{
    AcceptedSegments, InMemory, MergedInPart, SegmentError, SegmentHome, SegmentOptions, SegmentPos,
    SegmentTransaction, SegmentedMetrics, SegmentedObjects, SegmentedRecords, SegmentedWorld, Segments,
    SegmentsCompaction, SegmentsPin,
};
#[cfg(feature = "rocks")]
pub use segment::{OnDisk, SegmentedReport};
pub use store::{OverlayError, OverlayStats};
