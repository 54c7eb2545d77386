//! Many reads of one state of the world: commits and moves between two of them are not visible.

use std::sync::{Arc, OnceLock};

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use cg_registry::Catalog;

use crate::engine::{CommitSeq, Snapshot};
use crate::read::cache::{ChunkCache, Moment, Stored};
use crate::read::delta::DeltasInView;
use crate::read::reader::Reader;
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
    /// Which chunks of the view have deltas. Read when many chunks are read that memory does not have.
    deltas: OnceLock<DeltasInView>,
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
            deltas: OnceLock::new(),
        }
    }
}

impl WorldView<'_> {
    /// A reader of this moment. It scans for the deltas of each chunk, unless the keys of all deltas were read before.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::of_view(self.world, &self.view, &self.catalog, self.deltas.get())
    }

    pub(in crate::read) fn read_deltas(&self) -> Result<(), Error> {
        if self.deltas.get().is_none() {
            let read = DeltasInView::read(&self.view)?;
            self.deltas.get_or_init(|| read);
        }
        Ok(())
    }

    /// Calls `show` with the stored ones of some chunks, in no particular order. Returns the number of absent chunks.
    ///
    /// Costs what [`find_many`](super::find_many) costs for the chunks that are not in memory. To read a cluster only
    /// once, its chunks must be requested together.
    ///
    /// # Errors
    /// The error of the first damaged chunk; other chunks may have been shown.
    pub(crate) fn show(
        &self,
        at: &[ChunkAt],
        mut show: impl FnMut(ChunkAt, &Arc<Chunk>),
    ) -> Result<u64, Error> {
        let ReadState { cache, shared, observer, .. } = self.world;
        let (mut missed, mut absent) = (Vec::new(), 0);
        for at in at {
            match cache.get_as_of(*at, &self.moment) {
                Some(Lookup::Found(stored)) => show(*at, &stored.chunk),
                Some(Lookup::Tombstone | Lookup::NotFound) => absent += 1,
                None => missed.push(*at),
            }
        }
        Counters::add(&shared.counters.cache_hits, (at.len() - missed.len()) as u64);
        if missed.is_empty() {
            return Ok(absent);
        }
        Counters::add(&shared.counters.cache_misses, missed.len() as u64);
        if missed.len() > FEW {
            self.read_deltas()?;
        }
        observer.missed(&missed);
        let keep = |at, found: Result<Lookup<Stored>, Error>| {
            observer.loaded(at, &found);
            // Later commits do not concern this reader: it returns what it found.
            self.world.keep(at, ChunkCache::ticket(at, &self.moment), found?);
            Ok(())
        };
        // Each chunk is shown when it is read, so not all chunks of a cluster are in memory at once.
        let found = self.reader().chunks(&missed, |at, stored| {
            show(at, &stored.chunk);
            keep(at, Ok(Lookup::Found(stored)))
        });
        for (at, found) in missed.into_iter().zip(found) {
            match found {
                Ok(Lookup::Found(())) => continue,
                Ok(Lookup::Tombstone) => keep(at, Ok(Lookup::Tombstone))?,
                Ok(Lookup::NotFound) => keep(at, Ok(Lookup::NotFound))?,
                Err(error) => keep(at, Err(error))?,
            }
            absent += 1;
        }
        Ok(absent)
    }
}
