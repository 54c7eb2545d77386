//! What reading needs: the cache, the index of deltas, and who knows more of what is pending.

use std::fmt;
use std::sync::Arc;

use cg_format::ChunkAt;

use crate::read::cache::ChunkCache;
use crate::read::delta::DeltaIndex;
use crate::read::observer::ReadObserver;
use crate::read::pending::PendingWrites;
use crate::storage::error::Error;
use crate::storage::shared::Shared;

/// The state of reading. Its methods see what is committed; applying what was submitted is the caller's part.
pub(crate) struct ReadState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cache: ChunkCache,
    pub(crate) deltas: DeltaIndex,
    /// What is committed and not in the engine yet.
    pub(crate) pending: Arc<dyn PendingWrites>,
    pub(crate) observer: Arc<dyn ReadObserver>,
    /// Whether the observer wants to hear of each chunk that is asked for. A warm load costs less than telling it.
    tells_asked: bool,
}

impl ReadState {
    /// Begins with what the engine has.
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

    /// Notes that a host asked for a chunk, and whether memory had it.
    #[inline]
    pub(crate) fn note_asked(&self, at: ChunkAt, in_memory: bool) {
        if self.tells_asked {
            self.observer.asked(at, in_memory);
        }
    }
}

impl fmt::Debug for ReadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
