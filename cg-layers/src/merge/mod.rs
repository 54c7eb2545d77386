//! Rows of an overlay beside the base's values: how they differ, whether they are merged already, and how they are
//! merged.
//!
//! A change of a chunk is merged [by cells](cells); every other value is one. What is to be merged is a value,
//! [`OverlayMerge`], that a [`MergeTarget`] applies.
//!
//! The room knows rows and bases, and no arenas. It is below `overlay`, because a transaction over an arena whose merge
//! ended early must know which rows are merged.

mod cells;
mod changes;
mod choice;
mod chunks;
mod difference;
mod leaving;
mod merge_kind;
mod onto_base;
mod target;

pub(crate) use changes::MergeItem;
pub use changes::OverlayMerge;
pub use choice::OverlayChoice;
pub(crate) use difference::Change;
pub use difference::{Difference, EntityDifference, OverlayDiff};
pub(crate) use leaving::leaving;
pub(crate) use merge_kind::MergeKind;
pub use target::{MergeLock, MergeTarget, Merged};
