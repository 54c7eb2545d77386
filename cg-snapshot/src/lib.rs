#![doc = include_str!("../README.md")]
//!
//! [`capture`] makes a [`Snapshot`] of a [`Region`]; a [`file`](mod@file) stores it. A [`RestoreJob`] restores it at
//! once, a [`RestoreQueue`] within ticks. A [`pack`] transfers a box and objects to another world. Time is an argument.
//! Parallel work runs in the caller's rayon pool.
#![forbid(unsafe_code)]

mod builder;
mod capture;
mod copied;
mod diff;
mod error;
pub mod file;
mod kept;
pub mod memory;
pub mod nbt;
pub mod pack;
mod part;
mod places;
mod region;
mod remap;
mod restore;
pub mod schem;
mod section;
mod snapshot;

pub use capture::{Capture, CaptureOptions, capture};
pub use cg_registry::portable::Names;
pub use copied::Copied;
pub use diff::{Difference, diff};
pub use error::{CaptureError, RestoreError, SnapshotError};
pub use kept::KeptSection;
pub use region::{Region, Section};
pub use remap::RemapReport;
pub use restore::{
    BlockChange, DryRun, Event, Handle, Host, Merge, Operation, OperationId, Outcome, Progress, QueueHandle,
    RestoreJob, RestoreOptions, RestoreQueue, RestoreReport, StepWork, Stepped, TickBudget, TickReport,
    Unverifiable,
};
pub use section::Contents;
pub use snapshot::{Place, Snapshot, SnapshotInfo};
