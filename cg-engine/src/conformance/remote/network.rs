//! A network that delays and loses messages.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::EngineError;
use crate::conformance::shared::{Link, Loss};

/// The maximum number of times that a message is sent.
const ATTEMPTS: usize = 64;
/// The time after which a message that is held back looks whether it may go on.
const HELD_BACK: Duration = Duration::from_micros(100);

/// A network between an engine and its server.
pub struct Network {
    latency: Duration,
    /// One message in this many is lost; 0 loses none.
    lost_one_in: u64,
    sent: AtomicU64,
    calls: AtomicU64,
    is_cut: AtomicBool,
    is_paused: AtomicBool,
    next: Mutex<Option<Fault>>,
    delayed: Mutex<Vec<Request>>,
}

/// A fault of the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Lost(Loss),
    Delayed,
}

/// A request that runs when it arrives.
type Request = Box<dyn FnOnce() + Send>;

impl Network {
    /// Each message takes `latency`, and one in `lost_one_in` is lost; 0 loses none.
    pub fn new(latency: Duration, lost_one_in: u64) -> Self {
        Self {
            latency,
            lost_one_in,
            sent: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
            is_paused: AtomicBool::new(false),
            next: Mutex::default(),
            delayed: Mutex::default(),
        }
    }

    /// The number of calls, those that wait included. A message that is sent again is counted once.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Acquire)
    }

    /// Sends a request until an answer arrives. `ask` runs once for each request that arrives. It must return the
    /// same answer when it runs again.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] if no answer arrives. The server may have executed the request.
    pub(crate) fn call<T>(&self, ask: impl FnMut() -> T) -> Result<T, EngineError> {
        self.call_with(None, ask)
    }

    /// As [`call`](Self::call), for a commit, which is the target of the faults of one request.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub(crate) fn commit<T>(&self, mut ask: impl FnMut() -> T + Send + 'static) -> Result<T, EngineError> {
        match self.next.lock().take() {
            Some(Fault::Delayed) => {
                self.calls.fetch_add(1, Ordering::AcqRel);
                self.delayed.lock().push(Box::new(move || drop(ask())));
                Err(unanswered())
            }
            Some(Fault::Lost(loss)) => self.call_with(Some(loss), ask),
            None => self.call(ask),
        }
    }

    fn call_with<T>(&self, mut loss: Option<Loss>, mut ask: impl FnMut() -> T) -> Result<T, EngineError> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        for _ in 0..ATTEMPTS {
            let loss = loss.take();
            if !self.delivers() || loss == Some(Loss::Request) {
                continue;
            }
            let answer = ask();
            match loss {
                Some(Loss::Connection) => self.cut(true),
                Some(Loss::Answer) => {}
                _ if self.delivers() => return Ok(answer),
                _ => {}
            }
        }
        Err(unanswered())
    }

    /// Whether a message arrives.
    fn delivers(&self) -> bool {
        if !self.latency.is_zero() {
            std::thread::sleep(self.latency);
        }
        while self.is_paused.load(Ordering::Acquire) {
            std::thread::sleep(HELD_BACK);
        }
        let number = self.sent.fetch_add(1, Ordering::AcqRel);
        // Requests and answers alternate in the sequence. The mixed number loses messages of both kinds.
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        !self.is_cut.load(Ordering::Acquire)
            && (self.lost_one_in == 0 || !mixed.is_multiple_of(self.lost_one_in))
    }
}

impl Link for Network {
    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Release);
    }

    fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Release);
    }

    fn lose_next(&self, loss: Loss) {
        *self.next.lock() = Some(Fault::Lost(loss));
    }

    fn delay_next(&self) {
        *self.next.lock() = Some(Fault::Delayed);
    }

    fn deliver_delayed(&self) {
        let delayed = std::mem::take(&mut *self.delayed.lock());
        for request in delayed {
            request();
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("latency", &self.latency)
            .field("lost_one_in", &self.lost_one_in)
            .field("calls", &self.calls())
            .finish_non_exhaustive()
    }
}

fn unanswered() -> EngineError {
    EngineError::Unavailable { message: format!("no answer to {ATTEMPTS} messages") }
}
