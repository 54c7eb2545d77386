//! Every RocksDB option that this crate sets.
//!
//! Options that decide what survives are set here, not inherited from a default. A test reads them back from the file
//! in which RocksDB records them. The reasons, and the measurements of the figures, are in
//! `docs/decisions/0018-rocksdb-options.md`.

use cg_format::key::Family;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, DBCompressionType, DBRecoveryMode, Options, ReadOptions,
};

use super::messages;
use crate::Budget;

/// The log size at which RocksDB flushes the families that keep it. Limits what an open replays.
pub const MAX_WAL_BYTES: u64 = 256 << 20;

/// Zstandard levels of the last level of a family; see `docs/lab/cold-bytes.md`. Rows that are seldom written get the
/// highest, which writes a few megabytes a second.
const ZSTD_SELDOM_WRITTEN: i32 = 19;
const ZSTD_OFTEN_WRITTEN: i32 = 6;
/// RocksDB's defaults: Zstandard takes window and strategy from the level.
const ZSTD_WINDOW_BITS: i32 = -14;
const ZSTD_STRATEGY: i32 = 0;

/// The share of tombstones from which a file is compacted without a call: half of its rows. What cooled was deleted from
/// one family to be in another, and its bytes are free only after its tombstones meet it.
const TOMBSTONE_PART: f64 = 0.5;

/// The last level of each family's tree.
pub(super) const LAST_LEVEL: i32 = 6;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The largest buffer that a family's profile states.
const LARGEST_BUFFER_BYTES: usize = 64 * MIB;

/// Parts of indexes and filters have the block size of a small family.
const INDEX_PART_BYTES: usize = 4 * KIB;

/// The options of the database.
pub(super) fn database(budget: &Budget) -> Options {
    let mut options = without_families(budget);
    options.set_info_logger(messages::receiver());
    options
}

/// The options of the database that RocksDB takes together with those of a family.
fn without_families(budget: &Budget) -> Options {
    let mut options = Options::default();
    // Durability. A crash leaves a torn tail; anything else that fails its checks is an error.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_paranoid_checks(true);
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_recycle_log_file_num(0);
    options.set_manual_wal_flush(false);
    // Every write is in the log, so families may be flushed separately.
    options.set_atomic_flush(false);
    options.set_max_total_wal_size(MAX_WAL_BYTES);
    // Either option would show a batch in parts, or out of order.
    options.set_unordered_write(false);
    options.set_enable_pipelined_write(false);
    options.set_use_fsync(false);

    // Performance.
    let shared = budget.rocks();
    options.set_env(&shared.env);
    options.set_write_buffer_manager(&shared.write_buffers);
    options.set_max_background_jobs(budget.thread_count() as i32);
    options.set_max_open_files(-1);
    // Each thread that opens files keeps the memory into which it read their ends. RocksDB's sixteen threads keep
    // eight megabytes of it after opening a million chunks.
    options.set_max_file_opening_threads(budget.thread_count() as i32);
    options.set_skip_stats_update_on_db_open(true);
    options.set_avoid_unnecessary_blocking_io(true);
    options.set_bytes_per_sync(MIB as u64);
    options.set_wal_bytes_per_sync(512 * KIB as u64);
    // The manifest is read in full at every open.
    options.set_max_manifest_file_size(16 * MIB);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options
}

/// The options of a family. `None` is RocksDB's own `default` family, which stays empty.
pub(super) fn family(family: Option<Family>, budget: &Budget) -> Options {
    let Profile {
        buffer_bytes,
        buffer_count,
        block_bytes,
        compression,
        flushes_plain,
        last_level_zstd,
        blobs,
        point_reads,
    } = profile(family);
    let chunks = matches!(family, Some(Family::ChunkL0 | Family::ChunkL1 | Family::ChunkL2));
    let mut options = without_families(budget);
    let buffer_bytes = match family {
        Some(_) => buffer_bytes.min(budget.memory_bytes() / 16),
        None => never_free(LARGEST_BUFFER_BYTES.min(budget.memory_bytes() / 16)),
    };
    options.set_write_buffer_size(buffer_bytes);
    options.set_max_write_buffer_number(buffer_count);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_num_levels(LAST_LEVEL + 1);
    options.set_compression_type(compression);
    if flushes_plain {
        // The first is of flushed tables, the second of all other levels.
        options.set_compression_per_level(&[DBCompressionType::None, compression]);
    }
    if let Some(zstd_level) = last_level_zstd {
        options.set_bottommost_compression_type(DBCompressionType::Zstd);
        options.set_bottommost_compression_options(ZSTD_WINDOW_BITS, zstd_level, ZSTD_STRATEGY, 0, true);
    }
    if chunks {
        // By the share of a whole file alone: no window of adjacent rows counts.
        options.add_compact_on_deletion_collector_factory(0, 0, TOMBSTONE_PART);
    }
    if point_reads {
        options.set_memtable_prefix_bloom_ratio(0.05);
        options.set_memtable_whole_key_filtering(true);
    }

    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&budget.rocks().blocks);
    table.set_block_size(block_bytes);
    // Reads of absent rows are common: a chunk that is not generated yet. The last level has filters too.
    table.set_bloom_filter(10.0, false);
    table.set_whole_key_filtering(true);
    table.set_optimize_filters_for_memory(true);
    // Indexes and filters are stored in the block cache in parts, so that only the used parts take memory. Only the
    // index of their parts, about one percent, stays in memory.
    table.set_cache_index_and_filter_blocks(true);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_metadata_block_size(INDEX_PART_BYTES);
    table.set_pin_top_level_index_and_filter(true);
    options.set_optimize_filters_for_hits(false);
    options.set_block_based_table_factory(&table);

    if let Some(Blobs { min_bytes, file_bytes, age_cutoff, compression }) = blobs {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(min_bytes);
        options.set_blob_file_size(file_bytes);
        options.set_blob_compression_type(compression);
        options.set_enable_blob_gc(true);
        options.set_blob_gc_age_cutoff(age_cutoff);
        options.set_blob_gc_force_threshold(0.5);
        options.set_blob_cache(&budget.rocks().blobs);
    }
    options
}

/// A size of a write buffer that no disk has free.
///
/// After a call that failed for want of room, RocksDB goes on by itself once the largest write buffer fits on the disk: at once,
/// if it does. It then syncs the log again, and takes for synced what the failed sync has lost. So the family that never holds a
/// row has a buffer that never fits. Nothing is reserved for it.
///
/// RocksDB adds a tenth to the largest buffer and takes the sum for the bytes that it allocates in advance for the first log. This
/// size makes the sum wrap around to what it is for `largest_bytes`.
fn never_free(largest_bytes: usize) -> usize {
    #[cfg(test)]
    if GOES_ON.get() {
        return largest_bytes;
    }
    let log_bytes = (largest_bytes + largest_bytes / 10) as u128;
    usize::try_from(((1 << 64) + log_bytes) * 10 / 11).unwrap_or(usize::MAX)
}

#[cfg(test)]
thread_local! {
    /// Whether the next engine has no buffer that never fits.
    pub(super) static GOES_ON: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The share of a family's blob files, oldest first, whose garbage normal compactions collect. `None` without blob
/// files.
pub(super) fn blob_age_cutoff(family: Family) -> Option<f64> {
    profile(Some(family)).blobs.map(|blobs| blobs.age_cutoff)
}

/// The options of a scan. It fills the cache, except for chunks and snapshots: of those a scan reads more than is
/// read again.
pub(super) fn scan_reads(family: Family) -> ReadOptions {
    let passes_over =
        matches!(family, Family::ChunkL0 | Family::ChunkL1 | Family::ChunkL2 | Family::Snapshot);
    let mut reads = ReadOptions::default();
    reads.fill_cache(!passes_over);
    reads
}

#[derive(Clone, Copy)]
struct Profile {
    buffer_bytes: usize,
    buffer_count: i32,
    block_bytes: usize,
    compression: DBCompressionType,
    /// Whether blocks of tables that a flush writes are not compressed: long rows of worlds are, and a host waits for
    /// flushes when it closes a world.
    flushes_plain: bool,
    /// The Zstandard level of the last level of the tree, where all rows end that are not written again.
    last_level_zstd: Option<i32>,
    blobs: Option<Blobs>,
    /// Rows are mostly read one by one and soon after they were written.
    point_reads: bool,
}

#[derive(Clone, Copy)]
struct Blobs {
    min_bytes: u64,
    file_bytes: u64,
    age_cutoff: f64,
    compression: DBCompressionType,
}

impl Blobs {
    /// Smaller thresholds double the disk space of overwritten values; see the decision page.
    const LARGE_ROWS: Self = Self {
        min_bytes: 64 << 10,
        file_bytes: 256 << 20,
        age_cutoff: 0.25,
        compression: DBCompressionType::Lz4,
    };
    /// Clusters are compressed inside, group by group.
    const WARM_CLUSTERS: Self = Self {
        min_bytes: 16 << 10,
        file_bytes: 256 << 20,
        age_cutoff: 0.25,
        compression: DBCompressionType::None,
    };
    const COLD_CLUSTERS: Self = Self { age_cutoff: 0.5, ..Self::WARM_CLUSTERS };
}

fn profile(family: Option<Family>) -> Profile {
    use DBCompressionType::{Lz4, None as Plain};
    let small = Profile {
        buffer_bytes: 4 * MIB,
        buffer_count: 2,
        block_bytes: 4 * KIB,
        compression: Lz4,
        flushes_plain: false,
        last_level_zstd: Some(ZSTD_SELDOM_WRITTEN),
        blobs: None,
        point_reads: false,
    };
    let Some(family) = family else { return small };
    let often_written = Profile {
        buffer_bytes: 16 * MIB,
        block_bytes: 8 * KIB,
        last_level_zstd: Some(ZSTD_OFTEN_WRITTEN),
        ..small
    };
    match family {
        Family::WorldMeta | Family::WorldProperties => small,
        Family::ChunkL0 => Profile {
            buffer_bytes: 64 * MIB,
            buffer_count: 3,
            block_bytes: 8 * KIB,
            flushes_plain: true,
            last_level_zstd: None,
            blobs: Some(Blobs::LARGE_ROWS),
            point_reads: true,
            ..small
        },
        Family::ChunkL1 => Profile {
            buffer_bytes: 64 * MIB,
            block_bytes: 16 * KIB,
            compression: Plain,
            last_level_zstd: None,
            blobs: Some(Blobs::WARM_CLUSTERS),
            ..small
        },
        Family::ChunkL2 => Profile {
            buffer_bytes: 64 * MIB,
            block_bytes: 16 * KIB,
            compression: Plain,
            blobs: Some(Blobs::COLD_CLUSTERS),
            ..small
        },
        Family::Entity => Profile {
            buffer_bytes: 32 * MIB,
            last_level_zstd: Some(ZSTD_OFTEN_WRITTEN),
            blobs: Some(Blobs::LARGE_ROWS),
            point_reads: true,
            ..small
        },
        Family::OpacityMap | Family::ChunkDelta | Family::Index => often_written,
        // Objects are many values that are alike, and are rarely written or read. Large ones stay out of the tree: an
        // import may write gigabytes of them, which compactions could not compress at the last level's rate.
        Family::Object => Profile {
            buffer_bytes: 16 * MIB,
            block_bytes: 256 * KIB,
            blobs: Some(Blobs { compression: DBCompressionType::Zstd, ..Blobs::LARGE_ROWS }),
            ..small
        },
        Family::Record | Family::Snapshot => Profile { blobs: Some(Blobs::LARGE_ROWS), ..often_written },
    }
}
