//! Clusters that are shadowed in part, by when their chunks last moved.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ClusterAt, GameTick};

/// The rows that may be rewritten one day.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    since: BTreeMap<ClusterAt, GameTick>,
    order: BTreeSet<(GameTick, ClusterAt)>,
}

impl Waiting {
    /// Chunks of a row moved, or were saved: it waits from now on.
    pub(super) fn touch(&mut self, row: ClusterAt, now: GameTick) {
        self.forget(row);
        self.since.insert(row, now);
        self.order.insert((now, row));
    }

    /// Takes a row that has waited for so long, with the moment since which it did.
    pub(super) fn take_due(&mut self, now: GameTick, after_ticks: u64) -> Option<(ClusterAt, GameTick)> {
        let (since, row) =
            self.order.first().copied().filter(|(since, _)| now.since(*since) >= after_ticks)?;
        self.forget(row);
        Some((row, since))
    }

    /// When a row will have waited for so long.
    pub(super) fn next_due(&self, after_ticks: u64) -> Option<GameTick> {
        let (since, _) = self.order.first()?;
        Some(GameTick::new(since.get().saturating_add(after_ticks)))
    }

    pub(super) fn forget(&mut self, row: ClusterAt) {
        if let Some(since) = self.since.remove(&row) {
            self.order.remove(&(since, row));
        }
    }
}
