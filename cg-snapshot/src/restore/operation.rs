//! An operation as its submitter sees it: its task, its progress and its outcome.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cg_registry::Catalog;

use crate::capture::CaptureOptions;
use crate::copied::Copied;
use crate::region::Region;
use crate::restore::{RestoreOptions, RestoreReport};
use crate::snapshot::Snapshot;

/// A task for a queue.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Captures a region. The capture has one state, that of its beginning, if the host calls
    /// [`before_change`](crate::RestoreQueue::before_change) or changes nothing in the region meanwhile. Otherwise each
    /// section has the state in which it was read. A world needs no queue for this: `World::read_view` is one state and
    /// can be read on any thread.
    Capture {
        /// The box.
        region: Region,
        /// The options.
        options: CaptureOptions,
    },
    /// Reads the chunks of a region and leaves the rest to another thread: for a host whose chunks are in memory and
    /// whose tick is short. The consistency is that of [`Capture`](Self::Capture).
    ///
    /// A step is one chunk, as [`Editor::load`](cg_format::Editor::load) returns it, and the entities that it refers
    /// to. If the host holds an [`Arc`] of a chunk, that shares the chunk and costs well below a microsecond; if it
    /// holds another form, it makes the chunk in the step. Nothing is encoded or compared on the tick, also not at the
    /// end. The first change of a chunk that is still shared copies the chunk, see [`Copied`].
    ///
    /// The copy is a source. [`capture`](crate::capture()) makes a snapshot of it on any thread, with the options and the
    /// errors of each capture. A schema that changes while the queue reads is used in its last state for all chunks.
    ///
    /// ```
    /// # use cg_format::{BlockBox, BlockId, BlockPos};
    /// # use cg_registry::{BlockOffer, Catalog, Name, Registration};
    /// # use cg_snapshot::memory::{Live, Memory, Watch};
    /// use std::time::{Duration, Instant};
    ///
    /// use cg_snapshot::{CaptureOptions, Operation, Outcome, Region, RestoreQueue, TickBudget, capture};
    ///
    /// # struct Game;
    /// # impl Watch for Game {}
    /// # let mut catalog = Catalog::new();
    /// # catalog.register(&Registration {
    /// #     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
    /// #     dimensions: vec![Name::new("game:arena")?],
    /// #     ..Registration::default()
    /// # })?;
    /// # let arena = catalog.dimension("game:arena").expect("registered above");
    /// # let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(63, 63, 63));
    /// # let mut host = Live::new(Memory::new(&catalog), Game);
    /// # host.memory.fill(arena, area, BlockId::new(0))?;
    /// let mut queue = RestoreQueue::new();
    /// let copying = queue.handle().submit(Operation::Copy { region: Region::new(arena, area) });
    /// let clock = Instant::now();
    /// let copied = loop {
    ///     // One tick of the host.
    ///     queue.run(&mut host, &catalog, &TickBudget::default(), || clock.elapsed());
    ///     match copying.outcome() {
    ///         Some(Outcome::Copied(copied)) => break copied,
    ///         Some(other) => panic!("{other:?}"),
    ///         None => {}
    ///     }
    /// };
    /// let snapshot = std::thread::spawn(move || {
    ///     capture(&*copied, &catalog, copied.region(), &CaptureOptions::named("arena"))
    /// });
    /// assert_eq!(snapshot.join().expect("no panic")?.info().present_count, 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Copy {
        /// The box.
        region: Region,
    },
    /// Restores a snapshot. A snapshot with the ids of another registry is converted to the host's ids first, section
    /// by section within the budget. That takes ticks and is not part of the progress. To avoid it,
    /// [convert](Snapshot::arrive) the snapshot on another thread before.
    Restore {
        /// The snapshot.
        snapshot: Arc<Snapshot>,
        /// The options.
        options: RestoreOptions,
        /// Whether the host computes the light of every changed chunk again, in a second pass after all blocks. A restore that
        /// is cancelled or fails before that lights none: submit a [`Relight`](Self::Relight) of its region then.
        relight: bool,
    },
    /// Makes the host compute the light of every chunk of a region again.
    Relight {
        /// The box.
        region: Region,
    },
}

impl Operation {
    /// Its box; for a restore, the box of the capture.
    pub(super) fn own_region(&self) -> Region {
        match self {
            Self::Capture { region, .. } | Self::Copy { region } | Self::Relight { region } => *region,
            Self::Restore { snapshot, .. } => snapshot.region(),
        }
    }

    /// The box that it works on, by a catalog.
    pub(super) fn region(&self, catalog: &Catalog) -> Region {
        let own = self.own_region();
        let Self::Restore { snapshot, options, .. } = self else { return own };
        // By name, as the restore finds it: the snapshot may have another number.
        let named = snapshot.dimension_in(catalog);
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

/// The progress of an operation. Relit sections count as sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The number of sections done.
    pub done: u64,
    /// The number of sections, as far as known: a restore finds out while it runs which ones must be relit.
    pub total: u64,
}

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A region was captured.
    Captured(Arc<Snapshot>),
    /// A region was copied.
    Copied(Arc<Copied>),
    /// A snapshot was restored.
    Restored(RestoreReport),
    /// A snapshot was restored, except component data that the host's registry has no place for. It is kept beside;
    /// [`RemapReport::components_left`](crate::RemapReport::components_left) counts it.
    RestoredInPart(RestoreReport),
    /// The light of this many chunks was computed again.
    Relit(u64),
    /// It was cancelled after this many sections. A restore is not undone.
    Cancelled(u64),
    /// It failed, with the reason. A restore is not undone.
    Failed(String),
}

/// Events for the subscribers of a queue.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The first section of an operation is about to be handled.
    Started(OperationId),
    /// An operation ended.
    Ended(OperationId, Outcome),
}

/// A submitted operation. Reads its progress and cancels it from any thread, without a runtime. Dropping it cancels
/// nothing.
#[derive(Debug, Clone)]
pub struct Handle {
    id: OperationId,
    shared: Arc<Shared>,
}

/// The state that the queue shares with the handles of one operation.
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

    /// Its progress.
    pub fn progress(&self) -> Progress {
        let Shared { done, total, .. } = &*self.shared;
        Progress { done: done.load(Ordering::Relaxed), total: total.load(Ordering::Relaxed) }
    }

    /// Its outcome; `None` while it waits or runs. Blocks at most for the time of a copy.
    pub fn outcome(&self) -> Option<Outcome> {
        self.shared.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests that it ends. The queue notices it in its next tick. An operation that has ended does not change.
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
