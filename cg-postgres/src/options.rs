//! Settings of an engine.

use std::time::Duration;

/// The most that cg-store commits.
const MAX_BATCH_BYTES: u64 = 1 << 30;

/// Settings of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The longest time that a call waits for a server that takes writes. After it, a commit is in doubt and the engine
    /// refuses commits, and a read fails. By default 30 s, which is more than a failover takes.
    pub patience: Duration,
    /// The largest number of snapshots at a time. Each has a connection of its own. By default 16. Another one waits. A
    /// world that follows another writer holds one, and two while it is refreshed.
    pub max_views: usize,
    /// The largest number of scans of the newest state at a time, beside the snapshots. Each has a connection of its own
    /// until it has read its last page. By default 8. Another one waits.
    pub max_scans: usize,
    /// The limit on a batch, in bytes of its keys and frames. By default 1 GiB, the most that cg-store commits: a larger
    /// one is taken for it. A smaller one lets cg-store commit in stages, which other processes can see. One row has at most
    /// 1023 MiB.
    pub max_batch_bytes: u64,
    /// The largest number of tables of records. A record of a later table cube is stored without columns. By default
    /// 1000, or fewer if the server has not six locks for each.
    pub max_record_tables: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            max_views: 16,
            max_scans: 8,
            max_batch_bytes: MAX_BATCH_BYTES,
            max_record_tables: 1000,
        }
    }
}

impl Options {
    /// The limit on a batch that holds.
    pub(crate) fn batch_limit(&self) -> u64 {
        self.max_batch_bytes.min(MAX_BATCH_BYTES)
    }
}
