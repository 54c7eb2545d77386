//! Waiting for work in a thread of the world.
//!
//! Waking a thread costs the waking thread as much as the rest of a small commit. So as long as a thread had work
//! recently, a caller that adds work only marks it. One thread of the process, the waker, looks at the marks once a
//! millisecond, and wakes the threads that have work. A thread without work for [`MAX_LOOKS`] looks is woken by callers.
//! When all are, the waker sleeps too. So idle threads cost nothing, however many worlds are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::rt::lock_order::{Condvar, Mutex, MutexGuard, rank};
use crate::rt::pool::enter_batch_scheduling;

/// The longest time that work waits for a marked thread.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// The waker looks at a thread this many times without finding work.
const MAX_LOOKS: u32 = 200;

/// The wait state of one thread, for data that one lock protects.
#[derive(Debug, Default)]
pub(crate) struct Parker(Arc<Parked>);

#[derive(Debug, Default)]
struct Parked {
    came: Condvar,
    state: AtomicU8,
}

/// The thread runs, or is about to.
const AWAKE: u8 = 0;
/// The thread waits, and the waker looks at it. Set by the thread under the lock.
const WATCHED: u8 = 1;
/// As [`WATCHED`], and work came. Set by callers.
const MARKED: u8 = 2;
/// The thread waits, and callers wake it. Set by the waker.
const ASLEEP: u8 = 3;

impl Parker {
    /// Waits while `is_idle` returns true. Its condition is changed under the lock.
    pub(crate) fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, is_idle: impl Fn(&T) -> bool) {
        while is_idle(guard) {
            self.0.state.store(WATCHED, Ordering::SeqCst);
            if !WAKER.watch(&self.0) {
                self.0.state.store(ASLEEP, Ordering::SeqCst);
            }
            // A caller that adds work takes the lock, so it finds the state above and the thread in this call.
            self.0.came.wait(guard);
            self.0.state.store(AWAKE, Ordering::SeqCst);
        }
    }

    /// Wakes the thread, at once or within a millisecond. The caller held the lock when it added the work.
    pub(crate) fn wake(&self) {
        let marked = self.0.state.compare_exchange(WATCHED, MARKED, Ordering::SeqCst, Ordering::SeqCst);
        if marked == Err(ASLEEP) {
            self.0.came.notify_one();
        }
    }

    /// Wakes the thread at once, in any state.
    pub(crate) fn wake_all(&self) {
        self.0.came.notify_all();
    }
}

/// The waker of the process.
static WAKER: Waker =
    Waker { state: Mutex::new(State { watched: Vec::new(), runs: false }), came: Condvar::new() };

#[derive(Debug)]
struct Waker {
    state: Mutex<State, rank::Waker>,
    /// Signalled when the first thread is to be watched.
    came: Condvar,
}

#[derive(Debug)]
struct State {
    watched: Vec<Watched>,
    /// Whether the thread of the waker was started.
    runs: bool,
}

#[derive(Debug)]
struct Watched {
    parked: Arc<Parked>,
    /// The number of looks since work came.
    looks: u32,
}

impl Waker {
    /// Looks at a thread from now on. Returns whether the waker runs.
    fn watch(&self, parked: &Arc<Parked>) -> bool {
        let mut state = self.state.lock();
        if state.watched.iter().any(|watched| Arc::ptr_eq(&watched.parked, parked)) {
            return true;
        }
        if !state.runs {
            let run = || {
                enter_batch_scheduling();
                WAKER.run();
            };
            state.runs = thread::Builder::new().name("cg-store-wake".into()).spawn(run).is_ok();
        }
        if state.runs {
            state.watched.push(Watched { parked: Arc::clone(parked), looks: 0 });
            self.came.notify_one();
        }
        state.runs
    }

    fn run(&self) -> ! {
        loop {
            let mut state = self.state.lock();
            self.came.wait_while(&mut state, |state| state.watched.is_empty());
            state.watched.retain_mut(Watched::look);
            drop(state);
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Watched {
    /// Wakes the thread if it is marked. Returns whether to look again.
    fn look(&mut self) -> bool {
        if Arc::strong_count(&self.parked) == 1 {
            return false;
        }
        let Parked { came, state } = &*self.parked;
        match state.load(Ordering::SeqCst) {
            // The thread itself changes the state. If it was not in its wait yet, the next look wakes it.
            MARKED => {
                self.looks = 0;
                came.notify_one();
            }
            WATCHED if self.looks >= MAX_LOOKS => {
                // Fails if work came just now. The next look finds the mark.
                let slept = state.compare_exchange(WATCHED, ASLEEP, Ordering::SeqCst, Ordering::SeqCst);
                return slept.is_err();
            }
            WATCHED => self.looks += 1,
            ASLEEP => return false,
            _ => self.looks = 0,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// A thread that waits for a number to grow, once for each growth.
    struct Waiting {
        parker: Arc<Parker>,
        came: Arc<Mutex<u32, rank::Queue>>,
        /// How often the condition was looked at.
        asked: Arc<AtomicU32>,
        thread: thread::JoinHandle<()>,
    }

    impl Waiting {
        fn for_growths(growths: u32) -> Self {
            let (parker, came) = (Arc::new(Parker::default()), Arc::new(Mutex::new(0)));
            let asked = Arc::new(AtomicU32::new(0));
            let thread = {
                let (parker, came, asked) = (Arc::clone(&parker), Arc::clone(&came), Arc::clone(&asked));
                thread::spawn(move || {
                    for last in 0..growths {
                        parker.wait_while(&mut came.lock(), |came| {
                            asked.fetch_add(1, Ordering::SeqCst);
                            *came == last
                        });
                    }
                })
            };
            Self { parker, came, asked, thread }
        }

        fn grow(&self) {
            *self.came.lock() += 1;
            self.parker.wake();
        }

        fn reach(&self, state: u8) {
            while self.parker.0.state.load(Ordering::SeqCst) != state {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn a_thread_that_is_watched_and_one_that_sleeps_find_what_came() {
        let waiting = Waiting::for_growths(3);
        waiting.reach(WATCHED);
        waiting.grow();
        waiting.reach(ASLEEP);
        waiting.grow();
        waiting.reach(ASLEEP);
        waiting.grow();
        waiting.thread.join().unwrap();
    }

    #[test]
    fn idle_threads_do_not_run() {
        let all: Vec<_> = (0..16).map(|_| Waiting::for_growths(1)).collect();
        for waiting in &all {
            waiting.reach(ASLEEP);
            assert_eq!(waiting.asked.load(Ordering::SeqCst), 1, "no look but the first");
        }
        for waiting in all {
            waiting.grow();
            waiting.thread.join().unwrap();
        }
    }

    #[test]
    fn no_work_is_missed_however_it_falls_together_with_the_waits() {
        let growths = 20_000;
        let waiting = Waiting::for_growths(growths);
        for _ in 0..growths {
            waiting.grow();
        }
        waiting.thread.join().unwrap();
    }
}
