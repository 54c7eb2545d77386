//! Many reads of one state of the world: commits and moves between two of them are not visible.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSource, EntityId, EntitySource, Lookup, SchemaView, Space, key};
use cg_registry::Catalog;

use super::find_many::find_many_in;
use crate::engine::{Engine, Readable as _, Snapshot};
use crate::read::cache::{ChunkCache, Moment};
use crate::read::delta::{WithDeltas, fold_stored};
use crate::read::iterate::entities;
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The world at one moment, in the engine and in memory.
pub(crate) struct WorldView<'w> {
    world: &'w ReadState,
    view: Snapshot<'w>,
    moment: Moment,
    catalog: Arc<Catalog>,
    with_deltas: WithDeltas,
}

impl ReadState {
    /// The world as it is now. The caller holds the commit lock and the queue is empty, so that memory and engine
    /// agree. `engine` is the world's own, borrowed for as long as the value is held.
    pub(crate) fn read_view<'w>(&'w self, engine: &'w dyn Engine) -> Result<WorldView<'w>, Error> {
        let view = engine.snapshot()?;
        Ok(WorldView {
            with_deltas: WithDeltas::of(&view)?,
            world: self,
            view,
            moment: self.cache.moment(),
            catalog: self.shared.registry.catalog(),
        })
    }
}

impl WorldView<'_> {
    /// Calls `show` with the stored ones of some chunks, in no particular order. Returns the number of absent chunks.
    ///
    /// Costs what [`find_many_in`] costs for the chunks that are not in memory. To read a cluster only once, its chunks
    /// must be requested together.
    ///
    /// # Errors
    /// The error of the first damaged chunk; other chunks may have been shown.
    pub(crate) fn show(
        &self,
        at: &[ChunkAt],
        mut show: impl FnMut(ChunkAt, &Arc<Chunk>),
    ) -> Result<u64, Error> {
        let world = self.world;
        // Later commits do not concern this reader: it returns what it found.
        let keep = |at, found| drop(world.keep(at, ChunkCache::ticket(at, &self.moment), found));
        let (mut missed, mut absent) = (Vec::new(), 0);
        for at in at {
            match world.cache.get_as_of(*at, &self.moment) {
                Some(Lookup::Found(stored)) => show(*at, &stored.chunk),
                Some(Lookup::Tombstone | Lookup::NotFound) => absent += 1,
                None => missed.push(*at),
            }
        }
        Counters::add(&world.shared.counters.cache_hits, (at.len() - missed.len()) as u64);
        if missed.is_empty() {
            return Ok(absent);
        }
        Counters::add(&world.shared.counters.cache_misses, missed.len() as u64);
        world.observer.missed(&missed);
        // Each chunk is shown when it is read, so not all chunks of a cluster are in memory at once.
        let found = find_many_in(&self.view, &world.shared.counters, &missed, |chunk| {
            let stored = if self.with_deltas.has(chunk.at) {
                let fold = || fold_stored(&self.view, &self.catalog, chunk);
                world.read_folded(&self.catalog, chunk, fold)?
            } else {
                world.read(&self.catalog, chunk)?
            };
            show(chunk.at, &stored.chunk);
            keep(chunk.at, Lookup::Found(stored));
            Ok(())
        });
        for (at, found) in missed.into_iter().zip(found) {
            let found = match found? {
                Lookup::Found(()) => continue,
                Lookup::Tombstone => Lookup::Tombstone,
                Lookup::NotFound => Lookup::NotFound,
            };
            absent += 1;
            keep(at, found);
        }
        Ok(absent)
    }
}

/// The world at one moment, as a source: commits and moves during the reads are not visible.
///
/// Chunks come from memory if they are unchanged since that moment. The view keeps old rows alive, so hold it no longer
/// than needed.
pub struct ReadView<'w> {
    pub(crate) inner: WorldView<'w>,
}

impl ReadView<'_> {
    /// The registry at that moment, which issued the ids in the view.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.inner.catalog
    }

    /// Visits every entity of that moment, ascending by UUID, until `visit` breaks. A damaged one is visited as an
    /// error.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_entity<B>(
        &self,
        visit: impl FnMut(Result<(EntityId, Entity), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        entities(&self.inner.view, visit)
    }
}

impl ChunkSource for ReadView<'_> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        let mut found = Lookup::NotFound;
        self.inner.show(&[at], |_, chunk| found = Lookup::Found(Arc::clone(chunk)))?;
        Ok(found)
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        let mut found = HashMap::with_capacity(at.len());
        let shown = self.inner.show(at, |at, chunk| drop(found.insert(at, Arc::clone(chunk))));
        // After an error each chunk is read alone, so that a damaged chunk fails only itself.
        let read = |at: &ChunkAt| match (found.get(at), &shown) {
            (Some(chunk), _) => Ok(Lookup::Found(Arc::clone(chunk))),
            (None, Ok(_)) => Ok(Lookup::NotFound),
            (None, Err(_)) => self.lookup(*at),
        };
        at.iter().map(read).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.inner.catalog.current_schema())
    }
}

impl EntitySource for ReadView<'_> {
    type Error = Error;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        let WorldView { world, view, catalog, .. } = &self.inner;
        let row = view.get(Space::Entity, &key::entity(id))?;
        row.map(|row| world.decode_entity(catalog, id, &row)).transpose()
    }
}

impl std::fmt::Debug for ReadView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadView").field("world", self.inner.world).finish_non_exhaustive()
    }
}
