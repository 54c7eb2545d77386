//! Committed changes that are not in the engine yet, as readers see them.

use cg_format::{ChunkAt, Lookup};
use foldhash::HashMap;

use crate::kind_map;
use crate::kinds::kind::{self, Kind};
use crate::read::cache::Stored;

/// The newest pending value of each key, with the commit that wrote it. `None` is a deletion.
type Newest<K> = HashMap<<K as Kind>::Key, (u64, Option<<K as Kind>::Value>)>;

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
