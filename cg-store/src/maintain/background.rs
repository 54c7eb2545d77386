//! Jobs on the pool whose results a later tick collects.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::maintain::state::MaintainState;
use crate::rt::pool;
use crate::storage::error::Error;

/// A job on the pool. If the value is dropped, the job runs on and its result is lost.
#[derive(Debug)]
pub(crate) struct Background<T> {
    receiver: Receiver<Result<T, Error>>,
}

/// The state of a job.
#[derive(Debug)]
pub(crate) enum Awaited<T> {
    /// It ended, or the world was closed before it could end.
    Done(Result<T, Error>),
    /// It still runs.
    Running(Background<T>),
}

impl MaintainState {
    /// Runs work on a thread of the pool, if the world is still open then. A panic becomes an error.
    pub(crate) fn in_background<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Background<T> {
        let (sender, receiver) = channel();
        let weak_world = self.weak_world.clone();
        self.shared.pool.spawn(move || {
            let done = weak_world.with_world(|world| pool::catch_panic(operation, || work(world)));
            if let Ok(done) = done {
                // While the world is being closed, no tick waits for the result.
                let _ = sender.send(done);
            }
        });
        Background { receiver }
    }
}

impl<T> Background<T> {
    /// Waits for this time until the job is done; `None`: without a limit.
    pub(crate) fn wait(self, time: Option<Duration>) -> Awaited<T> {
        let received = match time {
            Some(time) => self.receiver.recv_timeout(time),
            None => self.receiver.recv().map_err(RecvTimeoutError::from),
        };
        match received {
            Ok(done) => Awaited::Done(done),
            Err(RecvTimeoutError::Timeout) => Awaited::Running(self),
            // The job was dropped together with the world.
            Err(RecvTimeoutError::Disconnected) => Awaited::Done(Err(Error::Closed)),
        }
    }
}
