//! A world: the handle that a host holds, and what stands behind it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cg_registry::PackManifest;
use cg_tiering::Observers;
use uuid::Uuid;

use crate::api::handle::Handle;
use crate::commit::commit_log::CommitLog;
use crate::commit::gather::Gather;
use crate::commit::hand_over::HandOvers;
use crate::commit::resume::Resumption;
use crate::commit::space::Space;
use crate::commit::write_behind::WriteBehind;
use crate::engine::{Batch, Engine, EngineError, Level, MemEngine, Usage};
use crate::kinds::opacity::Unfolded;
use crate::kinds::record::RecordShape;
use crate::kinds::registry::Registry;
use crate::maintain::prefetch::Prefetch;
use crate::maintain::tick::Maintenance;
use crate::maintain::tiering::{self, Tiering};
use crate::read::cache::ChunkCache;
use crate::read::delta::DeltaIndex;
use crate::rt::durations::Stopwatch;
use crate::rt::lock_order::{Mutex, RwLock, rank};
use crate::rt::pool::Pool;
use crate::rt::stats::{Counters, Stats};
use crate::rt::visits::Visitor;
use crate::storage::directory::{State, WorldFile};
use crate::storage::error::{Error, OpenError};
use crate::storage::lease::{EngineSlot, Lease};
use crate::storage::meta::{self, WorldRows};
use crate::storage::options::{MAX_BATCH_BYTES, StoreLimits, WorldOptions};
use crate::storage::unfinished;

/// A handle to an open world. Cheap to clone; every clone is the same world, and all may be used from any thread.
///
/// The last handle that is dropped closes the world. Call [`close`](Self::close) to see whether that succeeded.
///
/// ```
/// use cg_store::prelude::*;
/// let world = World::temporary(&[], &WorldOptions::default())?;
/// let overworld = world.register_dimension("game:overworld")?;
/// let [air, stone] = world.register_blocks([":air", "game:stone"])?;
///
/// let at = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?);
/// let committed = world.transaction(|tx| {
///     tx.save(at, Chunk::filled(air, &tx.catalog().current_schema())?);
///     tx.set_block(overworld, BlockPos::new(3, 70, 5), stone)
/// })?;
/// assert_eq!(committed.value, air);
///
/// let chunk = world.load(at)?.expect("was just committed");
/// assert_eq!(chunk.block(BlockPos::new(3, 70, 5).local()), stone);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A world in memory and one on disk have this one type, with and without the feature `rocks`.
pub struct World {
    handle: Arc<Handle>,
}

impl Clone for World {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.unsettled().fmt(f)
    }
}

/// What all handles of a world share.
pub(crate) struct Inner {
    pub(crate) engine: EngineSlot,
    pub(crate) resumption: Mutex<Resumption, rank::Resumption>,
    pub(crate) registry: Registry,
    pub(crate) cache: ChunkCache,
    pub(crate) commits: CommitLog,
    pub(crate) deltas: DeltaIndex,
    pub(crate) queue: Arc<WriteBehind>,
    pub(crate) hand_overs: Arc<HandOvers>,
    /// Held by who keeps or deletes a snapshot, until it is written.
    pub(crate) keeping: Mutex<(), rank::SnapshotKeeping>,
    pub(crate) gather: Gather,
    pub(crate) space: Space,
    pub(crate) transactions: Stopwatch,
    pub(crate) ticks: Stopwatch,
    pub(crate) tick_excess: Stopwatch,
    pub(crate) options: WorldOptions,
    pub(crate) limits: RwLock<StoreLimits, rank::Limits>,
    pub(crate) record_shape: RecordShape,
    pub(crate) counters: Counters,
    pub(crate) maintenance: Maintenance,
    pub(crate) tiering: Tiering,
    /// Absent if nothing is prefetched.
    pub(crate) prefetch: Option<Prefetch>,
    pub(crate) unfolded: Mutex<Unfolded, rank::Unfolded>,
    /// The first commit whose deletions are kept.
    pub(crate) forgotten_before: AtomicU64,
    pub(crate) file: WorldFile,
    /// Where it lies; `None` for a world in memory.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) pool: Arc<Pool>,
    closed: AtomicBool,
}

impl World {
    /// A world in memory, gone when its last handle is dropped: for tests and throw-away arenas.
    ///
    /// # Errors
    /// [`OpenError::NeedsPlan`] if the packs do not fit together.
    pub fn temporary(packs: &[PackManifest], options: &WorldOptions) -> Result<Self, Error> {
        Self::temporary_over(MemEngine::new().with_max_batch_bytes(MAX_BATCH_BYTES), packs, options)
    }
}

impl World {
    /// A world over an engine of any kind, with an identity and a change of the stored names: for tests.
    #[doc(hidden)]
    pub fn over(
        engine: impl Engine,
        uuid: Uuid,
        change: impl FnOnce(&mut cg_registry::Catalog) -> Result<(), Error>,
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        let mut rows = WorldRows::read(&engine)?;
        change(&mut rows.catalog)?;
        let file = WorldFile { uuid, incarnation: uuid, state: State::Ready, ..WorldFile::new_world() };
        Self::begin(Box::new(engine), rows, file, None, options)
    }

    /// A world over an engine of one's own, which fails where it was told to: for tests.
    #[doc(hidden)]
    pub fn temporary_over(
        engine: impl Engine,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        let file = WorldFile { state: State::Ready, ..WorldFile::signed(options.signature.clone())? };
        let mut rows = WorldRows::read(&engine)?;
        Registry::grow(&mut rows.catalog, packs, &options.packs)?;
        Self::begin(Box::new(engine), rows, file, None, options)
    }

    /// Begins to use an engine that holds a world, or that holds nothing yet, with the rows that were read from it and
    /// grown by what packs offer.
    pub(crate) fn begin(
        engine: Box<dyn Engine>,
        rows: WorldRows,
        file: WorldFile,
        directory: Option<PathBuf>,
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        options.tiers.validate()?;
        unfinished::finish(&*engine)?;
        let record_shape = rows.shape_for(options)?;
        let registry = Registry::begin(&*engine, rows.catalog)?;
        let mut batch = Batch::new();
        let limits = rows.limits.unwrap_or(options.limits);
        if rows.limits.is_none() {
            meta::put_limits(&mut batch, &limits);
        }
        if rows.record_shape.is_none() {
            meta::put_record_shape(&mut batch, record_shape);
        }
        // A world of an earlier draft that is only read is read with the shape that it would get.
        if !batch.is_empty() && !engine.caps().read_only {
            engine.commit(batch, &[], Level::Process)?;
        }
        let resources = options.shared();
        let pool = resources.pool().map_err(|error| OpenError::Threads { source: error.into() })?;
        let clock = tiering::read_clock(&*engine)?;
        let caps = engine.caps();
        let inner = Inner {
            commits: CommitLog::new(engine.last_commit().get()),
            deltas: DeltaIndex::read(&*engine)?,
            queue: Arc::new(WriteBehind::new(options.queue_bytes)),
            hand_overs: Arc::default(),
            keeping: Mutex::default(),
            gather: Gather::default(),
            space: Space::new(options.min_free_bytes),
            transactions: Stopwatch::default(),
            ticks: Stopwatch::default(),
            tick_excess: Stopwatch::default(),
            registry,
            cache: ChunkCache::new(options.cache_bytes),
            // The process keeps its own resources as long as a world has them.
            options: WorldOptions { resources: Some(resources), ..options.clone() },
            limits: RwLock::new(limits),
            record_shape,
            counters: Counters::default(),
            maintenance: Maintenance::at(clock),
            prefetch: options.prefetch.as_ref().map(Prefetch::new),
            tiering: Tiering::new(Observers::new(options.tiers, clock), clock),
            unfolded: Mutex::new(Unfolded::new()),
            forgotten_before: AtomicU64::new(rows.forgotten_before),
            file,
            directory,
            pool,
            closed: AtomicBool::new(false),
            resumption: Mutex::new(Resumption::NONE),
            engine: EngineSlot::new(engine),
        };
        inner.know_if_empty();
        let handle = Handle::new(inner, caps).map_err(|error| OpenError::Threads { source: error.into() })?;
        Ok(Self { handle: Arc::new(handle) })
    }

    /// The world, whatever was handed over to it: for who looks at no content, or settles what it needs.
    #[inline]
    pub(crate) fn unsettled(&self) -> &Inner {
        self.handle.inner()
    }

    /// Makes sure that what is handed over gets accepted, and written.
    pub(crate) fn start_accepting(&self) -> Result<(), Error> {
        self.start_writing()?;
        let started = self.handle.start_accepting();
        Ok(started.map_err(|error| OpenError::Threads { source: error.into() })?)
    }

    /// Makes sure that what is queued gets written.
    pub(crate) fn start_writing(&self) -> Result<(), Error> {
        let started = self.handle.start_writing();
        Ok(started.map_err(|error| OpenError::Threads { source: error.into() })?)
    }

    pub(crate) fn visitor(&self) -> Visitor<Inner> {
        self.handle.visitor()
    }

    /// The world's identity, for ever.
    pub fn uuid(&self) -> Uuid {
        self.unsettled().file.uuid
    }

    /// The world's incarnation: drawn anew when a copy lives on, so that versions of two lives are never compared.
    pub fn incarnation(&self) -> Uuid {
        self.unsettled().file.incarnation
    }

    /// What the application that made the world calls its layout; see
    /// [`WorldOptions::signature`](crate::WorldOptions::signature).
    pub fn signature(&self) -> Option<&str> {
        self.unsettled().file.signature.as_deref()
    }

    /// Where the world lies; `None` for a world in memory.
    pub fn directory(&self) -> Option<&Path> {
        self.unsettled().directory.as_deref()
    }

    /// The limits that the world keeps.
    pub fn limits(&self) -> StoreLimits {
        *self.unsettled().limits.read()
    }

    /// Raises the world's limits for good. A limit that is not higher than the present one stays as it is.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if a batch over 1 GiB would be allowed, and what the engine says.
    pub fn raise_limits(&self, to: StoreLimits) -> Result<(), Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        if to.batch_bytes > MAX_BATCH_BYTES {
            let (len_bytes, limit_bytes) = (to.batch_bytes, MAX_BATCH_BYTES);
            return Err(Error::TooLarge { what: "the limit on a batch".into(), len_bytes, limit_bytes });
        }
        let mut committing = inner.commit_alone()?;
        let raised = inner.limits.read().raised(to);
        let mut batch = Batch::new();
        meta::put_limits(&mut batch, &raised);
        let seq = inner.commit_past_queue(batch, [])?;
        *inner.limits.write() = raised;
        committing.publish(seq, []);
        Ok(())
    }

    /// The newest commit.
    pub fn last_commit(&self) -> u64 {
        self.unsettled().commits.published()
    }

    /// The engine under the world, for tests and tools that look at single rows. What is written past the world is
    /// checked by nobody.
    #[doc(hidden)]
    pub fn engine(&self) -> impl Deref<Target = dyn Engine> + '_ {
        self.unsettled().engine().expect("tests and tools look at worlds that have one")
    }

    /// How much work was done since the world was opened.
    pub fn stats(&self) -> Stats {
        let inner = self.unsettled();
        let mut stats = inner.counters.read();
        stats.cache_hits += inner.cache.hits();
        stats
    }

    /// How much the engine holds, by family.
    ///
    /// # Errors
    /// [`Error::Closed`], and what the disk says.
    pub fn usage(&self) -> Result<Usage, Error> {
        Ok(self.settled()?.engine()?.usage()?)
    }

    /// Waits until every commit so far, and everything that was handed over, survives a power cut.
    ///
    /// # Errors
    /// [`Error::Engine`] if writing or syncing failed; the world is read-only from then on. [`Error::HandedOver`] if all that
    /// could be stored is saved, and something that was handed over could not, of which nobody was told.
    pub fn flush(&self) -> Result<(), Error> {
        let inner = self.unsettled();
        inner.settle_hand_overs()?;
        inner.settled_engine()?.sync()?;
        inner.check_hand_overs()
    }

    /// Waits until there is room in the queue for the commit that this thread was refused last, and for half of the queue
    /// at least: what to do after [`Error::Busy`].
    ///
    /// Threads that wait get room in the order in which they came; those that do not wait may commit a queue's worth of
    /// bytes before the first of them, and are refused afterwards. So a commit that takes most of the queue is not kept
    /// waiting by small ones. Its room is kept for this thread for two seconds.
    ///
    /// # Errors
    /// What a queued write failed with; the world is read-only from then on.
    pub fn wait_for_room(&self) -> Result<(), Error> {
        let inner = self.unsettled();
        inner.check_open()?;
        inner.settle_hand_overs()?;
        inner.queue.wait_for_room()
    }

    /// Saves everything and closes the world. Later calls on any handle fail with [`Error::Closed`]; closing again
    /// does nothing.
    ///
    /// The directory stays locked until the last handle is dropped, as other threads may still be reading rows that they
    /// borrow from the engine: until then opening it is refused with
    /// [`EngineError::Locked`](crate::engine::EngineError::Locked), in this process too. Tickets and requests on their way
    /// keep nothing locked.
    ///
    /// # Errors
    /// If the last writes fail; the world is closed all the same. [`Error::HandedOver`] as [`flush`](Self::flush).
    pub fn close(&self) -> Result<(), Error> {
        self.unsettled().close()
    }
}

impl Inner {
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// The longest batch. What is longer is put by in parts, and carried out part by part.
    pub(crate) fn batch_limit(&self) -> Result<u64, EngineError> {
        // Before the limits are locked: replacing the engine takes that lock.
        let max_batch_bytes = self.engine()?.caps().max_batch_bytes;
        Ok(self.limits.read().batch_bytes.min(max_batch_bytes))
    }

    /// The engine, for as long as the value is held. Waits while it is being replaced.
    #[inline]
    pub(crate) fn engine(&self) -> Result<Lease<'_>, EngineError> {
        self.engine.lease()
    }

    /// Closes the world, if it is not closed yet.
    pub(crate) fn close(&self) -> Result<(), Error> {
        self.hand_overs.end();
        let settled = self.settle_hand_overs();
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        if settled.is_err() {
            self.give_hand_overs_up();
        }
        // What is being committed is committed; what comes later finds the engine closed.
        let committing = self.commits.commit();
        let drained = self.drain();
        let engine = self.engine()?;
        let folded = if engine.caps().read_only || drained.is_err() {
            Ok(())
        } else {
            self.fold_registry(&committing).and_then(|()| self.keep_all_heat())
        };
        engine.close()?;
        settled.and(drained).and(folded).and_then(|()| self.check_hand_overs())
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("uuid", &self.file.uuid).finish_non_exhaustive()
    }
}
