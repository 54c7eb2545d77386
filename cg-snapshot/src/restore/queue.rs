//! The queue of a server: operations come from any thread and are done by the tick thread, within its budget.
//!
//! **Invariant**: operations that meet are done in the order of submission, each wholly before the next. One that meets
//! none before it may overtake those that wait for chunks.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cg_format::{ChunkAt, Editor};
use cg_registry::Catalog;

use super::budget::{Expected, Spending, TickBudget};
use super::job::{Piece, RestoreJob};
use super::operation::{Event, Handle, Operation, OperationId, Outcome, Shared};
use super::report::BlockChange;
use crate::capture::Capture;
use crate::region::{Region, Section};

/// A game whose tick thread captures and restores.
pub trait Host: Editor {
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
}

#[derive(Debug)]
struct Submitted {
    id: OperationId,
    operation: Operation,
    shared: Arc<Shared>,
}

/// Operations that wait or run. Belongs to the tick thread.
#[derive(Debug, Default)]
pub struct RestoreQueue {
    inbox: Arc<Inbox>,
    running: VecDeque<Running>,
    expected: Expected,
}

/// What was done in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TickReport {
    /// Sections captured, restored or lit again.
    pub sections: u64,
    /// Operations that ended.
    pub ended: u64,
    /// Operations that are left.
    pub left: u64,
    /// The time it took.
    pub spent: Duration,
}

#[derive(Debug)]
struct Running {
    id: OperationId,
    shared: Arc<Shared>,
    region: Region,
    work: Work,
    has_started: bool,
    /// Chunks with a ticket, in the order in which they are handled.
    window: VecDeque<Ahead>,
}

#[derive(Debug, Clone, Copy)]
enum Ahead {
    Capture(Section),
    Restore(Piece),
    Relight(ChunkAt),
}

enum Work {
    /// Not begun: the target is not known before the catalog of the tick is.
    Waiting(Operation),
    Capture {
        capture: Box<Capture>,
        sections: Box<dyn Iterator<Item = Section> + Send>,
    },
    Restore {
        job: Box<RestoreJob>,
        relight: bool,
        changed: VecDeque<ChunkAt>,
    },
    Relight {
        chunks: Box<dyn Iterator<Item = ChunkAt> + Send>,
    },
}

/// What came of looking at an operation.
enum Step {
    Done,
    /// Its next chunk is not ready, or it may hold no more tickets.
    Waits,
    Ended(Outcome),
}

impl QueueHandle {
    /// Adds an operation behind all others.
    pub fn submit(&self, operation: Operation) -> Handle {
        let mut submitted = self.inbox.submitted.lock().unwrap_or_else(PoisonError::into_inner);
        let id = OperationId(self.inbox.count.fetch_add(1, Ordering::Relaxed) + 1);
        let shared = Arc::new(Shared::default());
        submitted.push(Submitted { id, operation, shared: Arc::clone(&shared) });
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
    /// At least one section is handled if any is ready, however small the budget. No further one begins that is not expected
    /// to fit. Blocks on what the host blocks on, and on nothing else.
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
        self.receive();
        let mut ended = self.end_cancelled(host);
        let mut at = 0;
        while at < self.running.len() {
            if !spending.allows(self.expected) {
                break;
            }
            let holds: usize = self.running.iter().map(|running| running.window.len()).sum();
            let may_take = budget.concurrent_chunks.max(1).saturating_sub(holds);
            let meets_earlier =
                |region: Region| self.running.iter().take(at).any(|earlier| earlier.region.meets(&region));
            let Some(region) = self.running.get(at).map(|running| running.region) else { break };
            if meets_earlier(region) {
                at += 1;
                continue;
            }
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
                Step::Waits => at += 1,
                Step::Ended(outcome) => {
                    self.end(at, host, outcome);
                    ended += 1;
                    // Who waited for it may begin.
                    at = 0;
                    spending.look();
                }
            }
        }
        spending.look();
        let (sections, left) = (spending.done() as u64, self.running.len() as u64);
        TickReport { sections, ended, left, spent: spending.spent() }
    }

    fn receive(&mut self) {
        let mut submitted = self.inbox.submitted.lock().unwrap_or_else(PoisonError::into_inner);
        for Submitted { id, operation, shared } in submitted.drain(..) {
            let region = match &operation {
                Operation::Capture { region, .. } | Operation::Relight { region } => *region,
                Operation::Restore { snapshot, options, .. } => {
                    let own = snapshot.region();
                    let dimension = options.dimension.unwrap_or(own.dimension());
                    own.moved(dimension, options.by_chunks).unwrap_or(own)
                }
            };
            shared.expect(u64::try_from(region.section_count()).unwrap_or(u64::MAX));
            let (work, window) = (Work::Waiting(operation), VecDeque::new());
            self.running.push_back(Running { id, shared, region, work, has_started: false, window });
        }
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
        let Some(running) = self.running.remove(at) else { return };
        for ahead in running.window {
            host.release_ticket(ahead.at());
        }
        running.shared.end(outcome.clone());
        self.inbox.tell(&Event::Ended(running.id, outcome));
    }
}

impl Inbox {
    fn tell(&self, event: &Event) {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| subscriber.send(event.clone()).is_ok());
    }
}

impl Running {
    /// Handles the next section, if its chunk is ready; takes tickets for those behind it.
    fn step<H: Host>(&mut self, host: &mut H, catalog: &Catalog, may_take: usize) -> Step
    where
        H::Error: Display,
    {
        if let Err(why) = self.begin(catalog) {
            return Step::Ended(Outcome::Failed(why));
        }
        for _ in 0..may_take {
            let Some(ahead) = self.next() else { break };
            host.take_ticket(ahead.at());
            self.window.push_back(ahead);
        }
        let Some(ahead) = self.window.front().copied() else {
            // Nothing is left, or no ticket may be taken.
            return match may_take {
                0 => Step::Waits,
                _ => Step::Ended(self.finish(catalog)),
            };
        };
        if !host.is_ready(ahead.at()) {
            return Step::Waits;
        }
        self.window.pop_front();
        let handled = self.handle(ahead, host);
        host.release_ticket(ahead.at());
        match handled {
            Ok(()) => Step::Done,
            Err(why) => Step::Ended(Outcome::Failed(why)),
        }
    }

    fn begin(&mut self, catalog: &Catalog) -> Result<(), String> {
        let Work::Waiting(operation) = &self.work else { return Ok(()) };
        self.work = match operation {
            Operation::Capture { region, options } => {
                let capture = Capture::new(*region, catalog, options).map_err(|error| error.to_string())?;
                Work::Capture { capture: Box::new(capture), sections: Box::new(region.sections()) }
            }
            Operation::Restore { snapshot, options, relight } => {
                let job = RestoreJob::new(Arc::clone(snapshot), catalog, *options);
                let job = job.map_err(|error| error.to_string())?;
                Work::Restore { job: Box::new(job), relight: *relight, changed: VecDeque::new() }
            }
            Operation::Relight { region } => {
                Work::Relight { chunks: Box::new(region.sections().map(|section| section.at)) }
            }
        };
        Ok(())
    }

    /// The next chunk to take a ticket for. Light comes after all blocks: not before the last of them was handled.
    fn next(&mut self) -> Option<Ahead> {
        match &mut self.work {
            Work::Waiting(_) => None,
            Work::Capture { sections, .. } => sections.next().map(Ahead::Capture),
            Work::Relight { chunks } => chunks.next().map(Ahead::Relight),
            Work::Restore { job, relight, changed } => match job.pull() {
                Some(piece) => Some(Ahead::Restore(piece)),
                None if *relight && !self.window.iter().any(|it| matches!(it, Ahead::Restore(_))) => {
                    changed.pop_front().map(Ahead::Relight)
                }
                None => None,
            },
        }
    }

    fn handle<H: Host>(&mut self, ahead: Ahead, host: &mut H) -> Result<(), String>
    where
        H::Error: Display,
    {
        let at = ahead.at();
        let in_words = |error: H::Error| format!("{at}: {error}");
        match (ahead, &mut self.work) {
            (Ahead::Capture(section), Work::Capture { capture, .. }) => {
                let chunk = host.load(at).map_err(in_words)?;
                let schema = host.schema();
                capture.add(&section, chunk.as_deref(), &*schema).map_err(|error| error.to_string())?;
                for id in chunk.as_deref().map_or(&[][..], |chunk| chunk.entities()) {
                    if let Some(entity) = host.entity(*id).map_err(in_words)? {
                        capture.add_entity(*id, &entity, &section);
                    }
                }
                Ok(())
            }
            (Ahead::Restore(piece), Work::Restore { job, relight, changed }) => {
                let live = host.load(at).map_err(in_words)?;
                let schema = host.schema();
                let before = job.report().changed;
                let mut told = Vec::new();
                let done = job.perform(piece, live, &*schema, host, &mut |change| told.push(change));
                done.map_err(|error| error.to_string())?;
                for change in told {
                    host.changed(change);
                }
                if *relight && job.report().changed > before {
                    changed.push_back(at);
                    self.shared.expect(1);
                }
                Ok(())
            }
            (Ahead::Relight(at), _) => host.relight(at).map_err(in_words),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, catalog: &Catalog) -> Outcome {
        let waiting = Work::Relight { chunks: Box::new(std::iter::empty()) };
        match std::mem::replace(&mut self.work, waiting) {
            Work::Capture { capture, .. } => match capture.finish(catalog) {
                Ok(snapshot) => Outcome::Captured(Arc::new(snapshot)),
                Err(error) => Outcome::Failed(error.to_string()),
            },
            Work::Restore { job, .. } => Outcome::Restored(job.report().clone()),
            Work::Relight { .. } | Work::Waiting(_) => Outcome::Relit(self.shared.done()),
        }
    }
}

impl Ahead {
    const fn at(&self) -> ChunkAt {
        match self {
            Self::Capture(section) => section.at,
            Self::Restore(piece) => piece.to.at,
            Self::Relight(at) => *at,
        }
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Waiting(_) => "Waiting",
            Self::Capture { .. } => "Capture",
            Self::Restore { .. } => "Restore",
            Self::Relight { .. } => "Relight",
        })
    }
}
