//! The thread that accepts what was submitted before anybody asks for it.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::SubmitQueue;
use crate::commit::state::CommitState;
use crate::rt::pool::enter_batch_scheduling;
use crate::rt::weak_world::WeakWorld;

/// How long what is queued is given to be written.
const BREATH: Duration = Duration::from_micros(200);
/// How often it is tried again whether a world that takes no commits takes some.
const PAUSE: Duration = Duration::from_millis(20);

/// The thread; it ends when the world does.
#[derive(Debug)]
pub(crate) struct CommitThread {
    queue: Arc<SubmitQueue>,
    thread: Option<JoinHandle<()>>,
}

impl CommitThread {
    /// Starts to accept what a world's queue holds.
    ///
    /// At the niceness of the thread that submits first: whoever reads meanwhile may wait for it.
    pub(crate) fn start(queue: Arc<SubmitQueue>, world: WeakWorld<CommitState>) -> io::Result<Self> {
        let work = {
            let queue = Arc::clone(&queue);
            move || {
                enter_batch_scheduling();
                while queue.wait_for_work() {
                    match world.with_world(CommitState::settle_one) {
                        Ok(Ok(true)) => {}
                        // Somebody else was faster, or what is queued is to be written first.
                        Ok(Ok(false)) => thread::sleep(BREATH),
                        // The world takes no commits. What waits is accepted when it is resumed.
                        Ok(Err(_)) => thread::sleep(PAUSE),
                        Err(_) => return,
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("cg-store-accept".into()).spawn(work)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Waits for the thread to end, once the world can no longer be visited.
    pub(crate) fn end(&mut self) {
        self.queue.end_thread();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say: what went wrong in it was told to others.
            let _ = thread.join();
        }
    }
}
