//! The state of reading: the cache, the index of deltas, and the pending commits.

use std::fmt;
use std::sync::Arc;

use crate::read::cache::ChunkCache;
use crate::read::delta::DeltaIndex;
use crate::read::observer::ReadObserver;
use crate::read::pending::PendingWrites;
use crate::storage::error::Error;
use crate::storage::shared::Shared;

/// The state of reading. Its methods see committed changes; the caller must apply submitted batches first.
pub(crate) struct ReadState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cache: ChunkCache,
    pub(crate) deltas: DeltaIndex,
    /// Committed changes that are not in the engine yet.
    pub(crate) pending: Arc<dyn PendingWrites>,
    pub(crate) observer: Arc<dyn ReadObserver>,
    /// Whether the observer is told of each requested chunk. The call costs more than a warm load, so it is optional.
    pub(super) tells_asked: bool,
}

impl ReadState {
    /// Creates the state from the content of the engine.
    pub(crate) fn new(
        shared: Arc<Shared>,
        pending: Arc<dyn PendingWrites>,
        observer: Arc<dyn ReadObserver>,
    ) -> Result<Self, Error> {
        let deltas = DeltaIndex::read(&*shared.engine()?)?;
        Ok(Self {
            cache: ChunkCache::new(shared.options.cache_bytes),
            deltas,
            tells_asked: shared.options.prefetch.is_some(),
            shared,
            pending,
            observer,
        })
    }
}

impl fmt::Debug for ReadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
