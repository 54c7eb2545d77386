#![doc = include_str!("../README.md")]
//!
//! # What an engine promises
//! Implement [`Readable`] and [`Engine`], and run the suite of the feature `conformance`. The suite is the precise
//! form of this list:
//!
//! - Keys sort as unsigned bytes. The operations of a [`Batch`] apply in order.
//! - Every reader sees a batch whole or not at all. A read after an acknowledged commit sees it.
//! - [`EngineError::Conflict`], [`TooLarge`](EngineError::TooLarge) and [`NoSpace`](EngineError::NoSpace) mean that
//!   nothing was written. After a full disk or any other failed write, the engine refuses commits until it is opened
//!   again ([`Engine::reopening`]). The new open reads what reached the disk instead of guessing it. Reads go on.
//! - A batch is never applied twice, and a failed sync is never tried again.
//! - In [`get_many`](Readable::get_many) a damaged row fails only its own key.
//!
//! Of a frame, an engine knows only the number of the commit. It writes the number into the frames of a batch, and
//! compares it for [`Guard`]s. `cg-format` defines the layout of keys and frames; see `docs/format/`.

mod batch;
mod budget;
#[cfg(feature = "conformance")]
pub mod conformance;
mod damage;
mod delegate;
mod engine;
mod error;
mod fence;
mod kind;
mod load;
mod mem;
mod range;
mod read;
#[cfg(feature = "rocks")]
pub mod rocks;
mod sequence;

pub use batch::{Batch, DEFAULT_MAX_BATCH_BYTES, Guard, Op};
pub use budget::{Budget, DEFAULT_MEMORY_BYTES};
pub use cg_format::Space;
pub use cg_format::frame::Stamp;
pub use cg_format::key::Family;
pub use damage::{Gaps, Met, Uncached, scan_skipping_damage};
pub use engine::{
    Caps, Engine, Expects, Failure, FamilyUsage, Found, Latency, Level, Reopen, Reopened, Snapshot, Usage,
};
pub use error::{EngineError, Place, Table, row_in_words};
pub use fence::Fence;
pub use kind::ErrorKind;
pub use load::{SealedRow, check_load};
pub use mem::{Fault, MemEngine};
pub use range::{ALL_KEYS, KeyRange};
pub use read::{ColumnsVisitor, Readable, ReadableExt, RowSlice, RowVisitor, Scan, Value};
#[cfg(feature = "rocks")]
pub use rocks::{Access, Examined, RocksEngine, RocksOptions};
pub use sequence::{COMMIT_SEQUENCE_KEY, CommitSeq};
