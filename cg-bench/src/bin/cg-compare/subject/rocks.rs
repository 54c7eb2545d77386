//! Plain RocksDB: one key per chunk, one batch a column, tuned for chunks.

use std::path::Path;
use std::sync::Arc;

use cg_format::{ChunkAt, key};
use rocksdb::{
    BlockBasedOptions, BoundColumnFamily, Cache, ColumnFamilyDescriptor, DBCompressionType, DBWithThreadMode,
    IteratorMode, MultiThreaded, Options, WriteBatch, WriteOptions,
};

use super::rows::{Compression, Host, Row, Rows, Take};
use super::{About, Kind, Memory, Role, Setting, Subject};
use crate::failure::Failure;

type Db = DBWithThreadMode<MultiThreaded>;

/// Keys of one call of RocksDB.
const TOGETHER: usize = 1024;
/// RocksDB's own family.
const FAMILY: &str = "default";

pub(super) struct Rocks;

impl Kind for Rocks {
    fn about(&self) -> About {
        About {
            name: "RocksDB".to_owned(),
            role: Role::Rival,
            version: "RocksDB 11.8.1, crate rocksdb 0.25.0".to_owned(),
            durability: "a save is in the log when it returns (a killed process loses nothing); synced: fsync of the log"
                .to_owned(),
            options: "one key a chunk, one batch a column; LZ4, blocks of 8 KiB, 10 bits of Bloom filter, 64 MiB of write \
                      buffer, cached blocks"
                .to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        std::fs::create_dir_all(setting.dir)?;
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let db = Arc::new(open(setting.dir, setting.memory)?);
        Ok(Box::new(Host::new(Box::new(Table { db }), Compression::ByTheStore, 1, setting)))
    }

    fn compact(&self, setting: &Setting<'_>) -> Result<(), Failure> {
        let db = open(setting.dir, setting.memory)?;
        db.flush()?;
        db.compact_range(None::<&[u8]>, None::<&[u8]>);
        db.cancel_all_background_work(true);
        Ok(())
    }
}

fn open(dir: &Path, memory: Memory) -> Result<Db, rocksdb::Error> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_background_jobs(2);
    options.set_write_buffer_size((64 << 20).min(memory.engine_bytes / 4));
    options.set_bytes_per_sync(1 << 20);
    options.set_keep_log_file_num(2);
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_hyper_clock_cache(memory.blocks(), 0));
    table.set_block_size(8 << 10);
    table.set_bloom_filter(10.0, false);
    options.set_block_based_table_factory(&table);
    let family = ColumnFamilyDescriptor::new(FAMILY, options.clone());
    Db::open_cf_descriptors(&options, dir, [family])
}

struct Table {
    db: Arc<Db>,
}

impl Table {
    fn family(&self) -> Result<Arc<BoundColumnFamily<'_>>, Failure> {
        self.db.cf_handle(FAMILY).ok_or_else(|| "RocksDB has lost its own family".into())
    }
}

impl Rows for Table {
    fn put(&mut self, rows: &[Row], synced: bool) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        for (at, row) in rows {
            batch.put_cf(&self.family()?, key::chunk(*at), row);
        }
        let mut options = WriteOptions::default();
        options.set_sync(synced);
        Ok(self.db.write_opt(batch, &options)?)
    }

    fn get(&mut self, places: &[ChunkAt], take: &mut Take<'_>) -> Result<(), Failure> {
        for places in places.chunks(TOGETHER) {
            let keys: Vec<_> = places.iter().map(|at| key::chunk(*at)).collect();
            for row in self.db.batched_multi_get_cf(&self.family()?, &keys, false) {
                take(row?.as_deref())?;
            }
        }
        Ok(())
    }

    fn scan(&mut self, take: &mut Take<'_>) -> Result<(), Failure> {
        for row in self.db.iterator_cf(&self.family()?, IteratorMode::Start) {
            take(Some(&row?.1))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        Ok(self.db.flush_wal(true)?)
    }

    fn share(&self) -> Option<Box<dyn Rows + Send>> {
        Some(Box::new(Self { db: Arc::clone(&self.db) }))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.db.flush_wal(true)?;
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}
