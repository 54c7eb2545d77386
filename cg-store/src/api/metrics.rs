//! One look at how a world is doing.

use std::fmt;

use crate::api::world::World;
use crate::engine::CommitSeq;
use crate::read::cache::CacheStats;
use crate::rt::stats::{Durations, Stats};

/// How a world is doing, since it was opened. Cheap to take, if no area is kept in memory: see [`CacheStats`]. The parts are not of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Work done, by kind.
    pub stats: Stats,
    /// Memory that the cached chunks take.
    pub cache: CacheStats,
    /// The newest commit that readers see.
    pub last_commit: CommitSeq,
    /// The newest commit that a killed process leaves.
    pub last_written: CommitSeq,
    /// The newest commit that a power cut leaves.
    pub last_synced: CommitSeq,
    /// Commits that are accepted and not written yet.
    pub queued_commits: u64,
    /// The memory that they hold, and what was submitted.
    pub queued_bytes: u64,
    /// Batches that were submitted and are not accepted yet.
    pub submitted: u64,
    /// Calls of `transaction`, the host's closure included: the stalls that a tick thread meets.
    pub transactions: Durations,
    /// Calls of `tick`.
    pub ticks: Durations,
    /// By how much ticks worked longer than their budgets; most by nothing. What a tick waited for another one is only in
    /// [`ticks`](Self::ticks).
    pub tick_excess: Durations,
    /// Steps of moves that maintenance knows to be left, as the last tick left it; each is of one 4³ cube.
    pub moves_waiting: u64,
    /// Values that their types do not allow, found by commits; also by those that failed later. See
    /// [`ValueCheck`](crate::verify::ValueCheck).
    pub illegal_values: u64,
    /// Opacity tiles that are known to have patches.
    pub tiles_waiting: u64,
    /// Chunks with deltas, which are folded once they have many or are left alone.
    pub chunks_with_deltas: u64,
    /// Free bytes where the world lies, as the system reports them, if it can.
    pub free_bytes: Option<u64>,
}

impl World {
    /// How the world is doing. Asks the system for the room on the disk, and otherwise reads counters.
    pub fn metrics(&self) -> Metrics {
        let rooms = self.rooms();
        let (queued_commits, queued_bytes) = rooms.commit.queue.load();
        let [last_written, last_synced] = rooms.shared.slot.reached();
        // Not inside the value below: the lock would be held while the engine is waited for.
        let tiles_waiting = rooms.maintain.activity.dirty_tiles.lock().len() as u64;
        let counted = rooms.shared.counters.read();
        Metrics {
            stats: Stats { cache_hits: counted.cache_hits + rooms.read.cache.hits(), ..counted },
            cache: rooms.read.cache.stats(),
            last_commit: CommitSeq::new(rooms.commit.log.published()),
            last_written,
            last_synced,
            queued_commits,
            queued_bytes,
            submitted: rooms.commit.queue.submitted_len(),
            transactions: rooms.commit.transactions.read(),
            ticks: rooms.maintain.ticks.read(),
            tick_excess: rooms.maintain.tick_excess.read(),
            moves_waiting: rooms.maintain.maintenance.moves_waiting(),
            illegal_values: rooms.shared.values.count(),
            tiles_waiting,
            chunks_with_deltas: rooms.read.deltas.len() as u64,
            free_bytes: rooms.shared.engine().ok().and_then(|engine| engine.free_bytes()),
        }
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stats, queued_commits, queued_bytes, .. } = self;
        let hits = stats.cache_hits as f64 / (stats.cache_hits + stats.cache_misses).max(1) as f64;
        write!(
            f,
            "commit {} (written {}, synced {})",
            self.last_commit, self.last_written, self.last_synced
        )?;
        write!(f, ", {queued_commits} queued with {queued_bytes} bytes, {} refused as busy", stats.busy)?;
        let (chunk_bytes, pinned_bytes) =
            (self.cache.evictable_bytes + self.cache.pinned_bytes, self.cache.pinned_bytes);
        write!(f, ", {:.1} % of loads from memory", 100.0 * hits)?;
        write!(f, ", which has {chunk_bytes} bytes of chunks, {pinned_bytes} of them kept")?;
        if stats.prefetched > 0 {
            let Stats { prefetched, prefetched_used, prefetched_wasted, .. } = stats;
            write!(f, ", {prefetched} prefetched ({prefetched_used} used, {prefetched_wasted} in vain)")?;
        }
        if self.illegal_values > 0 {
            write!(f, ", {} illegal values", self.illegal_values)?;
        }
        let Self { moves_waiting, tiles_waiting, chunks_with_deltas, .. } = self;
        write!(
            f,
            ", {moves_waiting} moves and {tiles_waiting} tiles wait, {chunks_with_deltas} chunks have deltas"
        )?;
        let all =
            [("transactions", self.transactions), ("ticks", self.ticks), ("ticks' excess", self.tick_excess)];
        for (name, took) in all {
            let (p50, p99, longest) = (took.quantile(0.5), took.quantile(0.99), took.longest());
            write!(f, ", {} {name} (p50 {p50:?}, p99 {p99:?}, longest {longest:?})", took.count())?;
        }
        Ok(())
    }
}
