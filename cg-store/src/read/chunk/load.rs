//! Loads a chunk from memory, otherwise from the engine. It is decoded once and shared.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use cg_registry::Catalog;
use foldhash::HashMap;

use super::decode::upgrade;
use super::decode_dedup::DecodeDedup;
use super::{StoredChunk, find, find_in, find_many};
use crate::read::cache::{Stored, Ticket};
use crate::read::delta::{CachedDeltas, Deltas, fold_cached, fold_stored, show_folded};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The cached state of a chunk.
#[derive(Debug, Clone)]
pub enum Peek {
    /// It is stored.
    Here(Arc<Chunk>),
    /// It is not stored: never generated, or deleted.
    Absent,
    /// It is not cached; load or request it.
    NotLoaded,
}

/// Chunks that a background thread loads.
#[derive(Debug)]
pub struct LoadTicket {
    receiver: Receiver<Vec<LoadResult>>,
    /// The number of requested chunks.
    count: usize,
    /// A poll has returned the chunks.
    is_over: Cell<bool>,
}

pub(crate) type LoadResult = Result<Option<Arc<Chunk>>, Error>;

impl LoadTicket {
    pub(crate) fn new(receiver: Receiver<Vec<LoadResult>>, count: usize) -> Self {
        Self { receiver, count, is_over: Cell::new(false) }
    }

    /// The chunks, if they are loaded; one result per position in the order asked. Each is [`Error::Closed`] if the
    /// world was closed before they were loaded. They are returned once. Never blocks.
    pub fn poll(&self) -> Option<Vec<LoadResult>> {
        let found = match self.receiver.try_recv() {
            Ok(found) => found,
            Err(TryRecvError::Disconnected) if !self.is_over.get() => {
                (0..self.count).map(|_| Err(Error::Closed)).collect()
            }
            Err(_) => return None,
        };
        self.is_over.set(true);
        Some(found)
    }

    /// Waits for the chunks.
    ///
    /// # Errors
    /// [`Error::Closed`] if the world was closed before they were loaded, or if [`poll`](Self::poll) has returned them.
    pub fn wait(self) -> Result<Vec<LoadResult>, Error> {
        self.receiver.recv().map_err(|_| Error::Closed)
    }
}

/// The results of a request whose load panicked.
pub(crate) fn panicked(at: &[ChunkAt], message: &str) -> Vec<LoadResult> {
    at.iter().map(|at| Err(Error::LoadPanicked { at: *at, message: message.to_owned() })).collect()
}

impl ReadState {
    /// The last committed state of a chunk.
    #[inline]
    pub(crate) fn stored(&self, at: ChunkAt) -> Result<Lookup<Stored>, Error> {
        self.shared.check_open()?;
        self.known_or_stored(at, self.cache.get(at))
    }

    /// A chunk for which the cache was already asked.
    #[inline]
    pub(crate) fn known_or_stored(
        &self,
        at: ChunkAt,
        known: Result<Lookup<Stored>, Ticket>,
    ) -> Result<Lookup<Stored>, Error> {
        match known {
            Ok(found) => {
                self.cache.count_hit();
                self.note_asked(at, true);
                Ok(found)
            }
            Err(ticket) => self.stored_behind_memory(at, ticket),
        }
    }

    #[cold]
    fn stored_behind_memory(&self, at: ChunkAt, ticket: Ticket) -> Result<Lookup<Stored>, Error> {
        Counters::add(&self.shared.counters.cache_misses, 1);
        self.note_asked(at, false);
        self.observer.missed(&[at]);
        let found = self.read_through(at)?;
        Ok(self.keep(at, ticket, found))
    }

    /// A chunk without the cache: from the queue, otherwise from the engine.
    pub(crate) fn read_through(&self, at: ChunkAt) -> Result<Lookup<Stored>, Error> {
        if let Some(queued) = self.pending.chunk(at) {
            return Ok(queued);
        }
        let Deltas::Cached(cached) = self.deltas.of(at) else { return self.read_rows(at) };
        let catalog = self.shared.registry.catalog();
        find(&*self.shared.engine()?, &self.shared.counters, at, |stored| {
            self.read_folded(&catalog, stored, || fold_cached(&cached, &catalog, stored))
        })
    }

    /// A chunk from its row and stored deltas, without the queue and memory.
    pub(crate) fn read_rows(&self, at: ChunkAt) -> Result<Lookup<Stored>, Error> {
        let catalog = self.shared.registry.catalog();
        let engine = self.shared.engine()?;
        if !self.deltas.has(at) {
            return find(&*engine, &self.shared.counters, at, |stored| self.read(&catalog, stored));
        }
        let view = engine.snapshot_of_now()?;
        find_in(&view, &self.shared.counters, at, |stored| {
            self.read_folded(&catalog, stored, || fold_stored(&view, &catalog, stored))
        })
    }

    /// Finds a chunk and calls `read` with its bytes, with its deltas folded in.
    pub(crate) fn find_folded<T>(
        &self,
        at: ChunkAt,
        read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
    ) -> Result<Lookup<T>, Error> {
        let deltas = self.deltas.of(at);
        let engine = self.shared.engine()?;
        let catalog = || self.shared.registry.catalog();
        match deltas {
            Deltas::None => find(&*engine, &self.shared.counters, at, read),
            Deltas::Cached(cached) => find(&*engine, &self.shared.counters, at, |stored| {
                show_folded(fold_cached(&cached, &catalog(), stored)?, stored, read)
            }),
            Deltas::Stored => {
                let view = engine.snapshot_of_now()?;
                find_in(&view, &self.shared.counters, at, |stored| {
                    show_folded(fold_stored(&view, &catalog(), stored)?, stored, read)
                })
            }
        }
    }

    /// The last committed state of many chunks. Those not in memory are read together.
    pub(crate) fn stored_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        if let [at] = at {
            return vec![self.stored(*at)];
        }
        if self.shared.check_open().is_err() {
            return at.iter().map(|_| Err(Error::Closed)).collect();
        }
        let (mut found, mut missed, mut tickets) = (Vec::with_capacity(at.len()), Vec::new(), Vec::new());
        for at in at {
            match self.cache.get(*at) {
                Ok(entry) => {
                    self.note_asked(*at, true);
                    found.push(Some(Ok(entry)));
                }
                Err(ticket) => {
                    self.note_asked(*at, false);
                    let queued = self.pending.chunk(*at);
                    if queued.is_none() {
                        missed.push(*at);
                        tickets.push(ticket);
                    }
                    found.push(queued.map(|queued| Ok(self.remember(*at, ticket, queued))));
                }
            }
        }
        Counters::add(&self.shared.counters.cache_hits, (at.len() - missed.len()) as u64);
        Counters::add(&self.shared.counters.cache_misses, missed.len() as u64);
        if !missed.is_empty() {
            self.observer.missed(&missed);
        }
        let read = self.read_many_through(&missed);
        let mut read = missed
            .iter()
            .zip(tickets)
            .zip(read)
            .map(|((at, ticket), read)| read.map(|entry| self.keep(*at, ticket, entry)));
        let missed = "one was read for each that memory did not have";
        found.into_iter().map(|found| found.unwrap_or_else(|| read.next().expect(missed))).collect()
    }

    /// Many chunks from the engine. They are read together, except those whose deltas are not in memory.
    fn read_many_through(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        let catalog = self.shared.registry.catalog();
        let (mut together, mut cached) = (Cow::Borrowed(at), HashMap::<ChunkAt, CachedDeltas>::default());
        if self.deltas.has_any() {
            together.to_mut().retain(|at| match self.deltas.of(*at) {
                Deltas::None => true,
                Deltas::Cached(deltas) => {
                    cached.insert(*at, deltas);
                    true
                }
                Deltas::Stored => false,
            });
        }
        let Ok(engine) = self.shared.engine() else {
            return at.iter().map(|at| self.read_through(*at)).collect();
        };
        let mut dedup = DecodeDedup::default();
        let read =
            find_many(&*engine, &self.shared.counters, &together, |stored| match cached.get(&stored.at) {
                Some(cached) => self.read_folded(&catalog, stored, || fold_cached(cached, &catalog, stored)),
                None => dedup.or_read(stored, || self.read(&catalog, stored)),
            });
        if together.len() == at.len() {
            return read;
        }
        let mut read = together.iter().zip(read).peekable();
        let next = |at: &ChunkAt| match read.next_if(|(together, _)| *together == at) {
            Some((_, read)) => read,
            None => self.read_through(*at),
        };
        at.iter().map(next).collect()
    }

    /// Caches the result of a load, and reports it to the observer. Returns what the load must return.
    pub(super) fn keep(&self, at: ChunkAt, ticket: Ticket, found: Lookup<Stored>) -> Lookup<Stored> {
        let chunk = match &found {
            Lookup::Found(stored) => Some(&*stored.chunk),
            Lookup::Tombstone | Lookup::NotFound => None,
        };
        self.observer.loaded(at, chunk);
        if matches!(found, Lookup::NotFound) && self.learn_absence(at, ticket) {
            return found;
        }
        self.remember(at, ticket, found)
    }

    /// Caches a result from the queue or the engine. Returns what the load must return.
    fn remember(&self, at: ChunkAt, ticket: Ticket, found: Lookup<Stored>) -> Lookup<Stored> {
        self.cache.fill(at, ticket, &found).unwrap_or(found)
    }

    pub(crate) fn read(&self, catalog: &Catalog, stored: StoredChunk<'_>) -> Result<Stored, Error> {
        let is_current = stored.schema_generation == catalog.current_generation();
        let version = stored.version.get();
        Ok(Stored { chunk: Arc::new(self.decode(catalog, stored)?), version, is_current })
    }

    /// As [`read`](Self::read), with the chunk's deltas folded in.
    pub(super) fn read_folded(
        &self,
        catalog: &Catalog,
        stored: StoredChunk<'_>,
        fold: impl FnOnce() -> Result<(Chunk, u64), Error>,
    ) -> Result<Stored, Error> {
        Counters::add(&self.shared.counters.chunks_decoded, 1);
        let (chunk, version) = fold()?;
        let chunk = upgrade(catalog, &self.shared.options.upgrades, stored, chunk)?;
        let is_current = stored.schema_generation == catalog.current_generation();
        Ok(Stored { chunk: Arc::new(chunk), version, is_current })
    }
}

#[cfg(test)]
mod tests;
