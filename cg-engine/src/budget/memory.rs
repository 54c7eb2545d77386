//! Caches, write buffers and threads that RocksDB databases share.

use rocksdb::{Cache, Env, LruCacheOptions, WriteBufferManager};

/// RocksDB's resources that the engines of one [`Budget`](crate::Budget) share.
pub(crate) struct Memory {
    pub(crate) blocks: Cache,
    pub(crate) blobs: Cache,
    pub(crate) write_buffers: WriteBufferManager,
    pub(crate) env: Env,
}

impl Memory {
    /// Creates caches and write buffers that share `memory_bytes`.
    ///
    /// # Panics
    /// If the system has no environment for RocksDB, which happens on no platform that it supports.
    pub(crate) fn new(memory_bytes: usize, thread_count: usize) -> Self {
        let blobs = memory_bytes / 4;
        // A sharded cache does not hold a value larger than a shard, and clusters reach 8 MiB. So there is one shard.
        let mut blob_options = LruCacheOptions::default();
        blob_options.set_capacity(blobs);
        blob_options.set_num_shard_bits(0);
        let blocks = Cache::new_hyper_clock_cache(memory_bytes - blobs, 0);
        let stall = false;
        let write_buffers =
            WriteBufferManager::new_write_buffer_manager_with_cache(memory_bytes / 4, stall, blocks.clone());
        let mut env = Env::new().expect("the default environment always exists");
        // Flushes have their own threads: a long compaction must not delay the release of write buffers.
        env.set_background_threads(thread_count as i32);
        env.set_high_priority_background_threads(thread_count.div_ceil(4) as i32);
        Self { blocks, blobs: Cache::new_lru_cache_opts(&blob_options), write_buffers, env }
    }

    /// The bytes in use now.
    pub(crate) fn used_bytes(&self) -> u64 {
        // Write buffers are charged to the block cache.
        (self.blocks.get_usage() + self.blobs.get_usage()) as u64
    }
}
