//! The queue of what was submitted and is not accepted.

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

/// What was submitted to one world.
#[derive(Debug, Default)]
pub(crate) struct SubmitQueue {
    /// How many batches wait, for those who only look. One that is being accepted still counts.
    len: AtomicU64,
    state: Mutex<State, rank::SubmitQueue>,
    /// Held while a batch is accepted, so that they are accepted in order.
    accepting: Mutex<(), rank::Accepting>,
    /// Something was submitted, or nothing will be any more.
    came: Parker,
    /// Something was accepted or refused.
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Waiting>>,
    /// The number of the newest batch.
    last: u64,
    unreported: Unreported,
    /// Nothing is taken any more.
    ended: bool,
    /// Nobody will accept anything: the thread that does must go.
    is_over: bool,
}

/// Refusals of which nobody was told and whose tickets are gone.
#[derive(Debug, Default)]
struct Unreported {
    first: Option<Error>,
    /// How many came after it.
    others: u64,
}

/// A batch in the queue.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) batch: WriteBatch,
    pub(super) outcome: Arc<Outcome>,
    /// The room that it was promised among what is queued to be written.
    pub(super) reserved_bytes: u64,
    /// Made when somebody asks after a chunk while it waits.
    columns: OnceLock<HashSet<ColumnOf, foldhash::fast::FixedState>>,
}

impl SubmitQueue {
    /// Whether everything was accepted or refused.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many batches wait.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Takes a batch to which so much room was promised. From now on readers settle it.
    ///
    /// # Errors
    /// [`Error::Closed`] if nothing is taken any more.
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

    /// The newest batch that may say anything of the column of one of some chunks.
    pub(super) fn last_concerning(&self, at: &[ChunkAt]) -> Option<u64> {
        // Looked through outside the lock, which who submits takes.
        let waiting: Vec<_> = self.state.lock().waiting.iter().map(Arc::clone).collect();
        let concerning = waiting.iter().rev().find(|waiting| waiting.concerns(at));
        concerning.map(|waiting| waiting.outcome.number())
    }

    /// The right to accept the next batch. One holder at a time.
    pub(super) fn begin_accepting(&self) -> MutexGuard<'_, ()> {
        self.accepting.lock()
    }

    /// The next batch, if its number is not greater. It stays in the queue until it [leaves](Self::leave).
    pub(super) fn next_up_to(&self, number: u64) -> Option<Arc<Waiting>> {
        let state = self.state.lock();
        state.waiting.front().filter(|next| next.outcome.number() <= number).map(Arc::clone)
    }

    /// Notes what became of the next batch.
    pub(super) fn leave(&self, accepted: Result<u64, Error>) {
        let mut state = self.state.lock();
        let Some(left) = state.waiting.pop_front() else { return };
        if let Some(refusal) = left.outcome.settle(accepted) {
            state.unreported.add(refusal);
        }
        // Only now: who finds the queue empty reads what was accepted.
        self.len.fetch_sub(1, Ordering::Release);
        drop(state);
        self.left.notify_all();
    }

    /// Waits for a moment until something leaves.
    pub(super) fn wait_until_one_leaves(&self) {
        /// The last may have left since the caller looked.
        const LOOK_AGAIN: Duration = Duration::from_millis(5);
        let mut state = self.state.lock();
        if !state.waiting.is_empty() {
            self.left.wait_for(&mut state, LOOK_AGAIN);
        }
    }

    /// Notes a refusal that its ticket told nobody.
    pub(super) fn add_unreported(&self, refusal: Error) {
        self.state.lock().unreported.add(refusal);
    }

    /// All refusals of which nobody was told, as one error.
    pub(super) fn take_unreported(&self) -> Option<Error> {
        let Unreported { first, others } = std::mem::take(&mut self.state.lock().unreported);
        first.map(|error| Error::DeferredWrite { error: Box::new(error), others })
    }

    /// Takes nothing any more; what waits is still accepted.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
    }

    /// Lets the thread that accepts go.
    pub(super) fn end_thread(&self) {
        self.state.lock().is_over = true;
        self.came.wake_all();
    }

    /// Waits until something waits to be accepted; `false` if nothing will any more.
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
            // Where its entities are by now, whose chunks refer to them, is not known without reading.
            return true;
        }
        let columns = self.columns.get_or_init(|| self.batch.columns().collect());
        at.iter().any(|at| columns.contains(&column_of(*at)))
    }
}
