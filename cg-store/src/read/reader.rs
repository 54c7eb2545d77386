//! Reads chunks: from memory, otherwise from the queue, otherwise from rows.
//!
//! Every read of content ends here. A load asks the cache and the queue first, and keeps what it reads. A [`Reader`]
//! takes rows to chunks: it finds them, folds their deltas, decodes and upgrades them.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use cg_registry::Catalog;
use foldhash::HashMap;

use crate::engine::{CommitSeq, Readable};
use crate::read::cache::{Stored, Ticket};
use crate::read::chunk::decode::{LastDecoded, decode, upgrade};
use crate::read::chunk::{Rows, StoredChunk, find, find_many};
use crate::read::delta::{Deltas, DeltasInView, fold};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

impl ReadState {
    /// The last committed state of a chunk.
    #[inline]
    pub(crate) fn stored(&self, at: ChunkAt) -> Result<Lookup<Stored>, Error> {
        self.shared.check_open()?;
        match self.cache.get(at) {
            Ok(found) => {
                self.cache.count_hit();
                self.note_asked(at, true);
                Ok(found)
            }
            Err(ticket) => self.missed(at, ticket),
        }
    }

    /// Calls a closure with a stored chunk.
    #[inline]
    pub(crate) fn with_chunk<T>(
        &self,
        at: ChunkAt,
        show: impl FnOnce(&Chunk) -> T,
    ) -> Result<Option<T>, Error> {
        self.shared.check_open()?;
        match self.cache.show(at, show) {
            Ok(shown) => {
                self.cache.count_hit();
                self.note_asked(at, true);
                Ok(Some(shown))
            }
            Err((show, cached)) => {
                let found = match cached {
                    Ok(found) => {
                        self.cache.count_hit();
                        self.note_asked(at, true);
                        found
                    }
                    Err(ticket) => self.missed(at, ticket)?,
                };
                Ok(found.here().map(|stored| show(&stored.chunk)))
            }
        }
    }

    /// The cached state of a chunk.
    pub(crate) fn peek(&self, at: ChunkAt) -> Option<Lookup<Stored>> {
        let found = self.cache.get(at).ok()?;
        self.note_asked(at, true);
        Some(found)
    }

    /// The last committed state of many chunks. Those not in memory are read together.
    pub(crate) fn stored_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        self.stored_or_loaded(at, |at, tickets| self.load(at, tickets))
    }

    /// The last committed state of many chunks. Those not in memory are passed to `load`, with their tickets.
    pub(crate) fn stored_or_loaded(
        &self,
        at: &[ChunkAt],
        load: impl FnOnce(&[ChunkAt], &[Ticket]) -> Vec<Result<Lookup<Stored>, Error>>,
    ) -> Vec<Result<Lookup<Stored>, Error>> {
        if self.shared.check_open().is_err() {
            return at.iter().map(|_| Err(Error::Closed)).collect();
        }
        let (mut found, mut missed, mut tickets) = (Vec::with_capacity(at.len()), Vec::new(), Vec::new());
        let mut was_absent = false;
        for (place, at) in at.iter().enumerate() {
            // Absent chunks are asked for together. What the cache has of an empty group says no more than that.
            let cached = if was_absent && self.cache.is_in_empty_group(*at) {
                Ok(Lookup::NotFound)
            } else {
                self.cache.get(*at)
            };
            was_absent = matches!(cached, Ok(Lookup::NotFound));
            self.note_asked(*at, cached.is_ok());
            match cached.or_else(|ticket| self.queued(*at, ticket).ok_or(ticket)) {
                Ok(known) => found.push(Ok(known)),
                Err(ticket) => {
                    missed.push(place);
                    tickets.push(ticket);
                }
            }
        }
        Counters::add(&self.shared.counters.cache_hits, found.len() as u64);
        if missed.is_empty() {
            found
        } else if found.is_empty() {
            load(at, &tickets)
        } else {
            let missed_at: Vec<_> = missed.iter().map(|place| at[*place]).collect();
            let mut loaded = missed.iter().zip(load(&missed_at, &tickets)).peekable();
            let mut found = found.into_iter();
            // Puts what was loaded between the others.
            let next = |place| match loaded.next_if(|(missed, _)| **missed == place) {
                Some((_, loaded)) => loaded,
                None => found.next().expect("what was not missed was found"),
            };
            (0..at.len()).map(next).collect()
        }
    }

    /// A chunk that the cache does not have: from the queue, otherwise from rows.
    #[cold]
    fn missed(&self, at: ChunkAt, ticket: Ticket) -> Result<Lookup<Stored>, Error> {
        self.note_asked(at, false);
        if let Some(queued) = self.queued(at, ticket) {
            self.cache.count_hit();
            return Ok(queued);
        }
        self.load(&[at], &[ticket]).pop().unwrap_or(Ok(Lookup::NotFound))
    }

    /// A chunk of the queue, which the cache gets.
    fn queued(&self, at: ChunkAt, ticket: Ticket) -> Option<Lookup<Stored>> {
        let queued = self.pending.chunk(at)?;
        Some(self.cache.fill(at, ticket, &queued).unwrap_or(queued))
    }

    /// Reports that a host requested a chunk, and whether it was in memory.
    #[inline]
    pub(super) fn note_asked(&self, at: ChunkAt, in_memory: bool) {
        if self.tells_asked {
            self.observer.asked(at, in_memory);
        }
    }

    /// Whether all of some chunks are in groups that are known to be empty. Then they count as found in memory.
    ///
    /// Costs a comparison for each chunk in the cube of the one before it, and ends at the first cube that is not known.
    pub(crate) fn are_known_absent(&self, at: &[ChunkAt]) -> bool {
        let are = self.shared.check_open().is_ok() && self.cache.are_in_empty_groups(at);
        if are {
            self.note_all_asked(at.iter().copied());
            Counters::add(&self.shared.counters.cache_hits, at.len() as u64);
        }
        are
    }

    /// Reports that a host requested chunks that are in memory.
    pub(super) fn note_all_asked(&self, at: impl Iterator<Item = ChunkAt>) {
        if self.tells_asked {
            at.for_each(|at| self.observer.asked(at, true));
        }
    }

    /// Reads chunks that neither the cache nor the queue has, and keeps them.
    #[cold]
    pub(crate) fn load(&self, at: &[ChunkAt], tickets: &[Ticket]) -> Vec<Result<Lookup<Stored>, Error>> {
        if at.is_empty() {
            return Vec::new();
        }
        Counters::add(&self.shared.counters.cache_misses, at.len() as u64);
        self.observer.missed(at);
        let read = |at: &[ChunkAt]| {
            self.with_reader(|| self.deltas.list(at), |reader| reader.chunks(at, |_, stored| Ok(stored)))
        };
        let alone = |at: &ChunkAt| read(&[*at])?.pop().unwrap_or(Ok(Lookup::NotFound));
        // If the engine cannot be read, each chunk gets its own error through a single read.
        let mut found = read(at).unwrap_or_else(|_| at.iter().map(alone).collect());
        at.iter().zip(&found).for_each(|(at, found)| self.observer.loaded(*at, found));
        let absent = at.iter().zip(&found).filter(|(_, found)| matches!(found, Ok(Lookup::NotFound)));
        self.learn_absences(&absent.map(|(at, _)| *at).collect::<Vec<_>>());
        self.cache.fill_all(at, tickets, &mut found);
        found
    }

    /// Caches the result of a load. Returns what the load must return.
    pub(super) fn keep(&self, at: ChunkAt, ticket: Ticket, found: Lookup<Stored>) -> Lookup<Stored> {
        if matches!(found, Lookup::NotFound) && self.learn_absence(at) {
            return found;
        }
        self.cache.fill(at, ticket, &found).unwrap_or(found)
    }

    /// Calls `read` with a reader of the world as it is now, past the cache and the queue. `deltas` gives the deltas of all
    /// chunks that it will read, from the index, which is asked before any row is read.
    ///
    /// # Errors
    /// If the engine cannot be read.
    pub(crate) fn with_reader<T>(
        &self,
        deltas: impl FnOnce() -> HashMap<ChunkAt, Deltas>,
        read: impl FnOnce(&Reader<'_>) -> T,
    ) -> Result<T, Error> {
        let look = || (self.shared.registry.catalog(), deltas());
        let (engine, (catalog, deltas)) = self.shared.engine_with(look)?;
        let view;
        let rows = if deltas.values().any(|deltas| matches!(deltas, Deltas::Stored)) {
            view = engine.snapshot_of_now()?;
            Rows::View(&view)
        } else {
            Rows::Now(&*engine)
        };
        Ok(read(&Reader { read: self, catalog: &catalog, rows, deltas: DeltasOf::Places(deltas) }))
    }

    /// Finds a chunk as it is now, past the cache and the queue, and calls `read` with its bytes with its deltas folded in.
    pub(crate) fn find_folded<T>(
        &self,
        at: ChunkAt,
        read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
    ) -> Result<Lookup<T>, Error> {
        self.with_reader(
            || self.deltas.list(&[at]),
            |reader| {
                find(reader.rows, &self.shared.counters, at, |stored| {
                    reader.show(stored, |stored| read(stored?))
                })
            },
        )?
    }

    /// Decodes a stored chunk and upgrades it in memory. Nothing is written.
    pub(crate) fn decode(&self, catalog: &Catalog, stored: StoredChunk<'_>) -> Result<Chunk, Error> {
        Counters::add(&self.shared.counters.chunks_decoded, 1);
        decode(catalog, &self.shared.options.upgrades, stored)
    }
}

/// Takes rows to chunks, in the engine as it is now or in one view. Fills no memory and reports nothing.
pub(crate) struct Reader<'r> {
    read: &'r ReadState,
    catalog: &'r Catalog,
    rows: Rows<'r>,
    deltas: DeltasOf<'r>,
}

/// A reader's knowledge of deltas.
enum DeltasOf<'r> {
    /// Those of the places that it reads. Other chunks have none.
    Places(HashMap<ChunkAt, Deltas>),
    /// Which chunks of its view have deltas.
    View(&'r DeltasInView),
    /// Nothing, so it scans for the deltas of each chunk.
    Unknown,
}

impl<'r> Reader<'r> {
    /// A reader of a view. Without the deltas of the view, it scans for those of each chunk.
    pub(crate) fn of_view(
        read: &'r ReadState,
        view: &'r dyn Readable,
        catalog: &'r Catalog,
        deltas: Option<&'r DeltasInView>,
    ) -> Self {
        let deltas = deltas.map_or(DeltasOf::Unknown, DeltasOf::View);
        Self { read, catalog, rows: Rows::View(view), deltas }
    }

    /// Reads chunks and calls `take` with each. Returns one result per position, in the order asked.
    pub(crate) fn chunks<T>(
        &self,
        at: &[ChunkAt],
        mut take: impl FnMut(ChunkAt, Stored) -> Result<T, Error>,
    ) -> Vec<Result<Lookup<T>, Error>> {
        let mut last = LastDecoded::default();
        find_many(self.rows, &self.read.shared.counters, at, |stored| {
            take(stored.at, self.to_chunk(stored, &mut last)?)
        })
    }

    /// Folds the deltas of a stored chunk, decodes it and upgrades it.
    fn to_chunk(&self, stored: StoredChunk<'_>, last: &mut LastDecoded) -> Result<Stored, Error> {
        let deltas = self.deltas_of(stored.at);
        let has_deltas = !matches!(deltas, Deltas::None);
        if !has_deltas && let Some(same) = last.get(stored) {
            return Ok(same);
        }
        let ReadState { shared, .. } = self.read;
        Counters::add(&shared.counters.chunks_decoded, 1);
        let (chunk, version) = fold(self.catalog, stored, &deltas, self.rows.readable())?;
        let chunk = upgrade(self.catalog, &shared.options.upgrades, stored, chunk)?;
        let is_current = stored.schema_generation == self.catalog.current_generation();
        let found = Stored { chunk: Arc::new(chunk), version, is_current };
        if !has_deltas {
            last.set(stored, &found);
        }
        Ok(found)
    }

    /// Calls `show` with the bytes of a chunk with its deltas folded in, in the schema generation of its row.
    pub(crate) fn show<T>(
        &self,
        stored: StoredChunk<'_>,
        show: impl FnOnce(Result<StoredChunk<'_>, Error>) -> T,
    ) -> T {
        let deltas = self.deltas_of(stored.at);
        if matches!(deltas, Deltas::None) {
            return show(Ok(stored));
        }
        match fold(self.catalog, stored, &deltas, self.rows.readable()) {
            Ok((chunk, version)) => {
                let version = CommitSeq::new(version);
                show(Ok(StoredChunk { value: &chunk.to_bytes(), version, ..stored }))
            }
            Err(error) => show(Err(error)),
        }
    }

    /// Visits a chunk of a walk with its deltas folded in.
    pub(crate) fn visit<T>(
        &self,
        stored: Result<StoredChunk<'_>, Error>,
        visit: impl FnOnce(Result<StoredChunk<'_>, Error>) -> T,
    ) -> T {
        match stored {
            Ok(stored) => self.show(stored, visit),
            Err(error) => visit(Err(error)),
        }
    }

    fn deltas_of(&self, at: ChunkAt) -> Deltas {
        match &self.deltas {
            DeltasOf::Places(deltas) => deltas.get(&at).cloned().unwrap_or(Deltas::None),
            DeltasOf::View(deltas) => deltas.of(at),
            DeltasOf::Unknown => Deltas::Stored,
        }
    }
}
