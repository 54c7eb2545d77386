//! The cache of cluster rows: the most recently used ones, up to a sum of bytes.

use std::collections::{BTreeMap, HashMap};

use crate::ClusterAt;

/// The rows that are in memory.
#[derive(Debug, Clone)]
pub(super) struct RowCache {
    capacity_bytes: u64,
    used_bytes: u64,
    rows: HashMap<ClusterAt, (u64, u64)>,
    by_use: BTreeMap<u64, ClusterAt>,
    uses: u64,
}

impl RowCache {
    pub(super) fn new(capacity_bytes: u64) -> Self {
        Self { capacity_bytes, used_bytes: 0, rows: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// Uses a row. Returns whether it is in memory.
    pub(super) fn hit(&mut self, row: ClusterAt) -> bool {
        let Some((last_use, _)) = self.rows.get_mut(&row) else { return false };
        self.uses += 1;
        self.by_use.remove(last_use);
        *last_use = self.uses;
        self.by_use.insert(self.uses, row);
        true
    }

    /// Adds a row that is not in memory.
    pub(super) fn insert(&mut self, row: ClusterAt, bytes: u64) {
        self.uses += 1;
        self.rows.insert(row, (self.uses, bytes));
        self.by_use.insert(self.uses, row);
        self.used_bytes += bytes;
        while self.used_bytes > self.capacity_bytes {
            let Some((_, oldest)) = self.by_use.first_key_value() else { break };
            self.forget(*oldest);
        }
    }

    /// Drops a row because it was rewritten or removed.
    pub(super) fn forget(&mut self, row: ClusterAt) {
        if let Some((last_use, bytes)) = self.rows.remove(&row) {
            self.by_use.remove(&last_use);
            self.used_bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ClusterPos, ClusterTier, Dimension};

    #[test]
    fn the_row_used_longest_ago_goes_first() {
        let row = |x| ClusterAt::new(Dimension::new(0), ClusterPos::new(ClusterTier::L2, x, 0, 0).unwrap());
        let mut cache = RowCache::new(100);
        assert!(!cache.hit(row(1)), "nothing is there yet");
        cache.insert(row(1), 50);
        cache.insert(row(2), 50);
        assert!(cache.hit(row(1)));
        cache.insert(row(3), 10);
        assert!(
            cache.hit(row(1)) && !cache.hit(row(2)) && cache.hit(row(3)),
            "it took the place of the second"
        );
        cache.forget(row(3));
        assert!(!cache.hit(row(3)));
        cache.insert(row(4), 101);
        assert!(!cache.hit(row(4)), "what is larger than the cache does not stay");
    }
}
