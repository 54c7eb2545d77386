//! The first stage of the queue: batches that were submitted and are not accepted yet.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use cg_format::ChunkAt;

use super::{CommitQueue, State};
use crate::commit::submit::Refused;
use crate::commit::submit::batch::{ColumnOf, WriteBatch, column_of};
use crate::commit::submit::ticket::Outcome;
use crate::rt::lock_order::MutexGuard;
use crate::storage::error::Error;

/// A batch in the queue.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) batch: WriteBatch,
    pub(crate) outcome: Arc<Outcome>,
    /// The memory that it holds.
    bytes: u64,
    /// Computed when a chunk is first looked up while the batch waits.
    columns: OnceLock<HashSet<ColumnOf, foldhash::fast::FixedState>>,
}

impl CommitQueue {
    /// Whether a batch waits to be accepted.
    #[inline]
    pub(crate) fn has_submitted(&self) -> bool {
        self.submitted_len() > 0
    }

    /// The number of batches that wait to be accepted.
    #[inline]
    pub(crate) fn submitted_len(&self) -> u64 {
        self.submitted_len.load(Ordering::Acquire)
    }

    /// Adds a batch. From now on readers apply it first.
    ///
    /// # Errors
    /// [`Error::Closed`] if the queue takes no more batches, the error of a failed write, and [`Error::Busy`] if there
    /// is no room.
    pub(crate) fn submit(&self, batch: WriteBatch, bytes: u64) -> Result<Arc<Outcome>, Box<Refused>> {
        let mut state = self.state.lock();
        if let Err(error) = self.admit_batch(&mut state, bytes) {
            return Err(Refused::of(error, batch));
        }
        state.last_submitted += 1;
        state.bytes += bytes;
        let outcome = Arc::new(Outcome::of(state.last_submitted));
        let submitted = Submitted { batch, outcome: Arc::clone(&outcome), bytes, columns: OnceLock::new() };
        self.waiting.lock().push_back(Arc::new(submitted));
        self.submitted_len.fetch_add(1, Ordering::Release);
        drop(state);
        self.submitted.wake();
        Ok(outcome)
    }

    fn admit_batch(&self, state: &mut State, bytes: u64) -> Result<(), Error> {
        if state.is_closed {
            return Err(Error::Closed);
        }
        state.check()?;
        self.admit(state, bytes)
    }

    /// The number of the newest batch.
    pub(crate) fn last_submitted(&self) -> u64 {
        self.state.lock().last_submitted
    }

    /// Returns the number of the newest batch that may concern the column of one of some chunks.
    #[inline]
    pub(crate) fn last_concerning(&self, at: &[ChunkAt]) -> Option<u64> {
        if self.has_submitted() { self.find_concerning(at) } else { None }
    }

    #[cold]
    fn find_concerning(&self, at: &[ChunkAt]) -> Option<u64> {
        // Searched outside the lock, which every submission takes.
        let submitted: Vec<_> = self.waiting.lock().iter().map(Arc::clone).collect();
        let concerning = submitted.iter().rev().find(|submitted| submitted.concerns(at));
        concerning.map(|submitted| submitted.outcome.number())
    }

    /// The right to accept the next batch. One holder at a time.
    pub(crate) fn begin_accepting(&self) -> MutexGuard<'_, ()> {
        self.accepting.lock()
    }

    /// The next batch, if its number is at most `number`. It stays in the queue until it is [left](Self::leave_accepted).
    pub(crate) fn next_submitted(&self, number: u64) -> Option<Arc<Submitted>> {
        self.waiting.lock().front().filter(|next| next.outcome.number() <= number).map(Arc::clone)
    }

    /// The oldest batches that wait to be accepted.
    pub(crate) fn first_submitted(&self, count: usize) -> Vec<Arc<Submitted>> {
        self.waiting.lock().iter().take(count).map(Arc::clone).collect()
    }

    /// Removes the next batch, which is accepted as a commit or refused, and records the outcome. Returns the task that
    /// waits for it, to be woken without a lock.
    pub(crate) fn leave_accepted(&self, accepted: Result<u64, Error>) -> Option<Waker> {
        // Dropped after the state: a function of the host in it may own what locks the queue.
        let batch = self.waiting.lock().pop_front()?;
        let mut state = self.state.lock();
        let (unreported, waker) = batch.outcome.set(accepted);
        if let Some(refusal) = unreported {
            state.add_unreported(refusal);
        }
        // Only now: a reader that finds no batch reads what was accepted.
        self.submitted_len.fetch_sub(1, Ordering::Release);
        state.bytes -= batch.bytes;
        self.made_room(&mut state);
        waker
    }

    /// Wakes the tasks that wait for outcomes, because the world takes no commits.
    pub(crate) fn wake_tasks(&self) {
        let wakers: Vec<_> =
            self.waiting.lock().iter().filter_map(|submitted| submitted.outcome.take_waker()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until no batch up to a number is left. Returns early if the world takes no commits.
    pub(crate) fn wait_until_accepted(&self, number: u64) {
        let mut state = self.state.lock();
        self.left
            .wait_while(&mut state, |state| state.failed.is_none() && self.next_submitted(number).is_some());
    }

    /// Waits for a batch. Returns `false` when the accepting thread must end.
    pub(crate) fn wait_for_batch(&self) -> bool {
        let mut state = self.state.lock();
        self.submitted.wait_while(&mut state, |state| self.waiting.lock().is_empty() && !state.ended);
        !state.ended
    }

    /// Stores a refusal that its ticket did not report.
    pub(crate) fn add_unreported(&self, refusal: Error) {
        self.state.lock().add_unreported(refusal);
    }

    /// Reports all refusals that were not reported, as one error.
    pub(crate) fn check_unreported(&self) -> Result<(), Error> {
        self.state.lock().unreported.take().map_or(Ok(()), Err)
    }
}

impl State {
    fn add_unreported(&mut self, refusal: Error) {
        match &mut self.unreported {
            Some(Error::DeferredWrite { others, .. }) => *others += 1,
            none => *none = Some(Error::DeferredWrite { error: Box::new(refusal), others: 0 }),
        }
    }
}

impl Submitted {
    /// Its place in the order of submissions.
    pub(crate) fn number(&self) -> u64 {
        self.outcome.number()
    }

    fn concerns(&self, at: &[ChunkAt]) -> bool {
        if self.batch.touches_entities() {
            // The chunks that refer to its entities now are not known without reading.
            return true;
        }
        let columns = self.columns.get_or_init(|| self.batch.columns().collect());
        at.iter().any(|at| columns.contains(&column_of(*at)))
    }
}
