//! Records what a thread is doing, so that a nested call does not wait for its own thread.

use std::cell::RefCell;
use std::marker::PhantomData;

/// A task that a thread can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// A transaction of a world.
    Transaction,
    /// Holding the lock of a commit log.
    Commit,
    /// Accepting a batch of a queue of submissions.
    Acceptance,
}

thread_local! {
    static INSIDE: RefCell<Vec<(Doing, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Records that this thread is doing something with an object that does not move, until the value is dropped.
#[derive(Debug)]
pub(crate) struct ReentryGuard {
    what: (Doing, usize),
    /// It must be dropped on the thread on which it was created.
    _on_this_thread: PhantomData<*const ()>,
}

impl ReentryGuard {
    pub(crate) fn enter<T>(doing: Doing, thing: &T) -> Self {
        let what = (doing, address(thing));
        INSIDE.with_borrow_mut(|inside| inside.push(what));
        Self { what, _on_this_thread: PhantomData }
    }

    /// As [`enter`](Self::enter); `None` if this thread is already doing that.
    pub(crate) fn enter_once<T>(doing: Doing, thing: &T) -> Option<Self> {
        if Self::is_in(doing, thing) { None } else { Some(Self::enter(doing, thing)) }
    }

    /// Whether this thread is doing nothing that is recorded, with any object.
    pub(crate) fn is_outside() -> bool {
        INSIDE.with_borrow(Vec::is_empty)
    }

    pub(crate) fn is_in<T>(doing: Doing, thing: &T) -> bool {
        INSIDE.with_borrow(|inside| inside.contains(&(doing, address(thing))))
    }
}

impl Drop for ReentryGuard {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| {
            if let Some(last) = inside.iter().rposition(|what| *what == self.what) {
                inside.remove(last);
            }
        });
    }
}

fn address<T>(thing: &T) -> usize {
    std::ptr::from_ref(thing).addr()
}
