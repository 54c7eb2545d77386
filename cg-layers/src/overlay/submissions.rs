//! Submission: a tick thread submits writes to an overlay and continues.
//!
//! What was submitted waits in its arena. A background thread of the base writes the batches in order, each as one
//! [transaction](super::transaction). A caller that reads or writes before that writes them first, on its own thread.
//!
//! | the overlay | its batches |
//! |---|---|
//! | takes them | are written in the order of their submission |
//! | refuses the content, was released, or does not fit its base any more | are refused; their tickets report it |
//! | has a storage, or a base, that takes no writes now | wait; readers get the reason; every read, flush and tick of the arenas tries again |
//! | fails to sync what it was given | are written; their tickets report that they are not durable |
//! | loses its last handle | are written before |
//!
//! **Invariants**.
//! - What was submitted before a call of the overlay began is seen by that call, unless it runs inside a closure of a
//!   transaction: then it is seen after that.
//! - A thread that has the right to change any overlay waits for no other overlay's in order to read.
//! - A batch is written after those that were submitted before it to the layers below.
//! - A batch is given to the engine once, unless the engine certainly wrote nothing.

use std::fmt;
use std::sync::{Arc, Weak};

use cg_store::engine::{CommitSeq, EngineError, Level};
use cg_store::layer::{
    Base, DeferredOutcome, DeferredTicket, DefersBatches, KeepsCommits, batch, begin, host,
};
use cg_store::{Error, ErrorKind, Refused, WriteBatch, WriteTicket};

use super::arena::Arena;
use super::background::start_job;
use super::handle::Overlay;
use super::inside::is_inside;
use super::pool::Pool;
use super::submitted::{Done, Waiting};
use super::transaction::{OverlayReads, commit};
use crate::store::{Kept, OverlayError, Written};

/// Why a batch was not written.
enum Failed {
    /// Its content or its overlay refuses it.
    Refused(Error),
    /// The storage may take it later.
    NotNow(Error),
}

/// The batches of an arena, as tickets know them.
struct Issuer<S: Base> {
    pool: Weak<Pool<S>>,
    arena: Weak<Arena>,
}

/// The commit of a batch, as its ticket knows it.
struct Commit<S: Base> {
    pool: Weak<Pool<S>>,
    kept: Arc<Kept>,
    /// Its mark in `kept`.
    mark: u64,
}

impl<S: Base> Overlay<S> {
    /// Submits writes, as [`World::submit`](cg_store::World::submit) does to a world. They are written after this call, in
    /// the order of such calls, and at the latest when a thread reads the overlay.
    ///
    /// Waits for no row and for no transaction. Every call of this overlay that begins afterwards, on any thread,
    /// sees the batch whole. Inside a closure of a [transaction](Self::transaction), of this overlay or another, what
    /// was submitted meanwhile is seen when the closure has ended. So a read after a submission waits for a transaction
    /// of the overlay that runs. What waits takes at most [`queue_bytes`](cg_store::WorldOptions::queue_bytes) of memory
    /// for all arenas together.
    ///
    /// The functions of [`WriteBatch::edit`] and its siblings run as in a world, and see the overlay's values. If one
    /// panics, its batch is refused alone. A batch whose arena was released, or whose lease ended, is refused with
    /// [`OverlayError::Released`]. While the storage takes no writes, batches wait: readers of the overlay and
    /// [`Arenas::flush`](crate::Arenas::flush) get the reason, and they and each [`Arenas::tick`](crate::Arenas::tick) try
    /// again. So they do while a layer below takes none of what was submitted to it. A batch whose sync failed is written,
    /// and never [durable](cg_store::Durable::is_durable). A refusal whose ticket is dropped is reported by the next `flush`.
    ///
    /// ```
    /// use cg_layers::Overlay;
    /// use cg_store::prelude::*;
    /// let template = World::builder().in_memory()?;
    /// let dimension = template.registry().register_dimension("game:arena")?;
    /// let [stone] = template.registry().register_blocks(["game:stone"])?;
    /// let at = ChunkAt::new(dimension, ChunkPos::new(0, 0, 0)?);
    /// let arena = Overlay::in_memory(template.clone(), &WorldOptions::ephemeral())?;
    /// let mut batch = WriteBatch::new();
    /// batch.save(at, Chunk::filled(stone, &template.catalog().current_schema())?);
    /// let ticket = arena.submit(batch)?;
    /// assert!(arena.load(at)?.is_some());
    /// ticket.wait()?.durable().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OverlayError::Released`], [`Error::Busy`], and as [`load`](Self::load). Nothing was taken then: [`Refused`]
    /// gives the batch back.
    pub fn submit(&self, batch: WriteBatch) -> Result<WriteTicket, Box<Refused>> {
        if let Err(error) = self.check_takes_batches() {
            return Err(Box::new(Refused { error, batch }));
        }
        let issuer = Issuer { pool: Arc::downgrade(&self.pool), arena: Arc::downgrade(&self.arena) };
        let (ticket, reports) = DeferredTicket::new(Arc::new(issuer));
        if self.arena.submitted.push(&self.pool.room, self.tenancy, batch, reports)? {
            start_job(&self.pool, &self.arena);
        }
        Ok(ticket)
    }

    fn check_takes_batches(&self) -> Result<(), Error> {
        self.check()?;
        if self.store().rows.engine().caps().read_only {
            return Err(EngineError::OpenedReadOnly.into());
        }
        Ok(())
    }

    /// Writes what was submitted before this call, here and in the base, to read. Does nothing on a thread that has the
    /// right to change an overlay.
    ///
    /// # Errors
    /// Why it still waits.
    pub(super) fn applied(&self) -> Result<(), Error> {
        if is_inside() { Ok(()) } else { self.apply_waiting() }
    }

    /// Writes what was submitted before this call, here and in the base.
    ///
    /// # Errors
    /// Why it still waits; [`Error::Nested`] inside a closure of the overlay that has it.
    pub(super) fn apply_waiting(&self) -> Result<(), Error> {
        self.base().apply_submitted()?;
        if self.arena.submitted.is_empty() { Ok(()) } else { self.write().map(drop) }
    }

    /// As [`applied`](Self::applied), for calls that are not made by a tenant: what was submitted by an earlier one is
    /// refused.
    pub(super) fn applied_for_all(&self) -> Result<(), Error> {
        match self.applied() {
            Err(error) if matches!(error.layer(), Some(OverlayError::Released { .. })) => Ok(()),
            applied => applied,
        }
    }

    /// Writes what was submitted to the arena up to a batch. The caller has the right to write.
    ///
    /// # Errors
    /// Why it still waits.
    pub(super) fn write_submitted(&self, until: Option<u64>, done: &mut Done) -> Result<(), Error> {
        let submitted = &self.arena.submitted;
        let Some(until) = until else { return Ok(()) };
        while let Some(next) = submitted.take_next(until) {
            let by = Self::uncounted(&self.pool, &self.arena, next.tenancy);
            let outcome = match by.write_batch(&next.batch) {
                Ok(written) => self.accept(written),
                Err(Failed::Refused(error)) => {
                    tracing::error!(%error, arena = self.arena.number, "a batch that was submitted is refused, and nothing of it is written");
                    DeferredOutcome::Refused(error)
                }
                Err(Failed::NotNow(error)) => {
                    submitted.put_back(next);
                    self.put_off(&error, done);
                    return Err(error);
                }
            };
            self.pool.leave(&self.arena, next, outcome, done);
        }
        Ok(())
    }

    /// Tells the tasks of what was submitted why it still waits.
    pub(super) fn put_off(&self, error: &Error, done: &mut Done) {
        let why = || self.not_written(error);
        self.arena.submitted.for_each_ticket(|ticket| done.wakers.extend(ticket.put_off(why)));
    }

    /// Why what was submitted still waits.
    pub(super) fn not_written(&self, error: &Error) -> Error {
        let (arena, kind) = (self.arena.number, error.kind());
        OverlayError::NotWritten { arena, kind, why: error.to_string() }.into()
    }

    /// What became of a batch that the engine was given. It is not given again.
    fn accept(&self, written: Written) -> DeferredOutcome {
        let kept = &self.store().kept;
        let is_synced = self.store().rows.level() == Level::Power;
        let (version, mark) = match written {
            Written::Applied(version) => (version, if is_synced { Kept::SYNCED } else { kept.accept() }),
            Written::Unsynced(version, error) => {
                tracing::error!(%error, arena = self.arena.number, "a batch that was submitted is written, and may be lost at a power cut");
                (version, kept.accept())
            }
            Written::InDoubt(error) => {
                tracing::error!(%error, arena = self.arena.number, "it is not known whether a batch that was submitted is written");
                return DeferredOutcome::Refused(error.into());
            }
        };
        let commit = Commit { pool: Arc::downgrade(&self.pool), kept: Arc::clone(kept), mark };
        DeferredOutcome::Accepted(batch::committed(Arc::new(commit), CommitSeq::new(version)))
    }

    /// Writes a batch as one transaction.
    fn write_batch(&self, batch: &WriteBatch) -> Result<Written, Failed> {
        let written = batch::catch_panic("writing what was submitted", || {
            self.check()?;
            let mut tx = begin(OverlayReads::new(self), self.store().catalog()?);
            host(|| batch::write_batch(batch, &mut tx))?;
            Ok(tx)
        });
        let tx = match written {
            Ok(tx) => tx,
            // A server that is not reached now may be reached later, though all that is known of it is synced.
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Fenced) => {
                return Err(Failed::NotNow(error));
            }
            // A function of the host may return such an error too.
            Err(error) if may_pass(&error) && self.store().keep_found(Level::Power).is_err() => {
                return Err(Failed::NotNow(error));
            }
            Err(error) => return Err(Failed::Refused(error)),
        };
        let committed = batch::catch_panic("writing what was submitted", || commit(tx));
        let failed = |error| if may_pass(&error) { Failed::NotNow(error) } else { Failed::Refused(error) };
        committed.map_err(failed)
    }

    /// The last handle of the host is dropped: what was submitted is written, and no background job keeps the pool open.
    pub(super) fn leave(&self) {
        if !self.arena.submitted.is_empty()
            && let Err(error) = self.applied_or_inside()
        {
            tracing::error!(%error, arena = self.arena.number, "what was submitted still waits, and the overlay has no handle");
        }
        if !is_inside() {
            self.arena.submitted.wait_for_jobs();
        }
    }

    fn applied_or_inside(&self) -> Result<(), Error> {
        if !is_inside() {
            return self.applied_for_all();
        }
        match self.write().map(drop) {
            // Below runs a closure of this thread. What was submitted there comes after it, and this cannot wait for that.
            Err(Error::Nested) => self.write_above().map(drop),
            written => written,
        }
    }
}

impl<S: Base> Pool<S> {
    /// Reports the outcome of a batch.
    fn leave(&self, arena: &Arena, taken: Waiting, outcome: DeferredOutcome, done: &mut Done) {
        self.room.leave(&taken);
        let Waiting { batch, ticket, .. } = taken;
        done.batches.push(batch);
        done.wakers.extend(arena.submitted.leave(ticket, outcome));
    }

    /// Keeps a refusal for [`check_refusals`](Self::check_refusals).
    fn note_refusal(&self, refusal: Error) {
        let mut refusals = self.refusals.lock();
        match &mut *refusals {
            Some(Error::DeferredWrite { others, .. }) => *others += 1,
            none => *none = Some(Error::DeferredWrite { error: Box::new(refusal), others: 0 }),
        }
    }

    /// Reports all refusals that no ticket has reported, as one error.
    pub(super) fn check_refusals(&self) -> Result<(), Error> {
        self.refusals.lock().take().map_or(Ok(()), Err)
    }
}

/// Whether an error is that of storage that may take writes later.
fn may_pass(error: &Error) -> bool {
    use ErrorKind as K;
    let is_of_storage = matches!(
        error.kind(),
        K::Busy | K::LowDisk | K::ReadOnly | K::Fenced | K::Unavailable | K::InDoubt | K::Engine
    );
    is_of_storage && !matches!(error, Error::Engine(EngineError::Panicked { .. }))
}

impl<S: Base> DefersBatches for Issuer<S> {
    fn apply(&self) -> Result<(), Error> {
        let (Some(pool), Some(arena)) = (self.pool.upgrade(), self.arena.upgrade()) else { return Ok(()) };
        Overlay::of_any_tenancy(&pool, &arena).applied_for_all()
    }

    fn report(&self, refusal: Error) {
        if let Some(pool) = self.pool.upgrade() {
            pool.note_refusal(refusal);
        }
    }
}

impl<S: Base> KeepsCommits for Commit<S> {
    fn has_reached(&self, _: CommitSeq, level: Level) -> bool {
        level == Level::Process || self.kept.has(self.mark)
    }

    fn wait_for(&self, commit: CommitSeq, level: Level) -> Result<(), Error> {
        if self.has_reached(commit, level) {
            return Ok(());
        }
        self.pool.upgrade().ok_or(Error::Closed)?.store.keep_found(level)
    }
}

impl<S: Base> fmt::Debug for Commit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commit").field("mark", &self.mark).finish_non_exhaustive()
    }
}

impl<S> Drop for Pool<S> {
    /// What could not be written is refused.
    fn drop(&mut self) {
        let mut done = Done::default();
        for arena in self.arenas.all.lock().values() {
            while let Some(left) = arena.submitted.take_next(u64::MAX) {
                tracing::error!(
                    arena = arena.number,
                    "the arenas are closed before a batch that was submitted could be written: it is lost"
                );
                let closed = DeferredOutcome::Refused(Error::Closed);
                done.wakers.extend(arena.submitted.leave(left.ticket, closed));
                done.batches.push(left.batch);
            }
        }
    }
}
