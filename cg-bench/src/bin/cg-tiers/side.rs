//! Requests of a host to a store in a tick, to a world and to RocksDB with one key per chunk.

use std::sync::Arc;
use std::time::Duration;

use cg_bench::raw::{Db, family};
use cg_bench::stored::{hot_row, hot_value};
use cg_format::{Chunk, ChunkAt, Space, key};
use cg_registry::Schema;
use cg_store::tiers::MoveCounts;
use cg_store::{Error, World, WriteBatch};
use cg_tiering::{GameTick, PlayerAt};

use crate::failure::Failure;

/// A store under a host.
pub(crate) trait Side {
    /// Loads chunks and decodes those that there are; how many there are.
    fn load(&mut self, chunks: &[ChunkAt]) -> Result<usize, Failure>;
    /// Saves chunks together; `false` if the store has no room for them at present.
    fn save(&mut self, chunks: &[(ChunkAt, Arc<Chunk>)]) -> Result<bool, Failure>;
    fn tick(&mut self, now: GameTick, players: &[PlayerAt]) -> Result<(), Failure>;
    fn close(self) -> Result<(), Failure>;
}

/// A world.
pub(crate) struct Tiered {
    pub(crate) world: World,
    pub(crate) moves: MoveCounts,
    /// The time of a tick that maintenance may take.
    budget: Duration,
}

impl Tiered {
    pub(crate) fn new(world: World, budget: Duration) -> Self {
        Self { world, moves: MoveCounts::default(), budget }
    }
}

impl Side for Tiered {
    fn load(&mut self, chunks: &[ChunkAt]) -> Result<usize, Failure> {
        let mut found = 0;
        for chunk in self.world.load_many(chunks) {
            found += usize::from(chunk?.is_some());
        }
        Ok(found)
    }

    fn save(&mut self, chunks: &[(ChunkAt, Arc<Chunk>)]) -> Result<bool, Failure> {
        if chunks.is_empty() {
            return Ok(true);
        }
        let mut batch = WriteBatch::with_capacity(chunks.len());
        for (at, chunk) in chunks {
            batch.save(*at, Arc::clone(chunk));
        }
        match self.world.submit(batch) {
            // What is refused is told when the world is closed.
            Ok(_) => Ok(true),
            Err(refused) if matches!(refused.error, Error::Busy { .. }) => Ok(false),
            Err(refused) => Err(refused.error.into()),
        }
    }

    fn tick(&mut self, now: GameTick, players: &[PlayerAt]) -> Result<(), Failure> {
        let moves = self.world.tick(now, players, self.budget)?.moves;
        self.moves.promoted += moves.promoted;
        self.moves.warmed += moves.warmed;
        self.moves.cooled += moves.cooled;
        self.moves.shadows_dropped += moves.shadows_dropped;
        self.moves.bytes_read += moves.bytes_read;
        self.moves.bytes_written += moves.bytes_written;
        self.moves.conflicts += moves.conflicts;
        self.moves.refused += moves.refused;
        Ok(())
    }

    fn close(self) -> Result<(), Failure> {
        Ok(self.world.close()?)
    }
}

/// RocksDB with one key per chunk, in the family and with the options of a world, and nothing else.
pub(crate) struct Flat<'s> {
    pub(crate) raw: Db,
    pub(crate) schema: &'s Schema,
}

/// The row of a chunk: what every store below a world is handed.
pub(crate) fn row(at: ChunkAt, chunk: &Chunk) -> (Box<[u8]>, Vec<u8>) {
    let key = key::chunk(at);
    let row = hot_row(chunk).seal(Space::ChunkL0, &key, 1);
    (key.as_ref().into(), row)
}

/// Decodes a row that was made by [`row`].
pub(crate) fn decode(row: &[u8], schema: &Schema) -> Result<Chunk, Failure> {
    Ok(Chunk::decode(&hot_value(row), schema)?)
}

impl Side for Flat<'_> {
    fn load(&mut self, chunks: &[ChunkAt]) -> Result<usize, Failure> {
        let keys: Vec<_> = chunks.iter().map(|at| key::chunk(*at)).collect();
        let mut found = 0;
        for row in self.raw.batched_multi_get_cf(family(&self.raw, Space::ChunkL0), &keys, false) {
            if let Some(row) = row? {
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
        let mut batch = rocksdb::WriteBatch::default();
        for (at, chunk) in chunks {
            let (key, row) = row(*at, chunk);
            batch.put_cf(family(&self.raw, Space::ChunkL0), key, row);
        }
        self.raw.write(batch)?;
        Ok(true)
    }

    fn tick(&mut self, _now: GameTick, _players: &[PlayerAt]) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self) -> Result<(), Failure> {
        self.raw.flush_cf(family(&self.raw, Space::ChunkL0))?;
        self.raw.cancel_all_background_work(true);
        Ok(())
    }
}
