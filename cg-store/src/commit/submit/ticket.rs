//! The outcome of a batch.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::deferred::Deferred;
use crate::commit::queue::CommitQueue;
use crate::commit::state::CommitState;
use crate::commit::transaction::Committed;
use crate::rt::lock_order::{Mutex, rank};
use crate::rt::weak_world::WeakWorld;
use crate::storage::error::Error;

/// The outcome of a batch, as far as it is known.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Its place in the order of submissions.
    number: u64,
    state: Mutex<State, rank::Outcome>,
}

#[derive(Debug)]
enum State {
    /// The task to wake, if one has polled.
    Waits(Option<Waker>),
    /// The ticket is gone.
    WaitsUnasked,
    /// Accepted as this commit.
    Accepted(u64),
    /// Why it was refused; `None` after it was reported.
    Refused(Option<Error>),
}

impl Outcome {
    pub(crate) fn of(number: u64) -> Self {
        Self { number, state: Mutex::new(State::Waits(None)) }
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Records the outcome. Returns the refusal if there is no ticket that could report it, and the task to wake.
    pub(crate) fn set(&self, accepted: Result<u64, Error>) -> (Option<Error>, Option<Waker>) {
        let mut state = self.state.lock();
        let waker = state.take_waker();
        let (outcome, unreported) = match (accepted, &*state) {
            (Ok(seq), _) => (State::Accepted(seq), None),
            (Err(refusal), State::WaitsUnasked) => (State::Refused(None), Some(refusal)),
            (Err(refusal), _) => (State::Refused(Some(refusal)), None),
        };
        *state = outcome;
        (unreported, waker)
    }

    /// Takes the task that waits for the outcome.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        self.state.lock().take_waker()
    }

    /// As [`outcome`](Self::outcome). If there is none yet, a task is woken when there is.
    fn poll(&self, context: &Context<'_>) -> Option<Result<u64, Error>> {
        // Code of the host, as is dropping the waker before.
        let waker = context.waker().clone();
        let mut state = self.state.lock();
        let before = if let State::Waits(old) = &mut *state { old.replace(waker) } else { None };
        let outcome = state.outcome();
        drop(state);
        drop(before);
        outcome
    }

    /// The outcome. A refusal is returned once.
    fn outcome(&self) -> Option<Result<u64, Error>> {
        self.state.lock().outcome()
    }

    fn is_finished(&self) -> bool {
        matches!(*self.state.lock(), State::Accepted(_) | State::Refused(_))
    }

    /// Records that the ticket is gone. Returns a refusal that was not reported.
    fn forget(&self) -> Option<Error> {
        let mut state = self.state.lock();
        match &mut *state {
            State::Waits(_) | State::WaitsUnasked => {
                *state = State::WaitsUnasked;
                None
            }
            State::Accepted(_) => None,
            State::Refused(refusal) => refusal.take(),
        }
    }
}

impl State {
    fn take_waker(&mut self) -> Option<Waker> {
        if let Self::Waits(waker) = self { waker.take() } else { None }
    }

    fn outcome(&mut self) -> Option<Result<u64, Error>> {
        match self {
            Self::Accepted(seq) => Some(Ok(*seq)),
            Self::Refused(refusal) => Some(Err(refusal.take().unwrap_or(Error::Closed))),
            Self::Waits(_) | Self::WaitsUnasked => None,
        }
    }
}

/// The world that issues tickets. They share this, so that a ticket takes one count, which no other thread changes.
pub(crate) struct TicketIssuer {
    world: WeakWorld<CommitState>,
    /// Not held: a world that is gone reports nothing more.
    queue: Weak<CommitQueue>,
}

impl TicketIssuer {
    pub(crate) fn new(world: WeakWorld<CommitState>, queue: &Arc<CommitQueue>) -> Self {
        Self { world, queue: Arc::downgrade(queue) }
    }
}

/// A ticket for a submitted batch that reports its outcome. It does not keep the world open, and may be dropped.
///
/// It is a future as well, of what [`wait`](Self::wait) returns: it needs no particular runtime, and polling it accepts
/// nothing itself.
///
/// ```
/// # use cg_store::{Error, World, WriteBatch};
/// /// Returns when the batch is in the world: a crash of the process may still lose it, as the world's mode says.
/// async fn save(world: &World, batch: WriteBatch) -> Result<u64, Error> {
///     let accepted = world.submit(batch)?.await?;
///     Ok(accepted.seq.get())
/// }
/// ```
pub struct WriteTicket(pub(super) Kind);

/// Who knows the outcome.
#[derive(Debug)]
pub(super) enum Kind {
    /// The world that has the batch.
    World(Queued),
    /// A layer that gives it to a world.
    Deferred(Arc<Deferred>),
}

/// A batch in the queue of a world.
pub(super) struct Queued {
    issuer: Arc<TicketIssuer>,
    outcome: Arc<Outcome>,
}

impl WriteTicket {
    pub(super) fn waiting(issuer: &Arc<TicketIssuer>, outcome: Arc<Outcome>) -> Self {
        Self(Kind::World(Queued { issuer: Arc::clone(issuer), outcome }))
    }

    /// Whether the batch was accepted or refused, so that [`wait`](Self::wait) would not wait. Never blocks.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::World(queued) => queued.outcome.is_finished(),
            Kind::Deferred(deferred) => deferred.is_finished(),
        }
    }

    /// Waits until the batch and everything submitted before it is accepted. Returns the commit that it became, whose
    /// ticket reports when it is durable.
    ///
    /// # Errors
    /// The error with which a [transaction](crate::World::transaction) of these writes would be refused: nothing of it
    /// was written. [`Error::Closed`] if the world was closed before the batch could be accepted. If the world is open
    /// but takes no commits, the reason: the batch waits, and is accepted when the world is
    /// [resumed](crate::World::resume). [`Error::Nested`] where it would wait for its own thread: in the closure of a
    /// transaction that the batch comes after.
    pub fn wait(self) -> Result<Committed<()>, Error> {
        match &self.0 {
            Kind::World(queued) => queued.wait(),
            Kind::Deferred(deferred) => deferred.wait(),
        }
    }
}

impl Queued {
    fn wait(&self) -> Result<Committed<()>, Error> {
        if !self.outcome.is_finished() {
            // If the world is gone, the batch has an outcome since the first check.
            let mut wakers = Vec::new();
            let accept = |world: &CommitState| world.accept_up_to(self.outcome.number, &mut wakers);
            let accepted = self.issuer.world.with_world(accept).unwrap_or(Ok(()));
            wakers.into_iter().for_each(Waker::wake);
            accepted?;
        }
        let seq = self.outcome.outcome().unwrap_or(Err(Error::Closed))?;
        Ok(Committed::new(self.issuer.world.clone(), (), seq))
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Result<Committed<()>, Error>> {
        // Registered first: a world that stops taking commits after the check below wakes the task.
        let mut outcome = self.outcome.poll(context);
        if outcome.is_none() {
            // If the world is gone, the batch has an outcome.
            match self.issuer.world.with_world(CommitState::check_takes_commits) {
                Ok(Ok(())) => return Poll::Pending,
                Ok(Err(reason)) => return Poll::Ready(Err(reason)),
                Err(_) => outcome = self.outcome.outcome(),
            }
        }
        let committed = |seq| Committed::new(self.issuer.world.clone(), (), seq);
        Poll::Ready(outcome.unwrap_or(Err(Error::Closed)).map(committed))
    }
}

impl Future for WriteTicket {
    type Output = Result<Committed<()>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.0 {
            Kind::World(queued) => queued.poll(context),
            Kind::Deferred(deferred) => deferred.poll(context),
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        if let Some(refusal) = self.outcome.forget()
            && let Some(queue) = self.issuer.queue.upgrade()
        {
            queue.add_unreported(refusal);
        }
    }
}

impl Drop for WriteTicket {
    fn drop(&mut self) {
        if let Kind::Deferred(deferred) = &self.0 {
            deferred.forget();
        }
    }
}

impl fmt::Debug for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

impl fmt::Debug for WriteTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteTicket").field(&self.0).finish()
    }
}
