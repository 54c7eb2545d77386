//! Submitting: a tick thread gives writes away and goes on; they are accepted before anybody could miss them.
//!
//! A commit costs its caller what accepting costs: reading what is replaced, checking, comparing, showing it. A batch
//! that is submitted costs its caller a place in a queue. A thread of the world accepts it a moment later, in the order of the queue; and
//! whoever reads before that accepts it himself first.
//!
//! **Invariants**.
//! - Batches are accepted one at a time, in the order in which they were submitted, each as a transaction whose reads
//!   are done when it is accepted.
//! - Who reads, or commits, after the return of a submission finds it accepted, or refused: every call of [`World`] that
//!   looks at content settles first what was submitted before it. Calls for single chunks settle only what concerns their columns.
//! - A batch leaves the queue when it is accepted, or refused: for what it says, or as what it replaces cannot be read.
//!   While the world takes no commits it stays, and who looks at content gets that error rather than what was before.
//! - No refusal is silent: the ticket tells it, or if that is gone, the next [`flush`](World::flush) or
//!   [`close`](World::close). All are logged and counted.

mod accept;
mod batch;
mod commit_thread;
mod queue;
#[cfg(test)]
mod tests;
mod ticket;

pub use batch::WriteBatch;
pub(crate) use commit_thread::CommitThread;
pub(crate) use queue::SubmitQueue;
pub use ticket::WriteTicket;

use std::sync::Arc;

use crate::commit::state::CommitState;
use crate::engine::EngineError;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// A batch that the world did not take, and why. Becomes an [`Error`] by `?`.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Refused {
    /// Why.
    #[source]
    pub error: Error,
    /// The batch as it was: after [`Error::Busy`], hand it over again when there is [room](crate::World::wait_for_room).
    pub batch: WriteBatch,
}

impl Refused {
    fn of(error: Error, batch: WriteBatch) -> Box<Self> {
        Box::new(Self { error, batch })
    }
}

impl From<Box<Refused>> for Error {
    fn from(refused: Box<Refused>) -> Self {
        refused.error
    }
}

impl CommitState {
    /// See [`World::submit`](crate::World::submit).
    pub(crate) fn submit(&self, batch: WriteBatch) -> Result<WriteTicket, Box<Refused>> {
        let bytes = batch.memory_bytes();
        if let Err(error) = self.reserve(&batch, bytes) {
            return Err(Refused::of(error, batch));
        }
        let outcome = self.submitted.push(batch, bytes).inspect_err(|_| self.queue.release(bytes))?;
        Ok(WriteTicket::waiting(self.weak_world.clone(), Arc::clone(&self.submitted), outcome))
    }

    /// Promises a batch the room that it takes.
    fn reserve(&self, batch: &WriteBatch, bytes: u64) -> Result<(), Error> {
        self.shared.check_open()?;
        let engine = self.shared.engine()?;
        if engine.caps().read_only {
            return Err(EngineError::OpenedReadOnly.into());
        }
        if batch.puts_anything() {
            self.disk_guard.check(&*engine, bytes)?;
        }
        drop(engine);
        self.start_commit_thread()?;
        self.queue.reserve(bytes).inspect_err(|error| {
            Counters::add(&self.shared.counters.busy, u64::from(matches!(error, Error::Busy { .. })));
        })
    }
}
