//! Handing over: a tick thread gives writes away and goes on; they are accepted before anybody could miss them.
//!
//! A commit costs its caller what accepting costs: reading what is replaced, checking, comparing, showing it. A batch
//! that is handed over costs its caller a place in a queue. A thread of the world accepts it a moment later, in the order of the queue; and
//! whoever reads before that accepts it himself first.
//!
//! **Invariants**.
//! - Batches are accepted one at a time, in the order in which they were handed over, each as a transaction that read nothing.
//! - Who reads, or commits, behind the return of a hand-over finds it accepted, or refused: every call of [`World`] that
//!   looks at content settles first what was handed over before it. Calls for single chunks settle only what concerns their columns.
//! - A batch leaves the queue when it is accepted, or refused for what it says. While the world takes no commits it stays.
//! - No refusal is silent: the ticket tells it, or else the next [`flush`](World::flush) or [`close`](World::close).

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

use crate::durability::Durability;
use crate::engine::{Engine, EngineError};
use crate::error::Error;
use crate::world::World;

impl<E: Engine> World<E> {
    /// Gives writes away: they are accepted behind this call, in the order of such calls, at the latest when somebody reads.
    ///
    /// For threads that must not stall. It costs some tens of nanoseconds for each chunk and never blocks on disk or on
    /// other commits. What is handed over is seen whole by every read and transaction that begins afterwards, from any
    /// thread; one that comes before a thread of the world has accepted it waits for that.
    /// Like a commit at [`Durability::Fast`] it is written soon, and synced as the world's
    /// [`durability`](crate::WorldOptions::durability) says. A killed process may take the newest hand-overs, whole, as it
    /// may take the newest queued commits.
    ///
    /// What cannot be stored is found out when it is accepted: the [ticket](HandedOver) tells, or if that is dropped,
    /// the next [`flush`](Self::flush) or [`close`](Self::close) does. Nothing of such a batch is written then.
    /// A segment of a segmented world accepts a batch before this returns.
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
    /// world takes no commits, if it does not. Nothing was taken then.
    pub fn hand_over(&self, batch: WriteBatch) -> Result<HandedOver<E>, Error> {
        let inner = self.unsettled();
        inner.check_open()?;
        if inner.door.get().is_some() {
            // Who closes it must not wait for what waits behind it.
            let accepted = self.transaction_at(Durability::Fast, |tx| batch.say(tx))?;
            return Ok(HandedOver::accepted(self.visitor(), accepted.seq));
        }
        let bytes = batch.memory_bytes();
        inner.queue.check()?;
        let engine = inner.engine()?;
        if engine.caps().read_only {
            return Err(EngineError::OpenedReadOnly.into());
        }
        if batch.puts_anything() {
            inner.space.check(&*engine, bytes)?;
        }
        drop(engine);
        self.start_accepting()?;
        let outcome =
            inner.hand_overs.push(batch, bytes, |waiting_bytes| inner.queue.admit(bytes, waiting_bytes))?;
        Ok(HandedOver::waiting(self.visitor(), outcome))
    }
}
