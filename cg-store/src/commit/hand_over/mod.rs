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

use crate::api::world::World;
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

impl World {
    /// Gives writes away: they are accepted behind this call, in the order of such calls, at the latest when somebody reads.
    ///
    /// For threads that must not stall. It costs some hundred nanoseconds for each chunk and never blocks on disk or on
    /// other commits. What is handed over is seen whole by every read and transaction that begins afterwards, from any
    /// thread; one that comes before a thread of the world has accepted it waits for that.
    /// Like a commit at [`Durability::Fast`](crate::Durability::Fast) it is written soon, and synced as the world's
    /// [`durability`](crate::WorldOptions::durability) says. A killed process may take the newest hand-overs, whole, as it
    /// may take the newest queued commits.
    ///
    /// What cannot be stored is found out when it is accepted: the [ticket](HandedOver) tells, or if that is dropped,
    /// the next [`flush`](Self::flush) or [`close`](Self::close) does. Nothing of such a batch is written then.
    /// A segment of a segmented world accepts a batch before this returns, so inside a transaction of that segment it is
    /// [`Error::Nested`].
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// let world = World::temporary(&[], &WorldOptions::default())?;
    /// let overworld = world.register_dimension("game:overworld")?;
    /// let [air] = world.register_blocks([":air"])?;
    ///
    /// let at = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?);
    /// let mut batch = WriteBatch::new();
    /// batch.save(at, Chunk::filled(air, &world.catalog().current_schema())?);
    /// let ticket = world.hand_over(batch)?;
    ///
    /// assert!(world.load(at)?.is_some());
    /// assert!(ticket.wait()?.seq > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue has no room; [`Error::NoRoom`] if the disk has too little; [`Error::Closed`]; and why the
    /// world takes no commits, if it does not. Nothing was taken then: [`Refused`] gives the batch back.
    pub fn hand_over(&self, batch: WriteBatch) -> Result<HandedOver, Box<Refused>> {
        let inner = self.unsettled();
        let bytes = batch.memory_bytes();
        if let Err(error) = self.promise(&batch, bytes) {
            return Err(Refused::of(error, batch));
        }
        let outcome = inner.hand_overs.push(batch, bytes).inspect_err(|_| inner.queue.release(bytes))?;
        Ok(HandedOver::waiting(self.visitor(), Arc::clone(&inner.hand_overs), outcome))
    }

    /// Promises a batch the room that it takes.
    fn promise(&self, batch: &WriteBatch, bytes: u64) -> Result<(), Error> {
        let inner = self.unsettled();
        inner.check_open()?;
        let engine = inner.engine()?;
        if engine.caps().read_only {
            return Err(EngineError::OpenedReadOnly.into());
        }
        if batch.puts_anything() {
            inner.space.check(&*engine, bytes)?;
        }
        drop(engine);
        self.start_accepting()?;
        inner.queue.promise(bytes).inspect_err(|error| {
            Counters::add(&inner.counters.busy, u64::from(matches!(error, Error::Busy { .. })));
        })
    }
}
