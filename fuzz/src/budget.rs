//! Limits of the cost of one input, whatever its bytes say: memory and time.

use std::time::{Duration, Instant};

/// Memory held at once. The inputs are small, and no decoder believes a length before the bytes are there.
const MEMORY_BYTES: u64 = 64 << 20;
/// Time for one input. Without optimisation everything takes several times as long.
const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
/// How often an input is run before its time counts: the machine may have been busy with something else.
const ATTEMPTS: usize = 3;

/// Runs a check of one input and gives its answer.
///
/// # Panics
/// If the check takes more memory or time than any input is worth.
pub(crate) fn within<T>(check: impl Fn() -> T) -> T {
    let mut took = Duration::ZERO;
    for _ in 0..ATTEMPTS {
        let start = Instant::now();
        let mut answer = None;
        let counted = allocation_counter::measure(|| answer = Some(check()));
        took = start.elapsed();
        let held = counted.bytes_max;
        assert!(held <= MEMORY_BYTES, "one input took {held} bytes of memory, more than {MEMORY_BYTES}");
        if took <= TIME {
            return answer.expect("measuring runs the check");
        }
    }
    panic!("one input took {took:?}, more than {TIME:?}");
}
