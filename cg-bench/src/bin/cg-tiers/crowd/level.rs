//! LevelDB below the same host: `rusty-leveldb`, which writes the files of LevelDB and compacts on the thread that
//! writes, where LevelDB itself has a second one.

use std::path::Path;
use std::sync::Arc;

use cg_format::{Chunk, ChunkAt, key};
use cg_registry::Schema;
use cg_tiering::{GameTick, PlayerAt};
use rusty_leveldb::{CompressorId, DB, Options, WriteBatch, compressor::SnappyCompressor};

use crate::failure::Failure;
use crate::side::{Side, decode, row};

/// One key per chunk.
pub(super) struct Level<'s> {
    db: DB,
    schema: &'s Schema,
}

impl<'s> Level<'s> {
    /// A new database with compression and this much memory.
    pub(super) fn create(dir: &Path, cache_bytes: usize, schema: &'s Schema) -> Result<Self, Failure> {
        let options = Options {
            compressor: SnappyCompressor::ID,
            block_cache_capacity_bytes: cache_bytes,
            write_buffer_size: 32 << 20,
            max_file_size: 16 << 20,
            ..Options::default()
        };
        Ok(Self { db: DB::open(dir, options)?, schema })
    }
}

impl Side for Level<'_> {
    fn load(&mut self, chunks: &[ChunkAt]) -> Result<usize, Failure> {
        let mut found = 0;
        for at in chunks {
            if let Some(row) = self.db.get(&key::chunk(*at)) {
                decode(&row, self.schema)?;
                found += 1;
            }
        }
        Ok(found)
    }

    fn save(&mut self, chunks: &[(ChunkAt, Arc<Chunk>)]) -> Result<bool, Failure> {
        if chunks.is_empty() {
            return Ok(true);
        }
        let mut batch = WriteBatch::default();
        for (at, chunk) in chunks {
            let (key, row) = row(*at, chunk);
            batch.put(&key, &row);
        }
        self.db.write(batch, false)?;
        Ok(true)
    }

    fn tick(&mut self, _now: GameTick, _players: &[PlayerAt]) -> Result<(), Failure> {
        Ok(())
    }

    fn close(mut self) -> Result<(), Failure> {
        self.db.flush()?;
        Ok(self.db.close()?)
    }
}
