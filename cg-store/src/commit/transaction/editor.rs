//! A transaction as a sink and an editor of chunks, so that higher layers work on any store.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSink, Editor, EntityId, SchemaView};

use super::{Tx, TxStore};
use crate::storage::error::Error;

impl<S: TxStore> ChunkSink for Tx<S> {
    type Error = Error;

    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Error> {
        Tx::save(self, at, chunk);
        Ok(())
    }

    fn delete(&mut self, at: ChunkAt) -> Result<(), Error> {
        Tx::delete(self, at);
        Ok(())
    }
}

impl<S: TxStore> Editor for Tx<S> {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        Tx::load(self, at)
    }

    fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        Tx::load_many(self, at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog().current_schema())
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        Tx::entity(self, id)
    }

    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Error> {
        Tx::put_entity(self, id, entity);
        Ok(())
    }

    fn delete_entity(&mut self, id: EntityId) -> Result<(), Error> {
        Tx::delete_entity(self, id);
        Ok(())
    }
}
