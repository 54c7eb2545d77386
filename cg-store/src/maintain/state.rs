//! The state of maintenance: its progress between two ticks, what it recorded meanwhile, and jobs that outlast a tick.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cg_format::Space;
use cg_tiering::GameTick;

use crate::commit::state::CommitState;
use crate::engine::{Batch, Engine, EngineError, Guard, Latency, Level};
use crate::maintain::activity::Activity;
use crate::maintain::tick::Maintenance;
use crate::read::state::ReadState;
use crate::rt::pool;
use crate::rt::stats::Stopwatch;
use crate::rt::weak_world::{WeakWorld, WorldUses};
use crate::storage::error::Error;
use crate::storage::shared::Shared;

/// The state of maintenance.
pub(crate) struct MaintainState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) read: Arc<ReadState>,
    pub(crate) commit: Arc<CommitState>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) maintenance: Maintenance,
    pub(crate) ticks: Stopwatch,
    pub(crate) tick_excess: Stopwatch,
    /// For work on the pool, which does not keep the world open.
    pub(crate) weak_world: WeakWorld<Self>,
    /// Whether each call of the engine is a message. Then the work of a tick is a job on the pool.
    pub(crate) is_over_network: bool,
}

impl MaintainState {
    /// Creates a state in which nothing has begun. The clock continues at its stored value.
    pub(crate) fn new(
        commit: Arc<CommitState>,
        activity: Arc<Activity>,
        clock: GameTick,
        visits: &Arc<WorldUses>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            shared: Arc::clone(&commit.shared),
            read: Arc::clone(&commit.read),
            activity,
            maintenance: Maintenance::at(clock),
            ticks: Stopwatch::default(),
            tick_excess: Stopwatch::default(),
            weak_world: WeakWorld::new(this, visits),
            is_over_network: commit
                .shared
                .engine()
                .is_ok_and(|engine| engine.caps().latency == Latency::Network),
            commit,
        })
    }
}

impl fmt::Debug for MaintainState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

/// Commits a batch, unless a commit has changed a guarded row. Returns whether it was committed.
pub(crate) fn commit_guarded(engine: &dyn Engine, batch: Batch, guards: &[Guard]) -> Result<bool, Error> {
    Ok(commit_or_conflict(engine, batch, guards)?.is_none())
}

/// The space and key of a row.
pub(crate) type RowAt = (Space, Box<[u8]>);

/// Commits a batch, unless a commit has changed a guarded row. Returns such a row; `None` if the batch was committed.
pub(crate) fn commit_or_conflict(
    engine: &dyn Engine,
    batch: Batch,
    guards: &[Guard],
) -> Result<Option<RowAt>, Error> {
    match engine.commit(batch.maintenance(), guards, Level::Process) {
        Ok(_) => Ok(None),
        Err(EngineError::Conflict { space, key, .. }) => Ok(Some((space, key))),
        Err(error) => Err(error.into()),
    }
}

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
    /// Runs work beside a tick: on a thread of the pool. Over a network the tick is a job there itself, and does the
    /// work at once. If it waited for another job, all threads could wait.
    pub(crate) fn in_background<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Background<T> {
        if !self.is_over_network {
            return self.on_the_pool(operation, work);
        }
        let (sender, receiver) = channel();
        // The receiver exists.
        let _ = sender.send(pool::catch_panic(operation, || work(self)));
        Background { receiver }
    }

    /// Runs work on a thread of the pool, if the world is still open then. A panic becomes an error.
    pub(crate) fn on_the_pool<T: Send + 'static>(
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
