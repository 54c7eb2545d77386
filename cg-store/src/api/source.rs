//! A world as a source of chunks and entities, so that layers above work on any of them.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSource, EntityId, EntitySource, Lookup, SchemaView};

use crate::api::world::World;
use crate::storage::error::Error;

impl ChunkSource for World {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        Ok(self.applied_for(&[at])?.read.stored(at)?.map(|stored| stored.chunk))
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        let found = self.rooms().commit.stored_many_applied(at);
        found.into_iter().map(|found| Ok(found?.map(|stored| stored.chunk))).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog().current_schema())
    }
}

impl EntitySource for World {
    type Error = Error;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        World::entity(self, id)
    }
}
