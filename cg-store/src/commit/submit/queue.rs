//! The queue of submitted batches that are not accepted yet.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cg_format::ChunkAt;

use super::Refused;
use super::batch::{ColumnOf, WriteBatch, column_of};
use super::ticket::Outcome;
use crate::rt::lock_order::{Condvar, Mutex, MutexGuard, rank};
use crate::rt::parker::Parker;
use crate::storage::error::Error;

/// The batches that were submitted to one world.
#[derive(Debug, Default)]
pub(crate) struct SubmitQueue {
    /// The number of waiting batches, readable without the lock. A batch that is being accepted is included.
    len: AtomicU64,
    state: Mutex<State, rank::SubmitQueue>,
    /// Held while a batch is accepted, so that they are accepted in order.
    accepting: Mutex<(), rank::Accepting>,
    /// Signalled when a batch is submitted, or the commit thread must end.
    came: Parker,
    /// Signalled when a batch is accepted or refused.
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Waiting>>,
    /// The number of the newest batch.
    last: u64,
    unreported: Unreported,
    /// The queue takes no more batches.
    ended: bool,
    /// The commit thread must end.
    is_over: bool,
}

/// Refusals that were not reported and whose tickets are gone.
#[derive(Debug, Default)]
struct Unreported {
    first: Option<Error>,
    /// The number of refusals after the first.
    others: u64,
}

/// A batch in the queue.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) batch: WriteBatch,
    pub(super) outcome: Arc<Outcome>,
    /// The room that is reserved for it in the commit queue.
    pub(super) reserved_bytes: u64,
    /// Computed when a chunk is first looked up while the batch waits.
    columns: OnceLock<HashSet<ColumnOf, foldhash::fast::FixedState>>,
}

impl SubmitQueue {
    /// Whether everything was accepted or refused.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of waiting batches.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Adds a batch for which `reserved_bytes` of room are reserved. From now on readers apply it first.
    ///
    /// # Errors
    /// [`Error::Closed`] if the queue takes no more batches.
    pub(super) fn push(&self, batch: WriteBatch, reserved_bytes: u64) -> Result<Arc<Outcome>, Box<Refused>> {
        let mut state = self.state.lock();
        if state.ended {
            return Err(Refused::of(Error::Closed, batch));
        }
        state.last += 1;
        let outcome = Arc::new(Outcome::of(state.last));
        let columns = OnceLock::new();
        let waiting = Waiting { batch, outcome: Arc::clone(&outcome), reserved_bytes, columns };
        state.waiting.push_back(Arc::new(waiting));
        self.len.fetch_add(1, Ordering::Release);
        drop(state);
        self.came.wake();
        Ok(outcome)
    }

    /// The number of the newest batch.
    pub(super) fn last(&self) -> u64 {
        self.state.lock().last
    }

    /// Returns the newest batch that may concern the column of one of some chunks.
    pub(super) fn last_concerning(&self, at: &[ChunkAt]) -> Option<u64> {
        // Searched outside the lock, which every submission takes.
        let waiting: Vec<_> = self.state.lock().waiting.iter().map(Arc::clone).collect();
        let concerning = waiting.iter().rev().find(|waiting| waiting.concerns(at));
        concerning.map(|waiting| waiting.outcome.number())
    }

    /// The right to accept the next batch. One holder at a time.
    pub(super) fn begin_accepting(&self) -> MutexGuard<'_, ()> {
        self.accepting.lock()
    }

    /// The next batch, if its number is at most `number`. It stays in the queue until it [leaves](Self::leave).
    pub(super) fn next_up_to(&self, number: u64) -> Option<Arc<Waiting>> {
        let state = self.state.lock();
        state.waiting.front().filter(|next| next.outcome.number() <= number).map(Arc::clone)
    }

    /// Records the outcome of the next batch and removes it.
    pub(super) fn leave(&self, accepted: Result<u64, Error>) {
        let mut state = self.state.lock();
        let Some(left) = state.waiting.pop_front() else { return };
        if let Some(refusal) = left.outcome.set(accepted) {
            state.unreported.add(refusal);
        }
        // Only now: a reader that finds the queue empty reads what was accepted.
        self.len.fetch_sub(1, Ordering::Release);
        drop(state);
        self.left.notify_all();
    }

    /// Waits a short time for a batch to leave.
    pub(super) fn wait_until_one_leaves(&self) {
        /// The last batch may have left since the caller looked.
        const LOOK_AGAIN: Duration = Duration::from_millis(5);
        let mut state = self.state.lock();
        if !state.waiting.is_empty() {
            self.left.wait_for(&mut state, LOOK_AGAIN);
        }
    }

    /// Stores a refusal that its ticket did not report.
    pub(super) fn add_unreported(&self, refusal: Error) {
        self.state.lock().unreported.add(refusal);
    }

    /// Takes all refusals that were not reported, as one error.
    pub(super) fn take_unreported(&self) -> Option<Error> {
        let Unreported { first, others } = std::mem::take(&mut self.state.lock().unreported);
        first.map(|error| Error::DeferredWrite { error: Box::new(error), others })
    }

    /// Takes no more batches. The waiting ones are still accepted.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
    }

    /// Ends the commit thread.
    pub(super) fn end_thread(&self) {
        self.state.lock().is_over = true;
        self.came.wake_all();
    }

    /// Waits for a batch. Returns `false` when the commit thread must end.
    pub(super) fn wait_for_work(&self) -> bool {
        let mut state = self.state.lock();
        self.came.wait_while(&mut state, |state| state.waiting.is_empty() && !state.is_over);
        !state.is_over
    }
}

impl Unreported {
    fn add(&mut self, refusal: Error) {
        if self.first.is_none() {
            self.first = Some(refusal);
        } else {
            self.others += 1;
        }
    }
}

impl Waiting {
    fn concerns(&self, at: &[ChunkAt]) -> bool {
        if self.batch.touches_entities() {
            // The chunks that refer to its entities now are not known without reading.
            return true;
        }
        let columns = self.columns.get_or_init(|| self.batch.columns().collect());
        at.iter().any(|at| columns.contains(&column_of(*at)))
    }
}
