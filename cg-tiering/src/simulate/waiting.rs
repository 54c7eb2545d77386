//! Clusters that are shadowed in part, by the time when their chunks last moved.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ClusterAt, GameTick};

/// The rows that may be rewritten later.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    since: BTreeMap<ClusterAt, GameTick>,
    order: BTreeSet<(GameTick, ClusterAt)>,
}

impl Waiting {
    /// Chunks of a row moved or were saved: its wait starts again.
    pub(super) fn touch(&mut self, row: ClusterAt, now: GameTick) {
        self.forget(row);
        self.since.insert(row, now);
        self.order.insert((now, row));
    }

    /// Takes a row that has waited for `after_ticks`, with the start of its wait.
    pub(super) fn take_due(&mut self, now: GameTick, after_ticks: u64) -> Option<(ClusterAt, GameTick)> {
        let (since, row) =
            self.order.first().copied().filter(|(since, _)| now.since(*since) >= after_ticks)?;
        self.forget(row);
        Some((row, since))
    }

    /// When the first row will have waited for `after_ticks`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ClusterPos, ClusterTier, Dimension};

    #[test]
    fn a_row_waits_from_the_last_time_it_was_touched() {
        let row = |x| ClusterAt::new(Dimension::new(0), ClusterPos::new(ClusterTier::L1, x, 0, 0).unwrap());
        let mut waiting = Waiting::default();
        waiting.touch(row(1), GameTick::new(0));
        waiting.touch(row(2), GameTick::new(50));
        waiting.touch(row(1), GameTick::new(80));
        assert_eq!(waiting.next_due(100), Some(GameTick::new(150)));
        assert_eq!(waiting.take_due(GameTick::new(149), 100), None);
        assert_eq!(waiting.take_due(GameTick::new(150), 100), Some((row(2), GameTick::new(50))));
        assert_eq!(waiting.take_due(GameTick::new(150), 100), None);
        waiting.forget(row(1));
        assert_eq!(waiting.next_due(100), None);
    }
}
