//! What committing needs: the commit log, the queue, what was submitted, and the threads that write.

use std::fmt;
use std::io;
use std::sync::{Arc, Weak};

use crate::commit::commit_log::CommitLog;
use crate::commit::gather::Gather;
use crate::commit::hand_over::{Accepter, HandOvers};
use crate::commit::observers::CommitObserver;
use crate::commit::resume::Resumption;
use crate::commit::space::Space;
use crate::commit::write_behind::{WriteBehind, Writer};
use crate::engine::Engine;
use crate::read::chunk::StillWorld;
use crate::read::state::ReadState;
use crate::rt::durations::Stopwatch;
use crate::rt::lock_order::{Mutex, rank};
use crate::rt::visits::{Visitor, Visits};
use crate::storage::error::{Error, OpenError};
use crate::storage::shared::Shared;

/// The state of committing.
pub(crate) struct CommitState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) read: Arc<ReadState>,
    pub(crate) log: CommitLog,
    pub(crate) queue: Arc<WriteBehind>,
    pub(crate) hand_overs: Arc<HandOvers>,
    pub(crate) observer: Arc<dyn CommitObserver>,
    pub(crate) resumption: Mutex<Resumption, rank::Resumption>,
    /// Held by who keeps or deletes a snapshot, until it is written.
    pub(crate) keeping: Mutex<(), rank::SnapshotKeeping>,
    pub(crate) gather: Gather,
    pub(crate) space: Space,
    pub(crate) transactions: Stopwatch,
    /// For threads and tickets, which keep no world open.
    pub(crate) visitor: Visitor<Self>,
    /// Started by the first commit that is queued.
    writer: Mutex<Option<Writer>, rank::StartWriter>,
    /// Started by the first hand-over.
    accepter: Mutex<Option<Accepter>, rank::StartAccepter>,
}

impl CommitState {
    /// Begins behind the engine's newest commit. `queue` is what `read` asks for pending writes.
    pub(crate) fn new(
        read: Arc<ReadState>,
        queue: Arc<WriteBehind>,
        observer: Arc<dyn CommitObserver>,
        visits: &Arc<Visits>,
    ) -> Result<Arc<Self>, Error> {
        let shared = Arc::clone(&read.shared);
        let last_commit = shared.engine()?.last_commit().get();
        Ok(Arc::new_cyclic(|this: &Weak<Self>| Self {
            log: CommitLog::new(last_commit),
            queue,
            hand_overs: Arc::default(),
            observer,
            resumption: Mutex::new(Resumption::NONE),
            keeping: Mutex::default(),
            gather: Gather::default(),
            space: Space::new(shared.options.min_free_bytes),
            transactions: Stopwatch::default(),
            visitor: Visitor::new(this, visits),
            writer: Mutex::default(),
            accepter: Mutex::default(),
            read,
            shared,
        }))
    }

    /// The world as it is now. Waits until nothing is queued and for a commit under way. The engine is the world's own,
    /// borrowed for as long as the value is held.
    pub(crate) fn still<'w>(&'w self, engine: &'w dyn Engine) -> Result<StillWorld<'w>, Error> {
        self.shared.check_open()?;
        let _no_commit = self.commit_alone()?;
        self.read.still(engine)
    }

    /// Makes sure that what is queued gets written.
    pub(crate) fn start_writing(&self) -> Result<(), Error> {
        let mut writer = self.writer.lock();
        if writer.is_none() {
            let started = Writer::start(Arc::clone(&self.queue), self.visitor.clone());
            *writer = Some(started.map_err(no_thread)?);
        }
        Ok(())
    }

    /// Makes sure that what is handed over gets accepted, and written.
    pub(crate) fn start_accepting(&self) -> Result<(), Error> {
        self.start_writing()?;
        let mut accepter = self.accepter.lock();
        if accepter.is_none() {
            let started = Accepter::start(Arc::clone(&self.hand_overs), self.visitor.clone());
            *accepter = Some(started.map_err(no_thread)?);
        }
        Ok(())
    }

    /// Waits for the threads to end, once the world can no longer be visited.
    pub(crate) fn end_threads(&self) {
        let accepter = self.accepter.lock().take();
        if let Some(mut accepter) = accepter {
            accepter.end();
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
