//! A source that counts on a progress bar what is read of it.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSource, EntityId, EntitySource, Lookup, SchemaView};
use indicatif::ProgressBar;

/// A source, and the bar that goes on by each chunk asked for.
pub(in crate::cmd) struct Watched<'s, S> {
    pub(in crate::cmd) source: &'s S,
    pub(in crate::cmd) progress: &'s ProgressBar,
}

impl<S: ChunkSource> ChunkSource for Watched<'_, S> {
    type Error = S::Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, S::Error> {
        self.progress.inc(1);
        self.source.lookup(at)
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, S::Error>> {
        self.progress.inc(at.len() as u64);
        self.source.lookup_many(at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        self.source.schema()
    }
}

impl<S: EntitySource> EntitySource for Watched<'_, S> {
    type Error = S::Error;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, S::Error> {
        self.source.entity(id)
    }
}
