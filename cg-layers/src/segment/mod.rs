//! Segmented worlds: one world per region, under one root.
//!
//! A [`SegmentedWorld`] stores each cube of a given side in a world of its own, which can be deleted, compacted and
//! copied alone. A root world owns the names, so an id means the same in all of them. It also stores which segment
//! contains each entity. Segments are opened when they are needed, or [ahead](SegmentedWorld::open_ahead) of that, and
//! closed when too many are open.
//!
//! What it is *not*: a transaction over several segments. One transaction is in one segment; only entities are
//! [transferred](SegmentedWorld::transfer_entities) between segments. An overlay is merged segment by segment, each in
//! one transaction.

mod error;
mod history;
mod home;
mod layers;
mod merge;
mod open;
mod place;
#[cfg(feature = "rocks")]
mod read_base;
mod stored;
mod transaction;
mod transfer;
#[cfg(feature = "rocks")]
mod verify;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::key::Family;
use cg_format::wire::Writer;
use cg_format::{ChunkAt, ChunkSource as _, EntityId};
use cg_registry::{Catalog, PackManifest, Registration};

use cg_store::engine::ALL_KEYS;
use cg_store::layer::{Mutex, RwLock, adopt_names, rank, resources, spawn};
use cg_store::{Durability, Error, World, WorldOptions};
pub use error::{MergedInPart, SegmentError};
pub use history::AcceptedSegments;
#[cfg(feature = "rocks")]
pub use home::OnDisk;
pub use home::{InMemory, SegmentHome};
use open::OpenSegments;
pub use place::SegmentPos;
use place::{SegmentState, check_side, entity_property, side_property, whole};
use stored::read_known;
use transaction::DeletedEntities;
pub use transaction::SegmentTransaction;
use transfer::Transfer;
#[cfg(feature = "rocks")]
pub use verify::SegmentedReport;

/// The options of a segmented world.
#[derive(Debug, Clone)]
pub struct SegmentOptions {
    /// The side of a segment in chunks: a multiple of 16. Default 32. An existing world keeps its own.
    pub side_chunks: u32,
    /// At most this many segments are open at once, unless more are in use. Default 16. Each has its own write buffer
    /// and three threads; all share one [`Resources`](cg_store::Resources).
    pub max_open: usize,
    /// The options of the root and of every segment. `cache_bytes` is divided equally among the segments that are open, and
    /// again whenever one is opened or closed: a single one has all of it. The root has no chunks and needs none.
    /// The 64th for known absent cubes is divided by `max_open`.
    pub world: WorldOptions,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self { side_chunks: 32, max_open: 16, world: WorldOptions::default() }
    }
}

/// One world in segments. Cheap to clone; every clone is the same world.
///
/// ```
/// use cg_store::prelude::*;
/// use cg_layers::{SegmentOptions, SegmentedWorld};
/// let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
/// let names = world.register(&Registration {
///     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
///     dimensions: vec![Name::new("game:overworld")?],
///     ..Registration::default()
/// })?;
/// let stone = names.block_id("game:stone").expect("just registered");
/// let overworld = names.dimension("game:overworld").expect("just registered");
/// let at = ChunkAt::new(overworld, ChunkPos::new(100, 0, -100)?);
/// world.transaction(at, |tx| {
///     let chunk = Chunk::filled(stone, &tx.catalog().current_schema())?;
///     tx.save(at, chunk);
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
/// assert!(world.load(at)?.is_some());
/// assert_eq!(world.segment_of(at).to_string(), "segment 3 0 -4 of dimension 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SegmentedWorld<H: SegmentHome> {
    shared: Arc<Shared<H>>,
}

/// Its locks are ranked in the store's lock order.
struct Shared<H: SegmentHome> {
    home: H,
    root: World,
    side_chunks: u32,
    /// The options of a segment.
    options: WorldOptions,
    /// The state of each segment, as the root stores it.
    known: RwLock<BTreeMap<SegmentPos, SegmentState>, rank::SegmentKnown>,
    open: OpenSegments,
    /// Held shared by calls that put or look up entities, exclusively while entities are transferred.
    borders: RwLock<(), rank::SegmentBorders>,
    /// Held by transfers, merges and deletions of segments: none sees another half done.
    moving: Mutex<(), rank::SegmentMoving>,
    /// A transfer failed, and its record may be stored. It is finished before the next one begins.
    unfinished: AtomicBool,
    /// Transfers that wait because the row of the entity is damaged. Changed by transfers.
    stuck: Mutex<Vec<Transfer>, rank::SegmentStuck>,
    /// The segment that each entity is being put into, and how many transactions put it.
    putting: Mutex<HashMap<EntityId, (SegmentPos, usize)>, rank::SegmentPutting>,
    /// Entities that segments have deleted and whose places the root still stores.
    deleted_entities: Mutex<DeletedEntities, rank::SegmentDeleted>,
    /// Held by the one running registration.
    naming: Mutex<(), rank::SegmentNaming>,
}

impl SegmentedWorld<InMemory> {
    /// Creates a segmented world in memory.
    ///
    /// # Errors
    /// [`SegmentError::Side`], and as [`WorldBuilder::in_memory`](cg_store::WorldBuilder::in_memory).
    pub fn in_memory(packs: &[PackManifest], options: &SegmentOptions) -> Result<Self, Error> {
        check_side(options.side_chunks)?;
        let root = InMemory::root(packs, &options.world)?;
        Self::begin(InMemory::default(), root, Some(options.side_chunks), options)
    }
}

#[cfg(feature = "rocks")]
impl SegmentedWorld<OnDisk> {
    /// Creates a segmented world in an empty or missing directory.
    ///
    /// # Errors
    /// [`SegmentError::Side`], and as [`WorldBuilder::create`](cg_store::WorldBuilder::create).
    pub fn create(
        dir: impl AsRef<std::path::Path>,
        packs: &[PackManifest],
        options: &SegmentOptions,
    ) -> Result<Self, Error> {
        check_side(options.side_chunks)?;
        cg_store::layer::claim(dir.as_ref())?;
        let home = OnDisk::new(dir.as_ref());
        let root = World::builder().packs(packs).options(&options.world).create(home.root_dir())?;
        Self::begin(home, root, Some(options.side_chunks), options)
    }

    /// Opens a segmented world, and finishes the transfers and deletions that a crash interrupted. An interrupted
    /// merge continues when it is called again.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`], [`SegmentError::DamagedRoot`], [`SegmentError::UnfinishedMerge`], and as
    /// [`WorldBuilder::open`](cg_store::WorldBuilder::open). Segments without unfinished work are not read before they
    /// are needed.
    pub fn open(
        dir: impl AsRef<std::path::Path>,
        packs: &[PackManifest],
        options: &SegmentOptions,
    ) -> Result<Self, Error> {
        let home = OnDisk::new(dir.as_ref());
        if !home.root_dir().is_dir() {
            let why = "it has no directory `root`";
            return Err(SegmentError::NotSegmented { path: dir.as_ref().into(), why }.into());
        }
        let root = World::builder().packs(packs).options(&options.world).open(home.root_dir())?;
        if root.property(&side_property()?)?.is_none() {
            let why = "its root says nothing of segments";
            return Err(SegmentError::NotSegmented { path: dir.as_ref().into(), why }.into());
        }
        Self::begin(home, root, None, options)
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Begins with a root, which is new if there is a `new_side`. For tests and for the other constructors.
    #[doc(hidden)]
    pub fn begin(
        home: H,
        root: World,
        new_side: Option<u32>,
        options: &SegmentOptions,
    ) -> Result<Self, Error> {
        if let Some(side) = new_side {
            let property = side_property()?;
            root.transaction_at(Durability::Safe, |tx| {
                let mut bytes = Vec::new();
                Writer::new(&mut bytes).u32(side);
                tx.set_property(property, Some(bytes));
                Ok::<_, Error>(())
            })?;
        }
        let stored = root.property(&side_property()?)?.unwrap_or_default();
        let side_chunks = whole("side of a segment", &stored, |reader| reader.u32("side"))?;
        check_side(side_chunks)?;
        let known = read_known(&root)?;
        let open = OpenSegments::new(options.max_open, options.world.cache_bytes);
        let cache_bytes = open.first_cache_bytes();
        let shared = Shared {
            options: WorldOptions { cache_bytes, resources: resources(&root), ..options.world.clone() },
            home,
            side_chunks,
            known: RwLock::new(known),
            open,
            borders: RwLock::default(),
            moving: Mutex::default(),
            unfinished: AtomicBool::default(),
            stuck: Mutex::default(),
            putting: Mutex::default(),
            deleted_entities: Mutex::default(),
            naming: Mutex::default(),
            root,
        };
        let world = Self { shared: Arc::new(shared) };
        world.refuse_old_merge()?;
        world.finish_deletions()?;
        world.finish_transfer_at_open()?;
        Ok(world)
    }

    /// The world that owns the names.
    pub fn root(&self) -> &World {
        &self.shared.root
    }

    /// The side of a segment in chunks.
    pub fn side_chunks(&self) -> u32 {
        self.shared.side_chunks
    }

    /// The segment of a chunk, whether or not it is stored.
    pub fn segment_of(&self, at: ChunkAt) -> SegmentPos {
        SegmentPos::of(at, self.shared.side_chunks)
    }

    /// The segments that are stored, ascending.
    pub fn segments(&self) -> Vec<SegmentPos> {
        let known = self.shared.known.read();
        let there = known.iter().filter(|(_, state)| **state == SegmentState::There);
        there.map(|(segment, _)| *segment).collect()
    }

    /// How many segments are open.
    pub fn open_count(&self) -> usize {
        self.shared.open.count()
    }

    /// The names of all segments.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.root.catalog()
    }

    /// Issues ids for names, in the root first and then in every open segment. A closed segment gets them when it is
    /// opened.
    ///
    /// Unlike [`WorldRegistry::register`](cg_store::WorldRegistry::register) this waits for the disk, because the root
    /// and the segments are synced separately.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register).
    pub fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let _one_at_a_time = self.shared.naming.lock();
        let names = self.shared.root.registry().register(new)?;
        self.shared.root.flush()?;
        for (_, slot) in self.shared.open.all() {
            if let Some(world) = &*slot.world.read_recursive() {
                adopt_names(world, &names)?;
            }
        }
        Ok(names)
    }

    /// A chunk, or `None` if it is not stored. Opens its segment if there is one.
    ///
    /// # Errors
    /// As [`World::load`]; [`SegmentError`] if the segment does not match the root.
    pub fn load(&self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        Ok(self.lookup(at)?.here())
    }

    /// Many chunks, one result per position in the order asked. Those of one segment are read in one call.
    pub fn load_many(&self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        self.lookup_many(at).into_iter().map(|found| Ok(found?.here())).collect()
    }

    /// An entity, or `None` if no segment contains it. One key read in the root and one in the segment.
    ///
    /// # Errors
    /// As [`World::entity`], and as [`load`](Self::load).
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        Ok(self.at_rest(id, |world| world.entity(id))?.flatten())
    }

    /// Calls a function with the segment of an entity. The entity is not transferred meanwhile.
    fn at_rest<T>(
        &self,
        id: EntityId,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.try_to_resolve();
        let _none_crosses = self.shared.borders.read_recursive();
        self.refuse_in_transit(id)?;
        let Some(segment) = self.claimed(id)? else { return Ok(None) };
        self.with_stored(segment, show)
    }

    /// The segment that contains an entity, according to the root.
    fn claimed(&self, id: EntityId) -> Result<Option<SegmentPos>, Error> {
        let claim = self.shared.root.property(&entity_property(id)?)?;
        let read = |bytes: Vec<u8>| whole(format_args!("place of entity {id}"), &bytes, SegmentPos::read);
        claim.map(read).transpose()
    }

    /// The segment that contains an entity, if any does.
    fn home_of(&self, id: EntityId) -> Result<Option<SegmentPos>, Error> {
        let Some(segment) = self.claimed(id)? else { return Ok(None) };
        Ok(self.contains(segment, id)?.then_some(segment))
    }

    /// Whether a segment contains an entity.
    fn contains(&self, segment: SegmentPos, id: EntityId) -> Result<bool, Error> {
        Ok(self.with_stored(segment, |world| world.entity(id))?.flatten().is_some())
    }

    /// Calls a function with a segment's world, for what only worlds can do. Writes outside
    /// [`transaction`](Self::transaction) must not put entities that the root does not know.
    ///
    /// # Errors
    /// [`SegmentError::Missing`], and as [`load`](Self::load).
    pub fn with_segment<T>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with_there(segment, |world| self.inside(|| show(world)))
    }

    /// Opens the stored segments of chunks in the background.
    pub fn open_ahead(&self, at: &[ChunkAt]) {
        let mut segments: Vec<_> = at.iter().map(|at| self.segment_of(*at)).collect();
        segments.sort_unstable();
        segments.dedup();
        for segment in segments {
            let world = Arc::downgrade(&self.shared);
            spawn(&self.shared.root, move || {
                let Some(shared) = world.upgrade() else { return };
                if let Err(error) = (Self { shared }).with_stored(segment, |_| Ok(())) {
                    tracing::warn!(%error, %segment, "opening a segment ahead of need failed");
                }
            });
        }
    }

    /// Rewrites a segment's files without overwritten and deleted rows. May take minutes; reads and writes continue.
    ///
    /// # Errors
    /// [`SegmentError::Missing`], and the errors of the engine.
    pub fn compact_segment(&self, segment: SegmentPos) -> Result<(), Error> {
        self.with_segment(segment, |world| {
            world.flush()?;
            for family in Family::ALL {
                world.engine().compact(family, ALL_KEYS)?;
            }
            Ok(())
        })
    }

    /// Waits until everything that was committed survives a power cut.
    ///
    /// # Errors
    /// As [`World::flush`].
    pub fn flush(&self) -> Result<(), Error> {
        self.shared.root.flush()?;
        for (_, slot) in self.shared.open.all() {
            if let Some(world) = &*slot.world.read_recursive() {
                world.flush()?;
            }
        }
        self.forget_left();
        Ok(())
    }

    /// Closes every segment and then the root. Later calls on any handle fail with [`Error::Closed`].
    ///
    /// # Errors
    /// The first error of closing any of them. All are closed.
    pub fn close(&self) -> Result<(), Error> {
        let closed = self.shared.open.close(|world| self.shared.home.close(world));
        closed.and(self.shared.root.close())
    }
}

impl<H: SegmentHome> Clone for SegmentedWorld<H> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<H: SegmentHome> fmt::Debug for SegmentedWorld<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentedWorld")
            .field("root", &self.shared.root)
            .field("side_chunks", &self.shared.side_chunks)
            .finish_non_exhaustive()
    }
}
