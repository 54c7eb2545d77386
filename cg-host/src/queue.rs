//! Queues: loads and commits that run beside the host, whose answers it fetches when it wants.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cg_store::Durability;
use parking_lot::{Condvar, Mutex};

use crate::binding::Binding;
use crate::column::Column;
use crate::error::Error;
use crate::host::{Host, Saved, Writes};
use crate::place::ColumnAt;

/// Threads of a queue.
const THREADS: usize = 2;

/// The answer to a load or a commit.
#[derive(Debug)]
pub struct Done {
    /// The number that the host gave it.
    pub tag: u64,
    /// The answer.
    pub answer: Result<Answer, Error>,
}

/// What a load or a commit gave.
#[derive(Debug)]
pub enum Answer {
    /// A column; `None` if no chunk of it is stored.
    Loaded(Option<Box<Column>>),
    /// A commit.
    Committed(Saved),
}

/// Loads columns and commits lists of writes on threads of its own.
///
/// A queue has room for a number of answers. What is begun and was not fetched takes room. Dropping a queue forgets what was
/// not begun.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use cg_host::{Host, HostOptions, Queue, Writes};
/// use cg_store::prelude::*;
/// let host = Arc::new(Host::new(World::builder().in_memory()?, HostOptions::default())?);
/// let queue = Queue::new(&host, 16)?;
/// let mut writes = Writes::new();
/// writes.property(Property::Seed, Some(vec![1]));
/// queue.commit(&mut writes, None, 7)?;
/// let done = queue.wait(10, Duration::from_secs(10))?;
/// assert_eq!(done[0].tag, 7);
/// assert_eq!(host.world().property(&Property::Seed)?, Some(vec![1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Queue {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    host: Arc<Host>,
    capacity: usize,
    state: Mutex<State>,
    work: Condvar,
    answers: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(u64, Job)>,
    running: usize,
    done: VecDeque<Done>,
    is_closed: bool,
}

#[derive(Debug)]
enum Job {
    Load(Arc<Binding>, ColumnAt),
    Commit(Box<Writes>, Option<Durability>),
}

impl Queue {
    /// A queue with room for a number of answers, at least one.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn new(host: &Arc<Host>, capacity: usize) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            host: Arc::clone(host),
            capacity: capacity.max(1),
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            answers: Condvar::new(),
        });
        let queue = Self { shared, threads: Mutex::new(Vec::new()) };
        for _ in 0..THREADS {
            let shared = Arc::clone(&queue.shared);
            let builder = std::thread::Builder::new().name("cg-host-queue".into());
            let thread = builder.spawn(move || shared.work());
            queue.threads.lock().push(thread.map_err(|error| Error::Thread(Arc::new(error)))?);
        }
        Ok(queue)
    }

    /// Begins to load a column.
    ///
    /// # Errors
    /// [`Error::QueueFull`] and [`Error::Closed`].
    pub fn load(&self, binding: &Arc<Binding>, at: ColumnAt, tag: u64) -> Result<(), Error> {
        self.push(tag, || Job::Load(Arc::clone(binding), at))
    }

    /// Begins to commit a list of writes, and empties it.
    ///
    /// # Errors
    /// As [`load`](Self::load); the list keeps its writes then.
    pub fn commit(&self, writes: &mut Writes, durability: Option<Durability>, tag: u64) -> Result<(), Error> {
        self.push(tag, || Job::Commit(Box::new(std::mem::take(writes)), durability))
    }

    fn push(&self, tag: u64, job: impl FnOnce() -> Job) -> Result<(), Error> {
        let capacity = self.shared.capacity;
        let mut state = self.shared.state.lock();
        if state.is_closed {
            return Err(Error::Closed("the queue"));
        }
        if state.waiting.len() + state.running + state.done.len() >= capacity {
            return Err(Error::QueueFull { capacity });
        }
        state.waiting.push_back((tag, job()));
        self.shared.work.notify_one();
        Ok(())
    }

    /// Forgets what has this tag and was not begun: each answers [`Error::Closed`]. Returns how many.
    pub fn cancel(&self, tag: u64) -> usize {
        let mut state = self.shared.state.lock();
        let before = state.waiting.len();
        state.waiting.retain(|(of, _)| *of != tag);
        let cancelled = before - state.waiting.len();
        for _ in 0..cancelled {
            state.done.push_back(Done { tag, answer: Err(Error::Closed("the call")) });
        }
        self.shared.answers.notify_all();
        cancelled
    }

    /// Fetches at most this many answers. Waits for the first one at most for the given time.
    ///
    /// # Errors
    /// [`Error::Closed`] when the queue is closed and has no answers left.
    pub fn wait(&self, most: usize, timeout: Duration) -> Result<Vec<Done>, Error> {
        /// As good as for ever, and no overflow of a clock.
        const LONGEST: Duration = Duration::from_secs(24 * 60 * 60 * 365);
        let end = Instant::now() + timeout.min(LONGEST);
        let mut state = self.shared.state.lock();
        while state.done.is_empty() {
            if state.is_closed {
                return Err(Error::Closed("the queue"));
            }
            if Instant::now() >= end {
                break;
            }
            self.shared.answers.wait_until(&mut state, end);
        }
        let count = state.done.len().min(most);
        Ok(state.done.drain(..count).collect())
    }

    /// Ends the queue: forgets what was not begun, waits for what was, and wakes those who wait.
    pub fn close(&self) {
        {
            let mut state = self.shared.state.lock();
            state.is_closed = true;
            state.waiting.clear();
        }
        self.shared.work.notify_all();
        self.shared.answers.notify_all();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // Its panics were answered.
            let _ended = thread.join();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let (tag, job) = {
                let mut state = self.state.lock();
                loop {
                    if state.is_closed {
                        return;
                    }
                    if let Some(next) = state.waiting.pop_front() {
                        state.running += 1;
                        break next;
                    }
                    self.work.wait(&mut state);
                }
            };
            let run = || match job {
                Job::Load(binding, at) => {
                    self.host.load(&binding, at).map(|column| Answer::Loaded(column.map(Box::new)))
                }
                Job::Commit(mut writes, durability) => {
                    self.host.commit(&mut writes, durability).map(Answer::Committed)
                }
            };
            // Otherwise the host would wait for its answer for ever.
            let answer = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                tracing::error!("a call of a queue panicked: {text}");
                Err(Error::Panicked(text))
            });
            let mut state = self.state.lock();
            state.running -= 1;
            state.done.push_back(Done { tag, answer });
            self.answers.notify_one();
        }
    }
}
