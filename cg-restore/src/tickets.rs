//! Chunks that are loaded before their steps: the reads happen on the threads of the store, not within a tick.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::ChunkAt;
use cg_store::LoadTicket;

use crate::target::Target;

/// Chunks that are asked for together once this many have tickets: half of those that one operation holds by default.
const CHUNKS_AT_ONCE: usize = 32;

/// The chunks with tickets, and which of them are still to be loaded.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    counts: BTreeMap<ChunkAt, u32>,
    /// Not asked for yet.
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

    /// A ticket that was never taken is no ticket.
    pub(crate) fn release(&mut self, at: ChunkAt) {
        let Some(count) = self.counts.get_mut(&at) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&at);
            self.waiting.remove(&at);
        }
    }

    /// Whether a chunk was loaded, or can be no more. Asks for those that wait, if this is one of them or they are many.
    pub(crate) fn is_ready(&mut self, at: ChunkAt, target: &impl Target) -> bool {
        if self.waiting.contains(&at) || self.waiting.len() >= CHUNKS_AT_ONCE {
            let waiting = std::mem::take(&mut self.waiting);
            let list: Vec<_> = waiting.iter().copied().collect();
            self.loading.extend(target.load_ahead(&list).map(|pending| (pending, waiting)));
        }
        // What was loaded is in memory; an error is met again by the step, which reports it.
        self.loading.retain(|(pending, _)| pending.poll().is_none());
        !self.loading.iter().any(|(_, chunks)| chunks.contains(&at))
    }

    /// How many chunks have tickets.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }
}
