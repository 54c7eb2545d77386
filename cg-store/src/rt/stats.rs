//! Counters and stopwatches of a world.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

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
    /// Bytes of clusters that were decompressed.
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

/// Buckets end at 1 µs, 2 µs, 4 µs and so on; the last bucket has no end.
const BUCKETS: usize = 28;

/// Counts durations.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    counts: [AtomicU64; BUCKETS],
    longest_ns: AtomicU64,
}

/// A running measurement.
#[derive(Debug)]
pub(crate) struct Running<'s> {
    stopwatch: &'s Stopwatch,
    what: &'static str,
    begun: Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        /// Longer than a tick of a usual game, so it is logged.
        const SLOW: Duration = Duration::from_millis(50);
        let took = self.begun.elapsed();
        self.stopwatch.note(took);
        if took > SLOW {
            tracing::debug!(?took, "{} was slow", self.what);
        }
    }
}

/// The durations of one kind of call since the world was opened.
///
/// ```
/// use cg_store::prelude::*;
/// let world = World::builder().in_memory()?;
/// world.transaction(|_| Ok::<_, Error>(()))?;
/// let took = world.metrics().transactions;
/// assert_eq!(took.count(), 1);
/// assert!(took.quantile(0.5) >= took.quantile(0.0) && took.longest() > std::time::Duration::ZERO);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durations {
    counts: [u64; BUCKETS],
    longest: Duration,
}

impl Stopwatch {
    /// Starts a measurement, which ends when the guard is dropped.
    pub(crate) fn start(&self, what: &'static str) -> Running<'_> {
        Running { stopwatch: self, what, begun: Instant::now() }
    }

    pub(crate) fn note(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - (ns.saturating_sub(1) / 1000).leading_zeros()) as usize;
        self.counts[bucket.min(BUCKETS - 1)].fetch_add(1, Relaxed);
        self.longest_ns.fetch_max(ns, Relaxed);
    }

    pub(crate) fn read(&self) -> Durations {
        let mut read =
            Durations { longest: Duration::from_nanos(self.longest_ns.load(Relaxed)), ..Default::default() };
        for (count, live) in read.counts.iter_mut().zip(&self.counts) {
            *count = live.load(Relaxed);
        }
        read
    }
}

impl Durations {
    /// The number of measurements.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest duration.
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// The duration that a part of all measurements did not exceed, rounded up to the end of its bucket: 0.5 for the
    /// median, 0.999 for the slowest thousandth. Zero if there were none.
    pub fn quantile(&self, part: f64) -> Duration {
        let wanted = (part.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, end) in self.buckets() {
            seen += bucket;
            if seen >= wanted {
                return end.min(self.longest);
            }
        }
        self.longest
    }

    /// The buckets: the number of durations up to each end and above the previous end. The last bucket has no end.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, Duration)> {
        self.counts.iter().enumerate().map(|(bucket, count)| {
            let end = if bucket == BUCKETS - 1 { Duration::MAX } else { Duration::from_micros(1 << bucket) };
            (*count, end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_ends_of_buckets_and_no_longer_than_the_longest() {
        let stopwatch = Stopwatch::default();
        let us = Duration::from_micros;
        for took in [us(1), us(1), us(2), us(3), us(4), us(5), us(100), us(1000), Duration::ZERO, us(1) / 2] {
            stopwatch.note(took);
        }
        let read = stopwatch.read();
        assert_eq!((read.count(), read.longest()), (10, us(1000)));
        let quantiles = [0.0, 0.4, 0.5, 0.7, 0.8, 0.9, 0.91, 1.0].map(|part| read.quantile(part));
        assert_eq!(quantiles, [1, 1, 2, 4, 8, 128, 1000, 1000].map(us));
        let full: Vec<_> = read.buckets().filter(|(count, _)| *count > 0).collect();
        assert_eq!(full, [(4, us(1)), (1, us(2)), (2, us(4)), (1, us(8)), (1, us(128)), (1, us(1024))]);
        assert_eq!(Durations::default().quantile(0.5), Duration::ZERO);
    }

    #[test]
    fn the_longest_there_can_be_has_a_bucket() {
        let stopwatch = Stopwatch::default();
        stopwatch.note(Duration::MAX);
        assert_eq!(stopwatch.read().buckets().last(), Some((1, Duration::MAX)));
    }
}
