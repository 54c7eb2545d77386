//! Submission: a tick thread submits writes and continues. They are accepted before any reader could miss them.
//!
//! A commit costs its caller the acceptance: reading what is replaced, checking, comparing and publishing it. A
//! submitted batch costs its caller only a place in the [queue](crate::commit::queue). A thread of the world accepts it
//! a moment later. A caller that reads before that accepts it first, on its own thread.
//!
//! **Invariants**.
//! - A batch is a transaction that does its reads when it is accepted.
//! - A caller that reads or commits after a submission has returned finds the batch accepted or refused. Every call of
//!   [`World`] that reads content first applies what was submitted before it. Calls for single chunks apply only what
//!   concerns their columns.
//! - A batch leaves the queue when it is accepted or refused. It is refused because of its content, or because what it
//!   replaces cannot be read. It stays while the world takes no commits, and a caller that reads content gets that
//!   error and not the old content.
//! - Every refusal is reported: by the ticket, or if that is gone, by the next [`flush`](World::flush) or
//!   [`close`](World::close). All refusals are logged and counted.

pub(super) mod batch;
mod deferred;
mod load;
mod read_ahead;
#[cfg(test)]
mod tests;
pub(super) mod ticket;

pub(crate) use read_ahead::ReadAhead;

pub use batch::WriteBatch;
pub use deferred::{DeferredOutcome, DeferredTicket, DefersBatches};
pub use ticket::WriteTicket;

use std::sync::Arc;
use std::task::Waker;

use cg_format::ChunkAt;

use crate::commit::disk_guard::Reserve;
use crate::commit::queue::Submitted;
use crate::commit::state::CommitState;
use crate::commit::transaction::accept_reserved;
use crate::engine::EngineError;
use crate::rt::pool::catch_panic;
use crate::rt::reentry::{Doing, ReentryGuard};
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
    pub(super) fn of(error: Error, batch: WriteBatch) -> Box<Self> {
        Box::new(Self { error, batch })
    }
}

impl From<Box<Refused>> for Error {
    fn from(refused: Box<Refused>) -> Self {
        refused.error
    }
}

/// A batch that left the queue, and the task that waits for its outcome.
type Accepted = (Arc<Submitted>, Option<Waker>);

impl CommitState {
    /// See [`World::submit`](crate::World::submit).
    pub(crate) fn submit(&self, batch: WriteBatch, reserve: Reserve) -> Result<WriteTicket, Box<Refused>> {
        let bytes = batch.memory_bytes();
        let takes = self.check_takes(&batch, bytes, reserve).and_then(|()| self.start_accepting());
        if let Err(error) = takes {
            return Err(Refused::of(error, batch));
        }
        let outcome =
            self.queue.submit(batch, bytes).inspect_err(|refused| self.count_busy(&refused.error))?;
        Ok(WriteTicket::waiting(&self.ticket_issuer, outcome))
    }

    /// Checks that the world takes a batch of a size, if its queue has room. Waits for nothing.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::LowDiskSpace`], and why the world takes no commits.
    pub(crate) fn check_takes(&self, batch: &WriteBatch, bytes: u64, reserve: Reserve) -> Result<(), Error> {
        self.shared.check_open()?;
        let engine = self.shared.engine()?;
        if engine.caps().read_only {
            return Err(EngineError::OpenedReadOnly.into());
        }
        if reserve == Reserve::Leaves && batch.puts_anything() {
            self.disk_guard.check(&*engine, bytes)?;
        }
        Ok(())
    }

    /// Accepts or refuses everything that was submitted before this call.
    ///
    /// # Errors
    /// Why the world takes no commits, if it takes none. The remaining batches stay in the queue.
    #[inline]
    pub(crate) fn apply_submitted(&self) -> Result<(), Error> {
        if self.queue.has_submitted() { self.apply_up_to(self.queue.last_submitted()) } else { Ok(()) }
    }

    /// As [`apply_submitted`](Self::apply_submitted), for the batches that concern the columns of some chunks.
    ///
    /// # Errors
    /// As [`apply_submitted`](Self::apply_submitted).
    #[inline]
    pub(crate) fn apply_submitted_for(&self, at: &[ChunkAt]) -> Result<(), Error> {
        self.queue.last_concerning(at).map_or(Ok(()), |number| self.apply_up_to(number))
    }

    /// Waits until another thread has applied what concerns the columns of some chunks. For threads of low priority,
    /// which must not hold the right to accept. Returns early if the world takes no commits.
    pub(crate) fn await_acceptance(&self, at: &[ChunkAt]) {
        while let Some(number) = self.queue.last_concerning(at)
            && self.queue.check().is_ok()
        {
            self.queue.wait_until_accepted(number);
        }
    }

    /// Accepts or refuses the batches up to a number.
    ///
    /// Does nothing on a thread that is accepting a batch or holds the commit lock, for example in a function of the
    /// host. Such a call sees the world as it was before.
    #[cold]
    pub(super) fn apply_up_to(&self, number: u64) -> Result<(), Error> {
        let mut wakers = Vec::new();
        let applied = self.accept_up_to(number, &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
        applied
    }

    /// As [`apply_up_to`](Self::apply_up_to). Adds the tasks that wait for the outcomes, which the caller wakes when it does
    /// not visit the world any more: a task may own the last handle of it.
    pub(super) fn accept_up_to(&self, number: u64, wakers: &mut Vec<Waker>) -> Result<(), Error> {
        if ReentryGuard::is_in(Doing::Acceptance, &*self.queue)
            || ReentryGuard::is_in(Doing::Commit, &self.log)
        {
            return Ok(());
        }
        while let Some((_, waker)) = self.accept_next(number)? {
            wakers.extend(waker);
        }
        Ok(())
    }

    /// Accepts or refuses the next batch, if its number is at most `number`. Returns it, if there was one, and the task that
    /// waits for its outcome. Both are dropped or woken without a lock, and without a visit of the world.
    ///
    /// # Errors
    /// As [`apply_submitted`](Self::apply_submitted).
    pub(super) fn accept_next(&self, number: u64) -> Result<Option<Accepted>, Error> {
        let _in_order = self.queue.begin_accepting();
        let Some(next) = self.queue.next_submitted(number) else { return Ok(None) };
        // Checked first: while the world takes no commits, preparing one is wasted.
        self.queue.check()?;
        let accepted = {
            let _accepting = ReentryGuard::enter(Doing::Acceptance, &*self.queue);
            self.read_ahead(&next);
            catch_panic("accepting what was submitted", || {
                accept_reserved(self, |tx| next.batch.write_to(tx))
            })
        };
        if let Err(error) = &accepted {
            if keeps_it_waiting(error) && self.check_takes_commits().is_err() {
                return accepted.map(|_| None);
            }
            tracing::error!(%error, "a batch that was submitted is refused, and nothing of it is written");
            Counters::add(&self.shared.counters.submissions_refused, 1);
        }
        let waker = self.queue.leave_accepted(accepted);
        Ok(Some((next, waker)))
    }

    /// # Errors
    /// Why the world takes no commits until it is resumed, if it takes none.
    pub(super) fn check_takes_commits(&self) -> Result<(), Error> {
        self.queue.check()?;
        Ok(self.shared.engine().map(drop)?)
    }

    /// Refuses the batches that can no longer be accepted, because the world is closed.
    pub(crate) fn abandon_submitted(&self) {
        let in_order = self.queue.begin_accepting();
        let mut wakers = Vec::new();
        while self.queue.has_submitted() {
            tracing::error!(
                "the world is closed before a batch that was submitted could be accepted: it is lost"
            );
            Counters::add(&self.shared.counters.submissions_refused, 1);
            wakers.extend(self.queue.leave_accepted(Err(Error::Closed)));
        }
        drop(in_order);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Counts a commit or batch for which the queue had no room.
    pub(super) fn count_busy(&self, refusal: &Error) {
        Counters::add(&self.shared.counters.busy, u64::from(matches!(refusal, Error::Busy { .. })));
    }
}

/// Whether the error is that of a world that takes no commits until it is resumed. A function of the host may return it too,
/// of another world.
const fn keeps_it_waiting(error: &Error) -> bool {
    matches!(error, Error::Engine(EngineError::ReadOnly { .. } | EngineError::NotReopened { .. }))
}
