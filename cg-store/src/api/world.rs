//! A world: the handle that a host holds.

use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use cg_format::{ChunkAt, Space};

use crate::api::rooms::{Found, Rooms};
use crate::commit::transaction::RELEASED;
use crate::engine::{Batch, CommitSeq, Engine, Level, Usage};
use crate::maintain::{opacity, tiering};
use crate::read::delta::DeltaIndex;
use crate::rt::lock_order::{Mutex, RwLock};
use crate::rt::stats::Counters;
use crate::storage::change_log::{self, KeptLog};
use crate::storage::copy_mark;
use crate::storage::directory::WorldFile;
use crate::storage::engine_cell::EngineCell;
use crate::storage::error::{Error, OpenError};
use crate::storage::history::HistoryEngine;
use crate::storage::location::Location;
use crate::storage::meta::{self, Identity, WorldRows};
use crate::storage::meta_view::MetaView;
use crate::storage::opacity_map::{self, Keep, KeptMap};
use crate::storage::options::{MAX_BATCH_BYTES, StoreLimits, WorldOptions};
use crate::storage::recovery;
use crate::storage::registry::Registry;
use crate::storage::shared::Shared;
use crate::storage::value_check::ValueGuard;

/// A handle to an open world. Cheap to clone; every clone is the same world, and all may be used from any thread.
///
/// The last handle that is dropped closes the world. Call [`close`](Self::close) to see whether that succeeded.
///
/// **In a `static`** a handle is never dropped, nor is one that another thread still holds when `main` returns. Then
/// nothing closes the world: call [`close`](Self::close) before `main` returns. What is lost otherwise is said at
/// [`Durability`](crate::Durability).
///
/// | on a tick thread | what it waits for |
/// |---|---|
/// | [`peek`](Self::peek), [`load_in_background`](Self::load_in_background) and its `poll` | nothing |
/// | [`submit`](Self::submit) | nothing; on [`Error::Busy`] give the batch again in the next tick |
/// | [`tick`](Self::tick) | it works for about as long as its budget says; over a network it waits for nothing |
/// | [`transaction`](Self::transaction) at `Balanced` or `Fast` | other commits, and the disk for what is not in memory |
///
/// All other calls may wait for the disk or for other threads: make them on another thread, such as
/// [`load`](Self::load), [`transact`](Self::transact), [`wait_for_room`](Self::wait_for_room), [`flush`](Self::flush) and
/// [`close`](Self::close). `docs/threads.md` says what each call waits for, and `cg-store/examples/server.rs` is a server
/// of 20 ticks a second.
///
/// ```
/// use cg_store::prelude::*;
/// let world = World::builder().in_memory()?;
/// let overworld = world.registry().register_dimension("game:overworld")?;
/// let [air, stone] = world.registry().register_blocks([":air", "game:stone"])?;
///
/// let at = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?);
/// let committed = world.transaction(|tx| {
///     tx.save(at, tx.new_chunk(air)?);
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
    rooms: Arc<Rooms>,
}

impl Clone for World {
    fn clone(&self) -> Self {
        Self { rooms: Arc::clone(&self.rooms) }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.rooms.shared.fmt(f)
    }
}

impl World {
    /// The reason stored with an entity that its chunk released without a new owner.
    pub const RELEASED: &str = RELEASED;

    /// Begins to use an engine that holds a world, or that holds nothing yet, with the rows that were read from it and
    /// grown by what packs offer.
    pub(crate) fn begin(
        engine: Box<dyn Engine>,
        mut rows: WorldRows,
        file: WorldFile,
        location: Location,
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        options.tiers.validate()?;
        let engine = Box::new(HistoryEngine::begin(engine, std::mem::take(&mut rows.lineage)));
        let lineage = Arc::clone(engine.lineage());
        if !rows.is_new && recovery::finish(&*engine)? {
            rows.view = MetaView::read(&*engine)?;
        }
        let record_shape = rows.shape_for(options)?;
        let is_writable = !engine.caps().read_only;
        let registry = Registry::begin(&*engine, &rows.view, rows.catalog)?;
        let mut batch = Batch::new();
        let limits = rows.limits.unwrap_or(options.limits);
        if rows.limits.is_none() {
            meta::LIMITS.put(&mut batch, &limits);
        }
        if rows.record_shape.is_none() {
            meta::RECORD_SHAPE.put(&mut batch, &record_shape);
        }
        if location.directory().is_some() && rows.world.is_none() {
            meta::WORLD.put(&mut batch, &file.uuid);
        }
        // A world in a directory has its identity in `world.cg`.
        let is_other = location.directory().is_none() && rows.identity.as_ref() != Some(&file);
        if is_other {
            meta::IDENTITY.put(&mut batch, &file);
        }
        if rows.identity.as_ref().is_some_and(|stored| stored.state != file.state) {
            batch.delete(Space::WorldMeta, copy_mark::STATE.key);
        }
        let mut whole = opacity_map::WHOLE.get(&rows.view);
        let mut log = change_log::BEGINNING.get(&rows.view);
        if options.accept_lost_commits && !matches!(log, Ok(None)) {
            change_log::disown(&mut batch);
            log = Ok(None);
        }
        if options.accept_lost_commits && !matches!(whole, Ok(None)) {
            // As `KeptMap::at_open` judges it.
            opacity_map::disown(&mut batch);
        } else if is_writable && rows.limits.is_none() && options.opacity == Keep::On {
            let generation = registry.catalog().current_generation();
            opacity_map::WHOLE.put(&mut batch, &generation);
            whole = Ok(Some(generation));
        }
        // A world of an earlier draft that is only read is read with the shape that it would get.
        if !batch.is_empty() && is_writable {
            // What is derived from the world remembers its identity.
            let level = if is_other { Level::Power } else { Level::Process };
            engine.commit(batch, &[], level)?;
        }
        let map = KeptMap::at_open(whole, &registry.catalog(), options)?;
        let patched = if map.is_whole() {
            opacity::tiles_at_open(&rows.view, engine.last_commit())
        } else {
            Some(Vec::new())
        };
        let clock = tiering::CLOCK.get(&rows.view)?.unwrap_or_default();
        let deltas = if rows.is_new { DeltaIndex::default() } else { DeltaIndex::read(&*engine)? };
        let found = Found { clock, patched, deltas, is_new: rows.is_new };
        let resources = options.shared();
        let pool = resources.pool().map_err(|error| OpenError::Threads { source: error.into() })?;
        let shared = Shared {
            registry,
            // The process keeps its own resources as long as a world has them.
            options: WorldOptions { resources: Some(resources), ..options.clone() },
            limits: RwLock::new(limits),
            values: ValueGuard::new(options.value_check),
            record_shape,
            counters: Counters::default(),
            tombstone_horizon: AtomicU64::new(rows.tombstone_horizon),
            map,
            change_log: KeptLog::at_open(log),
            file,
            location,
            pool,
            closed: AtomicBool::new(false),
            slot: EngineCell::new(engine),
            lineage: RwLock::new(lineage),
            followed: OnceLock::new(),
            refreshing: Mutex::default(),
        };
        let world = Self { rooms: Arc::new(Rooms::new(shared, found)?) };
        world.rooms().maintain.keep_map_as_asked()?;
        Ok(world)
    }

    /// The rooms, whatever was submitted: for what looks at no content.
    #[inline]
    pub(crate) fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    /// The rooms after everything that was submitted before is accepted or refused.
    ///
    /// # Errors
    /// Why the world takes no commits, if something waits for that.
    #[inline]
    pub(crate) fn applied(&self) -> Result<&Rooms, Error> {
        self.rooms.applied()
    }

    /// The same, as far as it concerns the columns of some chunks.
    ///
    /// # Errors
    /// As [`applied`](Self::applied).
    #[inline]
    pub(crate) fn applied_for(&self, at: &[ChunkAt]) -> Result<&Rooms, Error> {
        self.rooms.applied_for(at)
    }

    /// The world and its incarnation.
    pub fn identity(&self) -> Identity {
        self.rooms().shared.file.identity()
    }

    /// The directory of the world, as an absolute path: a change of the process's current directory affects no open world.
    /// `None` if it is in memory or at an address.
    pub fn directory(&self) -> Option<&Path> {
        self.rooms().shared.location.directory()
    }

    /// The limits that the world keeps.
    pub fn limits(&self) -> StoreLimits {
        *self.rooms().shared.limits.read()
    }

    /// Raises the world's limits for good. A limit that is not higher than the present one stays as it is.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if a batch over 1 GiB would be allowed, and what the engine says.
    pub fn raise_limits(&self, to: StoreLimits) -> Result<(), Error> {
        let rooms = self.applied()?;
        rooms.shared.check_open()?;
        if to.batch_bytes > MAX_BATCH_BYTES {
            let (len_bytes, limit_bytes) = (to.batch_bytes, MAX_BATCH_BYTES);
            return Err(Error::TooLarge { what: "the limit on a batch".into(), len_bytes, limit_bytes });
        }
        let mut committing = rooms.commit.commit_alone()?;
        let raised = rooms.shared.limits.read().raised(to);
        let mut batch = Batch::new();
        meta::LIMITS.put(&mut batch, &raised);
        let seq = rooms.commit.commit_past_queue(batch, [])?;
        *rooms.shared.limits.write() = raised;
        committing.publish(seq, []);
        Ok(())
    }

    /// The newest commit.
    pub fn last_commit(&self) -> CommitSeq {
        CommitSeq::new(self.rooms().commit.log.published())
    }

    /// The engine of the world, for tests and tools that read single rows. The world does not check what is written past it.
    #[doc(hidden)]
    pub fn engine(&self) -> impl Deref<Target = dyn Engine> + '_ {
        self.rooms().shared.engine().expect("tests and tools look at worlds that have one")
    }

    /// How much the engine holds, by family.
    ///
    /// # Errors
    /// [`Error::Closed`], and what the disk says.
    pub fn usage(&self) -> Result<Usage, Error> {
        Ok(self.applied()?.shared.engine()?.usage()?)
    }

    /// Waits until every commit so far, and everything that was submitted, survives a power cut.
    ///
    /// # Errors
    /// [`Error::Engine`] if writing or syncing failed; the world is read-only from then on. [`Error::DeferredWrite`] if everything
    /// that could be stored is saved, and something that was submitted was refused and not reported yet.
    pub fn flush(&self) -> Result<(), Error> {
        let rooms = self.rooms();
        rooms.commit.apply_submitted()?;
        rooms.commit.drained_engine()?.sync()?;
        rooms.commit.keep_settings_file();
        rooms.commit.queue.check_unreported()
    }

    /// Waits until the queue has room for the commit that this thread was refused last, and for half of the queue at least: after
    /// [`Error::Busy`].
    ///
    /// Waiting threads get room in the order of their calls. Threads that do not wait may commit a queue's worth of bytes before
    /// the first of them, and are refused afterwards. So small commits do not keep one waiting that takes most of the queue. The
    /// room is kept for this thread for two seconds.
    ///
    /// # Errors
    /// That of a queued write; the world is read-only from then on.
    pub fn wait_for_room(&self) -> Result<(), Error> {
        self.rooms().commit.wait_for_room()
    }

    /// Saves everything and closes the world. Later calls on any handle fail with [`Error::Closed`]; closing again does nothing.
    ///
    /// The directory stays locked until the last handle is dropped, because other threads may still read rows that they borrow from
    /// the engine. Until then opening it fails with [`EngineError::Locked`](crate::engine::EngineError::Locked), in this process too.
    /// Tickets and loads in the background keep nothing locked.
    ///
    /// # Errors
    /// If the last writes fail; the world is closed all the same. [`Error::DeferredWrite`] as [`flush`](Self::flush).
    pub fn close(&self) -> Result<(), Error> {
        self.rooms.close()
    }
}
