//! Handing over: a tick thread gives writes away and goes on; they are accepted before anybody could miss them.
//!
//! A commit costs its caller what accepting costs: reading what is replaced, checking, comparing, showing it. A batch
//! that is handed over costs its caller a place in a queue. A thread of the world accepts it a moment later, in the order of the queue; and
//! whoever reads before that accepts it himself first.
//!
//! **Invariants**.
//! - Batches are accepted one at a time, in the order in which they were handed over, each as a transaction whose reads
//!   are done when it is accepted.
//! - Who reads, or commits, behind the return of a hand-over finds it accepted, or refused: every call of [`World`] that
//!   looks at content settles first what was handed over before it. Calls for single chunks settle only what concerns their columns.
//! - A batch leaves the queue when it is accepted, or refused: for what it says, or as what it replaces cannot be read.
//!   While the world takes no commits it stays, and who looks at content gets that error rather than what was before.
//! - No refusal is silent: the ticket tells it, or if that is gone, the next [`flush`](World::flush) or
//!   [`close`](World::close). All are logged and counted.

mod accept;
mod accepter;
mod batch;
mod queue;
#[cfg(test)]
mod tests;
mod ticket;

pub(crate) use accepter::Accepter;
pub use batch::WriteBatch;
pub(crate) use queue::HandOvers;
pub use ticket::HandedOver;

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
    /// The batch as it was: after [`Error::Busy`], hand it over again when there is [room](World::wait_for_room).
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
    /// See [`World::hand_over`](crate::World::hand_over).
    pub(crate) fn hand_over(&self, batch: WriteBatch) -> Result<HandedOver, Box<Refused>> {
        let bytes = batch.memory_bytes();
        if let Err(error) = self.promise(&batch, bytes) {
            return Err(Refused::of(error, batch));
        }
        let outcome = self.hand_overs.push(batch, bytes).inspect_err(|_| self.queue.release(bytes))?;
        Ok(HandedOver::waiting(self.visitor.clone(), Arc::clone(&self.hand_overs), outcome))
    }

    /// Promises a batch the room that it takes.
    fn promise(&self, batch: &WriteBatch, bytes: u64) -> Result<(), Error> {
        self.shared.check_open()?;
        let engine = self.shared.engine()?;
        if engine.caps().read_only {
            return Err(EngineError::OpenedReadOnly.into());
        }
        if batch.puts_anything() {
            self.space.check(&*engine, bytes)?;
        }
        drop(engine);
        self.start_accepting()?;
        self.queue.promise(bytes).inspect_err(|error| {
            Counters::add(&self.shared.counters.busy, u64::from(matches!(error, Error::Busy { .. })));
        })
    }
}
