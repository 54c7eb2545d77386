//! The state of reading: the cache, the index of deltas, the commits that are not in the engine yet, and the observer of
//! reads.

use std::fmt;
use std::sync::Arc;

use cg_format::{ChunkAt, ClusterPos, Dimension, Lookup};
use foldhash::HashMap;

use crate::kind_map;
use crate::kinds::kind::{self, Kind};
use crate::read::cache::{ChunkCache, Stored};
use crate::read::delta::DeltaIndex;
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
        deltas: DeltaIndex,
        pending: Arc<dyn PendingWrites>,
        observer: Arc<dyn ReadObserver>,
    ) -> Self {
        Self {
            cache: ChunkCache::new(shared.options.cache_bytes),
            deltas,
            tells_asked: shared.options.prefetch.is_some(),
            shared,
            pending,
            observer,
        }
    }
}

impl fmt::Debug for ReadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

/// Is told which chunks a host requests, and which of them were not in memory.
pub(crate) trait ReadObserver: Send + Sync {
    /// A host requested a chunk. Called for every chunk of every load.
    fn asked(&self, at: ChunkAt, in_memory: bool);

    /// Neither the cache nor the queue has some chunks, so they are read. Called once for all chunks of a load, or
    /// of each part of a large one.
    fn missed(&self, at: &[ChunkAt]);

    /// A missed chunk was read, with this result.
    fn loaded(&self, at: ChunkAt, found: &Result<Lookup<Stored>, Error>);
}

/// The newest pending value of each key, with the commit that wrote it. `None` is a deletion.
pub(crate) type Newest<K> = HashMap<<K as Kind>::Key, (u64, Option<<K as Kind>::Value>)>;

kind_map! {
    /// The values of pending commits.
    #[derive(Debug, Default)]
    pub(crate) struct PendingValues of pub(crate) Newest
}

/// The commit queue, as reads use it.
///
/// **Invariant**: a change leaves the queue only after it is in the engine. So a reader asks the queue first and the
/// engine second.
pub(crate) trait PendingWrites: Send + Sync {
    /// Whether every commit is in the engine.
    fn is_empty(&self) -> bool;

    /// Calls a function with the pending values.
    fn look(&self, look: &mut dyn FnMut(&PendingValues));

    /// For each of some 16³ cubes, whether a chunk of it has a pending value.
    fn are_queued(&self, dimension: Dimension, cubes: &[ClusterPos]) -> Vec<bool>;
}

impl dyn PendingWrites {
    /// A pending value and the commit that wrote it. `None` if the newest value is in the engine.
    pub(crate) fn newest<V: Clone>(
        &self,
        get: impl Fn(&PendingValues) -> Option<&(u64, Option<V>)>,
    ) -> Option<(u64, Option<V>)> {
        if self.is_empty() {
            return None;
        }
        let mut found = None;
        self.look(&mut |pending| found = get(pending).cloned());
        found
    }

    /// A pending chunk, deleted or not.
    pub(crate) fn chunk(&self, at: ChunkAt) -> Option<Lookup<Stored>> {
        let (version, chunk) = self.newest(|pending| pending.chunks.get(&at))?;
        let stored = chunk.map(|chunk| Stored { chunk, version, is_current: true });
        Some(stored.map_or(Lookup::Tombstone, Lookup::Found))
    }
}
