#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod overlay;
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
