//! Batches that wait for their segment, in the order of their submission.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use cg_format::ChunkAt;
use cg_store::layer::{DeferredTicket, Mutex, MutexGuard, batch, rank};
use cg_store::{Error, Refused, WriteBatch};

use super::pos::SegmentPos;

/// The batches of all segments that no segment has yet.
#[derive(Debug)]
pub(super) struct WaitingBatches {
    state: Mutex<State, rank::SegmentSubmitted>,
    /// How many wait, one that is being given to its segment included. Readable without the lock.
    count: AtomicUsize,
    limit_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    of: BTreeMap<SegmentPos, Queue>,
    /// The number of the newest batch.
    last: u64,
    bytes: u64,
    is_closed: bool,
}

/// The batches of one segment. It exists as long as there are any.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<WaitingBatch>,
    /// One is being given to the segment, and whether it has more than chunks.
    giving: Option<bool>,
    /// A background job will give them.
    is_scheduled: bool,
    turn: Arc<Turn>,
}

/// A batch that waits.
#[derive(Debug)]
pub(super) struct WaitingBatch {
    number: u64,
    bytes: u64,
    pub(super) batch: WriteBatch,
    pub(super) ticket: DeferredTicket,
}

/// The right to give the batches of a segment to it.
#[derive(Debug, Default)]
pub(super) struct Turn {
    right: Mutex<(), rank::SegmentAccepting>,
    holder: Mutex<Option<ThreadId>, rank::SegmentAcceptor>,
}

/// The right, until this is dropped.
pub(super) struct TurnGuard<'t> {
    turn: &'t Turn,
    _right: MutexGuard<'t, ()>,
}

impl Turn {
    /// Waits for the right. `None` if this thread has it: then a function of the host in a batch asks.
    pub(super) fn take(&self) -> Option<TurnGuard<'_>> {
        if *self.holder.lock() == Some(thread::current().id()) {
            return None;
        }
        let right = self.right.lock();
        *self.holder.lock() = Some(thread::current().id());
        Some(TurnGuard { turn: self, _right: right })
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        *self.turn.holder.lock() = None;
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.giving.is_none()
    }

    fn has_values(&self) -> bool {
        self.giving == Some(true) || self.waiting.iter().any(|waiting| batch::has_values(&waiting.batch))
    }
}

impl WaitingBatches {
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self { state: Mutex::default(), count: AtomicUsize::new(0), limit_bytes }
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// How many wait for each segment, and the memory that they hold.
    pub(super) fn counts(&self) -> (BTreeMap<SegmentPos, u64>, u64) {
        let state = self.state.lock();
        let count = |queue: &Queue| queue.waiting.len() as u64 + u64::from(queue.giving.is_some());
        (state.of.iter().map(|(segment, queue)| (*segment, count(queue))).collect(), state.bytes)
    }

    /// Whether one waits for a segment.
    pub(super) fn has(&self, segment: SegmentPos) -> bool {
        !self.is_empty() && self.state.lock().of.contains_key(&segment)
    }

    /// Whether one that waits may concern a chunk of a segment.
    pub(super) fn may_concern(&self, segment: SegmentPos, at: ChunkAt) -> bool {
        if self.is_empty() {
            return false;
        }
        let state = self.state.lock();
        let concerns = |queue: &Queue| {
            queue.giving.is_some() || queue.waiting.iter().any(|it| batch::may_concern(&it.batch, at))
        };
        state.of.get(&segment).is_some_and(concerns)
    }

    /// The segments for which batches wait.
    pub(super) fn segments(&self) -> Vec<SegmentPos> {
        if self.is_empty() { Vec::new() } else { self.state.lock().of.keys().copied().collect() }
    }

    /// Those for which batches wait that have more than chunks.
    pub(super) fn segments_with_values(&self) -> Vec<SegmentPos> {
        if self.is_empty() {
            return Vec::new();
        }
        let state = self.state.lock();
        let of = state.of.iter().filter(|(_, queue)| queue.has_values());
        of.map(|(segment, _)| *segment).collect()
    }

    /// Adds a batch. Returns whether a background job is to be started for it.
    ///
    /// # Errors
    /// [`Error::Busy`] and [`Error::Closed`].
    pub(super) fn push(
        &self,
        segment: SegmentPos,
        batch: WriteBatch,
        ticket: DeferredTicket,
    ) -> Result<bool, Box<Refused>> {
        let bytes = batch::memory_bytes(&batch);
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Box::new(Refused { error: Error::Closed, batch }));
        }
        let (queued_bytes, limit_bytes) = (state.bytes, self.limit_bytes);
        if queued_bytes > 0 && queued_bytes.saturating_add(bytes) > limit_bytes {
            let error = Error::Busy { queued_bytes, limit_bytes };
            return Err(Box::new(Refused { error, batch }));
        }
        state.last += 1;
        state.bytes += bytes;
        let number = state.last;
        let queue = state.of.entry(segment).or_default();
        queue.waiting.push_back(WaitingBatch { number, bytes, batch, ticket });
        let starts = !std::mem::replace(&mut queue.is_scheduled, true);
        self.count.fetch_add(1, Ordering::Release);
        Ok(starts)
    }

    /// Records that a background job begins, so that the next batch starts another one.
    pub(super) fn begin_job(&self, segment: SegmentPos) {
        if let Some(queue) = self.state.lock().of.get_mut(&segment) {
            queue.is_scheduled = false;
        }
    }

    /// The segments that have no background job although batches wait for them. Each gets one now.
    pub(super) fn schedule_all(&self) -> Vec<SegmentPos> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut state = self.state.lock();
        let idle = |queue: &mut Queue| !std::mem::replace(&mut queue.is_scheduled, true);
        state.of.iter_mut().filter_map(|(segment, queue)| idle(queue).then_some(*segment)).collect()
    }

    /// The right to give the batches of a segment, and the number of the newest batch; `None` if none waits.
    pub(super) fn turn(&self, segment: SegmentPos) -> Option<(Arc<Turn>, u64)> {
        if self.is_empty() {
            return None;
        }
        let state = self.state.lock();
        state.of.get(&segment).map(|queue| (Arc::clone(&queue.turn), state.last))
    }

    /// The next batch of a segment, if its number is at most `until`. It counts as waiting until it is
    /// [left](Self::leave) or [put back](Self::put_back). The caller has the right.
    pub(super) fn take_next(&self, segment: SegmentPos, until: u64) -> Option<WaitingBatch> {
        let mut state = self.state.lock();
        let queue = state.of.get_mut(&segment)?;
        queue.waiting.front().filter(|next| next.number <= until)?;
        let next = queue.waiting.pop_front()?;
        queue.giving = Some(batch::has_values(&next.batch));
        Some(next)
    }

    /// Puts a batch back that its segment does not take now.
    pub(super) fn put_back(&self, segment: SegmentPos, batch: WaitingBatch) {
        let mut state = self.state.lock();
        let queue = state.of.entry(segment).or_default();
        queue.giving = None;
        queue.waiting.push_front(batch);
    }

    /// Records that the batch that was taken has an outcome.
    pub(super) fn leave(&self, segment: SegmentPos, bytes: u64) {
        let mut state = self.state.lock();
        state.bytes -= bytes;
        if let Some(queue) = state.of.get_mut(&segment) {
            queue.giving = None;
            if queue.is_empty() {
                state.of.remove(&segment);
            }
        }
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// Calls a function with the ticket of each batch that waits for a segment.
    pub(super) fn for_each_ticket(&self, segment: SegmentPos, mut see: impl FnMut(&DeferredTicket)) {
        if let Some(queue) = self.state.lock().of.get(&segment) {
            queue.waiting.iter().for_each(|waiting| see(&waiting.ticket));
        }
    }

    /// Takes no more batches.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
    }
}

impl WaitingBatch {
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
