//! The queue of a server: any thread submits operations, and the tick thread performs them within its budget.
//!
//! **Invariant**: operations whose regions overlap are performed in the order of submission, each completely before the
//! next. One that overlaps no earlier operation may overtake those that wait for chunks, and gets a share of the
//! tickets that they do not use.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cg_format::{ChunkAt, Editor};
use cg_registry::{Catalog, UpgradeFunctions};

use super::budget::{Expected, Spending, TickBudget};
use super::operation::{Event, Handle, Operation, OperationId, Outcome, Shared};
use super::reading::Kept;
use super::report::BlockChange;
use super::running::{Running, Step};
use crate::error::RestoreError;
use crate::region::Region;

/// The work of a step on a chunk and its entities. It may be called several times; each call starts from the beginning.
pub type StepWork<'w, E> = dyn FnMut(&mut dyn Editor<Error = E>) -> Result<(), RestoreError<E>> + 'w;

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// Its writes are complete.
    Done,
    /// Nothing was written: another writer conflicted, or the host cannot accept writes now. The queue repeats the step
    /// in a later tick.
    Later,
}

/// A game whose tick thread captures, copies and restores.
pub trait Host {
    /// Why a chunk or an entity could not be read, written or relit.
    type Error;

    /// Calls the work of one step with an editor. Then writes everything that the step wrote, or nothing.
    ///
    /// If the work succeeds and its writes fail, the host may call the work again within this call. A host whose own
    /// memory is the editor calls it once with itself.
    ///
    /// # Errors
    /// The error of the work, or [`RestoreError::Target`] if the writes failed; the operation ends. Nothing was
    /// written.
    fn step(
        &mut self,
        at: ChunkAt,
        work: &mut StepWork<'_, Self::Error>,
    ) -> Result<Stepped, RestoreError<Self::Error>>;

    /// Keeps a chunk loaded, or begins to load it, until its ticket is released. The host counts tickets: a chunk may
    /// have several.
    fn take_ticket(&mut self, at: ChunkAt);

    /// Releases a ticket.
    fn release_ticket(&mut self, at: ChunkAt);

    /// Whether a chunk with a ticket is ready for work. Default: always.
    fn is_ready(&mut self, _: ChunkAt) -> bool {
        true
    }

    /// The functions that convert and fill components, for snapshots with other layouts. Default: none.
    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        Arc::default()
    }

    /// A restore changed a block. Its chunk, with all its blocks, was saved before.
    fn changed(&mut self, change: BlockChange);

    /// Computes a chunk's light again.
    ///
    /// # Errors
    /// If that failed; the operation ends.
    fn relight(&mut self, at: ChunkAt) -> Result<(), Self::Error>;
}

/// Submits operations. Cheap to clone; usable from any thread.
#[derive(Debug, Clone)]
pub struct QueueHandle {
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    submitted: Mutex<Vec<Submitted>>,
    subscribers: Mutex<Vec<Sender<Event>>>,
    count: AtomicU64,
    /// The queue was dropped: no operation will be performed any more.
    is_closed: AtomicBool,
}

#[derive(Debug)]
struct Submitted {
    id: OperationId,
    operation: Operation,
    shared: Arc<Shared>,
}

/// The operations that wait or run. It belongs to the tick thread.
///
/// Dropping it cancels the remaining operations; [`close`](Self::close) also releases the tickets.
#[derive(Debug, Default)]
pub struct RestoreQueue {
    inbox: Arc<Inbox>,
    running: VecDeque<Running>,
    expected: Expected,
}

/// The work of one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TickReport {
    /// Sections that were captured, copied, restored, relit or converted to the host's ids.
    pub sections: u64,
    /// The number of operations that ended.
    pub ended: u64,
    /// The number of operations that are left.
    pub left: u64,
    /// The time used.
    pub spent: Duration,
}

impl QueueHandle {
    /// Adds an operation after all others. If the queue was dropped, the operation is cancelled at once.
    pub fn submit(&self, operation: Operation) -> Handle {
        let mut submitted = self.inbox.submitted.lock().unwrap_or_else(PoisonError::into_inner);
        let id = OperationId(self.inbox.count.fetch_add(1, Ordering::Relaxed) + 1);
        let shared = Arc::new(Shared::default());
        // Under the lock, so that a queue that is being dropped sees everything that was submitted before.
        if self.inbox.is_closed.load(Ordering::Relaxed) {
            shared.end(Outcome::Cancelled(0));
        } else {
            submitted.push(Submitted { id, operation, shared: Arc::clone(&shared) });
        }
        Handle::new(id, shared)
    }

    /// Returns a channel with every start and end of an operation from now on. A dropped receiver is removed.
    pub fn subscribe(&self) -> Receiver<Event> {
        let (sender, receiver) = channel();
        self.inbox.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }
}

impl RestoreQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle that submits operations from any thread.
    pub fn handle(&self) -> QueueHandle {
        QueueHandle { inbox: Arc::clone(&self.inbox) }
    }

    /// Works for one tick. `clock` is any clock that does not go back; only differences count.
    ///
    /// However small the budget, at least one section is handled if any is ready, or one operation ends. A further
    /// section begins only if it is expected to fit. Blocks only where the host blocks. If the host panics, the
    /// operation that called it fails in the next tick, and the others continue.
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
        // By the names of this tick: the snapshot's dimension name may have been registered since the last.
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
                    // Operations that waited for this one may begin.
                    at = 0;
                    spending.end();
                }
            }
        }
        spending.look();
        let (sections, left) = (spending.done() as u64, self.running.len() as u64);
        TickReport { sections, ended, left, spent: spending.spent() }
    }

    /// The host calls this before it changes a chunk, or an entity that the chunk owns. Captures and copies that have
    /// begun and have not read the chunk yet then store its present state. So each has one state, that of its
    /// beginning.
    ///
    /// The chunk exists, is about to be created, or is about to be deleted. It is read without a ticket. For an entity
    /// that moves between chunks, the host calls this for both. Costs almost nothing without a capture or a copy.
    /// Otherwise it reads the chunk once, sharing its memory, and its entities. The queue's own restores need no call. If a restore
    /// moves an entity from the captured region to another one, the capture does not contain it.
    ///
    /// # Errors
    /// The host's error if the chunk or an entity cannot be read. Then the capture gets the state at the time when it
    /// reads the chunk.
    pub fn before_change<E: Editor>(&mut self, host: &mut E, at: ChunkAt) -> Result<(), E::Error> {
        let mut captures = self.running.iter_mut().filter_map(|running| running.capture_before(at));
        let Some(first) = captures.next() else { return Ok(()) };
        let state = Arc::new(Kept::read(host, at)?);
        for kept in std::iter::once(first).chain(captures) {
            kept.insert(at, Arc::clone(&state));
        }
        Ok(())
    }

    /// Cancels everything and releases all tickets. The next [`run`](Self::run) performs what is submitted afterwards.
    pub fn close<H: Host>(&mut self, host: &mut H) {
        for Submitted { id, shared, .. } in self.inbox.take() {
            self.inbox.end(id, &shared, Outcome::Cancelled(0));
        }
        while !self.running.is_empty() {
            let done = self.running.front().map_or(0, |running| running.shared.done());
            self.end(0, host, Outcome::Cancelled(done));
        }
    }

    /// The number of tickets that an operation may take. If it has none and none is left, operations that wait release
    /// those above an equal share. Each keeps at least one.
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

    /// Takes the remaining submissions. Later ones are refused.
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
