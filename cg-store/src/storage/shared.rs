//! The state that all rooms of a world use: its engine, its registry, its settings, its counters.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cg_format::lineage::Lineage;

use crate::engine::{Engine, EngineError};
use crate::rt::lock_order::{Mutex, RwLock, rank};
use crate::rt::pool::Pool;
use crate::rt::stats::Counters;
use crate::storage::change_log::KeptLog;
use crate::storage::directory::WorldFile;
use crate::storage::engine_cell::{EngineCell, EngineGuard};
use crate::storage::error::Error;
use crate::storage::location::Location;
use crate::storage::opacity_map::KeptMap;
use crate::storage::options::{StoreLimits, WorldOptions};
use crate::storage::record_shape::RecordShape;
use crate::storage::registry::Registry;
use crate::storage::value_check::ValueGuard;

/// The state that all rooms of an open world share.
pub(crate) struct Shared {
    pub(crate) slot: EngineCell,
    pub(crate) registry: Registry,
    pub(crate) options: WorldOptions,
    pub(crate) limits: RwLock<StoreLimits, rank::Limits>,
    pub(crate) values: ValueGuard,
    pub(crate) record_shape: RecordShape,
    pub(crate) counters: Counters,
    /// The tombstone horizon: the first commit whose tombstones are kept.
    pub(crate) tombstone_horizon: AtomicU64,
    pub(crate) map: KeptMap,
    pub(crate) change_log: KeptLog,
    pub(crate) file: WorldFile,
    /// The openings that made its commits, with this one if the world takes commits.
    pub(crate) lineage: RwLock<Arc<Lineage>, rank::Lineage>,
    /// The engine whose newest state a world shows that follows another writer.
    pub(crate) followed: OnceLock<Arc<dyn Engine>>,
    /// Held while that state is exchanged.
    pub(crate) refreshing: Mutex<(), rank::Refreshing>,
    pub(crate) location: Location,
    pub(crate) pool: Arc<Pool>,
    pub(crate) closed: AtomicBool,
}

impl Shared {
    /// # Errors
    /// [`Error::Closed`] after the world was closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// The engine, for as long as the value is held. Waits while it is being replaced.
    #[inline]
    pub(crate) fn engine(&self) -> Result<EngineGuard<'_>, EngineError> {
        self.slot.guard()
    }

    /// The engine, and the value of a function that looks at what is replaced together with it.
    #[inline]
    pub(crate) fn engine_with<T>(
        &self,
        look: impl FnOnce() -> T,
    ) -> Result<(EngineGuard<'_>, T), EngineError> {
        self.slot.guard_with(look)
    }

    /// The openings that made the world's commits.
    pub(crate) fn lineage(&self) -> Arc<Lineage> {
        Arc::clone(&self.lineage.read())
    }

    /// The largest batch. A larger commit is staged in parts and rolled forward part by part.
    pub(crate) fn batch_limit(&self) -> Result<u64, EngineError> {
        // Borrowed before the limits are locked, because replacing the engine takes that lock.
        let caps = self.engine()?.caps();
        if caps.stages {
            return Ok(caps.max_batch_bytes);
        }
        Ok(self.limits.read().batch_bytes.min(caps.max_batch_bytes))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("uuid", &self.file.uuid).finish_non_exhaustive()
    }
}
