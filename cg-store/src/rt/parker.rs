//! Waiting for work in a thread of the world.
//!
//! Waking a thread costs the waking thread as much as the rest of a small commit. So a thread that had work recently
//! parks for short times, after which it needs no wake-up. It sleeps only if no work came for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::rt::lock_order::{Condvar, MutexGuard};

/// The longest time that work waits for a parked thread.
const PARK_TIME: Duration = Duration::from_millis(1);
/// The thread sleeps after this many short waits without work.
const MAX_PARKS: u32 = 200;

/// The wait state of one thread, for data that one lock protects.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    came: Condvar,
    /// Changed under the lock. If set, the thread must be woken.
    is_asleep: AtomicBool,
}

impl Parker {
    /// Waits while `is_idle` returns true. Its condition is changed under the lock.
    pub(crate) fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, is_idle: impl Fn(&T) -> bool) {
        let mut naps = 0;
        while is_idle(guard) {
            if naps < MAX_PARKS {
                naps += 1;
                self.came.wait_for(guard, PARK_TIME);
            } else {
                self.is_asleep.store(true, Ordering::SeqCst);
                self.came.wait(guard);
                self.is_asleep.store(false, Ordering::SeqCst);
                naps = 0;
            }
        }
    }

    /// Wakes the thread if it sleeps. The caller held the lock when it added the work.
    pub(crate) fn wake(&self) {
        if self.is_asleep.load(Ordering::SeqCst) {
            self.came.notify_one();
        }
    }

    /// Wakes the thread in any state.
    pub(crate) fn wake_all(&self) {
        self.came.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::lock_order::{Mutex, rank};
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn who_naps_and_who_sleeps_finds_what_came() {
        let (nap, came) = (Arc::new(Parker::default()), Arc::new(Mutex::<_, rank::Queue>::new(0)));
        let waits = {
            let (nap, came) = (Arc::clone(&nap), Arc::clone(&came));
            thread::spawn(move || {
                for last in 0..2 {
                    nap.wait_while(&mut came.lock(), |came| *came == last);
                }
            })
        };
        let comes = || {
            *came.lock() += 1;
            nap.wake();
        };
        comes();
        while !nap.is_asleep.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        comes();
        waits.join().unwrap();
    }
}
