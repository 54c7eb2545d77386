//! Submission: a tick thread submits writes and continues. They are accepted before any reader could miss them.
//!
//! A commit costs its caller the acceptance: reading what is replaced, checking, comparing and publishing it. A
//! submitted batch costs its caller only a place in a queue. A thread of the world accepts it a moment later, in the
//! order of the queue. A caller that reads before that accepts it first, on its own thread.
//!
//! **Invariants**.
//! - Batches are accepted one at a time, in the order in which they were submitted. Each is a transaction that does its
//!   reads when it is accepted.
//! - A caller that reads or commits after a submission has returned finds the batch accepted or refused. Every call of
//!   [`World`] that reads content first applies what was submitted before it. Calls for single chunks apply only what
//!   concerns their columns.
//! - A batch leaves the queue when it is accepted or refused. It is refused because of its content, or because what it
//!   replaces cannot be read. It stays while the world takes no commits, and a caller that reads content gets that
//!   error and not the old content.
//! - Every refusal is reported: by the ticket, or if that is gone, by the next [`flush`](World::flush) or
//!   [`close`](World::close). All refusals are logged and counted.

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

/// A batch that the world refused, and why. `?` converts it into an [`Error`].
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Refused {
    /// Why.
    #[source]
    pub error: Error,
    /// The batch unchanged. After [`Error::Busy`], submit it again when there is [room](crate::World::wait_for_room).
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

    /// Reserves the room that a batch takes.
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
