//! Threads that load chunks, move them between tiers and fold the opacity map in the background. Several worlds may
//! share them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::engine::EngineError;

/// Named threads. Dropping the value ends them and waits for them.
#[derive(Debug)]
pub(crate) struct Pool {
    /// `None` only while the value is dropped.
    threads: Option<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
    /// The number of threads that unfinished jobs may occupy.
    given: Arc<AtomicUsize>,
}

/// A job on several threads, until it is done or has panicked.
struct Given(Arc<AtomicUsize>, usize);

impl Pool {
    /// Starts this many threads.
    ///
    /// # Errors
    /// If the operating system refuses to create a thread.
    pub(crate) fn start(thread_count: usize) -> Result<Self, ThreadPoolBuildError> {
        let mut handles = Vec::with_capacity(thread_count);
        let threads = ThreadPoolBuilder::new()
            .num_threads(thread_count)
            .thread_name(|index| format!("cg-store-{index}"))
            // A job reports its panic to a caller that waits. Without this handler, a panic without such a caller would
            // end the process.
            .panic_handler(|panic| tracing::error!(panic = message(&*panic), "background work panicked"))
            .spawn_handler(|thread| {
                let mut builder = thread::Builder::new();
                if let Some(name) = thread.name() {
                    builder = builder.name(name.to_owned());
                }
                handles.push(builder.spawn(|| {
                    lower_priority();
                    thread.run();
                })?);
                Ok(())
            })
            .build()?;
        Ok(Self { threads: Some(threads), handles, given: Arc::default() })
    }

    /// Runs work on the threads, which may divide it among them, and waits for it.
    pub(crate) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(threads) => {
                let _given = self.give(self.thread_count());
                threads.install(work)
            }
            None => work(),
        }
    }

    /// Calls `work` for each of a few things, divided among the threads, and waits for that. The caller's own thread
    /// does the work if there is only one thing, or if all threads are busy.
    pub(crate) fn each<T: Sync, R: Send>(&self, things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        if things.len() < 2 || self.is_busy() {
            return things.iter().map(work).collect();
        }
        self.install(|| things.par_iter().map(&work).collect())
    }

    /// Whether each thread has work, so that a new job has to wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.idle_count() == 0
    }

    /// The number of threads without work.
    pub(crate) fn idle_count(&self) -> usize {
        self.thread_count().saturating_sub(self.given.load(Ordering::Relaxed))
    }

    /// The same, without this many jobs that the caller itself has started.
    pub(crate) fn is_busy_beside(&self, given: usize) -> bool {
        self.given.load(Ordering::Relaxed) >= self.thread_count() + given
    }

    /// The number of threads.
    pub(crate) fn thread_count(&self) -> usize {
        self.handles.len()
    }

    /// Runs work on one of the threads, after the earlier jobs.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        if let Some(threads) = &self.threads {
            let given = self.give(1);
            threads.spawn(move || {
                let _given = given;
                work();
            });
        }
    }

    fn give(&self, thread_count: usize) -> Given {
        self.given.fetch_add(thread_count, Ordering::Relaxed);
        Given(Arc::clone(&self.given), thread_count)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// Lowers the priority of this thread below the host's, where the operating system has priorities per thread.
///
/// Threads of the store wake while a host's tick runs. At the same priority they would take the processor from it for
/// milliseconds. In the batch scheduling class, waking up never preempts another thread. They still get a quarter of a
/// processor that the host uses fully.
pub(crate) fn lower_priority() {
    work_in_batches(NICER);
}

/// Enters the batch scheduling class, in which waking up preempts no thread, and keeps the niceness. For threads for
/// which other threads may wait.
pub(crate) fn enter_batch_scheduling() {
    work_in_batches(0);
}

/// The niceness of the store's threads above that of the host's.
const NICER: i32 = 5;

fn work_in_batches(nicer: i32) {
    #[cfg(all(target_os = "linux", feature = "rocks"))]
    if let Err(error) = enter_batch_class(nicer) {
        tracing::debug!(%error, "a thread of the store keeps its host's priority");
    }
    #[cfg(not(all(target_os = "linux", feature = "rocks")))]
    let _ = nicer;
}

#[cfg(all(target_os = "linux", feature = "rocks"))]
fn enter_batch_class(nicer: i32) -> rustix::io::Result<()> {
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    };
    /// The value that the crate maps to a niceness of 0. It can only set an absolute niceness together with a class.
    const ORDINARY: u8 = 49;
    let before = rustix::process::nice(0)?;
    let batch = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
    let priority =
        ThreadPriorityValue::try_from(ORDINARY).map_or(ThreadPriority::Min, ThreadPriority::Crossplatform);
    let this = thread_priority::thread_native_id();
    if let Err(error) = thread_priority::set_thread_priority_and_policy(this, priority, batch) {
        // The class is set first; the refused part is a niceness below the host's.
        tracing::debug!(?error, "a thread of the store keeps its host's niceness for now");
    }
    let now = rustix::process::nice(0)?;
    rustix::process::nice(before + nicer - now)?;
    Ok(())
}

impl Drop for Pool {
    fn drop(&mut self) {
        // All spawned jobs are finished first.
        drop(self.threads.take());
        let this = thread::current().id();
        for handle in self.handles.drain(..) {
            // A thread cannot wait for itself; it ends after this. A panic of a job was already reported.
            if handle.thread().id() != this {
                let _ = handle.join();
            }
        }
    }
}

/// Runs work, and returns the message of a panic.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Shared state behind locks is changed in single steps, so a panic leaves it consistent.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic).to_owned())
}

/// Runs a job, and converts its panic into an error. Otherwise a waiting caller would treat it as a closed world.
pub(crate) fn catch_panic<T, E: From<EngineError>>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let panicked = |message| Err(EngineError::Panicked { operation, message }.into());
    caught(work).unwrap_or_else(panicked)
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn who_finds_all_threads_busy_does_it_himself() {
        let pool = Pool::start(2).unwrap();
        assert_eq!(pool.idle_count(), 2);
        let here = thread::current().id();
        let who = |pool: &Pool| pool.each(&[1, 2, 3], |n| (*n, thread::current().id() == here));
        assert_eq!(who(&pool), [(1, false), (2, false), (3, false)]);
        let (go_on, told) = std::sync::mpsc::channel::<()>();
        let told = Arc::new(std::sync::Mutex::new(told));
        for _ in 0..2 {
            let told = Arc::clone(&told);
            pool.spawn(move || drop(told.lock().map(|told| told.recv())));
        }
        pool.spawn(|| panic!("on purpose"));
        assert!(pool.is_busy() && pool.is_busy_beside(1) && !pool.is_busy_beside(2));
        assert_eq!(pool.idle_count(), 0);
        assert_eq!(who(&pool), [(1, true), (2, true), (3, true)]);
        drop(go_on);
        while pool.given.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        assert_eq!(who(&pool), [(1, false), (2, false), (3, false)], "a panic is something done, too");
    }

    #[test]
    fn a_panic_is_caught_with_its_text() {
        assert_eq!(caught(|| 5), Ok(5));
        assert_eq!(caught(|| -> u8 { panic!("number {}", 7) }), Err("number 7".to_owned()));
        assert_eq!(caught(|| -> u8 { panic!("plain") }), Err("plain".to_owned()));
        assert_eq!(caught(|| -> u8 { std::panic::panic_any(9) }), Err("no text".to_owned()));
    }
}
