//! Whether the system lets the process have what RocksDB takes when it starts.
//!
//! RocksDB ends the process if a thread does not start, or if memory for a cache is refused. So the same is asked of the
//! system beforehand, where a refusal is an error.

use std::io;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use crate::EngineError;

/// RocksDB's threads get the system's default, mostly 8 MiB of addresses.
const STACK_BYTES: usize = 8 << 20;
/// What opening takes beside caches and stacks. A thread that allocates makes the system's allocator reserve 64 MiB of
/// addresses, and twice that for a moment; while other processes run, two threads may do so at once.
const OPENING_BYTES: usize = 192 << 20;

/// Asks the system for the threads and the addresses that RocksDB takes with this memory and these threads, and
/// gives them back.
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
    // The cache of blocks reserves addresses for as many entries as it might hold, a sixth to a quarter of the memory. They
    // are held while threads start: what the system's allocator reserves for these must not be what the cache needs.
    let bytes = memory_bytes / 4 + OPENING_BYTES;
    let mut memory = Vec::<u8>::new();
    memory.try_reserve_exact(bytes).map_err(|_| {
        let what = format!("{} MiB of memory at once", bytes >> 20);
        EngineError::ProcessLimit { what, source: io::ErrorKind::OutOfMemory.into() }
    })?;
    // Those that compact, those that flush, and those that read files while it opens.
    let thread_count = 2 * thread_count + thread_count.div_ceil(4);
    let mut started = Vec::with_capacity(thread_count);
    let mut checked = Ok(());
    for number in 0..thread_count {
        let (end, ends) = channel::<()>();
        let wait = Box::new(move || {
            // Until the other end is gone.
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
    // Otherwise the compiler may leave the allocation out.
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
