//! Many reads of one state of the world: commits and moves between two of them are not visible.

use std::sync::{Arc, OnceLock};

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use cg_registry::Catalog;

use super::find_many::find_many_in;
use crate::engine::{CommitSeq, Snapshot};
use crate::read::cache::{ChunkCache, Moment};
use crate::read::delta::{WithDeltas, fold_stored};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The deltas of at most this many chunks are scanned for one by one. For more, the keys of all deltas are read once.
const FEW: usize = 64;

/// The world at one moment, in the engine and in memory.
pub(crate) struct WorldView<'w> {
    pub(crate) world: &'w ReadState,
    pub(crate) view: Snapshot<'w>,
    moment: Moment,
    pub(crate) catalog: Arc<Catalog>,
    /// The last commit that the view has.
    pub(crate) commit: CommitSeq,
    /// Read when many chunks are read that memory does not have.
    with_deltas: OnceLock<WithDeltas>,
}

impl ReadState {
    /// The world as it is now. The caller holds the commit lock and the queue is empty, so memory and `view` agree; `commit`
    /// is the last one of the view.
    pub(crate) fn read_view<'w>(&'w self, view: Snapshot<'w>, commit: CommitSeq) -> WorldView<'w> {
        WorldView {
            world: self,
            view,
            commit,
            moment: self.cache.moment(),
            catalog: self.shared.registry.catalog(),
            with_deltas: OnceLock::new(),
        }
    }
}

impl WorldView<'_> {
    fn with_deltas(&self) -> Result<&WithDeltas, Error> {
        if let Some(read) = self.with_deltas.get() {
            return Ok(read);
        }
        let read = WithDeltas::of(&self.view)?;
        Ok(self.with_deltas.get_or_init(|| read))
    }

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
        let known = missed.len() > FEW || self.with_deltas.get().is_some();
        let with_deltas = if known { Some(self.with_deltas()?) } else { None };
        // Each chunk is shown when it is read, so not all chunks of a cluster are in memory at once.
        let found = find_many_in(&self.view, &world.shared.counters, &missed, |chunk| {
            let stored = if with_deltas.is_none_or(|with| with.has(chunk.at)) {
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
