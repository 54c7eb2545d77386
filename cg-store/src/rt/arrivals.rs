//! Waiting for the next commit, without a look at the world in between. Without a waiter a commit pays one atomic read.

use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::time::Duration;

use crate::rt::lock_order::{Condvar, Mutex, rank};

/// The threads that wait for a commit.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    lock: Mutex<(), rank::Arrivals>,
    came: Condvar,
    waiting: AtomicUsize,
}

impl Arrivals {
    /// Wakes all who wait. What they wait for is visible already.
    pub(crate) fn tell(&self) {
        // With the fence of a waiter: this thread sees the waiter, or the waiter sees what came.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            // A waiter that has looked holds the lock until it waits.
            drop(self.lock.lock());
            self.came.notify_all();
        }
    }

    /// Waits while something is so, but no longer than a time.
    pub(crate) fn wait_while(&self, at_most: Duration, is_so: impl Fn() -> bool) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.came.wait_while_for(&mut self.lock.lock(), |()| is_so(), at_most);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
