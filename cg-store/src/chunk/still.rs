//! Many reads of one state of the world: what is committed or moved between two of them is not seen.

use std::collections::HashMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use cg_registry::Catalog;

use super::find_many::find_many_in;
use crate::cache::{ChunkCache, Moment};
use crate::delta::chunks_with_deltas;
use crate::engine::Engine;
use crate::error::Error;
use crate::stats::Counters;
use crate::world::Inner;

/// The world as it was at one moment, in the engine and in memory alike.
pub(crate) struct StillWorld<'w, E: Engine> {
    world: &'w Inner<E>,
    view: E::Snapshot<'w>,
    moment: Moment,
    catalog: Arc<Catalog>,
    with_deltas: HashMap<ChunkAt, u64>,
}

impl<E: Engine> Inner<E> {
    /// The world as it is now. Waits until nothing is queued and for a commit under way, so that memory and
    /// engine say the same. The engine is the world's own, borrowed for as long as the value is held.
    pub(crate) fn still<'w>(&'w self, engine: &'w E) -> Result<StillWorld<'w, E>, Error> {
        self.check_open()?;
        let _no_commit = self.commit_alone()?;
        let view = engine.snapshot();
        Ok(StillWorld {
            with_deltas: chunks_with_deltas(&view)?,
            world: self,
            view,
            moment: self.cache.moment(),
            catalog: self.registry.catalog(),
        })
    }
}

impl<E: Engine> StillWorld<'_, E> {
    /// Shows the stored ones of some chunks, in no order, and says how many are not stored.
    ///
    /// Costs what [`find_many_in`] costs for those that memory does not have. Chunks of one cluster that are to be read
    /// from it once must be asked for together.
    ///
    /// # Errors
    /// That of the first chunk that is damaged; others may have been shown.
    pub(crate) fn show(&self, at: &[ChunkAt], mut show: impl FnMut(ChunkAt, &Chunk)) -> Result<u64, Error> {
        let world = self.world;
        // What is committed since does not concern this reader: what it found is what it answers.
        let keep = |at, found| drop(world.keep(at, ChunkCache::ticket(at, &self.moment), found));
        let (mut missed, mut absent) = (Vec::new(), 0);
        for at in at {
            match world.cache.get_as_of(*at, &self.moment) {
                Some(Lookup::Here(stored)) => show(*at, &stored.chunk),
                Some(Lookup::Deleted | Lookup::NotHere) => absent += 1,
                None => missed.push(*at),
            }
        }
        Counters::add(&world.counters.cache_hits, (at.len() - missed.len()) as u64);
        if missed.is_empty() {
            return Ok(absent);
        }
        Counters::add(&world.counters.cache_misses, missed.len() as u64);
        world.tiering.touch(missed.iter().copied());
        // Each is shown as it is read, so not all of a cluster's chunks are in memory at once.
        let found = find_many_in(&self.view, &world.counters, &missed, |chunk| {
            let stored = if self.with_deltas.contains_key(&chunk.at) {
                world.read_folded(&self.view, &self.catalog, chunk)?
            } else {
                world.read(&self.catalog, chunk)?
            };
            show(chunk.at, &stored.chunk);
            keep(chunk.at, Lookup::Here(stored));
            Ok(())
        });
        for (at, found) in missed.into_iter().zip(found) {
            let found = match found? {
                Lookup::Here(()) => continue,
                Lookup::Deleted => Lookup::Deleted,
                Lookup::NotHere => Lookup::NotHere,
            };
            absent += 1;
            keep(at, found);
        }
        Ok(absent)
    }
}
