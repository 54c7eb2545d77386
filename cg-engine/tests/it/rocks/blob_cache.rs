//! The cache of blobs keeps whole clusters: a second read of one touches no file.

use cg_format::cluster::{ClusterBuilder, Slot, SlotInfo, StoredCluster};
use cg_format::{ChunkPos, ClusterTier, Dimension, Limits, key};
use rocksdb::perf::{PerfContext, PerfStatsLevel, set_perf_stats};

use super::*;

/// Counts of RocksDB on this thread: blobs read from files, and found in the cache.
#[derive(Debug, PartialEq, Eq)]
struct Blobs {
    read: u64,
    cached: u64,
}

fn count(read: impl FnOnce()) -> Blobs {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut context = PerfContext::default();
    context.reset();
    read();
    let report = context.report(false);
    set_perf_stats(PerfStatsLevel::Disable);
    let count = |name: &str| {
        let found = report.split(", ").find_map(|counter| counter.strip_prefix(name)?.strip_prefix(" = "));
        found.and_then(|count| count.trim().parse().ok()).unwrap_or_else(|| panic!("{name} in {report}"))
    };
    Blobs { read: count("blob_read_count"), cached: count("blob_cache_hit_count") }
}

/// Chunks that nothing makes smaller.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..14_000).map(byte).collect()
}

/// Puts a cold cluster of so many chunks and writes it into a file.
fn put_cluster(engine: &RocksEngine, row_key: &[u8], chunk_count: u16) -> usize {
    let mut builder = ClusterBuilder::new(ClusterTier::L2);
    let info = SlotInfo { version: 1, schema_generation: 0 };
    for index in 0..chunk_count {
        let slot = Slot::new(ClusterTier::L2, index * 8).expect("one of 4,096");
        builder.put(slot, info, noise(index.into()));
    }
    let row = builder.finish(&mut Limits::default()).expect("is below 8 MiB").expect("holds chunks");
    let mut batch = Batch::new();
    batch.put(Space::ClusterL2, row_key, row, Stamp::Commit);
    engine.commit(batch, &[], Level::Process).expect("commits");
    engine.flush().expect("writes a file");
    engine.get(Space::ClusterL2, row_key).expect("reads").expect("is there").len()
}

#[test]
fn a_cluster_is_read_from_its_file_once() {
    let dir = Dir::new();
    // The memory of a host that says nothing of it.
    let options = RocksOptions::new(Budget::new(256 << 20, 2));
    let at = ChunkPos::constant(-1, 0, 0).cluster(ClusterTier::L2);
    let row_key = key::cluster(Dimension::new(0), at);
    let engine = RocksEngine::create(&dir.db(), &options).expect("is created");
    let len_bytes = put_cluster(&engine, &row_key, 512);
    assert!((6 << 20..8 << 20).contains(&len_bytes), "{len_bytes} bytes: as large as clusters get");
    engine.close().expect("closes");
    drop(engine);

    // What was in the cache went with the resources.
    let options = RocksOptions::new(Budget::new(256 << 20, 2));
    let engine = RocksEngine::open(&dir.db(), &options).expect("opens");
    let used = || engine.usage().expect("is open").memory_bytes;
    let before = used();
    let read = || {
        let row = engine.get(Space::ClusterL2, &row_key).expect("reads").expect("is there");
        let cluster = StoredCluster::open(ClusterTier::L2, &row_key, &row).expect("is sound");
        let group = cluster.group(0, &mut Limits::default()).expect("is sound").expect("is there");
        let chunk = group.chunk(Slot::new(ClusterTier::L2, 0).expect("the first"));
        assert_eq!(chunk.as_deref(), Some(&noise(0)[..]));
    };
    assert_eq!(count(read), Blobs { read: 1, cached: 0 }, "from the file");
    let kept = used() - before;
    assert!(kept >= len_bytes as u64, "{kept} bytes more are in memory");
    for _ in 0..3 {
        assert_eq!(count(read), Blobs { read: 0, cached: 1 }, "from the cache");
    }
    assert_eq!(
        count(|| {
            let snapshot = engine.snapshot().expect("is open");
            let rows = snapshot.get_many(&[(Space::ClusterL2, &row_key)]);
            assert!(rows.iter().all(|row| matches!(row, Ok(Some(_)))));
        }),
        Blobs { read: 0, cached: 1 },
        "a snapshot reads from it too"
    );
}
