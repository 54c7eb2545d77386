//! A target that changes nothing. It shows what a restore would do.

use std::fmt;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSink, ChunkSource, Editor, EntityId, EntitySource, SchemaView};

/// Reads a source and drops what is written. A [`RestoreJob`](crate::RestoreJob) on it reports every change that it
/// would make, and makes none.
pub struct DryRun<'s, S> {
    source: &'s S,
    /// A schema that replaces the source's.
    schema: Option<Arc<dyn SchemaView + Send + Sync>>,
}

impl<'s, S> DryRun<'s, S> {
    /// Creates a target that reads `source`.
    pub const fn new(source: &'s S) -> Self {
        Self { source, schema: None }
    }

    /// Creates a target that reads `source` with another schema: one with names that would be registered first.
    pub fn with_schema(source: &'s S, schema: impl SchemaView + Send + Sync + 'static) -> Self {
        Self { source, schema: Some(Arc::new(schema)) }
    }
}

impl<S: fmt::Debug> fmt::Debug for DryRun<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DryRun").field("source", self.source).finish_non_exhaustive()
    }
}

impl<S: ChunkSource> ChunkSink for DryRun<'_, S> {
    type Error = S::Error;

    fn save(&mut self, _: ChunkAt, _: Arc<Chunk>) -> Result<(), S::Error> {
        Ok(())
    }

    fn delete(&mut self, _: ChunkAt) -> Result<(), S::Error> {
        Ok(())
    }
}

impl<X, S: ChunkSource<Error = X> + EntitySource<Error = X>> Editor for DryRun<'_, S> {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, X> {
        Ok(self.source.lookup(at)?.here())
    }

    fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, X>> {
        let found = self.source.lookup_many(at).into_iter();
        found.map(|found| Ok(found?.here())).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        self.schema.clone().unwrap_or_else(|| self.source.schema())
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, X> {
        self.source.entity(id)
    }

    fn put_entity(&mut self, _: EntityId, _: Entity) -> Result<(), X> {
        Ok(())
    }

    fn delete_entity(&mut self, _: EntityId) -> Result<(), X> {
        Ok(())
    }
}
