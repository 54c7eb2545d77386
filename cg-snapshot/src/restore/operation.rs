//! An operation as its submitter sees it: what is to be done, how far it is, how it ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cg_registry::Catalog;

use crate::capture::CaptureOptions;
use crate::region::Region;
use crate::restore::{RestoreOptions, RestoreReport};
use crate::snapshot::Snapshot;

/// What a queue is asked to do.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Capture a region. It is of one state, that at which it began, if the host calls
    /// [`before_change`](crate::RestoreQueue::before_change) or changes nothing in it meanwhile; else each section is of the
    /// state in which it was met. A world needs no queue for this: `World::read_view` is one state, read on any thread.
    Capture {
        /// The box.
        region: Region,
        /// How.
        options: CaptureOptions,
    },
    /// Put a snapshot back. One with the ids of another registry is brought to the host's first, section by section within
    /// the budget, which takes ticks and is no progress: let it [arrive](Snapshot::arrive) before, on another thread, if
    /// there is one.
    Restore {
        /// The snapshot.
        snapshot: Arc<Snapshot>,
        /// How.
        options: RestoreOptions,
        /// Whether the host lights every changed chunk again, in a second pass after all blocks.
        relight: bool,
    },
    /// Have the host light every chunk of a region again.
    Relight {
        /// The box.
        region: Region,
    },
}

impl Operation {
    /// Its box, of a restore where the snapshot was taken.
    pub(super) fn own_region(&self) -> Region {
        match self {
            Self::Capture { region, .. } | Self::Relight { region } => *region,
            Self::Restore { snapshot, .. } => snapshot.region(),
        }
    }

    /// The box in which it works where a catalog holds.
    pub(super) fn region(&self, catalog: &Catalog) -> Region {
        let own = self.own_region();
        let Self::Restore { snapshot, options, .. } = self else { return own };
        // By name, as the restore will find it: the snapshot may say another number.
        let named = catalog.dimension(snapshot.info().dimension.as_str());
        let dimension = options.dimension.or(named).unwrap_or(own.dimension());
        own.moved(dimension, options.by_chunks).unwrap_or(own)
    }
}

/// The number of an operation: 1, 2, 3… in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub(crate) u64);

impl OperationId {
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// How far an operation is. Sections that are lit again count as sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Sections that are done.
    pub done: u64,
    /// Sections that it has, as far as that is known: a restore learns while it goes which ones are to be lit again.
    pub total: u64,
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A region was captured.
    Captured(Arc<Snapshot>),
    /// A snapshot was put back.
    Restored(RestoreReport),
    /// This many chunks were lit again.
    Relit(u64),
    /// It was cancelled. What a restore had put back stays: this many sections.
    Cancelled(u64),
    /// It failed, and why. What a restore had put back stays.
    Failed(String),
}

/// What subscribers of a queue hear.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The first section of an operation is about to be handled.
    Started(OperationId),
    /// An operation has ended.
    Ended(OperationId, Outcome),
}

/// A submitted operation: asks and cancels from any thread, without a runtime. Dropping it cancels nothing.
#[derive(Debug, Clone)]
pub struct Handle {
    id: OperationId,
    shared: Arc<Shared>,
}

/// What the queue and the handles of one operation share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
    outcome: Mutex<Option<Outcome>>,
}

impl Handle {
    pub(crate) const fn new(id: OperationId, shared: Arc<Shared>) -> Self {
        Self { id, shared }
    }

    /// Its number.
    pub const fn id(&self) -> OperationId {
        self.id
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let Shared { done, total, .. } = &*self.shared;
        Progress { done: done.load(Ordering::Relaxed), total: total.load(Ordering::Relaxed) }
    }

    /// How it ended; `None` while it waits or runs. Never blocks for longer than a copy.
    pub fn outcome(&self) -> Option<Outcome> {
        self.shared.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks that it ends. The queue sees it in its next tick; an operation that has ended stays as it is.
    pub fn cancel(&self) {
        self.shared.is_cancelled.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn expect(&self, sections: u64) {
        self.total.fetch_add(sections, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }
}
