//! Committing: check what was read, write one batch, make it visible.

use std::fmt;

use cg_format::{ChunkAt, Lookup};

use super::Transaction;
use super::prepare::{Prepared, prepare};
use crate::cache::Stored;
use crate::commit_log::Committing;
use crate::engine::{Engine, Level};
use crate::error::{ConflictKey, Error};
use crate::handle::Visitor;
use crate::stats::Counters;

/// How often a commit is prepared again outside the commit lock before it is prepared under it.
const TRIES_OUTSIDE_THE_LOCK: u32 = 3;

/// Commits a transaction and returns its commit sequence.
///
/// Preparing reads what is replaced and encodes what replaces it, outside any lock. If another commit has replaced
/// that meanwhile, the preparation is stale and is done again; the closure never runs twice.
pub(super) fn commit<E: Engine>(tx: Transaction<'_, E>) -> Result<u64, Error> {
    let world = tx.world;
    let mut tries = 0;
    let mut prepared = prepare(world, &tx.writes)?;
    loop {
        let mut committing = world.commits.commit();
        let changed = committing.written_since(tx.begun.at, &tx.reads).cloned();
        if let Some(key) = changed.or_else(|| new_in_listings(&tx, &committing).map(ConflictKey::Chunk)) {
            Counters::add(&world.counters.conflicts, 1);
            return Err(Error::Conflict { key });
        }
        if committing.written_since(prepared.since, &prepared.consulted).is_some() {
            Counters::add(&world.counters.preparations_repeated, 1);
            tries += 1;
            if tries < TRIES_OUTSIDE_THE_LOCK {
                drop(committing);
                prepared = prepare(world, &tx.writes)?;
                continue;
            }
            prepared = prepare(world, &tx.writes)?;
        }
        let Prepared { batch, chunks, patched, written, .. } = prepared;
        if batch.is_empty() {
            return Ok(world.commits.published());
        }
        Counters::add(&world.counters.commits, 1);
        Counters::add(&world.counters.rows_written, batch.op_count() as u64);
        Counters::add(&world.counters.bytes_written, batch.len_bytes());
        let seq = world.engine.commit(batch, &[], Level::Process)?.get();
        world.unfolded.lock().add(patched);
        world.tiering.touch(chunks.iter().map(|(at, _)| *at));
        for (at, chunk) in chunks {
            world.tiering.recorder.saved(at, chunk.as_deref());
            let entry = chunk.map_or(Lookup::Deleted, |chunk| Lookup::Here(Stored { chunk, version: seq }));
            world.cache.publish(at, entry);
        }
        committing.publish(seq, written);
        return Ok(seq);
    }
}

/// A chunk of a box that the transaction listed, which another commit has written and the listing has not met.
///
/// What was met is in the transaction's writes, and is replaced whatever it is by now.
fn new_in_listings<E: Engine>(tx: &Transaction<'_, E>, committing: &Committing<'_>) -> Option<ChunkAt> {
    tx.listings.iter().find_map(|listing| {
        let mut written = committing.chunks_written_since(listing.since, listing.dimension, listing.area);
        written.find(|at| !tx.writes.chunks.contains_key(at))
    })
}

/// What a committed transaction returns: the closure's value and the commit that made its changes.
pub struct Committed<T, E: Engine> {
    /// What the closure returned.
    pub value: T,
    /// The commit's place in the world's order; the last commit's if nothing was changed.
    pub seq: u64,
    world: Visitor<E>,
}

impl<T, E: Engine> Committed<T, E> {
    pub(super) fn new(world: Visitor<E>, value: T, seq: u64) -> Self {
        Self { value, seq, world }
    }

    /// A ticket that tells when the commit survives a power cut.
    pub fn durable(&self) -> Durable<E> {
        Durable { world: self.world.clone(), seq: self.seq }
    }
}

/// A commit's ticket: whether the disk has it, and waiting until it has. Needs no runtime, and keeps no world open.
pub struct Durable<E: Engine> {
    world: Visitor<E>,
    seq: u64,
}

impl<E: Engine> Durable<E> {
    /// Whether the commit survives a power cut. Never blocks.
    pub fn is_durable(&self) -> bool {
        self.world.visit(|world| world.engine.last_synced().get()).unwrap_or_else(|synced| synced) >= self.seq
    }

    /// Waits until the commit survives a power cut. Callers that wait together share one sync.
    ///
    /// # Errors
    /// [`Error::Engine`] if syncing failed; the world is read-only from then on, and the commit may be lost by a
    /// power cut. [`Error::Closed`] if the world is closed and closing could not sync it.
    pub fn wait(&self) -> Result<(), Error> {
        if self.is_durable() {
            return Ok(());
        }
        match self.world.visit(|world| world.engine.sync()) {
            Ok(synced) => Ok(synced?),
            // It may have been closed since the first look.
            Err(synced) if synced >= self.seq => Ok(()),
            Err(_) => Err(Error::Closed),
        }
    }
}

// Not derived: a derived implementation would ask the same of the engine, which has no need to be printed or copied.
impl<T: fmt::Debug, E: Engine> fmt::Debug for Committed<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed")
            .field("value", &self.value)
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}

impl<E: Engine> Clone for Durable<E> {
    fn clone(&self) -> Self {
        Self { world: self.world.clone(), seq: self.seq }
    }
}

impl<E: Engine> fmt::Debug for Durable<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable").field("seq", &self.seq).finish_non_exhaustive()
    }
}
