//! A world: the handle that a host holds, and what stands behind it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_registry::{Catalog, PackManifest, Plan};
use rayon::{ThreadPool, ThreadPoolBuilder};
use uuid::Uuid;

use crate::cache::ChunkCache;
use crate::commit_log::CommitLog;
use crate::directory::{self, State, WorldFile};
use crate::engine::{Batch, Engine, Level, MemEngine, Usage};
use crate::error::{Error, OpenError};
use crate::handle::{Handle, Visitor};
use crate::meta;
use crate::options::{StoreLimits, WorldOptions};
use crate::registry::Registry;
use crate::stats::{Counters, Stats};

#[cfg(feature = "rocks")]
use crate::engine::{Access, EngineError, Resources, RocksEngine, RocksOptions};

#[cfg(feature = "rocks")]
type DefaultEngine = RocksEngine;
#[cfg(not(feature = "rocks"))]
type DefaultEngine = MemEngine;

/// The most that a world's own limit on transactions can be raised to: the engine builds a batch in memory.
const MAX_BATCH_BYTES: u64 = 1 << 30;

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
pub struct World<E: Engine = DefaultEngine> {
    handle: Arc<Handle<E>>,
}

impl<E: Engine> Clone for World<E> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<E: Engine> std::fmt::Debug for World<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner().fmt(f)
    }
}

/// What all handles of a world share.
pub(crate) struct Inner<E: Engine> {
    pub(crate) engine: E,
    pub(crate) registry: Registry,
    pub(crate) cache: ChunkCache,
    pub(crate) commits: CommitLog,
    pub(crate) options: WorldOptions,
    pub(crate) limits: StoreLimits,
    pub(crate) counters: Counters,
    pub(crate) file: WorldFile,
    /// Where it lies; `None` for a world in memory.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) pool: ThreadPool,
    closed: AtomicBool,
}

impl World<MemEngine> {
    /// As [`temporary`](Self::temporary), over an engine that fails where it was told to: for tests.
    #[doc(hidden)]
    pub fn temporary_over(
        engine: MemEngine,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        let file = WorldFile { state: State::Ready, ..WorldFile::new_world() };
        Self::begin(engine, file, None, packs, options)
    }

    /// A world in memory, gone when its last handle is dropped: for tests and throw-away arenas.
    ///
    /// # Errors
    /// [`OpenError::NeedsPlan`] if the packs do not fit together.
    pub fn temporary(packs: &[PackManifest], options: &WorldOptions) -> Result<Self, Error> {
        Self::temporary_over(MemEngine::new().with_max_batch_bytes(MAX_BATCH_BYTES), packs, options)
    }
}

#[cfg(feature = "rocks")]
impl World<RocksEngine> {
    /// Creates a world in an empty or missing directory.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`], [`OpenError::NeedsPlan`] if the packs do not fit together, [`OpenError::Engine`].
    pub fn create(
        dir: impl AsRef<Path>,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        let dir = dir.as_ref();
        // Packs that do not fit are refused before anything is written.
        Registry::accept(&Catalog::new(), packs, &options.packs)?;
        empty_directory(dir)?;
        let file = WorldFile::new_world();
        file.write(dir)?;
        let engine = RocksEngine::create(&directory::engine_dir(dir), &rocks_options(options))
            .map_err(|source| OpenError::Engine { path: dir.into(), source })?;
        let ready = WorldFile { state: State::Ready, ..file };
        let world = Self::begin(engine, ready.clone(), Some(dir.into()), packs, options)?;
        world.inner().engine.sync()?;
        ready.write(dir)?;
        sync_parent(dir)?;
        Ok(world)
    }

    /// Opens a world, and brings its registry up to what the packs offer.
    ///
    /// If the packs do not fit, no byte of the directory is changed.
    ///
    /// # Errors
    /// The variants of [`OpenError`], each of which says what to do; [`Error::Registry`] if the registry is damaged.
    pub fn open(
        dir: impl AsRef<Path>,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        let dir = dir.as_ref();
        let mut file = WorldFile::read(dir)?;
        if file.state == State::Creating {
            return Err(OpenError::HalfCreated { path: dir.into() }.into());
        }
        if !packs.is_empty() {
            let reader = engine_at(dir, Access::ReadOnly, options)?;
            Registry::accept(&meta::read_catalog(&reader)?, packs, &options.packs)?;
        }
        let engine = engine_at(dir, Access::ReadWrite, options)?;
        if file.state == State::Checkpoint {
            // A copy that lives on is another world than the one it was copied from: versions must not be compared.
            file = WorldFile { incarnation: Uuid::new_v4(), state: State::Ready, ..file };
            file.write(dir)?;
        }
        Self::begin(engine, file, Some(dir.into()), packs, options)
    }

    /// Opens a world that nobody has open, for reading: every transaction is refused and no byte is changed.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(dir: impl AsRef<Path>, options: &WorldOptions) -> Result<Self, Error> {
        let dir = dir.as_ref();
        let file = WorldFile::read(dir)?;
        if file.state == State::Creating {
            return Err(OpenError::HalfCreated { path: dir.into() }.into());
        }
        let engine = engine_at(dir, Access::ReadOnly, options)?;
        Self::begin(engine, file, Some(dir.into()), &[], options)
    }

    /// What opening a world with these packs would change, without changing anything.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only). A plan that is refused is not an error here: it says so itself.
    pub fn plan(
        dir: impl AsRef<Path>,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Plan, Error> {
        let world = Self::open_read_only(dir, options)?;
        Ok(cg_registry::reconcile(&world.inner().registry.catalog(), packs, &options.packs))
    }

    /// Copies the world as it is now into a new directory, by hard links where the disk allows.
    ///
    /// The copy can be read by another process while this one plays on. Opened for writing it becomes a world of a
    /// new incarnation.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`] if the directory exists and holds files, and what the engine says.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<(), Error> {
        let dir = dir.as_ref();
        self.inner().check_open()?;
        if !self.inner().engine.caps().checkpoint {
            return Err(
                EngineError::Unsupported { what: "write a checkpoint when opened for reading only" }.into()
            );
        }
        empty_directory(dir)?;
        WorldFile { state: State::Creating, ..self.inner().file.clone() }.write(dir)?;
        self.inner().engine.checkpoint(&directory::engine_dir(dir))?;
        WorldFile { state: State::Checkpoint, ..self.inner().file.clone() }.write(dir)?;
        sync_parent(dir)?;
        Ok(())
    }
}

impl<E: Engine> World<E> {
    /// Begins to use an engine that holds a world, or that holds nothing yet.
    fn begin(
        engine: E,
        file: WorldFile,
        directory: Option<PathBuf>,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        let catalog = Registry::begin(&engine, packs, &options.packs)?;
        let limits = match meta::read_limits(&engine)? {
            Some(limits) => limits,
            None => {
                let mut batch = Batch::new();
                meta::put_limits(&mut batch, &options.limits);
                engine.commit(batch, &[], Level::Process)?;
                options.limits
            }
        };
        let pool = ThreadPoolBuilder::new()
            .num_threads(2)
            .thread_name(|index| format!("cg-store-{index}"))
            .build()
            .map_err(|error| OpenError::Threads { source: error })?;
        let inner = Inner {
            commits: CommitLog::new(engine.last_commit().get()),
            registry: Registry::new(catalog),
            cache: ChunkCache::new(options.cache_bytes),
            options: options.clone(),
            limits,
            counters: Counters::default(),
            file,
            directory,
            pool,
            closed: AtomicBool::new(false),
            engine,
        };
        Ok(Self { handle: Arc::new(Handle::new(inner)) })
    }

    pub(crate) fn inner(&self) -> &Inner<E> {
        self.handle.inner()
    }

    pub(crate) fn visitor(&self) -> Visitor<E> {
        self.handle.visitor()
    }

    /// The world's identity, for ever.
    pub fn uuid(&self) -> Uuid {
        self.inner().file.uuid
    }

    /// The world's incarnation: drawn anew when a copy lives on, so that versions of two lives are never compared.
    pub fn incarnation(&self) -> Uuid {
        self.inner().file.incarnation
    }

    /// Where the world lies; `None` for a world in memory.
    pub fn directory(&self) -> Option<&Path> {
        self.inner().directory.as_deref()
    }

    /// The limits that the world keeps.
    pub fn limits(&self) -> StoreLimits {
        self.inner().limits
    }

    /// The newest commit.
    pub fn last_commit(&self) -> u64 {
        self.inner().commits.published()
    }

    /// The engine under the world, for tests and tools that look at single rows. What is written past the world is
    /// checked by nobody.
    #[doc(hidden)]
    pub fn engine(&self) -> &E {
        &self.inner().engine
    }

    /// How much work was done since the world was opened.
    pub fn stats(&self) -> Stats {
        self.inner().counters.read()
    }

    /// How much the engine holds, by family.
    ///
    /// # Errors
    /// [`Error::Closed`], and what the disk says.
    pub fn usage(&self) -> Result<Usage, Error> {
        Ok(self.inner().engine.usage()?)
    }

    /// Waits until every commit so far survives a power cut.
    ///
    /// # Errors
    /// [`Error::Engine`] if syncing failed; the world is read-only from then on.
    pub fn flush(&self) -> Result<(), Error> {
        Ok(self.inner().engine.sync()?)
    }

    /// Saves everything and closes the world. Later calls on any handle fail with [`Error::Closed`]; closing again
    /// does nothing. The directory can be opened again when the last handle is dropped.
    ///
    /// # Errors
    /// If the last writes fail; the world is closed all the same.
    pub fn close(&self) -> Result<(), Error> {
        self.inner().close()
    }
}

impl<E: Engine> Inner<E> {
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Closes the world, if it is not closed yet.
    pub(crate) fn close(&self) -> Result<(), Error> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let folded = if self.engine.caps().read_only { Ok(()) } else { self.fold_registry() };
        self.engine.close()?;
        folded
    }
}

impl<E: Engine> std::fmt::Debug for Inner<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("uuid", &self.file.uuid).finish_non_exhaustive()
    }
}

/// Makes a directory, if it is missing, and sees that nothing is in it.
#[cfg(feature = "rocks")]
fn empty_directory(dir: &Path) -> Result<(), OpenError> {
    fs::create_dir_all(dir).map_err(|error| OpenError::io("create", dir, error))?;
    let mut entries = fs::read_dir(dir).map_err(|error| OpenError::io("list", dir, error))?;
    if entries.next().is_some() { Err(OpenError::NotEmpty { path: dir.into() }) } else { Ok(()) }
}

/// Syncs the directory around a new world, so that a power cut does not take the world's own name.
#[cfg(feature = "rocks")]
fn sync_parent(dir: &Path) -> Result<(), OpenError> {
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => directory::sync_directory(Path::new(".")),
        Some(parent) => directory::sync_directory(parent),
        None => Ok(()),
    }
}

#[cfg(feature = "rocks")]
fn engine_at(dir: &Path, access: Access, options: &WorldOptions) -> Result<RocksEngine, OpenError> {
    RocksEngine::open(&directory::engine_dir(dir), &rocks_options(options).with_access(access))
        .map_err(|source| OpenError::Engine { path: dir.into(), source })
}

#[cfg(feature = "rocks")]
fn rocks_options(options: &WorldOptions) -> RocksOptions {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    RocksOptions::new(Resources::new(options.engine_bytes as usize, threads))
        .with_max_batch_bytes(MAX_BATCH_BYTES)
}
