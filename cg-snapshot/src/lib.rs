//! Regions out of a world and back into it.
//!
//! A [`Region`] is a box of blocks in one dimension, cut into the 16³ sections in which it is captured and restored.
//! [`capture`] makes a [`Snapshot`] of it, which lives in memory or in a [file](mod@file); a [`RestoreJob`] puts it back, a
//! [`RestoreQueue`] does so within the ticks of a server. A [`pack`] carries a box and objects to another world.
//! Everything here works through the traits of
//! [`cg_format::source`], on any world and on a host's live memory, and compiles no storage engine.
//!
//! What it is *not*: it keeps no world, starts no thread of its own and reads no clock. Time is an argument, and the work
//! that is spread over threads runs in the caller's rayon pool.
//!
//! ```
//! use cg_format::{BlockBox, BlockPos};
//! use cg_registry::{BlockOffer, Catalog, Name, Registration};
//! use cg_snapshot::memory::Memory;
//! use cg_snapshot::{CaptureOptions, Region, RestoreJob, RestoreOptions, capture};
//!
//! let mut catalog = Catalog::new();
//! catalog.register(&Registration {
//!     blocks: vec![BlockOffer::new(Name::new(":air")?), BlockOffer::new(Name::new("game:stone")?)],
//!     dimensions: vec![Name::new("game:arena")?],
//!     ..Registration::default()
//! })?;
//! let arena = catalog.dimension("game:arena").expect("registered above");
//! let stone = catalog.block_id("game:stone").expect("registered above");
//!
//! let mut host = Memory::new(&catalog);
//! let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(31, 15, 31));
//! host.fill(arena, area, stone)?;
//! let template = capture(&host, &catalog, Region::new(arena, area), &CaptureOptions::named("arena"))?;
//!
//! host.set_block(arena, BlockPos::new(5, 5, 5), cg_format::BlockId::new(0))?;
//! let mut changes = Vec::new();
//! let mut job = RestoreJob::new(template.into(), &catalog, RestoreOptions::default())?;
//! job.run(&mut host, &mut |change| changes.push((change.pos, change.new)))?;
//! assert_eq!(changes, [(BlockPos::new(5, 5, 5), Some(stone))]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
    RestoreJob, RestoreOptions, RestoreQueue, RestoreReport, TickBudget, TickReport, Unverifiable,
};
pub use section::Contents;
pub use snapshot::{Place, Snapshot, SnapshotInfo};
