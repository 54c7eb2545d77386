//! Where rows are kept: one transactional key-value trait, and the engines that implement it.
//!
//! An [`Engine`] keeps rows in [families](Family) sorted by key bytes, applies a [`Batch`] whole or not at all, and gives
//! every batch the next number of one sequence. It knows frames only as far as that number goes: it writes it into the
//! frames of a batch, and compares it for [`Guard`]s. `cg-store` decides what a row means.
//!
//! [`MemEngine`] keeps rows in memory, for tests, fuzzing and throw-away worlds. `RocksEngine` (feature `rocks`) keeps
//! them on disk. An engine can live outside this workspace: implement [`Readable`] and [`Engine`], and run the suite of
//! the feature `conformance` over it. The suite is the precise form of the promises on this page:
//!
//! - Keys sort as unsigned bytes. The operations of a batch apply in order.
//! - A batch is seen whole or not at all, by every reader. A read after an acknowledged commit sees it.
//! - [`EngineError::Conflict`], [`TooLarge`](EngineError::TooLarge) and [`NoSpace`](EngineError::NoSpace) mean that
//!   nothing was written. After a full disk and any other failure to write, the engine refuses further commits until it
//!   is opened again ([`Engine::reopening`]): what reached the disk is then read back instead of guessed. Reads go on.
//! - A batch is never applied twice, and a failed sync is never tried again.
//! - In [`get_many`](Readable::get_many) a damaged row fails its own key and no other.
//!
//! # What it is not
//! No place for meaning: it knows no chunk, no tier and no registry. It retries nothing and caches no decoded value.
//! The layout of keys and frames is that of `cg-format`; see `docs/format/`.
//!
//! ```
//! use std::ops::{Bound, ControlFlow};
//! use cg_format::Space;
//! use cg_format::frame::{Codec, Draft, FrameView};
//! use cg_format::key::Family;
//! use cg_engine::{Batch, Engine, Guard, Level, MemEngine, Readable, ReadableExt, Stamp};
//!
//! let engine = MemEngine::new();
//! let mut batch = Batch::new();
//! batch.put(Space::Object, b"spawn", Draft::plain(Codec::None, 0, |out| out.extend(b"north")), Stamp::Commit);
//! let seq = engine.commit(batch, &[Guard::absent(Space::Object, b"spawn")], Level::Process)?;
//!
//! let stored = engine.get(Space::Object, b"spawn")?.expect("was just committed");
//! let frame = FrameView::open(Space::Object, b"spawn", &stored)?;
//! assert_eq!((frame.header().version, frame.payload()), (seq.get(), &b"north"[..]));
//!
//! let mut names = Vec::new();
//! engine.scan(Family::Object, (Bound::Unbounded, Bound::Unbounded), |key, _| {
//!     names.push(key.to_vec());
//!     ControlFlow::<()>::Continue(())
//! })?;
//! assert_eq!(names, [b"spawn"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod budget;
mod caps;
#[cfg(feature = "conformance")]
pub mod conformance;
mod damage;
mod delegate;
mod engine;
mod error;
mod level;
mod mem;
mod range;
mod read;
#[cfg(feature = "rocks")]
pub mod rocks;
mod sequence;
mod usage;
mod value;

pub use batch::{Batch, DEFAULT_MAX_BATCH_BYTES, Guard, Op};
pub use budget::{Budget, DEFAULT_MEMORY_BYTES};
pub use caps::{Caps, Latency};
pub use cg_format::Space;
pub use cg_format::frame::Stamp;
pub use cg_format::key::Family;
pub use damage::{Gaps, Met, Uncached, scan_skipping_damage};
pub use engine::{Engine, Failure, Reopen, Reopened, Snapshot};
pub use error::{EngineError, Place, Table, row_in_words};
pub use level::Level;
pub use mem::{Fault, MemEngine};
pub use range::{ALL_KEYS, KeyRange};
pub use read::{Readable, ReadableExt, RowSlice, RowVisitor, Scan};
#[cfg(feature = "rocks")]
pub use rocks::{Access, Examined, RocksEngine, RocksOptions};
pub use sequence::{COMMIT_SEQUENCE_KEY, CommitSeq};
pub use usage::{FamilyUsage, Usage};
pub use value::Value;
