//! Loading: from memory, else from the engine, decoded once and shared.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use cg_registry::Catalog;
use foldhash::HashMap;

use super::alike::Alike;
use super::decode::upgrade;
use super::{StoredChunk, find, find_in, find_many};
use crate::api::world::{Inner, World};
use crate::read::cache::{Stored, Ticket};
use crate::read::delta::{Deltas, Said, fold_said, fold_stored, show_folded};
use crate::rt::pool::caught;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// What memory knows of a chunk.
#[derive(Debug, Clone)]
pub enum Peek {
    /// It is stored, and this is it.
    Here(Arc<Chunk>),
    /// It is not stored: never generated, or deleted.
    Absent,
    /// Memory does not say; load or request it.
    NotLoaded,
}

/// Chunks on their way from the engine, loaded by a background thread.
#[derive(Debug)]
pub struct PendingChunks {
    receiver: Receiver<Vec<LoadResult>>,
}

type LoadResult = Result<Option<Arc<Chunk>>, Error>;

impl World {
    /// A chunk, or `None` if it is not stored: generate it then.
    ///
    /// Costs a look into memory; else one key read when hot, up to three when cold, and decoding. May block on disk.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged. That is not absence: do not generate over it.
    pub fn load(&self, at: ChunkAt) -> LoadResult {
        Ok(self.settled_for(&[at])?.stored(at)?.here().map(|stored| stored.chunk))
    }

    /// Shows a chunk to a closure, if it is stored. For readers who do not need to hold it: nothing is counted up and
    /// down, so threads that look at the same chunks do not wait for each other.
    ///
    /// Costs what [`load`](Self::load) costs; a second look by the same thread, while nothing was committed into the
    /// column, costs no shared write. For that each thread holds up to 8,192 chunks that it was shown last, in all at most
    /// a 64th of [`cache_bytes`](crate::WorldOptions::cache_bytes), until it is shown others or ends. They are not in
    /// [`cache_stats`](Self::cache_stats).
    ///
    /// No lock is held while the closure runs, so it may use the world.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn with<T>(&self, at: ChunkAt, show: impl FnOnce(&Chunk) -> T) -> Result<Option<T>, Error> {
        let inner = self.settled_for(&[at])?;
        inner.check_open()?;
        match inner.cache.show(at, show) {
            Ok(shown) => {
                inner.cache.count_hit();
                inner.note_asked(at, true);
                Ok(Some(shown))
            }
            Err((show, known)) => {
                let found = inner.known_or_stored(at, known)?;
                Ok(found.here().map(|stored| show(&stored.chunk)))
            }
        }
    }

    /// A chunk and its version: the commit that last changed its content.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_versioned(&self, at: ChunkAt) -> Result<Option<(Arc<Chunk>, u64)>, Error> {
        let stored = self.settled_for(&[at])?.stored(at)?;
        Ok(stored.here().map(|stored| (stored.chunk, stored.version)))
    }

    /// Many chunks, one result per position in the order asked. A damaged row fails the chunks in it and no others.
    ///
    /// Costs one engine call for all that are hot, then one read for each cluster that may hold one of the rest; each
    /// 4³ group with a chunk that is asked for is decompressed once.
    pub fn load_many(&self, at: &[ChunkAt]) -> Vec<LoadResult> {
        self.unsettled().load_many(at)
    }

    /// A chunk if memory has it. Never reads from disk and never waits for it. Of a column into which something was
    /// [handed over](Self::hand_over) that is not accepted yet, memory does not say anything.
    pub fn peek(&self, at: ChunkAt) -> Peek {
        let inner = self.unsettled();
        if inner.awaits_acceptance(&[at]) {
            return Peek::NotLoaded;
        }
        match inner.cache.get(at) {
            Ok(found) => {
                inner.note_asked(at, true);
                found.here().map_or(Peek::Absent, |stored| Peek::Here(stored.chunk))
            }
            Err(_) => Peek::NotLoaded,
        }
    }

    /// Drops every chunk from memory; the next load of each asks the engine. For tools and benchmarks that measure it.
    pub fn forget_chunks(&self) {
        self.unsettled().cache.clear();
    }

    /// Starts to load chunks in the background; they are in memory when the answer is ready. Keeps no world open.
    ///
    /// Should loading panic, in a function of the host for example, each of the chunks answers
    /// [`Error::LoadPanicked`].
    pub fn request(&self, at: &[ChunkAt]) -> PendingChunks {
        let (sender, receiver) = channel();
        let (world, at) = (self.visitor(), at.to_vec());
        self.unsettled().pool.spawn(move || {
            // A world that is gone gives no answer. The host may have lost interest; the chunks are in memory all the same.
            let load = |world: &Inner| {
                world.await_acceptance(&at);
                world.load_many(&at)
            };
            if let Ok(found) = world.visit(|world| caught(|| load(world))) {
                let _ = sender.send(found.unwrap_or_else(|message| panicked(&at, &message)));
            }
        });
        PendingChunks { receiver }
    }

    /// Shows a chunk's stored bytes, checked against their sum, without decoding them or going through memory.
    ///
    /// Costs one key read when hot, up to three when cold.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is damaged, and what `read` returns.
    pub fn view<T>(
        &self,
        at: ChunkAt,
        read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let inner = self.settled()?;
        if inner.queue.chunk(at).is_some() {
            inner.drain()?;
        }
        Ok(inner.find_folded(at, read)?.here())
    }
}

impl PendingChunks {
    /// The chunks, if they have arrived; one result per position in the order asked. Never blocks.
    pub fn poll(&self) -> Option<Vec<LoadResult>> {
        self.receiver.try_recv().ok()
    }

    /// Waits for the chunks.
    ///
    /// # Errors
    /// [`Error::Closed`] if the world was closed before they were loaded, or if [`poll`](Self::poll) gave them away.
    pub fn wait(self) -> Result<Vec<LoadResult>, Error> {
        self.receiver.recv().map_err(|_| Error::Closed)
    }
}

/// What a request answers whose loading panicked.
fn panicked(at: &[ChunkAt], message: &str) -> Vec<LoadResult> {
    at.iter().map(|at| Err(Error::LoadPanicked { at: *at, message: message.to_owned() })).collect()
}

impl Inner {
    /// A chunk as last committed.
    #[inline]
    pub(crate) fn stored(&self, at: ChunkAt) -> Result<Lookup<Stored>, Error> {
        self.check_open()?;
        self.known_or_stored(at, self.cache.get(at))
    }

    /// A chunk of which the cache has been asked.
    #[inline]
    fn known_or_stored(
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
        Counters::add(&self.counters.cache_misses, 1);
        self.note_asked(at, false);
        self.tiering.touch([at]);
        let found = self.read_through(at)?;
        Ok(self.keep(at, ticket, found))
    }

    /// A chunk past the cache: as it is queued, else as the engine has it.
    pub(crate) fn read_through(&self, at: ChunkAt) -> Result<Lookup<Stored>, Error> {
        if let Some(queued) = self.queue.chunk(at) {
            return Ok(queued);
        }
        let Deltas::Said(said) = self.deltas.of(at) else { return self.read_rows(at) };
        let catalog = self.registry.catalog();
        find(&*self.engine()?, &self.counters, at, |stored| {
            self.read_folded(&catalog, stored, || fold_said(&said, &catalog, stored))
        })
    }

    /// A chunk as its row and those of its deltas say, whatever the queue and memory have.
    pub(crate) fn read_rows(&self, at: ChunkAt) -> Result<Lookup<Stored>, Error> {
        let catalog = self.registry.catalog();
        let engine = self.engine()?;
        if !self.deltas.has(at) {
            return find(&*engine, &self.counters, at, |stored| self.read(&catalog, stored));
        }
        let view = engine.snapshot_of_now()?;
        find_in(&view, &self.counters, at, |stored| {
            self.read_folded(&catalog, stored, || fold_stored(&view, &catalog, stored))
        })
    }

    /// Finds a chunk and shows its bytes, with its deltas folded in if it has any.
    pub(crate) fn find_folded<T>(
        &self,
        at: ChunkAt,
        read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
    ) -> Result<Lookup<T>, Error> {
        let deltas = self.deltas.of(at);
        let engine = self.engine()?;
        let catalog = || self.registry.catalog();
        match deltas {
            Deltas::None => find(&*engine, &self.counters, at, read),
            Deltas::Said(said) => find(&*engine, &self.counters, at, |stored| {
                show_folded(fold_said(&said, &catalog(), stored)?, stored, read)
            }),
            Deltas::Stored => {
                let view = engine.snapshot_of_now()?;
                find_in(&view, &self.counters, at, |stored| {
                    show_folded(fold_stored(&view, &catalog(), stored)?, stored, read)
                })
            }
        }
    }

    fn load_many(&self, at: &[ChunkAt]) -> Vec<LoadResult> {
        let found = self.settled_many(at);
        found.into_iter().map(|found| Ok(found?.here().map(|stored| stored.chunk))).collect()
    }

    /// Many chunks as last committed. What is not in memory is read together.
    pub(crate) fn stored_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        if let [at] = at {
            return vec![self.stored(*at)];
        }
        if self.check_open().is_err() {
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
                    let queued = self.queue.chunk(*at);
                    if queued.is_none() {
                        missed.push(*at);
                        tickets.push(ticket);
                    }
                    found.push(queued.map(|queued| Ok(self.remember(*at, ticket, queued))));
                }
            }
        }
        Counters::add(&self.counters.cache_hits, (at.len() - missed.len()) as u64);
        Counters::add(&self.counters.cache_misses, missed.len() as u64);
        if !missed.is_empty() {
            self.tiering.touch(missed.iter().copied());
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

    /// Many chunks as the engine has them, read together but for those whose deltas memory does not have.
    fn read_many_through(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        let catalog = self.registry.catalog();
        let (mut together, mut said) = (Cow::Borrowed(at), HashMap::<ChunkAt, Said>::default());
        if self.deltas.has_any() {
            together.to_mut().retain(|at| match self.deltas.of(*at) {
                Deltas::None => true,
                Deltas::Said(deltas) => {
                    said.insert(*at, deltas);
                    true
                }
                Deltas::Stored => false,
            });
        }
        let Ok(engine) = self.engine() else { return at.iter().map(|at| self.read_through(*at)).collect() };
        let mut alike = Alike::default();
        let read = find_many(&*engine, &self.counters, &together, |stored| match said.get(&stored.at) {
            Some(said) => self.read_folded(&catalog, stored, || fold_said(said, &catalog, stored)),
            None => alike.or_read(stored, || self.read(&catalog, stored)),
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

    /// Remembers what a load found, and tells who records it. Returns what the load must answer.
    pub(super) fn keep(&self, at: ChunkAt, ticket: Ticket, found: Lookup<Stored>) -> Lookup<Stored> {
        let chunk = match &found {
            Lookup::Here(stored) => Some(&*stored.chunk),
            Lookup::Deleted | Lookup::NotHere => None,
        };
        self.tiering.recorder.loaded(at, chunk);
        if matches!(found, Lookup::NotHere) && self.learn_absence(at, ticket) {
            return found;
        }
        self.remember(at, ticket, found)
    }

    /// Remembers what was found behind the cache. Returns what it must be answered with.
    fn remember(&self, at: ChunkAt, ticket: Ticket, found: Lookup<Stored>) -> Lookup<Stored> {
        self.cache.fill(at, ticket, &found).unwrap_or(found)
    }

    pub(crate) fn read(&self, catalog: &Catalog, stored: StoredChunk<'_>) -> Result<Stored, Error> {
        let is_current = stored.schema_generation == catalog.current_generation();
        Ok(Stored { chunk: Arc::new(self.decode(catalog, stored)?), version: stored.version, is_current })
    }

    /// As [`read`](Self::read), with what the chunk's deltas say.
    pub(super) fn read_folded(
        &self,
        catalog: &Catalog,
        stored: StoredChunk<'_>,
        fold: impl FnOnce() -> Result<(Chunk, u64), Error>,
    ) -> Result<Stored, Error> {
        Counters::add(&self.counters.chunks_decoded, 1);
        let (chunk, version) = fold()?;
        let chunk = upgrade(catalog, &self.options.upgrades, stored, chunk)?;
        let is_current = stored.schema_generation == catalog.current_generation();
        Ok(Stored { chunk: Arc::new(chunk), version, is_current })
    }
}
