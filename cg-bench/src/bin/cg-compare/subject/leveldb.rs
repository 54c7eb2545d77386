//! LevelDB as `rusty-leveldb` has it, which reads and writes LevelDB's files in Rust.
//!
//! No crate that is kept up binds the C++: this port compacts on the thread that writes, where that has another. A
//! synced write of the port reaches the system and not the disk, so the host syncs the log itself.

use std::fs::{self, File};
use std::path::PathBuf;

use cg_format::{ChunkAt, key};
use rusty_leveldb::{CompressorId, DB, LdbIterator as _, Options, WriteBatch, compressor::SnappyCompressor};

use super::rows::{Compression, Host, Row, Rows, Take};
use super::{About, Kind, Memory, Role, Setting, Subject};
use crate::failure::Failure;
use crate::workload::Workload;

pub(super) struct LevelDb;

impl Kind for LevelDb {
    fn about(&self) -> About {
        About {
            name: "LevelDB (Rust port)".to_owned(),
            role: Role::Rival,
            version: "crate rusty-leveldb 4.0.2; not the C++".to_owned(),
            durability: "a save is in the log's buffer when it returns; synced: written, and the host syncs the log, which the port does \
                         not"
                .to_owned(),
            options: "one key a chunk, one batch a column; Snappy, 32 MiB of write buffer, cached blocks; compacts on the \
                      thread that writes"
                .to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        fs::create_dir_all(setting.dir)?;
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let db = DB::open(setting.dir, options(setting.memory))?;
        let table = Table { db, dir: setting.dir.to_owned() };
        Ok(Box::new(Host::new(Box::new(table), Compression::ByTheStore, 1, setting)))
    }

    fn compact(&self, setting: &Setting<'_>) -> Result<(), Failure> {
        let mut db = DB::open(setting.dir, options(setting.memory))?;
        db.compact_range(&[0], &[0xff; key::CHUNK_LEN_BYTES])?;
        Ok(db.close()?)
    }

    fn cannot(&self, workload: Workload) -> Option<&'static str> {
        workload.needs_threads().then_some("the port has one thread")
    }
}

fn options(memory: Memory) -> Options {
    Options {
        compressor: SnappyCompressor::ID,
        block_cache_capacity_bytes: memory.blocks(),
        write_buffer_size: (32 << 20).min(memory.engine_bytes / 4),
        max_file_size: 16 << 20,
        ..Options::default()
    }
}

struct Table {
    db: DB,
    dir: PathBuf,
}

impl Table {
    /// Has the disk keep the log, or every file.
    fn sync_files(&self, only_log: bool) -> Result<(), Failure> {
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if !only_log || path.extension().is_some_and(|extension| extension == "log") {
                File::open(path)?.sync_data()?;
            }
        }
        Ok(())
    }
}

impl Rows for Table {
    fn put(&mut self, rows: &[Row], synced: bool) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        for (at, row) in rows {
            batch.put(&key::chunk(*at), row);
        }
        self.db.write(batch, synced)?;
        if synced { self.sync_files(true) } else { Ok(()) }
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
        self.db.write(WriteBatch::default(), true)?;
        self.sync_files(false)
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        self.db.close()?;
        self.sync_files(false)
    }
}
