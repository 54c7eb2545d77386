//! The threads of committing.
//!
//! | thread | what it does | started by |
//! |---|---|---|
//! | accepting | accepts submitted batches | the first submission |
//! | writing | writes queued commits | the first commit that is queued |
//! | syncing | [syncs](super::persist) once a second | opening |
//!
//! The first two are not one, because readers wait for acceptance and only few callers wait for writing. The engine may
//! hold a write back for seconds; batches are accepted meanwhile. The writing thread has low priority, which the
//! accepting thread must not have.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::commit::queue::CommitQueue;
use crate::commit::state::CommitState;
use crate::rt::pool::{enter_batch_scheduling, lower_priority};
use crate::rt::weak_world::WeakWorld;
use crate::storage::error::{Error, OpenError};

/// The pause in which the queue is written before the next try to accept a batch.
const BREATH: Duration = Duration::from_micros(200);
/// How often the accepting thread tries again while the world takes no commits.
const PAUSE: Duration = Duration::from_millis(20);

/// The threads that run.
#[derive(Debug, Default)]
pub(crate) struct CommitThreads {
    accepting: Option<JoinHandle<()>>,
    writing: Option<JoinHandle<()>>,
    pub(super) syncing: Option<JoinHandle<()>>,
}

impl CommitState {
    /// Starts the writing thread, if it does not run.
    pub(crate) fn start_writing(&self) -> Result<(), Error> {
        self.start_thread(|threads| &mut threads.writing, "cg-store-write", write_commits)
    }

    /// Starts the accepting and the writing thread, if they do not run.
    pub(crate) fn start_accepting(&self) -> Result<(), Error> {
        if self.accepts.load(Ordering::Acquire) {
            return Ok(());
        }
        self.start_writing()?;
        self.start_thread(|threads| &mut threads.accepting, "cg-store-accept", accept_batches)?;
        self.accepts.store(true, Ordering::Release);
        Ok(())
    }

    /// Starts a thread, if it does not run.
    pub(super) fn start_thread(
        &self,
        which: impl FnOnce(&mut CommitThreads) -> &mut Option<JoinHandle<()>>,
        name: &str,
        work: fn(&CommitQueue, &WeakWorld<Self>),
    ) -> Result<(), Error> {
        let mut threads = self.threads.lock();
        let thread = which(&mut threads);
        if thread.is_none() {
            let (queue, world) = (Arc::clone(&self.queue), self.weak_world.clone());
            let started = thread::Builder::new().name(name.into()).spawn(move || work(&queue, &world));
            *thread = Some(started.map_err(|error| OpenError::Threads { source: error.into() })?);
        }
        Ok(())
    }

    /// Waits for the threads to end. Called when the world can no longer be entered.
    pub(crate) fn end_threads(&self) {
        self.queue.end();
        let CommitThreads { accepting, writing, syncing } = std::mem::take(&mut *self.threads.lock());
        for thread in [accepting, writing, syncing].into_iter().flatten() {
            thread.thread().unpark();
            // A thread that drops the last handle closes the world itself.
            if thread.thread().id() != thread::current().id() {
                // The result is ignored: failures were logged, or reported to other callers.
                let _ = thread.join();
            }
        }
    }
}

/// Accepts batches until the world ends.
///
/// The thread runs at the niceness of the thread that submits first, because a reader may wait for it.
fn accept_batches(queue: &CommitQueue, world: &WeakWorld<CommitState>) {
    enter_batch_scheduling();
    while queue.wait_for_batch() {
        let accept = |world: &CommitState| {
            if queue.is_overfull() { queue.check().map(|()| None) } else { world.accept_next(u64::MAX) }
        };
        match world.with_world(accept) {
            // Only here: a function of the host in the batch, or the task, may hold the last handle of the world.
            Ok(Ok(Some((accepted, waker)))) => {
                drop(accepted);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            // Another thread accepted it first, or commits must be written first.
            Ok(Ok(None)) => thread::sleep(BREATH),
            // The world takes no commits. The waiting batches are accepted when it is resumed.
            Ok(Err(_)) => {
                queue.wake_tasks();
                thread::sleep(PAUSE);
            }
            Err(_) => return,
        }
    }
}

/// Writes commits until the world ends.
fn write_commits(queue: &CommitQueue, world: &WeakWorld<CommitState>) {
    lower_priority();
    // The thread does not hold the world between two commits, so the world can be dropped then.
    while queue.wait_for_commit() {
        // The failure was logged. Every later commit or wait returns it until the world is resumed.
        if world.with_world(|world| world.write_next(u64::MAX)).is_err() {
            return;
        }
    }
}
