//! Messages that take time and get lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cg_engine::EngineError;

/// A message is sent again at most this often.
const ATTEMPTS: usize = 64;

/// A network between an engine and its server.
#[derive(Debug)]
pub struct Network {
    latency: Duration,
    /// One message in this many is lost; 0: none.
    lost_one_in: u64,
    sent: AtomicU64,
    calls: AtomicU64,
    is_cut: AtomicBool,
}

impl Network {
    /// Each message takes `latency`, and one in `lost_one_in` is lost; 0 loses none.
    pub const fn new(latency: Duration, lost_one_in: u64) -> Self {
        Self {
            latency,
            lost_one_in,
            sent: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
        }
    }

    /// Loses every message from now on, or none beyond the usual.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Release);
    }

    /// How many calls were made. A message that was sent again counts once.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Acquire)
    }

    /// Asks the server until an answer arrives. `ask` runs once for each request that arrives, and has to give the same
    /// answer when it is asked again.
    ///
    /// # Errors
    /// [`Unanswered`] if no answer arrives. The server may have done what a request says.
    pub(crate) fn call<T>(&self, mut ask: impl FnMut() -> T) -> Result<T, Unanswered> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        for _ in 0..ATTEMPTS {
            if !self.delivers() {
                continue;
            }
            let answer = ask();
            if self.delivers() {
                return Ok(answer);
            }
        }
        Err(Unanswered)
    }

    /// Whether a message arrives.
    fn delivers(&self) -> bool {
        if !self.latency.is_zero() {
            std::thread::sleep(self.latency);
        }
        let number = self.sent.fetch_add(1, Ordering::AcqRel);
        // Neighbours in a sequence are requests and answers by turns: the mix loses both kinds.
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        !self.is_cut.load(Ordering::Acquire)
            && (self.lost_one_in == 0 || !mixed.is_multiple_of(self.lost_one_in))
    }
}

/// No answer has arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered;

impl From<Unanswered> for EngineError {
    fn from(_: Unanswered) -> Self {
        Self::Unavailable { message: format!("no answer to {ATTEMPTS} messages") }
    }
}
