//! Tickets of batches that wait before a world has them: a layer opens their world first, on a thread of its own.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::ticket::{Kind, WriteTicket};
use crate::commit::transaction::Committed;
use crate::rt::lock_order::{Mutex, rank};
use crate::storage::error::Error;

/// The layer that has batches which no world has yet.
pub trait DefersBatches: Send + Sync {
    /// Gives every batch that was submitted before to its world, on this thread.
    ///
    /// # Errors
    /// Why they still wait.
    fn apply(&self) -> Result<(), Error>;

    /// Takes a refusal that its ticket did not report.
    fn report(&self, refusal: Error);
}

/// What became of a batch.
#[derive(Debug)]
pub enum DeferredOutcome {
    /// A world has it, whose ticket this is.
    Given(WriteTicket),
    /// It is a commit.
    Accepted(Committed<()>),
    /// It is refused.
    Refused(Error),
}

/// What is known of a batch.
#[derive(Debug)]
enum State {
    /// The task to wake, if one has polled.
    Waits(Option<Waker>),
    /// It still waits, and a task is to be told why.
    PutOff(Error),
    /// The ticket is gone.
    WaitsUnasked,
    Known(DeferredOutcome),
    /// The outcome was reported.
    Over,
}

/// A batch that waits, as its ticket knows it.
pub(super) struct Deferred {
    state: Mutex<State, rank::DeferredOutcome>,
    layer: Arc<dyn DefersBatches>,
}

/// The side that reports the outcome to the ticket.
#[derive(Debug)]
pub struct DeferredTicket(Arc<Deferred>);

impl DeferredTicket {
    /// A ticket for a batch that a layer has, and the side that reports to it.
    pub fn new(layer: Arc<dyn DefersBatches>) -> (WriteTicket, Self) {
        let deferred = Arc::new(Deferred { state: Mutex::new(State::Waits(None)), layer });
        (WriteTicket(Kind::Deferred(Arc::clone(&deferred))), Self(deferred))
    }

    /// Reports the outcome. Returns the task that waits for it, to be woken without a lock.
    pub fn give(self, outcome: DeferredOutcome) -> Option<Waker> {
        let mut state = self.0.state.lock();
        let before = std::mem::replace(&mut *state, State::Over);
        if matches!(before, State::WaitsUnasked) {
            drop(state);
            // A world's ticket that is dropped reports a refusal itself.
            if let DeferredOutcome::Refused(refusal) = outcome {
                self.0.layer.report(refusal);
            }
            return None;
        }
        *state = State::Known(outcome);
        if let State::Waits(waker) = before { waker } else { None }
    }

    /// Tells a task that waits why the batch still waits. Returns the task, to be woken without a lock.
    pub fn put_off(&self, why: impl FnOnce() -> Error) -> Option<Waker> {
        let mut state = self.0.state.lock();
        let State::Waits(waker) = &mut *state else { return None };
        let waker = waker.take()?;
        *state = State::PutOff(why());
        Some(waker)
    }
}

impl Deferred {
    pub(super) fn is_finished(&self) -> bool {
        match &*self.state.lock() {
            State::Known(DeferredOutcome::Given(ticket)) => ticket.is_finished(),
            State::Known(_) | State::Over => true,
            State::Waits(_) | State::WaitsUnasked | State::PutOff(_) => false,
        }
    }

    /// Waits for the outcome, and works for it on this thread.
    pub(super) fn wait(&self) -> Result<Committed<()>, Error> {
        if let Some(known) = self.take() {
            return known.wait();
        }
        self.layer.apply()?;
        if let Some(known) = self.take() {
            return known.wait();
        }
        // It waits for a closure, or for a function of the host, that this thread runs.
        Err(if matches!(*self.state.lock(), State::Over) { Error::Closed } else { Error::Nested })
    }

    fn take(&self) -> Option<DeferredOutcome> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Known(outcome) => Some(outcome),
            other => {
                *state = other;
                None
            }
        }
    }

    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Committed<()>, Error>> {
        match self.take() {
            Some(DeferredOutcome::Given(mut ticket)) => {
                let polled = std::pin::Pin::new(&mut ticket).poll(context);
                if polled.is_pending() {
                    *self.state.lock() = State::Known(DeferredOutcome::Given(ticket));
                }
                return polled;
            }
            Some(known) => return Poll::Ready(known.wait()),
            None => {}
        }
        // Code of the host, as is dropping the waker before.
        let waker = context.waker().clone();
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Waits(Some(waker))) {
            before @ State::Waits(_) => {
                drop(state);
                drop(before);
                Poll::Pending
            }
            State::PutOff(why) => {
                *state = State::Waits(None);
                Poll::Ready(Err(why))
            }
            State::Over => {
                *state = State::Over;
                Poll::Ready(Err(Error::Closed))
            }
            // The outcome came meanwhile.
            known => {
                *state = known;
                drop(state);
                self.poll(context)
            }
        }
    }

    /// Records that the ticket is gone.
    pub(super) fn forget(&self) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut *state, State::WaitsUnasked);
        if matches!(before, State::Known(_) | State::Over) {
            *state = State::Over;
        }
        drop(state);
        if let State::Known(DeferredOutcome::Refused(refusal)) = before {
            self.layer.report(refusal);
        }
    }
}

impl DeferredOutcome {
    fn wait(self) -> Result<Committed<()>, Error> {
        match self {
            Self::Given(ticket) => ticket.wait(),
            Self::Accepted(committed) => Ok(committed),
            Self::Refused(error) => Err(error),
        }
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("state", &self.state).finish_non_exhaustive()
    }
}
