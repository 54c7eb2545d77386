//! How a world is doing: numbers with names, which are appended to and never change places.

use std::ffi::c_int;
use std::time::Duration;

use cg_host::HostMetrics;
use cg_store::metrics::Metrics;

use crate::call::{call, quiet};
use crate::error::CG_OK;
use crate::handle;
use crate::memory::OutSlice;
use crate::text::lend_text;
use crate::types::{cg_error, cg_handle, cg_str};
use crate::world::World;

type Read = fn(&Metrics, &HostMetrics) -> u64;

/// All metrics. New ones come last.
const METRICS: [(&str, Read); 46] = [
    ("last_commit_number", |world, _| world.last_commit.get()),
    ("last_written_commit_number", |world, _| world.last_written.get()),
    ("last_synced_commit_number", |world, _| world.last_synced.get()),
    ("queued_commits_count", |world, _| world.queued_commits),
    ("queued_bytes", |world, _| world.queued_bytes),
    ("pending_submissions_count", |_, host| host.pending),
    ("pending_submissions_bytes", |_, host| host.pending_bytes),
    ("held_submissions_count", |_, host| host.held),
    ("unchanged_saves_count", |_, host| host.unchanged),
    ("groups_count", |_, host| host.groups),
    ("refused_submissions_count", |_, host| host.refused),
    ("commits_count", |world, _| world.stats.commits),
    ("staged_commits_count", |world, _| world.stats.commits_staged),
    ("conflicts_count", |world, _| world.stats.conflicts),
    ("busy_count", |world, _| world.stats.busy),
    ("elided_saves_count", |world, _| world.stats.saves_elided),
    ("written_rows_count", |world, _| world.stats.rows_written),
    ("written_bytes", |world, _| world.stats.bytes_written),
    ("written_deltas_count", |world, _| world.stats.deltas_written),
    ("engine_reads_count", |world, _| world.stats.engine_reads),
    ("scanned_keys_count", |world, _| world.stats.keys_scanned),
    ("read_bytes", |world, _| world.stats.bytes_read),
    ("decompressed_bytes", |world, _| world.stats.bytes_decompressed),
    ("decoded_chunks_count", |world, _| world.stats.chunks_decoded),
    ("read_clusters_count", |world, _| world.stats.clusters_read),
    ("cache_hits_count", |world, _| world.stats.cache_hits),
    ("cache_misses_count", |world, _| world.stats.cache_misses),
    ("cached_chunks_count", |world, _| world.cache.chunks),
    ("cache_limit_bytes", |world, _| world.cache.limit_bytes),
    ("cache_evictable_bytes", |world, _| world.cache.evictable_bytes),
    ("cache_pinned_bytes", |world, _| world.cache.pinned_bytes),
    ("moves_count", |world, _| world.stats.moves),
    ("waiting_moves_count", |world, _| world.moves_waiting),
    ("prefetched_chunks_count", |world, _| world.stats.prefetched),
    ("prefetched_used_chunks_count", |world, _| world.stats.prefetched_used),
    ("prefetched_wasted_chunks_count", |world, _| world.stats.prefetched_wasted),
    ("ticks_count", |world, _| world.ticks.count()),
    ("tick_median_us", |world, _| micros(world.ticks.quantile(0.5))),
    ("tick_p99_us", |world, _| micros(world.ticks.quantile(0.99))),
    ("tick_longest_us", |world, _| micros(world.ticks.longest())),
    ("low_disk_ticks_count", |world, _| world.stats.ticks_low_disk),
    ("transactions_count", |world, _| world.transactions.count()),
    ("transaction_median_us", |world, _| micros(world.transactions.quantile(0.5))),
    ("transaction_p99_us", |world, _| micros(world.transactions.quantile(0.99))),
    ("transaction_longest_us", |world, _| micros(world.transactions.longest())),
    ("free_disk_bytes", |world, _| world.free_bytes.unwrap_or(0)),
];

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The number of metrics. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_metric_count() -> usize {
    METRICS.len()
}

/// The name of a metric. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_metric_name(index: usize) -> cg_str {
    quiet("cg_metric_name", lend_text(""), || lend_text(METRICS.get(index).map_or("", |(name, _)| name)))
}

/// The metrics of a world. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_metrics(
    world: cg_handle,
    values: *mut u64,
    count: usize,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_metrics", error, || {
            let out = OutSlice::new(values, count, "values")?;
            let world = handle::find::<World>(world)?;
            let host = world.host()?;
            let (metrics, of_host) = (host.world().metrics(), host.metrics());
            let values = METRICS.iter().map(|(_, read)| read(&metrics, &of_host));
            // A newer program than the library gets zeros.
            out.put(values.chain(std::iter::repeat_n(0, out.len().saturating_sub(METRICS.len()))));
            Ok(CG_OK)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_a_name_of_its_own_that_ends_with_its_unit() {
        let mut names: Vec<&str> = METRICS.iter().map(|(name, _)| *name).collect();
        for name in &names {
            let unit = name.rsplit('_').next().unwrap_or_default();
            assert!(["count", "bytes", "us", "number"].contains(&unit), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }
}
