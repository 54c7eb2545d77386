//! One answer that a thread gives to another one, or to a task.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::rt::lock_order::{Condvar, Mutex, rank};

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>, rank::Answer>,
    came: Condvar,
}

#[derive(Debug)]
enum State<T> {
    /// The task to wake, if one has polled.
    Waits(Option<Waker>),
    Given(T),
    /// It was taken, or will never be given.
    Over,
}

/// The side that gives the answer. Dropped without one, it ends the wait.
#[derive(Debug)]
pub(crate) struct Giver<T>(Arc<Shared<T>>);

/// The side that waits.
#[derive(Debug)]
pub(crate) struct Answer<T>(Arc<Shared<T>>);

pub(crate) fn answer<T>() -> (Giver<T>, Answer<T>) {
    let shared = Shared { state: Mutex::new(State::Waits(None)), came: Condvar::new() };
    let shared = Arc::new(shared);
    (Giver(Arc::clone(&shared)), Answer(shared))
}

impl<T> Giver<T> {
    pub(crate) fn give(self, answer: T) {
        self.end(State::Given(answer));
    }

    /// Ends the wait. Wakes outside the lock: a waker is code of the host.
    fn end(&self, end: State<T>) {
        let mut state = self.0.state.lock();
        let State::Waits(waker) = &mut *state else { return };
        let waker = waker.take();
        *state = end;
        drop(state);
        self.0.came.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        self.end(State::Over);
    }
}

impl<T> Answer<T> {
    /// The answer, or `None` if there will be none, or none any more. Pending while it may still be given.
    pub(crate) fn try_take(&self) -> Poll<Option<T>> {
        self.0.state.lock().take()
    }

    /// As [`try_take`](Self::try_take). While it is pending, the task is woken when that changes.
    pub(crate) fn poll_take(&self, context: &Context<'_>) -> Poll<Option<T>> {
        // Code of the host, as is dropping the waker before.
        let waker = context.waker().clone();
        let mut state = self.0.state.lock();
        let taken = state.take();
        let before = if let State::Waits(old) = &mut *state { old.replace(waker) } else { None };
        drop(state);
        drop(before);
        taken
    }

    /// Waits for the answer.
    pub(crate) fn wait(self) -> Option<T> {
        let mut state = self.0.state.lock();
        self.0.came.wait_while(&mut state, |state| matches!(state, State::Waits(_)));
        match state.take() {
            Poll::Ready(answer) => answer,
            Poll::Pending => None,
        }
    }
}

impl<T> State<T> {
    fn take(&mut self) -> Poll<Option<T>> {
        match self {
            Self::Waits(_) => Poll::Pending,
            Self::Given(_) | Self::Over => {
                let taken = std::mem::replace(self, Self::Over);
                Poll::Ready(if let Self::Given(answer) = taken { Some(answer) } else { None })
            }
        }
    }
}
