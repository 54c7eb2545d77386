//! Batches that wait for their overlay, in the order of their submission.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use cg_format::ChunkAt;
use cg_store::layer::{Condvar, DeferredOutcome, DeferredTicket, Mutex, batch, rank};
use cg_store::{Error, Refused, WriteBatch};

/// The batches that were submitted to an arena and are not written yet.
#[derive(Debug, Default)]
pub(super) struct Submitted {
    state: Mutex<State, rank::OverlaySubmitted>,
    /// No background job keeps the pool open any more.
    idle: Condvar,
    /// How many wait, one that is being written included. Readable without the lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// One is being written.
    is_writing: bool,
    /// A background job will write them.
    is_scheduled: bool,
    /// The number of the newest batch.
    last: u64,
    /// The work for when the right to write is released.
    deferred: Vec<Job>,
    /// How many background jobs keep the pool open.
    running: usize,
}

/// Work for a background thread, after what was submitted is written. It is told why that still waits, if it does.
pub(super) struct Job(pub(super) Box<dyn FnOnce(Result<(), Error>) + Send>);

thread_local! {
    /// How many background jobs this thread runs.
    static RUNNING: Cell<u32> = const { Cell::new(0) };
}

/// A background job that keeps the pool open, until this is dropped.
pub(super) struct Running(Arc<Submitted>);

impl Running {
    pub(super) fn begin(submitted: &Arc<Submitted>) -> Self {
        submitted.state.lock().running += 1;
        RUNNING.set(RUNNING.get() + 1);
        Self(Arc::clone(submitted))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get() - 1);
        let mut state = self.0.state.lock();
        state.running -= 1;
        if state.running == 0 {
            self.0.idle.notify_all();
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Job")
    }
}

/// A batch that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    number: u64,
    /// The tenancy of the handle that submitted it.
    pub(super) tenancy: u64,
    bytes: u64,
    pub(super) batch: WriteBatch,
    pub(super) ticket: DeferredTicket,
}

/// What is woken and dropped without a lock: both may be code of the host.
#[derive(Default)]
pub(super) struct Done {
    pub(super) wakers: Vec<Waker>,
    pub(super) batches: Vec<WriteBatch>,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// The memory of all batches that wait for arenas of a pool.
#[derive(Debug)]
pub(super) struct Room {
    queued_bytes: AtomicU64,
    limit_bytes: u64,
}

impl Room {
    pub(super) const fn new(limit_bytes: u64) -> Self {
        Self { queued_bytes: AtomicU64::new(0), limit_bytes }
    }

    /// Takes room for a batch. A batch that is larger than all of it is taken alone.
    fn take(&self, bytes: u64) -> Result<(), Error> {
        let limit_bytes = self.limit_bytes;
        let fits = |queued: u64| {
            let after = queued.saturating_add(bytes);
            (queued == 0 || after <= limit_bytes).then_some(after)
        };
        let taken = self.queued_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits);
        taken.map(drop).map_err(|queued_bytes| Error::Busy { queued_bytes, limit_bytes })
    }

    pub(super) fn leave(&self, left: &Waiting) {
        self.queued_bytes.fetch_sub(left.bytes, Ordering::AcqRel);
    }
}

impl Submitted {
    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Whether one that waits may concern a chunk.
    pub(super) fn may_concern(&self, at: ChunkAt) -> bool {
        if self.is_empty() {
            return false;
        }
        let state = self.state.lock();
        state.is_writing || state.waiting.iter().any(|it| batch::may_concern(&it.batch, at))
    }

    /// Adds a batch. Returns whether a background job is to be started for it.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(super) fn push(
        &self,
        room: &Room,
        tenancy: u64,
        batch: WriteBatch,
        ticket: DeferredTicket,
    ) -> Result<bool, Box<Refused>> {
        let bytes = batch::memory_bytes(&batch);
        if let Err(error) = room.take(bytes) {
            return Err(Box::new(Refused { error, batch }));
        }
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        state.waiting.push_back(Waiting { number, tenancy, bytes, batch, ticket });
        self.count.fetch_add(1, Ordering::Release);
        Ok(!std::mem::replace(&mut state.is_scheduled, true))
    }

    /// Whether batches wait that have no background job. They get one now.
    pub(super) fn schedule(&self) -> bool {
        !self.is_empty() && !std::mem::replace(&mut self.state.lock().is_scheduled, true)
    }

    /// The background job of the batches begins, so that the next batch starts another one.
    pub(super) fn note_begun(&self) {
        self.state.lock().is_scheduled = false;
    }

    /// Waits until no background job keeps the pool open. Does not wait on the thread of one: code of the host that it
    /// runs may drop the last handle.
    pub(super) fn wait_for_jobs(&self) {
        if RUNNING.get() == 0 {
            self.idle.wait_while(&mut self.state.lock(), |state| state.running > 0);
        }
    }

    /// The number of the newest batch; `None` if none waits.
    pub(super) fn newest(&self) -> Option<u64> {
        if self.is_empty() { None } else { Some(self.state.lock().last) }
    }

    /// The next batch, if its number is at most `until`. It counts as waiting until it has [left](Self::leave) or is
    /// [put back](Self::put_back). The caller has the right to write.
    pub(super) fn take_next(&self, until: u64) -> Option<Waiting> {
        let mut state = self.state.lock();
        state.waiting.front().filter(|next| next.number <= until)?;
        state.is_writing = true;
        state.waiting.pop_front()
    }

    /// Puts a batch back that cannot be written now.
    pub(super) fn put_back(&self, batch: Waiting) {
        let mut state = self.state.lock();
        state.is_writing = false;
        state.waiting.push_front(batch);
    }

    /// Reports the outcome of the batch that was taken. Returns the task that waits for it, to be woken without a lock. A
    /// thread that knows the outcome finds the batch gone, and the other way round.
    pub(super) fn leave(&self, ticket: DeferredTicket, outcome: DeferredOutcome) -> Option<Waker> {
        let mut state = self.state.lock();
        state.is_writing = false;
        let waker = ticket.give(outcome);
        self.count.fetch_sub(1, Ordering::Release);
        waker
    }

    /// Keeps a job until the right to write is released.
    pub(super) fn defer(&self, job: Job) {
        self.state.lock().deferred.push(job);
    }

    /// The jobs that were kept.
    pub(super) fn take_deferred(&self) -> Vec<Job> {
        std::mem::take(&mut self.state.lock().deferred)
    }

    /// Calls a function with the ticket of each batch that waits.
    pub(super) fn for_each_ticket(&self, see: impl FnMut(&DeferredTicket)) {
        self.state.lock().waiting.iter().map(|waiting| &waiting.ticket).for_each(see);
    }
}
