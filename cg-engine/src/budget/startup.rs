//! Checks that the operating system grants the process what RocksDB allocates when it starts.
//!
//! RocksDB ends the process if a thread does not start or memory for a cache is refused. So this module asks for the
//! same first and returns a refusal as an error.

use std::io;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use crate::EngineError;

/// RocksDB's threads use the default stack size of the operating system, usually 8 MiB of addresses.
const STACK_BYTES: usize = 8 << 20;
/// Memory that opening needs, without caches and stacks. When a thread first allocates, the system's allocator reserves
/// 64 MiB of addresses, for a moment 128 MiB. While other processes run, two threads may do so at once.
const OPENING_BYTES: usize = 192 << 20;

/// Allocates the threads and the addresses that RocksDB needs with this memory and these threads, and releases them.
///
/// # Errors
/// [`EngineError::ProcessLimit`].
pub(super) fn check(memory_bytes: usize, thread_count: usize) -> Result<(), EngineError> {
    check_with(memory_bytes, thread_count, |wait| {
        thread::Builder::new().name("cg-startup".into()).stack_size(STACK_BYTES).spawn(wait)
    })
}

fn check_with(
    memory_bytes: usize,
    thread_count: usize,
    mut start: impl FnMut(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
) -> Result<(), EngineError> {
    // The block cache reserves addresses for its maximum number of entries: a sixth to a quarter of the memory. They
    // stay allocated while the threads start, so that the allocator cannot use them for the threads.
    let bytes = memory_bytes / 4 + OPENING_BYTES;
    let mut memory = Vec::<u8>::new();
    memory.try_reserve_exact(bytes).map_err(|_| {
        let what = format!("{} MiB of memory at once", bytes >> 20);
        EngineError::ProcessLimit { what, source: io::ErrorKind::OutOfMemory.into() }
    })?;
    // Compaction threads, flush threads, and threads that read files during the open.
    let thread_count = 2 * thread_count + thread_count.div_ceil(4);
    let mut started = Vec::with_capacity(thread_count);
    let mut checked = Ok(());
    for number in 0..thread_count {
        let (end, ends) = channel::<()>();
        let wait = Box::new(move || {
            // Until the other end is dropped.
            let _gone = ends.recv();
        });
        match start(wait) {
            Ok(thread) => started.push((end, thread)),
            Err(source) => {
                let what = format!("{thread_count} threads, and gives it {number}");
                checked = Err(EngineError::ProcessLimit { what, source });
                break;
            }
        }
    }
    for (end, thread) in started {
        drop(end);
        let _ended = thread.join();
    }
    // Without this the compiler may remove the allocation.
    std::hint::black_box(&memory);
    checked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_or_memory_that_is_refused_is_an_error() {
        check(256 << 20, 2).unwrap();
        let mut left = 3;
        let error = check_with(0, 2, |wait| {
            if left == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            left -= 1;
            thread::Builder::new().spawn(wait)
        });
        let error = error.unwrap_err();
        assert!(matches!(error, EngineError::ProcessLimit { .. }));
        assert_eq!(
            error.to_string(),
            "the system refuses this process what the engine needs, 5 threads, and gives it 3: operation would block; raise \
             the limits of the process (`ulimit -a` shows them)"
        );
        let error = check(usize::MAX, 2).unwrap_err();
        assert!(matches!(error, EngineError::ProcessLimit { .. }), "{error}");
    }
}
