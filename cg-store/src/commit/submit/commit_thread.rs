//! The thread that accepts submitted batches in the background.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::SubmitQueue;
use crate::commit::state::CommitState;
use crate::rt::pool::enter_batch_scheduling;
use crate::rt::weak_world::WeakWorld;

/// The pause in which the queue is written before the next try.
const BREATH: Duration = Duration::from_micros(200);
/// How often the thread tries again while the world takes no commits.
const PAUSE: Duration = Duration::from_millis(20);

/// The thread; it ends when the world does.
#[derive(Debug)]
pub(crate) struct CommitThread {
    queue: Arc<SubmitQueue>,
    thread: Option<JoinHandle<()>>,
}

impl CommitThread {
    /// Starts to accept what the queue of a world holds.
    ///
    /// The thread runs at the niceness of the thread that submits first, because a reader may wait for it.
    pub(crate) fn start(queue: Arc<SubmitQueue>, world: WeakWorld<CommitState>) -> io::Result<Self> {
        let work = {
            let queue = Arc::clone(&queue);
            move || {
                enter_batch_scheduling();
                while queue.wait_for_work() {
                    match world.with_world(CommitState::apply_one) {
                        // Dropped only here: a function of the host in it may hold the last handle of the world.
                        Ok(Ok(Some(applied))) => drop(applied),
                        // Another thread accepted it first, or the commit queue must be written first.
                        Ok(Ok(None)) => thread::sleep(BREATH),
                        // The world takes no commits. The waiting batches are accepted when it is resumed.
                        Ok(Err(_)) => thread::sleep(PAUSE),
                        Err(_) => return,
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("cg-store-accept".into()).spawn(work)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Waits for the thread to end. Called when the world can no longer be entered.
    pub(crate) fn end(&mut self) {
        self.queue.end_thread();
        // This thread itself closes the world if it drops the last handle.
        if let Some(thread) = self.thread.take_if(|it| it.thread().id() != thread::current().id()) {
            // The result is ignored: other callers got the errors.
            let _ = thread.join();
        }
    }
}
