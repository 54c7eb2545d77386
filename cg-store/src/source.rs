//! A world as a source of chunks and a transaction as a sink, so that layers above work on any of them.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkSink, ChunkSource, Lookup, SchemaView};

use crate::engine::Engine;
use crate::error::Error;
use crate::transaction::Transaction;
use crate::world::World;

impl<E: Engine> ChunkSource for World<E> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        Ok(self.inner().stored(at)?.map(|stored| stored.chunk))
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        let found = self.inner().stored_many(at);
        found.into_iter().map(|found| Ok(found?.map(|stored| stored.chunk))).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog().current_schema())
    }
}

impl<E: Engine> ChunkSink for Transaction<'_, E> {
    type Error = Error;

    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Error> {
        Transaction::save(self, at, chunk);
        Ok(())
    }

    fn delete(&mut self, at: ChunkAt) -> Result<(), Error> {
        Transaction::delete(self, at);
        Ok(())
    }
}
