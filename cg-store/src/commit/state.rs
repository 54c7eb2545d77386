//! The state of committing: the commit log, the queue, and the threads.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};

use crate::commit::commit_log::CommitLog;
use crate::commit::disk_guard::DiskGuard;
use crate::commit::persist::GroupCommit;
use crate::commit::queue::CommitQueue;
use crate::commit::resume::Resumption;
use crate::commit::settings_file::SettingsFile;
use crate::commit::submit::ReadAhead;
use crate::commit::submit::ticket::TicketIssuer;
use crate::commit::threads::CommitThreads;
use crate::commit::write::CommitObserver;
use crate::read::chunk::WorldView;
use crate::read::state::ReadState;
use crate::rt::lock_order::{Mutex, rank};
use crate::rt::stats::Stopwatch;
use crate::rt::weak_world::{WeakWorld, WorldUses};
use crate::storage::engine_cell::EngineGuard;
use crate::storage::error::Error;
use crate::storage::shared::Shared;

/// The state of committing.
pub(crate) struct CommitState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) read: Arc<ReadState>,
    pub(crate) log: CommitLog,
    pub(crate) queue: Arc<CommitQueue>,
    pub(crate) observer: Arc<dyn CommitObserver>,
    pub(crate) resumption: Mutex<Resumption, rank::Resumption>,
    /// The newest commit that was reported as written, once another writer has the world; until then `u64::MAX`.
    pub(super) written_when_fenced: AtomicU64,
    /// Held while a snapshot is saved or deleted, until it is written.
    pub(crate) keeping: Mutex<(), rank::SnapshotKeeping>,
    pub(crate) group_commit: GroupCommit,
    pub(crate) disk_guard: DiskGuard,
    pub(crate) settings_file: SettingsFile,
    pub(crate) transactions: Stopwatch,
    /// For threads and tickets, which do not keep the world open.
    pub(crate) weak_world: WeakWorld<Self>,
    pub(super) ticket_issuer: Arc<TicketIssuer>,
    pub(super) read_ahead: ReadAhead,
    /// Whether the accepting and the writing thread were started.
    pub(super) accepts: AtomicBool,
    /// Started when there is work for them.
    pub(super) threads: Mutex<CommitThreads, rank::StartThread>,
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
            ticket_issuer: Arc::new(TicketIssuer::new(WeakWorld::new(this, uses), &queue)),
            read_ahead: ReadAhead::default(),
            accepts: AtomicBool::new(false),
            queue,
            observer,
            resumption: Mutex::new(Resumption::NONE),
            written_when_fenced: AtomicU64::new(u64::MAX),
            keeping: Mutex::default(),
            group_commit: GroupCommit::default(),
            disk_guard: DiskGuard::new(shared.options.min_free_bytes),
            settings_file: SettingsFile::new(),
            transactions: Stopwatch::default(),
            weak_world: WeakWorld::new(this, uses),
            threads: Mutex::default(),
            read,
            shared,
        }))
    }

    /// Returns the world as it is now. Waits until the queue is empty and no commit is in progress. The view borrows the
    /// engine from `place`, which keeps it.
    pub(crate) fn read_view<'v, 'w: 'v>(
        &'w self,
        place: &'v mut Option<EngineGuard<'w>>,
    ) -> Result<WorldView<'v>, Error> {
        self.shared.check_open()?;
        let _no_commit = self.hold_commits()?;
        // Borrowed here, so that memory and the engine agree.
        let engine = place.insert(self.shared.engine()?);
        let commit = engine.last_commit();
        Ok(self.read.read_view(engine.snapshot()?, commit))
    }
}

impl fmt::Debug for CommitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
