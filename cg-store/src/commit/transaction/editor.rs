//! A transaction as a sink and an editor of chunks, so that layers above work on any of them.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSink, Editor, EntityId, SchemaView};

use super::Transaction;
use crate::storage::error::Error;

impl ChunkSink for Transaction<'_> {
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

impl Editor for Transaction<'_> {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        Transaction::load(self, at)
    }

    fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        Transaction::load_many(self, at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog().current_schema())
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        Transaction::entity(self, id)
    }

    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Error> {
        Transaction::put_entity(self, id, entity);
        Ok(())
    }

    fn delete_entity(&mut self, id: EntityId) -> Result<(), Error> {
        Transaction::delete_entity(self, id);
        Ok(())
    }
}
