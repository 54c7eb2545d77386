#![doc = include_str!("../README.md")]
//!
//! # Rooms
//! A room uses the rooms below it, never above; `cargo xtask layers` checks that.
//!
//! ```text
//! restore/  the host of a restore queue over a world or an overlay
//! segment/  one world for each region under a root
//! overlay/  layers over a base, in arenas
//! ```
#![forbid(unsafe_code)]

mod overlay;
pub mod restore;
mod segment;

pub use cg_store::layer::{Base, Found, Identity};
pub use overlay::{
    ArenaInfo, Arenas, Difference, EntityDifference, MergeLock, MergeTarget, Merged, Overlay, OverlayChoice,
    OverlayDiff, OverlayError, OverlayMerge, OverlayMerged, OverlayRebased, OverlayStats, OverlayTransaction,
};
pub use segment::{
    AcceptedSegments, InMemory, MergedInPart, SegmentError, SegmentHome, SegmentOptions, SegmentPos,
    SegmentTransaction, SegmentedWorld,
};
#[cfg(feature = "rocks")]
pub use segment::{OnDisk, SegmentedReport};
