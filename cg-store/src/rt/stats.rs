//! Counters that prove how much work was done, where a stopwatch could only suggest it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The live counters of a world. Counting is relaxed: sums are exact, moments are not.
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
    /// Keys asked of the engine.
    engine_reads,
    /// Bytes of the rows in which chunks were looked for, a whole cluster for each look into it.
    bytes_read,
    /// Batches committed for transactions.
    commits,
    /// Those of them that were too large for one batch, and were staged in parts and rolled forward.
    commits_staged,
    /// Moves between tiers committed.
    moves,
    /// Chunks that were saved as they are stored already, or deleted where none is: nothing was written.
    saves_elided,
    /// Transactions refused because the queue was full.
    busy,
    /// Batches that were submitted and were refused when they were accepted.
    submissions_refused,
    /// Deltas written in place of chunks.
    deltas_written,
    /// Chunks whose deltas maintenance folded into their rows.
    chunks_folded,
    /// Times a tile of the opacity map was written anew with its patches.
    tiles_folded,
    /// Ticks that left work undone because the disk has less room than
    /// [`WorldOptions::min_free_bytes`](crate::WorldOptions::min_free_bytes) demands.
    ticks_low_disk,
    /// Rows put or deleted.
    rows_written,
    /// Bytes of the keys and rows that transactions, moves and heat committed, before the engine multiplies them.
    bytes_written,
    /// Rows of clusters fetched from the engine, by a key or by a scan.
    clusters_read,
    /// Chunks decoded from bytes.
    chunks_decoded,
    /// Bytes that came out of a decompressor.
    bytes_decompressed,
    /// Loads answered from memory.
    cache_hits,
    /// Loads that asked the engine, prefetch included.
    cache_misses,
    /// Chunks, or the knowledge that there is none, brought into memory ahead of players.
    prefetched,
    /// Prefetched chunks that memory answered a load or peek with: each counts once.
    prefetched_used,
    /// Chunks that were to be prefetched and were not: the player had turned, stopped, gone or arrived before, or too
    /// many waited. One that finds no room counts again at each change of a player's course.
    prefetched_dropped,
    /// Prefetched chunks that were no use: out of memory again when they were asked for, not asked for within a minute of
    /// game time or before the player was gone, or pushed out of the 4,096 that are watched. What is neither used nor
    /// wasted is still watched.
    prefetched_wasted,
    /// Keys visited by scans.
    keys_scanned,
    /// Transactions refused because of a conflict.
    conflicts,
    /// Times a commit was prepared again because what it replaces had changed meanwhile.
    preparations_repeated,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }
}
