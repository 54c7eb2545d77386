//! The state of committing: the commit log, the queue, submitted batches, and the threads that write.

use std::fmt;
use std::io;
use std::sync::{Arc, Weak};

use crate::commit::commit_log::CommitLog;
use crate::commit::disk_guard::DiskGuard;
use crate::commit::group_commit::GroupCommit;
use crate::commit::observers::CommitObserver;
use crate::commit::queue::{CommitQueue, Writer};
use crate::commit::resume::Resumption;
use crate::commit::submit::{CommitThread, SubmitQueue};
use crate::read::chunk::WorldView;
use crate::read::state::ReadState;
use crate::rt::durations::Stopwatch;
use crate::rt::lock_order::{Mutex, rank};
use crate::rt::weak_world::{WeakWorld, WorldUses};
use crate::storage::engine_cell::EngineGuard;
use crate::storage::error::{Error, OpenError};
use crate::storage::shared::Shared;

/// The state of committing.
pub(crate) struct CommitState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) read: Arc<ReadState>,
    pub(crate) log: CommitLog,
    pub(crate) queue: Arc<CommitQueue>,
    pub(crate) submitted: Arc<SubmitQueue>,
    pub(crate) observer: Arc<dyn CommitObserver>,
    pub(crate) resumption: Mutex<Resumption, rank::Resumption>,
    /// Held while a snapshot is saved or deleted, until it is written.
    pub(crate) keeping: Mutex<(), rank::SnapshotKeeping>,
    pub(crate) group_commit: GroupCommit,
    pub(crate) disk_guard: DiskGuard,
    pub(crate) transactions: Stopwatch,
    /// For threads and tickets, which do not keep the world open.
    pub(crate) weak_world: WeakWorld<Self>,
    /// Started by the first commit that is queued.
    writer: Mutex<Option<Writer>, rank::StartWriter>,
    /// Started by the first submission.
    commit_thread: Mutex<Option<CommitThread>, rank::StartCommitThread>,
}

impl CommitState {
    /// Creates a state that begins after the engine's newest commit. `queue` is the one that `read` asks for pending
    /// writes.
    pub(crate) fn new(
        read: Arc<ReadState>,
        queue: Arc<CommitQueue>,
        observer: Arc<dyn CommitObserver>,
        uses: &Arc<WorldUses>,
    ) -> Result<Arc<Self>, Error> {
        let shared = Arc::clone(&read.shared);
        let last_commit = shared.engine()?.last_commit().get();
        Ok(Arc::new_cyclic(|this: &Weak<Self>| Self {
            log: CommitLog::new(last_commit),
            queue,
            submitted: Arc::default(),
            observer,
            resumption: Mutex::new(Resumption::NONE),
            keeping: Mutex::default(),
            group_commit: GroupCommit::default(),
            disk_guard: DiskGuard::new(shared.options.min_free_bytes),
            transactions: Stopwatch::default(),
            weak_world: WeakWorld::new(this, uses),
            writer: Mutex::default(),
            commit_thread: Mutex::default(),
            read,
            shared,
        }))
    }

    /// Returns the world as it is now. Waits until the queue is empty and no commit is in progress. `engine` is
    /// borrowed from this world for as long as the view is held.
    pub(crate) fn read_view<'w>(&'w self, engine: &'w EngineGuard<'_>) -> Result<WorldView<'w>, Error> {
        self.shared.check_open()?;
        let _no_commit = self.hold_commits()?;
        let commit = engine.last_commit();
        Ok(self.read.read_view(engine.snapshot()?, commit))
    }

    /// Starts the thread that writes queued commits, if it does not run.
    pub(crate) fn start_writing(&self) -> Result<(), Error> {
        let mut writer = self.writer.lock();
        if writer.is_none() {
            let started = Writer::start(Arc::clone(&self.queue), self.weak_world.clone());
            *writer = Some(started.map_err(no_thread)?);
        }
        Ok(())
    }

    /// Starts the threads that accept submitted batches and write commits, if they do not run.
    pub(crate) fn start_commit_thread(&self) -> Result<(), Error> {
        self.start_writing()?;
        let mut commit_thread = self.commit_thread.lock();
        if commit_thread.is_none() {
            let started = CommitThread::start(Arc::clone(&self.submitted), self.weak_world.clone());
            *commit_thread = Some(started.map_err(no_thread)?);
        }
        Ok(())
    }

    /// Waits for the threads to end. Called when the world can no longer be entered.
    pub(crate) fn end_threads(&self) {
        let commit_thread = self.commit_thread.lock().take();
        if let Some(mut commit_thread) = commit_thread {
            commit_thread.end();
        }
        let writer = self.writer.lock().take();
        if let Some(mut writer) = writer {
            writer.end();
        }
    }
}

fn no_thread(error: io::Error) -> OpenError {
    OpenError::Threads { source: error.into() }
}

impl fmt::Debug for CommitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
