#![doc = include_str!("../README.md")]
//!
//! [`capture`] makes a [`Snapshot`] of a [`Region`]; a [`file`](mod@file) holds it. A [`RestoreJob`] puts it back, a
//! [`RestoreQueue`] does so within ticks. A [`pack`] carries a box and objects to another world. Time is an argument, and
//! the work that is spread over threads runs in the caller's rayon pool.
#![forbid(unsafe_code)]

mod builder;
mod capture;
mod diff;
mod error;
pub mod file;
mod kept;
pub mod memory;
pub mod nbt;
pub mod pack;
mod places;
mod region;
mod remap;
mod restore;
pub mod schem;
mod section;
mod snapshot;

pub use capture::{Capture, CaptureOptions, capture};
pub use cg_registry::portable::Names;
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
