//! Counters of work. They are exact where measured times are not.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The live counters of a world. Counting is relaxed: sums are exact, but a reading is not of one moment.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64,)* }

        /// A reading of a world's counters since it was opened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Stats { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// Reads all counters.
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.load(Relaxed),)* }
            }
        }

        impl std::ops::Sub for Stats {
            type Output = Self;

            fn sub(self, before: Self) -> Self {
                Self { $($name: self.$name - before.$name,)* }
            }
        }
    };
}

counters! {
    /// Keys read from the engine.
    engine_reads,
    /// Bytes of the rows in which chunks were looked up; a whole cluster for each lookup in it.
    bytes_read,
    /// Batches committed for transactions.
    commits,
    /// The commits that were too large for one batch, and were staged in parts and rolled forward.
    commits_staged,
    /// Moves between tiers committed.
    moves,
    /// Chunks whose save or deletion changed nothing, so that nothing was written.
    saves_elided,
    /// Transactions refused because the queue was full.
    busy,
    /// Batches that were submitted and were refused when they were accepted.
    submissions_refused,
    /// Deltas written in place of chunks.
    deltas_written,
    /// Chunks whose deltas maintenance folded into their rows.
    chunks_folded,
    /// Tiles of the opacity map that were rewritten with their patches.
    tiles_folded,
    /// Ticks that left work undone because less disk space is free than
    /// [`WorldOptions::min_free_bytes`](crate::WorldOptions::min_free_bytes) requires.
    ticks_low_disk,
    /// Rows put or deleted.
    rows_written,
    /// Bytes of the keys and rows that transactions, moves and heat committed, without the engine's write
    /// amplification.
    bytes_written,
    /// Rows of clusters read from the engine, by a key or by a scan.
    clusters_read,
    /// Chunks decoded from bytes.
    chunks_decoded,
    /// Bytes that were decompressed.
    bytes_decompressed,
    /// Loads served from memory.
    cache_hits,
    /// Loads that read from the engine, including prefetch.
    cache_misses,
    /// Chunks, or their absence, that were prefetched for players.
    prefetched,
    /// Prefetched chunks that served a load or peek from memory; each counts once.
    prefetched_used,
    /// Chunks that were to be prefetched and were not. Either the player had turned, stopped, left or arrived before,
    /// or too many chunks waited. A chunk that finds no room counts again at each change of a player's course.
    prefetched_dropped,
    /// Prefetched chunks that were useless. A chunk was evicted before it was requested. Or it was not requested within
    /// a minute of game time, or before the player left. Or it was displaced from the 4,096 that are tracked. Chunks
    /// that are neither used nor wasted are still tracked.
    prefetched_wasted,
    /// Keys visited by scans.
    keys_scanned,
    /// Transactions refused because of a conflict.
    conflicts,
    /// Preparations of commits that were repeated because the replaced state had changed.
    preparations_repeated,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }
}
