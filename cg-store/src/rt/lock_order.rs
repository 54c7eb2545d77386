//! The order in which locks are taken, and the locks that assert it.
//!
//! A thread that holds a lock waits only for locks that come after it in [`Rank`], so threads cannot wait for each other in
//! a circle. Where `debug_assertions` are on, each thread remembers what it holds, and taking a lock against the order
//! panics, whether or not another thread holds it at that moment. In other builds a lock is `parking_lot`'s and nothing
//! more.
//!
//! | what is taken | asserted | counts as held |
//! |---|---|---|
//! | a lock, with waiting | every lock held comes before it | yes |
//! | a lock, with `try_` or a deadline | nothing: this does not wait for good | yes |
//! | a condition variable | every other lock held comes before its mutex, which is taken again | its mutex |
//! | anything by host code, which [`host`] runs | the same, of the locks that this code has taken | yes |
//!
//! A thread holds at most one lock of a rank. The exceptions are the associated constants of [`Ranked`].
//!
//! The order is a table of classes. `tracing-mutex` learns an order of instances while a program runs instead. A table is also
//! the documentation, and finds an inversion of which no test runs the other side. `tracing-mutex` has no condition variable
//! for `parking_lot`.
//!
//! Not asserted: the locks inside `cg-engine`, `quick_cache`, `rayon` and RocksDB, under which nothing here is called; and
//! waiting that is no lock, such as for visits and for tickets.
//!
//! The module imports nothing of the crate.

mod held;
mod locks;
#[cfg(all(test, debug_assertions))]
mod tests;

use held::Held;
pub(crate) use held::host;
pub(crate) use locks::{
    Condvar, MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// What the type of a lock says of its place in the order.
pub(crate) trait Ranked {
    /// Where a thread waits for the lock.
    const RANK: Rank;

    /// Where a writer waits, and what a reader holds. `None` if writers give up at a deadline, so that readers hold up no thread
    /// for good.
    ///
    /// It differs from [`RANK`](Self::RANK) where no reader waits for a writer that waits itself: readers use
    /// `read_recursive`, or writers have a deadline. Such a lock may be read twice, and what comes between its two ranks may
    /// be taken before or after it is read.
    const WRITE: Option<Rank> = Some(Self::RANK);

    /// What a writer holds.
    const WRITTEN: Rank = Self::RANK;

    /// Whether a thread may hold several: an overlay's, then that of the overlay below it.
    const IS_LAYERED: bool = false;
}

/// Writes the table as an enum, and as types to be named in the types of locks.
macro_rules! order {
    ($($(#[$about:meta])+ $name:ident $({ $($exception:tt)* })?,)+) => {
        /// Every lock, those that are taken first at the top, with what it protects.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Rank {
            $($(#[$about])+ $name,)+
        }

        pub(crate) mod rank {
            //! The ranks as types.
            use super::{Rank, Ranked};

            $(
                $(#[$about])+
                #[derive(Debug)]
                pub(crate) enum $name {}

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
    /// A sync client's state, while it applies a reply.
    SyncReply,
    /// The right to change an overlay; held while host code runs in a transaction.
    OverlayWriting {
        const IS_LAYERED: bool = true;
    },
    /// Which thread has that right.
    OverlayWriter,
    /// The right to move entities between segments, to merge overlays into several and to delete one. A merge has the overlay
    /// forget what was merged.
    SegmentMoving,
    /// The arenas of a pool.
    OverlayArenas,
    /// An arena's row: its lease and its holder.
    OverlayRow,
    /// The arenas that were met damaged.
    OverlayDamaged,
    /// An overlay's own names, and those of its base that it has seen.
    OverlayNames {
        const IS_LAYERED: bool = true;
    },
    /// What an overlay remembers of its base.
    OverlayHead,
    /// What is remembered of rows, while they are written.
    OverlayPublishing,
    /// The number of an overlay's next commit.
    OverlayNumbering,
    /// Registrations of a segmented world.
    SegmentNaming,
    /// The wait for the users of a segment, to close it for good.
    SegmentClosing,
    /// Crossings of borders; readers put or look for entities.
    SegmentBorders,
    /// The world of an open segment; its users are readers, also while host code runs.
    SegmentWorld {
        const WRITE: Option<Rank> = Some(SegmentClosing::RANK);
    },
    /// Which segments are open.
    SegmentSlots,
    /// Which segments there are.
    SegmentKnown,
    /// Entities that damage keeps from crossing.
    SegmentStuck,
    /// Which entities transactions are about to put.
    SegmentPutting,
    /// Entities whose places in the root are to be forgotten.
    SegmentDeleted,
    /// The worlds of segments in memory.
    SegmentHome,
    /// How many threads visit a world, which closing waits for.
    WorldUses,
    /// A tick.
    Tick,
    /// The keeping or deleting of a snapshot.
    SnapshotKeeping,
    /// The accepting of a batch that was submitted.
    Accepting,
    /// The thread that writes, while it is started.
    StartWriter,
    /// The thread that accepts, while it is started.
    StartCommitThread,
    /// The callers on the way to a sync.
    GroupCommit,
    /// The commit lock.
    Commit,
    /// The right to write the next queued commit.
    Writing,
    /// What is known of an engine that is being replaced; changed under the commit lock.
    Resumption,
    /// The engine without readers, while it is replaced under the commit lock.
    EngineVacant,
    /// The places of a commit in the cache, from before it is written until it is shown. A holder that waits for the
    /// engine holds the commit lock too.
    EpochChange,
    /// A few places of the cache, while something is remembered of them.
    EpochPlace,
    /// The areas that are kept in memory.
    PinnedAreas,
    /// The engine; its users are readers, also while host code runs. A writer gives up at a deadline.
    EngineGuard {
        const WRITE: Option<Rank> = None;
        const WRITTEN: Rank = EngineVacant::RANK;
    },
    /// Why there is no engine.
    EngineGone,
    /// Writing a commit that is larger than a batch; readers take snapshots.
    ApplyLatch,
    /// Why such a commit is stuck.
    ApplyStuck,
    /// Running transactions.
    Running,
    /// The chunks that the latest commits changed.
    Recent,
    /// The queue of commits that are not written.
    Queue,
    /// The queue of batches that are not accepted.
    SubmitQueue,
    /// What became of one of them.
    Outcome,
    /// Which chunks have deltas.
    Deltas,
    /// The names.
    Catalog,
    /// The limits.
    Limits,
    /// Tiles of the opacity map that are to be folded.
    DirtyTiles,
    /// Rows that a tick has not heard of.
    RecentPuts,
    /// Players, holds, pins and accesses.
    Observers,
    /// The trace.
    Recording,
    /// Where players go.
    PrefetchCourses,
    /// What is to be fetched.
    PrefetchQueue,
    /// What was fetched and not used.
    PrefetchUnused,
    /// How much room the disk has.
    DiskGuard,
    /// What worlds of the process share.
    Resources,
    /// The threads of a set of resources, while they are started.
    Pool,
}
