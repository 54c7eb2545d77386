//! The queue of what was handed over and is not accepted.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cg_format::ChunkAt;
use parking_lot::{Mutex, MutexGuard};

use super::batch::{ColumnOf, WriteBatch, column_of};
use super::ticket::Outcome;
use crate::error::Error;
use crate::nap::Nap;

/// What was handed over to one world.
#[derive(Debug)]
pub(crate) struct HandOvers {
    /// How many batches wait, for those who only look. One that is being accepted still counts.
    len: AtomicU64,
    state: Mutex<State>,
    /// Held while a batch is accepted, so that they are accepted in order.
    accepting: Mutex<()>,
    came: Nap,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Waiting>>,
    /// Memory of everything that waits.
    bytes: u64,
    /// The number of the newest batch.
    last: u64,
    /// What was refused, the oldest first, until somebody is told.
    refused: VecDeque<Arc<Outcome>>,
    /// Nothing is taken any more.
    ended: bool,
    /// Nobody will accept anything: the thread that does must go.
    is_over: bool,
}

/// A batch in the queue.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) batch: WriteBatch,
    pub(super) outcome: Arc<Outcome>,
    bytes: u64,
    /// Made when somebody asks after a chunk while it waits.
    columns: OnceLock<HashSet<ColumnOf, foldhash::fast::FixedState>>,
}

/// So many refusals are kept until somebody asks; all of them are logged and counted.
const MAX_REFUSED: usize = 64;

impl HandOvers {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        Self {
            len: AtomicU64::new(0),
            state: Mutex::default(),
            accepting: Mutex::new(()),
            came: Nap::default(),
        }
    }

    /// Whether everything was accepted or refused.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// How many batches wait, and their memory.
    pub(crate) fn load(&self) -> (u64, u64) {
        let state = self.state.lock();
        (self.len.load(Ordering::Relaxed), state.bytes)
    }

    /// Takes a batch of so much memory, if it is admitted beside what waits, of which there are so many bytes. From now on
    /// readers settle it.
    ///
    /// # Errors
    /// Why it is not admitted, [`Error::Closed`] if nothing is taken any more.
    pub(super) fn push(
        &self,
        batch: WriteBatch,
        bytes: u64,
        admit: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<Arc<Outcome>, Error> {
        let mut state = self.state.lock();
        if state.ended {
            return Err(Error::Closed);
        }
        admit(state.bytes)?;
        state.bytes += bytes;
        state.last += 1;
        let outcome = Arc::new(Outcome::of(state.last));
        let waiting = Waiting { batch, outcome: Arc::clone(&outcome), bytes, columns: OnceLock::new() };
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

    /// The newest batch that says anything of the column of one of some chunks.
    pub(super) fn last_concerning(&self, at: &[ChunkAt]) -> Option<u64> {
        let state = self.state.lock();
        let concerning = state.waiting.iter().rev().find(|waiting| waiting.concerns(at));
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

    /// Notes that the next batch was accepted or refused, which its outcome says already.
    pub(super) fn leave(&self, is_refused: bool) {
        let mut state = self.state.lock();
        let Some(left) = state.waiting.pop_front() else { return };
        state.bytes -= left.bytes;
        if is_refused && state.refused.len() < MAX_REFUSED {
            state.refused.push_back(Arc::clone(&left.outcome));
        }
        // Only now: who finds the queue empty reads what was accepted.
        self.len.fetch_sub(1, Ordering::Release);
        drop(state);
        // Perhaps the last holder of many chunks.
        drop(left);
    }

    /// The oldest refusal that nobody was told.
    pub(super) fn untold(&self) -> Option<Error> {
        let mut state = self.state.lock();
        while let Some(outcome) = state.refused.pop_front() {
            if let Some(error) = outcome.take_refusal() {
                return Some(error);
            }
        }
        None
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

impl Waiting {
    fn concerns(&self, at: &[ChunkAt]) -> bool {
        let columns = self.columns.get_or_init(|| self.batch.columns().collect());
        at.iter().any(|at| columns.contains(&column_of(*at)))
    }
}
