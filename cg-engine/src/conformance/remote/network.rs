//! A network that delays and loses messages.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::EngineError;

/// The maximum number of times that a message is sent.
const ATTEMPTS: usize = 64;

/// A network between an engine and its server.
#[derive(Debug)]
pub struct Network {
    latency: Duration,
    /// One message in this many is lost; 0 loses none.
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

    /// If `is_cut`, loses every message from now on. Otherwise loses only the usual ones.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Release);
    }

    /// The number of calls. A message that is sent again is counted once.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Acquire)
    }

    /// Sends a request until an answer arrives. `ask` runs once for each request that arrives. It must return the
    /// same answer when it runs again.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] if no answer arrives. The server may have executed the request.
    pub(crate) fn call<T>(&self, mut ask: impl FnMut() -> T) -> Result<T, EngineError> {
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
        Err(EngineError::Unavailable { message: format!("no answer to {ATTEMPTS} messages") })
    }

    /// Whether a message arrives.
    fn delivers(&self) -> bool {
        if !self.latency.is_zero() {
            std::thread::sleep(self.latency);
        }
        let number = self.sent.fetch_add(1, Ordering::AcqRel);
        // Requests and answers alternate in the sequence. The mixed number loses messages of both kinds.
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        !self.is_cut.load(Ordering::Acquire)
            && (self.lost_one_in == 0 || !mixed.is_multiple_of(self.lost_one_in))
    }
}
