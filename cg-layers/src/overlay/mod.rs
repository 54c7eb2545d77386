//! Overlays: writable layers over a base that is only read.
//!
//! An [`Overlay`] reads through to its [`Base`](crate::Base): a world, a segmented world or another overlay. It stores
//! its own writes and deletions. [`reset`](Overlay::reset) discards them with one put.
//! [`merge_into`](Overlay::merge_into) writes them to the base instead. [`Arenas`] store any number of overlays in one
//! engine.
//!
//! What it is *not*: a copy of the base. What was not written in an overlay is read from the base as it is now, so
//! later changes of the base are visible. [`merge_into`](Overlay::merge_into) detects which of them conflict with the
//! overlay's writes.
//!
//! **Invariant**: a lease is issued once. The content of an arena is the rows of its present lease. Rows of expired
//! leases are never read; [`sweep`](Arenas::sweep) and [`tick`](Arenas::tick) delete them.

mod arena;
mod arena_list;
mod arena_policy;
mod arenas;
mod as_base;
mod background;
mod damage;
mod diff;
#[cfg(feature = "rocks")]
mod disk;
mod handle;
mod inside;
mod layered;
mod merge;
mod pool;
mod rebase;
mod submissions;
mod submitted;
mod sweep;
mod sweeping;
mod tick;
mod tick_thread;
mod transaction;
mod values;
mod verify;
mod writing;

pub use arena_policy::{ArenaPolicy, ArenaReport};
pub use arenas::{ArenaInfo, Arenas};
pub use damage::{CHUNK_RESET, ResetChunks};
#[cfg(feature = "rocks")]
pub(crate) use disk::is_pool;
pub use handle::Overlay;
pub use merge::OverlayMerged;
pub use rebase::OverlayRebased;
pub use transaction::OverlayTransaction;
