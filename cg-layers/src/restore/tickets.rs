//! Chunks that are loaded before their steps. The threads of the store read them, not the tick.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::ChunkAt;
use cg_store::LoadTicket;

use super::target::Target;

/// The number of waiting chunks that starts a load: half of the tickets that one operation holds by default.
const CHUNKS_AT_ONCE: usize = 32;

/// The chunks with tickets, and those that are not loaded yet.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    counts: BTreeMap<ChunkAt, u32>,
    /// Chunks whose load was not started yet.
    waiting: BTreeSet<ChunkAt>,
    loading: Vec<(LoadTicket, BTreeSet<ChunkAt>)>,
}

impl Tickets {
    pub(crate) fn take(&mut self, at: ChunkAt) {
        let count = self.counts.entry(at).or_default();
        *count += 1;
        if *count == 1 {
            self.waiting.insert(at);
        }
    }

    /// Ignores a ticket that was never taken.
    pub(crate) fn release(&mut self, at: ChunkAt) {
        let Some(count) = self.counts.get_mut(&at) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&at);
            self.waiting.remove(&at);
        }
    }

    /// Whether a chunk is loaded, or its load failed. Starts the load of the waiting chunks if this is one of them or
    /// there are many.
    pub(crate) fn is_ready(&mut self, at: ChunkAt, target: &impl Target) -> bool {
        if self.waiting.contains(&at) || self.waiting.len() >= CHUNKS_AT_ONCE {
            let waiting = std::mem::take(&mut self.waiting);
            let list: Vec<_> = waiting.iter().copied().collect();
            self.loading.extend(target.load_ahead(&list).map(|pending| (pending, waiting)));
        }
        // Loaded chunks are in memory. After a failed load, the step gets the error again and reports it.
        self.loading.retain(|(pending, _)| pending.poll().is_none());
        !self.loading.iter().any(|(_, chunks)| chunks.contains(&at))
    }

    /// The number of chunks with tickets.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }
}
