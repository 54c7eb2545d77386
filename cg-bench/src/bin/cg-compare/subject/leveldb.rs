//! LevelDB as `rusty-leveldb` has it, which reads and writes LevelDB's files in Rust.
//!
//! No crate that is kept up binds the C++: this port compacts on the thread that writes, where that has another.

use cg_format::{ChunkAt, key};
use rusty_leveldb::{CompressorId, DB, LdbIterator as _, Options, WriteBatch, compressor::SnappyCompressor};

use super::rows::{Compression, Host, Row, Rows, Take};
use super::{About, Kind, Role, Setting, Subject};
use crate::failure::Failure;
use crate::workload::Workload;

pub(super) struct LevelDb;

impl Kind for LevelDb {
    fn about(&self) -> About {
        About {
            name: "LevelDB (Rust port)".to_owned(),
            role: Role::Rival,
            version: "crate rusty-leveldb 4.0.2; not the C++".to_owned(),
            durability: "a save is in the log's buffer when it returns; synced: fsync of the log".to_owned(),
            options: "one key a chunk, one batch a column; Snappy, 32 MiB of write buffer, cached blocks; compacts on the \
                      thread that writes"
                .to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        std::fs::create_dir_all(setting.dir)?;
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let options = Options {
            compressor: SnappyCompressor::ID,
            block_cache_capacity_bytes: setting.memory.blocks(),
            write_buffer_size: (32 << 20).min(setting.memory.engine_bytes / 4),
            max_file_size: 16 << 20,
            ..Options::default()
        };
        let db = DB::open(setting.dir, options)?;
        Ok(Box::new(Host::new(Box::new(Table { db }), Compression::ByTheStore, 1, setting)))
    }

    fn settle(&self, setting: &Setting<'_>) -> Result<(), Failure> {
        let mut db = DB::open(setting.dir, Options::default())?;
        db.compact_range(&[0], &[0xff; key::CHUNK_LEN_BYTES])?;
        Ok(db.close()?)
    }

    fn cannot(&self, workload: Workload) -> Option<&'static str> {
        workload.needs_threads().then_some("the port has one thread")
    }
}

struct Table {
    db: DB,
}

impl Rows for Table {
    fn put(&mut self, rows: &[Row], synced: bool) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        for (at, row) in rows {
            batch.put(&key::chunk(*at), row);
        }
        Ok(self.db.write(batch, synced)?)
    }

    fn get(&mut self, places: &[ChunkAt], take: &mut Take<'_>) -> Result<(), Failure> {
        for at in places {
            take(self.db.get(&key::chunk(*at)).as_deref())?;
        }
        Ok(())
    }

    fn scan(&mut self, take: &mut Take<'_>) -> Result<(), Failure> {
        let mut rows = self.db.new_iter()?;
        while rows.advance() {
            let row = rows.current().ok_or("the iterator of LevelDB ended between two calls")?;
            take(Some(&row.1))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        Ok(self.db.write(WriteBatch::default(), true)?)
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        self.sync()?;
        Ok(self.db.close()?)
    }
}
