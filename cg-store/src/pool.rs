//! Threads that load chunks, move them between tiers and fold the opacity map in the background, for all worlds that share them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// How much nicer than the host's threads the store's are.
#[cfg(all(target_os = "linux", feature = "rocks"))]
const NICER: i32 = 5;

/// Named threads that end, and are waited for, with the value.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Only absent while the value is dropped.
    threads: Option<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts so many threads.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn start(thread_count: usize) -> Result<Self, ThreadPoolBuildError> {
        let mut handles = Vec::with_capacity(thread_count);
        let threads = ThreadPoolBuilder::new()
            .num_threads(thread_count)
            .thread_name(|index| format!("cg-store-{index}"))
            // A job tells who waits for it itself; without this, one that does not would end the process.
            .panic_handler(|panic| tracing::error!(panic = message(&*panic), "background work panicked"))
            .spawn_handler(|thread| {
                let mut builder = thread::Builder::new();
                if let Some(name) = thread.name() {
                    builder = builder.name(name.to_owned());
                }
                handles.push(builder.spawn(|| {
                    give_way();
                    thread.run();
                })?);
                Ok(())
            })
            .build()?;
        Ok(Self { threads: Some(threads), handles })
    }

    /// Does something on the threads, which may share it out among them, and waits for it.
    pub(crate) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(threads) => threads.install(work),
            None => work(),
        }
    }

    /// How many threads there are.
    pub(crate) fn thread_count(&self) -> usize {
        self.handles.len()
    }

    /// Has one of the threads do something, behind what they were given before.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        if let Some(threads) = &self.threads {
            threads.spawn(work);
        }
    }
}

/// Lets the host's threads go before this one, where the system counts priorities by thread.
///
/// Threads that work for the store wake while a host's tick runs: at its priority they would take the processor from it
/// for milliseconds. They still get a quarter of one that the host uses up.
pub(crate) fn give_way() {
    #[cfg(all(target_os = "linux", feature = "rocks"))]
    if let Err(error) = rustix::process::nice(NICER) {
        tracing::debug!(%error, "a thread of the store keeps its host's priority");
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Whatever was spawned is done first.
        drop(self.threads.take());
        let this = thread::current().id();
        for handle in self.handles.drain(..) {
            // A thread cannot wait for itself; it ends when this is over. A panic of a job was told already.
            if handle.thread().id() != this {
                let _ = handle.join();
            }
        }
    }
}

/// Does something, and gives what it panicked with as text.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // What is shared behind locks is changed in single steps, so a panic leaves it whole.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic).to_owned())
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn what_was_spawned_is_done_before_the_threads_end() {
        let pool = Pool::start(2).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..200 {
            let done = Arc::clone(&done);
            pool.spawn(move || {
                thread::yield_now();
                assert!(thread::current().name().is_some_and(|name| name.starts_with("cg-store-")));
                done.fetch_add(1, Ordering::AcqRel);
            });
        }
        drop(pool);
        assert_eq!(done.load(Ordering::Acquire), 200);
        assert_eq!(Arc::strong_count(&done), 1, "no thread is left that holds it");
    }

    #[test]
    fn a_panic_ends_neither_the_process_nor_a_thread() {
        let pool = Pool::start(1).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        pool.spawn(|| panic!("on purpose"));
        pool.spawn(move || sender.send(7).unwrap());
        assert_eq!(receiver.recv(), Ok(7));
    }

    #[test]
    fn a_panic_is_caught_with_its_text() {
        assert_eq!(caught(|| 5), Ok(5));
        assert_eq!(caught(|| -> u8 { panic!("number {}", 7) }), Err("number 7".to_owned()));
        assert_eq!(caught(|| -> u8 { panic!("plain") }), Err("plain".to_owned()));
        assert_eq!(caught(|| -> u8 { std::panic::panic_any(9) }), Err("no text".to_owned()));
    }
}
