//! The order in which locks are taken, and the locks that assert it.
//!
//! A thread that holds a lock waits only for locks that come after it in [`Rank`]. So threads cannot wait for each
//! other in a circle. With `debug_assertions`, each thread records what it holds. Taking a lock against the order then
//! panics, whether or not another thread holds the lock. In other builds a lock is a plain `parking_lot` lock.
//!
//! | what is taken | asserted | counts as held |
//! |---|---|---|
//! | a lock, with waiting | every lock held comes before it | yes |
//! | a lock, with `try_` or a deadline | nothing: this does not wait for ever | yes |
//! | a condition variable | every other lock held comes before its mutex, which is taken again | its mutex |
//! | anything in host code run by [`host`] | the same, for the locks that this code has taken | yes |
//!
//! A thread holds at most one lock of a rank. The exceptions are the associated constants of [`Ranked`].
//!
//! The order is a fixed table of classes. `tracing-mutex` instead learns an order of instances at run time. A table
//! also serves as documentation, and finds an inversion even if no test runs the other side. `tracing-mutex` has no
//! condition variable for `parking_lot`.
//!
//! Not asserted are the locks inside `cg-engine`, `quick_cache`, `rayon` and RocksDB, which call nothing of this crate
//! while they are held. Waiting without a lock is not asserted either, such as for uses of a world and for tickets.
//!
//! The module imports nothing of the crate.

mod held;
mod locks;
#[cfg(all(test, debug_assertions))]
mod tests;

use held::Held;
pub use held::host;
pub(crate) use locks::MappedRwLockReadGuard;
pub use locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The place of a lock type in the order.
pub trait Ranked {
    /// The rank at which a thread waits for the lock.
    const RANK: Rank;

    /// The rank at which a writer waits, and which a reader holds. `None` if writers give up at a deadline, so that
    /// readers never block a thread for ever.
    ///
    /// It differs from [`RANK`](Self::RANK) where no reader waits for a waiting writer: readers use `read_recursive`,
    /// or writers have a deadline. Such a lock may be read twice, and locks between its two ranks may be taken before
    /// or after it is read.
    const WRITE: Option<Rank> = Some(Self::RANK);

    /// The rank that a writer holds.
    const WRITTEN: Rank = Self::RANK;

    /// Whether a thread may hold several of them: that of an overlay, then that of the overlay below it.
    const IS_LAYERED: bool = false;
}

/// Defines the table as an enum, and as types for the types of locks.
macro_rules! order {
    ($($(#[$about:meta])+ $name:ident $({ $($exception:tt)* })?,)+) => {
        /// Every lock, in the order in which they are taken, with what it protects.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rank {
            $($(#[$about])+ $name,)+
        }

        pub mod rank {
            //! The ranks as types.
            use super::{Rank, Ranked};

            $(
                $(#[$about])+
                #[derive(Debug)]
                pub enum $name {}

                $(#[$about])+
                impl Ranked for $name {
                    const RANK: Rank = Rank::$name;
                    $($($exception)*)?
                }
            )+
        }
    };
}

order! {
    /// The right to move entities between segments, to merge overlays into several and to delete one.
    SegmentMoving,
    /// The right to change an overlay; held while host code runs in a transaction.
    OverlayWriting {
        const IS_LAYERED: bool = true;
    },
    /// Which thread has that right.
    OverlayWriter,
    /// The tick of a pool of arenas.
    OverlayTicking,
    /// The arenas of a pool.
    OverlayArenas,
    /// An arena's row: its lease and its holder.
    OverlayRow,
    /// The arenas that were found damaged.
    OverlayDamaged,
    /// An overlay's own names, and those of its base that it has seen.
    OverlayNames {
        const IS_LAYERED: bool = true;
    },
    /// Cached rows of an overlay, while they are written.
    OverlayPublishing,
    /// The number of an overlay's next commit.
    OverlayNumbering,
    /// Batches that wait for their overlay.
    OverlaySubmitted,
    /// Refusals of such batches that no ticket has reported.
    OverlayRefusals,
    /// The turns of segments in the ticks of a segmented world.
    SegmentTicking,
    /// Registrations of a segmented world.
    SegmentNaming,
    /// The right to give the batches of a segment to its world.
    SegmentAccepting,
    /// Which thread has that right.
    SegmentAcceptor,
    /// The wait for the users of a segment, to close it for good.
    SegmentClosing,
    /// Entities that cross borders; readers put or look for entities.
    SegmentBorders,
    /// The world of an open segment; its users are readers, also while host code runs.
    SegmentWorld {
        const WRITE: Option<Rank> = Some(SegmentClosing::RANK);
    },
    /// The division of memory among the open segments.
    SegmentDividing,
    /// Which segments are open.
    SegmentSlots,
    /// The pinned areas of a segmented world.
    SegmentPins,
    /// Batches that wait for their segment.
    SegmentSubmitted,
    /// Refusals of such batches that no ticket has reported.
    SegmentRefusals,
    /// The time and the players that segments were told last.
    SegmentTime,
    /// Which segments there are.
    SegmentKnown,
    /// Entities whose transfer is blocked by damage.
    SegmentStuck,
    /// Which entities transactions are about to put.
    SegmentPutting,
    /// Entities whose places in the root are to be deleted.
    SegmentDeleted,
    /// Places that keys got since a copy of the world was begun.
    SegmentPlaced,
    /// The worlds of segments in memory.
    SegmentHome,
    /// The number of threads that use a world, for which closing waits.
    WorldUses,
    /// The work of a tick.
    Tick,
    /// The world's clock, and the job that does the work of a tick.
    TickPace,
    /// The saving or deletion of a snapshot.
    SnapshotKeeping,
    /// A refresh of a world that follows another writer.
    Refreshing,
    /// The writing of the copy of the settings.
    SettingsFile,
    /// The acceptance of a submitted batch.
    Accepting,
    /// The start of a thread that accepts, writes or syncs.
    StartThread,
    /// The callers that are going to sync.
    GroupCommit,
    /// The commit lock.
    Commit,
    /// The right to take the next queued commits and to encode them.
    Encoding,
    /// The right to write the next queued commits.
    Writing,
    /// The state of replacing an engine; changed under the commit lock.
    Resumption,
    /// The engine without readers, while it is replaced under the commit lock.
    EngineVacant,
    /// The places of a commit in the cache, from before it is written until it is published. A holder that waits for
    /// the engine holds the commit lock too.
    EpochChange,
    /// A few places of the cache, while a value of them is cached.
    EpochPlace,
    /// The pinned areas.
    PinnedAreas,
    /// The limit of the cache, while it is changed.
    CacheLimit,
    /// The engine; its users are readers, also while host code runs. A writer gives up at a deadline.
    EngineGuard {
        const WRITE: Option<Rank> = None;
        const WRITTEN: Rank = EngineVacant::RANK;
    },
    /// Why there is no engine.
    EngineGone,
    /// Rolling a staged commit forward; readers take snapshots.
    ApplyLatch,
    /// Why rolling forward failed.
    ApplyStuck,
    /// Running transactions.
    Running,
    /// The chunks that the latest commits changed.
    Recent,
    /// The wait for the next commit.
    Arrivals,
    /// The queue of batches that are not accepted, and of commits that are not written.
    Queue,
    /// The batches that are not accepted.
    Submitted,
    /// The outcome of a batch that a layer gives to a world.
    DeferredOutcome,
    /// The outcome of a batch.
    Outcome,
    /// The answer of a background load.
    Answer,
    /// Which chunks have deltas.
    Deltas,
    /// The names.
    Catalog,
    /// The first illegal values that commits found.
    IllegalValues,
    /// The limits.
    Limits,
    /// The openings that made the world's commits.
    Lineage,
    /// Tiles of the opacity map that are to be folded.
    DirtyTiles,
    /// Rows that the cube index does not know yet.
    RecentPuts,
    /// Players, holds, pins and accesses.
    Observers,
    /// The trace.
    Recording,
    /// The predicted courses of players.
    PrefetchCourses,
    /// Chunks to be fetched.
    PrefetchQueue,
    /// Chunks that were fetched and not used.
    PrefetchUnused,
    /// The free space of the disk.
    DiskGuard,
    /// The resources that worlds of the process share.
    Resources,
    /// The threads of a set of resources, while they are started.
    Pool,
    /// The waiting threads that the waker looks at.
    Waker,
}
