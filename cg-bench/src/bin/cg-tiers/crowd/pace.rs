//! Twenty ticks a second by the clock, and a thread that does nothing at the same pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two ticks.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// When the ticks are due.
#[derive(Debug)]
pub(super) struct Pace {
    due: Instant,
}

impl Pace {
    pub(super) fn begin() -> Self {
        Self { due: Instant::now() }
    }

    /// Sleeps until the next tick is due, and returns how much too late it is.
    ///
    /// A tick that was long shortens the pause after it, and no more: what could not be kept up is not made good.
    pub(super) fn wait(&mut self) -> Duration {
        self.due += TICK;
        let late = Instant::now().saturating_duration_since(self.due);
        self.due += late.saturating_sub(TICK);
        thread::sleep(self.due.saturating_duration_since(Instant::now()));
        Instant::now().saturating_duration_since(self.due)
    }
}

/// Sleeps from tick to tick, and notes how late it was woken: what the machine alone does to a tick.
#[derive(Debug)]
pub(super) struct Control {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Control {
    pub(super) fn start() -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let ended = Arc::clone(&ended);
            move || {
                let (mut pace, mut late) = (Pace::begin(), Vec::new());
                while !ended.load(Ordering::Relaxed) {
                    late.push(pace.wait());
                }
                late
            }
        });
        Self { ended, thread }
    }

    /// How late each tick was.
    pub(super) fn end(self) -> Vec<Duration> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}
