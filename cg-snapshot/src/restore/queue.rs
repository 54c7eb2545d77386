//! The queue of a server: operations come from any thread and are done by the tick thread, within its budget.
//!
//! **Invariant**: operations that meet are done in the order of submission, each wholly before the next. One that meets
//! none before it may overtake those that wait for chunks, and gets a part of the tickets that they hold in vain.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cg_format::{ChunkAt, Editor};
use cg_registry::Catalog;

use super::budget::{Expected, Spending, TickBudget};
use super::operation::{Event, Handle, Operation, OperationId, Outcome, Shared};
use super::report::BlockChange;
use super::running::{Kept, Running, Step};
use crate::error::RestoreError;
use crate::region::Region;

/// What a step does with a chunk and its entities. It may be called several times: each call begins anew.
pub type StepWork<'w, E> = dyn FnMut(&mut dyn Editor<Error = E>) -> Result<(), RestoreError<E>> + 'w;

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// What it wrote is written.
    Done,
    /// Nothing of it was written: another writer was in the way, or the host has no room now. The queue does the step again
    /// in a later tick.
    Later,
}

/// A game whose tick thread captures and restores.
pub trait Host {
    /// Why a chunk or an entity was not read, written or lit.
    type Error;

    /// Calls the work of one step with an editor, and writes all that the step wrote, or nothing.
    ///
    /// Work that ended well while its writes did not succeed may be called again, within this call. A host whose own memory is
    /// the editor calls it once with itself.
    ///
    /// # Errors
    /// The error of the work, or [`RestoreError::Target`] if the writes failed; the operation ends. Nothing was written.
    fn step(
        &mut self,
        at: ChunkAt,
        work: &mut StepWork<'_, Self::Error>,
    ) -> Result<Stepped, RestoreError<Self::Error>>;

    /// Keep a chunk loaded, or begin to load it, until its ticket is released. Tickets are counted by the host: a chunk may
    /// have several.
    fn take_ticket(&mut self, at: ChunkAt);

    /// A ticket is not needed any more.
    fn release_ticket(&mut self, at: ChunkAt);

    /// Whether a chunk with a ticket can be worked on now. Default: always.
    fn is_ready(&mut self, _: ChunkAt) -> bool {
        true
    }

    /// A block was changed by a restore; its chunk was saved before, with all its blocks.
    fn changed(&mut self, change: BlockChange);

    /// Compute a chunk's light anew.
    ///
    /// # Errors
    /// If that failed; the operation ends.
    fn relight(&mut self, at: ChunkAt) -> Result<(), Self::Error>;
}

/// Submits operations. Cheap to clone, and to be used from any thread.
#[derive(Debug, Clone)]
pub struct QueueHandle {
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    submitted: Mutex<Vec<Submitted>>,
    subscribers: Mutex<Vec<Sender<Event>>>,
    count: AtomicU64,
    /// The queue is gone: nothing will ever be done.
    is_closed: AtomicBool,
}

#[derive(Debug)]
struct Submitted {
    id: OperationId,
    operation: Operation,
    shared: Arc<Shared>,
}

/// Operations that wait or run. Belongs to the tick thread.
///
/// Dropping it cancels what is left; [`close`](Self::close) also gives the tickets back.
#[derive(Debug, Default)]
pub struct RestoreQueue {
    inbox: Arc<Inbox>,
    running: VecDeque<Running>,
    expected: Expected,
}

/// What was done in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TickReport {
    /// Sections captured, restored, lit again, or brought to the host's ids.
    pub sections: u64,
    /// Operations that ended.
    pub ended: u64,
    /// Operations that are left.
    pub left: u64,
    /// The time it took.
    pub spent: Duration,
}

impl QueueHandle {
    /// Adds an operation after all others. If the queue is gone, it is cancelled at once.
    pub fn submit(&self, operation: Operation) -> Handle {
        let mut submitted = self.inbox.submitted.lock().unwrap_or_else(PoisonError::into_inner);
        let id = OperationId(self.inbox.count.fetch_add(1, Ordering::Relaxed) + 1);
        let shared = Arc::new(Shared::default());
        // Under the lock: a queue that goes away sees all that was submitted before.
        if self.inbox.is_closed.load(Ordering::Relaxed) {
            shared.end(Outcome::Cancelled(0));
        } else {
            submitted.push(Submitted { id, operation, shared: Arc::clone(&shared) });
        }
        Handle::new(id, shared)
    }

    /// Hears of every operation that starts or ends from now on. A receiver that is dropped is forgotten.
    pub fn subscribe(&self) -> Receiver<Event> {
        let (sender, receiver) = channel();
        self.inbox.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }
}

impl RestoreQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// A way to submit operations from any thread.
    pub fn handle(&self) -> QueueHandle {
        QueueHandle { inbox: Arc::clone(&self.inbox) }
    }

    /// Works for one tick. The clock is any that does not go back; only differences count.
    ///
    /// At least one section is handled if any is ready, or one operation ends, however small the budget. No further one
    /// begins that is not expected to fit. Blocks on what the host blocks on, and on nothing else. If the host panics, the operation it was asked for
    /// fails in the next tick, and the others go on.
    pub fn run<H: Host>(
        &mut self,
        host: &mut H,
        catalog: &Catalog,
        budget: &TickBudget,
        clock: impl FnMut() -> Duration,
    ) -> TickReport
    where
        H::Error: Display,
    {
        let mut spending = Spending::begin(*budget, clock);
        self.expected.turn();
        self.receive();
        // By the names of this tick: what a snapshot calls its dimension may have been registered since the last.
        self.running.iter_mut().for_each(|running| running.locate(catalog));
        let mut ended = self.end_cancelled(host);
        let mut at = 0;
        while at < self.running.len() {
            if !spending.allows(self.expected) {
                break;
            }
            let meets_earlier =
                |region: Region| self.running.iter().take(at).any(|earlier| earlier.region.meets(&region));
            let Some(region) = self.running.get(at).map(|running| running.region) else { break };
            if meets_earlier(region) {
                at += 1;
                continue;
            }
            let may_take = self.tickets_for(at, host, budget.concurrent_chunks.max(1));
            let Some(running) = self.running.get_mut(at) else { break };
            if !running.has_started {
                running.has_started = true;
                let id = running.id;
                self.inbox.tell(&Event::Started(id));
            }
            let Some(running) = self.running.get_mut(at) else { break };
            match running.step(host, catalog, may_take) {
                Step::Done => {
                    running.shared.count();
                    spending.count(&mut self.expected);
                }
                Step::Remapped => spending.count(&mut self.expected),
                Step::Waits => at += 1,
                Step::Later => {
                    spending.look();
                    at += 1;
                }
                Step::Ended(outcome) => {
                    self.end(at, host, outcome);
                    ended += 1;
                    // Operations that waited for it may begin.
                    at = 0;
                    spending.end();
                }
            }
        }
        spending.look();
        let (sections, left) = (spending.done() as u64, self.running.len() as u64);
        TickReport { sections, ended, left, spent: spending.spent() }
    }

    /// To be called by the host before it changes a chunk, or an entity that belongs to it: captures that have begun and
    /// did not come to the chunk yet keep it as it is now. So they are of one state, that at which they began.
    ///
    /// The chunk is one that there is, one that is about to be made, or one that is about to be deleted, and is read without
    /// a ticket; for an entity that goes from one chunk to another it is called for both. Costs next to nothing while nothing
    /// is captured, else reading the chunk once, which shares its memory, and its entities. What the queue itself restores
    /// needs no call; an entity that it calls back from the region to another one is not in the capture.
    ///
    /// # Errors
    /// What the host says when the chunk or an entity is read. The chunk then counts as it is when the capture comes to it.
    pub fn before_change<E: Editor>(&mut self, host: &mut E, at: ChunkAt) -> Result<(), E::Error> {
        let mut captures = self.running.iter_mut().filter_map(|running| running.capture_before(at));
        let Some(first) = captures.next() else { return Ok(()) };
        let state = Arc::new(Kept::read(host, at)?);
        for kept in std::iter::once(first).chain(captures) {
            kept.insert(at, Arc::clone(&state));
        }
        Ok(())
    }

    /// Cancels everything and gives all tickets back. What is submitted afterwards is done by the next [`run`](Self::run).
    pub fn close<H: Host>(&mut self, host: &mut H) {
        for Submitted { id, shared, .. } in self.inbox.take() {
            self.inbox.end(id, &shared, Outcome::Cancelled(0));
        }
        while !self.running.is_empty() {
            let done = self.running.front().map_or(0, |running| running.shared.done());
            self.end(0, host, Outcome::Cancelled(done));
        }
    }

    /// How many tickets an operation may take. If it has none and none is left, those that wait give back what is more than
    /// an equal part of all: one for each is left to them.
    fn tickets_for<H: Host>(&mut self, at: usize, host: &mut H, all: usize) -> usize {
        let left = |queue: &Self| all.saturating_sub(queue.running.iter().map(Running::held).sum());
        let has_none = self.running.get(at).is_some_and(|running| running.held() == 0);
        if has_none && left(self) == 0 {
            let holders = self.running.iter().filter(|running| running.held() > 0).count();
            let part = (all / (holders + 1)).max(1);
            let waiting = self.running.iter_mut().filter(|running| running.held_in_vain() > part);
            waiting.for_each(|running| running.give_back(host, part));
        }
        left(self)
    }

    fn receive(&mut self) {
        let submitted = self.inbox.take().into_iter();
        let running = |Submitted { id, operation, shared }| Running::new(id, shared, operation);
        self.running.extend(submitted.map(running));
    }

    fn end_cancelled<H: Host>(&mut self, host: &mut H) -> u64 {
        let mut ended = 0;
        while let Some(at) = self.running.iter().position(|running| running.shared.is_cancelled()) {
            let done = self.running.get(at).map_or(0, |running| running.shared.done());
            self.end(at, host, Outcome::Cancelled(done));
            ended += 1;
        }
        ended
    }

    fn end<H: Host>(&mut self, at: usize, host: &mut H, outcome: Outcome) {
        let Some(mut running) = self.running.remove(at) else { return };
        self.inbox.end(running.id, &running.shared, outcome);
        running.give_back(host, 0);
    }
}

impl Drop for RestoreQueue {
    fn drop(&mut self) {
        for Submitted { id, shared, .. } in self.inbox.close() {
            self.inbox.end(id, &shared, Outcome::Cancelled(0));
        }
        for Running { id, shared, .. } in self.running.drain(..) {
            let done = shared.done();
            self.inbox.end(id, &shared, Outcome::Cancelled(done));
        }
    }
}

impl Inbox {
    fn take(&self) -> Vec<Submitted> {
        std::mem::take(&mut *self.submitted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the last ones: none are accepted after them.
    fn close(&self) -> Vec<Submitted> {
        let mut submitted = self.submitted.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(true, Ordering::Relaxed);
        std::mem::take(&mut *submitted)
    }

    fn end(&self, id: OperationId, shared: &Shared, outcome: Outcome) {
        shared.end(outcome.clone());
        self.tell(&Event::Ended(id, outcome));
    }

    fn tell(&self, event: &Event) {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| subscriber.send(event.clone()).is_ok());
    }
}
