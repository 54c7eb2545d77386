//! Overlays: writable layers over a base that is only read.
//!
//! An [`Overlay`] reads through to its [`Base`]: a world, a segmented world or another overlay. It stores its own
//! writes and deletions. [`reset`](Overlay::reset) discards them with one put. [`merge_into`](Overlay::merge_into)
//! writes them to the base instead. [`Arenas`] store any number of overlays in one engine.
//!
//! What it is *not*: a copy of the base. What was not written in an overlay is read from the base as it is now, so
//! later changes of the base are visible. [`merge_into`](Overlay::merge_into) detects which of them conflict with the
//! overlay's writes.

mod arena;
mod arenas;
mod cells;
mod diff;
#[cfg(feature = "rocks")]
mod disk;
mod edits;
mod error;
mod kind;
mod merge;
mod names;
mod rebase;
mod rows;
mod store;
mod transaction;
mod values;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, ChunkSource, EntityId, EntitySource, Lookup, RecordId, SchemaView};
use cg_registry::{Catalog, Name, Registration, UpgradeFunctions};
use uuid::Uuid;

use arena::Arena;
pub use arenas::{ArenaInfo, Arenas};
use cg_store::engine::Level;
use cg_store::layer::kind::{Chunks, Entities, Objects, Properties, Records};
use cg_store::layer::{Base, Found, Identity, origin_of, without_deletion};
use cg_store::objects::{ObjectKey, ObjectPage, StoredObject};
use cg_store::records::{RecordQuery, RecordShape};
use cg_store::{Error, Property, WorldOptions};
pub use diff::{Difference, EntityDifference, OverlayDiff};
#[cfg(feature = "rocks")]
pub(crate) use disk::is_pool;
pub use error::OverlayError;
use kind::OverlayKind;
pub(crate) use merge::leaving;
pub use merge::{MergeLock, MergeTarget, Merged, OverlayMerge, OverlayMerged};
pub use rebase::{OverlayChoice, OverlayRebased};
use rows::Row;
use store::Store;
pub use transaction::OverlayTransaction;

/// A writable layer over a base that is only read. Cheap to clone; every clone is the same overlay.
///
/// ```
/// use cg_store::prelude::*;
/// use cg_layers::Overlay;
/// let template = World::builder().in_memory()?;
/// let dimension = template.registry().register_dimension("game:arena")?;
/// let [air, stone] = template.registry().register_blocks([":air", "game:stone"])?;
/// let at = ChunkAt::new(dimension, ChunkPos::new(0, 0, 0)?);
/// template.transaction(|tx| {
///     tx.save(at, tx.new_chunk(stone)?);
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
///
/// let arena = Overlay::in_memory(template.clone(), &WorldOptions::ephemeral())?;
/// arena.transaction(|tx| tx.set_block(dimension, BlockPos::new(1, 2, 3), air))?;
/// assert_eq!(arena.load(at)?.map(|chunk| chunk.block(LocalPos::new(1, 2, 3))), Some(air));
/// assert_eq!(template.load(at)?.map(|chunk| chunk.block(LocalPos::new(1, 2, 3))), Some(stone));
///
/// arena.reset()?;
/// assert_eq!(arena.load(at)?, template.load(at)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Overlay<S: Base> {
    store: Arc<Store<S>>,
    arena: Arc<Arena>,
    /// The tenancy of the arena that the handle belongs to.
    tenancy: u64,
}

/// How much work the arenas of one store did since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OverlayStats {
    /// Chunks, entities, properties, objects and records that were read from the overlay's own rows.
    pub reads_here: u64,
    /// Those that were read from the base.
    pub reads_below: u64,
    /// Resets and releases of arenas.
    pub resets: u64,
    /// Rows of values that were written.
    pub rows_written: u64,
    /// Rows of expired leases that were deleted.
    pub rows_swept: u64,
    /// Chunks that were decoded from rows.
    pub chunks_decoded: u64,
    /// Damaged rows of arenas that opening skipped, and ranges of rows that opening and sweeps could not read.
    pub damage_met: u64,
}

/// A value as the overlay reads it, and its origin in the base when the overlay first wrote it.
pub(crate) struct Layered<T> {
    pub(crate) found: Found<T>,
    /// The origin that a row of the overlay must store.
    pub(crate) origin: Origin,
}

impl<T> Layered<T> {
    fn value(self) -> Option<T> {
        self.found.here().map(|(value, _)| value)
    }
}

impl<S: Base> Overlay<S> {
    /// Creates an overlay in memory. It is gone when its last handle is dropped.
    ///
    /// # Errors
    /// [`OverlayError::TooDeep`].
    pub fn in_memory(base: S, options: &WorldOptions) -> Result<Self, Error> {
        Arenas::in_memory(base, options)?.lease("", cg_tiering::GameTick::new(0))
    }

    /// The number of the arena in its store.
    pub fn arena(&self) -> u32 {
        self.arena.number
    }

    /// The layer that the overlay reads through to.
    pub fn base(&self) -> &S {
        &self.store.base
    }

    /// All arenas of the overlay's store.
    pub fn arenas(&self) -> Arenas<S> {
        Arenas::of(Arc::clone(&self.store))
    }

    /// A chunk as the overlay reads it. `None` if it is deleted in the overlay or stored nowhere: the host may
    /// generate it.
    ///
    /// Costs a lookup in memory, else one key read. A chunk that was not written here costs the base's load as well.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged, in the overlay or the base; [`OverlayError::Released`],
    /// [`OverlayError::WrongBase`] and [`OverlayError::BaseReplaced`].
    pub fn load(&self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        Ok(self.lookup(at)?.here())
    }

    /// Many chunks, one result per position in the order asked. Those without a row here are read from the base in one
    /// call.
    pub fn load_many(&self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        self.lookup_many(at).into_iter().map(|found| Ok(found?.here())).collect()
    }

    /// An entity as the overlay reads it. One key read for each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.value_of::<Entities>(&id)
    }

    /// The names of the overlay: those of its base and its own.
    ///
    /// # Errors
    /// [`OverlayError::BaseGrew`] and [`OverlayError::BaseSchema`] if the overlay has names of its own and the base
    /// has changed its names or its schema since.
    pub fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.store.catalog()
    }

    /// Issues ids for names that neither the base nor the overlay has registered. The base gets them with a merge. All
    /// arenas of the store share them, and a reset keeps them.
    ///
    /// While an overlay has names of its own, its base must not register more. If it does, the overlay refuses to
    /// continue.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register), and as [`catalog`](Self::catalog).
    pub fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        self.check()?;
        self.store.register(new)
    }

    /// Discards everything that was written in the overlay. One put, regardless of how much that is.
    ///
    /// The discarded rows stay in the engine until they are [swept](Arenas::sweep). Waits for a running transaction.
    ///
    /// # Errors
    /// [`Error::Nested`] inside a transaction of the same overlay, and the errors of the engine. The overlay is then
    /// unchanged.
    pub fn reset(&self) -> Result<(), Error> {
        let _alone = self.write()?;
        self.empty()
    }

    /// As [`reset`](Self::reset). The caller holds the right to write.
    fn empty(&self) -> Result<(), Error> {
        let before = self.lease();
        let lease = self.store.give_lease(&self.arena);
        let mut row = self.arena.row.lock();
        let next = cg_format::overlay::ArenaRow { lease, ..row.clone() };
        self.store.put_arena(self.arena.number, &next)?;
        *row = next;
        self.arena.lease.store(lease, Ordering::Release);
        self.arena.merged_until.store(0, Ordering::Release);
        if self.store.merged_until(before)? > 0 {
            self.store.note_merge(before, None)?;
        }
        self.store.counts.resets.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// How much work all arenas of the overlay's store did.
    pub fn stats(&self) -> OverlayStats {
        self.store.stats()
    }

    fn check(&self) -> Result<(), Error> {
        if self.arena.tenancy.load(Ordering::Acquire) != self.tenancy {
            return Err(OverlayError::Released { arena: self.arena.number }.into());
        }
        self.store.check_base()
    }

    fn lease(&self) -> u64 {
        self.arena.lease.load(Ordering::Acquire)
    }

    /// Reads the rows of one lease. Reads again if the overlay was reset meanwhile: the rows may have been swept.
    ///
    /// Checks the arena and its base before and after. In between, the next holder of the arena may have written, and
    /// a base that is an overlay may have been reset.
    fn of_one_lease<T>(&self, show: impl Fn(u64) -> Result<T, Error>) -> Result<T, Error> {
        loop {
            self.check()?;
            let lease = self.lease();
            let shown = show(lease);
            if self.lease() == lease {
                self.check()?;
                return shown;
            }
        }
    }

    /// The value of a key as the overlay reads it. One key read for each layer, two for a record; none for a chunk in
    /// memory.
    fn layered<K: OverlayKind>(&self, key: &K::Key) -> Result<Layered<K::Value>, Error> {
        self.of_one_lease(|lease| match K::read(&self.store, lease, key)? {
            Some(row) => Ok(self.here(row)),
            None => self.below(K::find(&self.store.base, key)),
        })
    }

    fn value_of<K: OverlayKind>(&self, key: &K::Key) -> Result<Option<K::Value>, Error> {
        Ok(self.layered::<K>(key)?.value())
    }

    fn layered_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Layered<Arc<Chunk>>, Error>> {
        self.layered_chunks_of(at, |lease, at| self.store.chunk(lease, at))
    }

    /// As [`layered_chunks`](Self::layered_chunks), with another way to read the overlay's rows.
    fn layered_chunks_of(
        &self,
        at: &[ChunkAt],
        row: impl Fn(u64, ChunkAt) -> Result<Option<Row<Arc<Chunk>>>, Error>,
    ) -> Vec<Result<Layered<Arc<Chunk>>, Error>> {
        let shown = self.of_one_lease(|lease| {
            let rows: Vec<_> = at.iter().map(|at| row(lease, *at)).collect();
            let places = at.iter().zip(&rows);
            let below: Vec<_> =
                places.filter(|(_, row)| matches!(row, Ok(None))).map(|(at, _)| *at).collect();
            let mut below = self.store.base.find_chunks(&below).into_iter();
            let one = |row: Result<Option<Row<_>>, Error>| match row? {
                Some(row) => Ok(self.here(row)),
                None => self.below(below.next().expect("one was asked for each that is not here")),
            };
            Ok(rows.into_iter().map(one).collect())
        });
        shown.unwrap_or_else(|_| at.iter().map(|at| self.layered::<Chunks>(at)).collect())
    }

    fn here<T>(&self, row: Row<T>) -> Layered<T> {
        self.store.counts.here.fetch_add(1, Ordering::Relaxed);
        let from = self.store.origin(row.version);
        Layered { found: row.value.map(|value| (value, from)), origin: row.origin }
    }

    fn below<T>(&self, found: Result<Found<T>, Error>) -> Result<Layered<T>, Error> {
        self.store.counts.below.fetch_add(1, Ordering::Relaxed);
        let found = found?;
        let origin = origin_of(&found);
        Ok(Layered { found, origin })
    }
}

impl<S: Base> ChunkSource for Overlay<S> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        Ok(self.layered::<Chunks>(&at)?.found.map(|(chunk, _)| chunk))
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        let shown = self.layered_chunks(at);
        shown.into_iter().map(|shown| Ok(shown?.found.map(|(chunk, _)| chunk))).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.store.unchecked_catalog().current_schema())
    }
}

impl<S: Base> EntitySource for Overlay<S> {
    type Error = Error;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        Overlay::entity(self, id)
    }
}

impl<S: Base> Base for Overlay<S> {
    /// A reset gives the overlay another identity: rows over its old content do not fit the new one.
    fn identity(&self) -> Identity {
        let head = self.store.head();
        let uuid = Uuid::from_u128(head.uuid.as_u128() ^ u128::from(self.arena.number));
        let incarnation = Uuid::from_u128(head.base.incarnation.as_u128() ^ u128::from(self.lease()));
        Identity { uuid, incarnation }
    }

    fn layers(&self) -> u32 {
        self.store.layer.into()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.store.unchecked_catalog()
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        self.store.base.upgrades()
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        Ok(self.layered::<Chunks>(&at)?.found)
    }

    fn find_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Found<Arc<Chunk>>, Error>> {
        self.layered_chunks(at).into_iter().map(|shown| Ok(shown?.found)).collect()
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        Ok(self.layered::<Entities>(&id)?.found)
    }

    fn find_property(&self, property: &Property) -> Result<Found<Vec<u8>>, Error> {
        Ok(self.layered::<Properties>(property)?.found)
    }

    fn named_properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error> {
        self.properties(prefix)
    }

    fn find_object(&self, key: &ObjectKey) -> Result<Found<StoredObject>, Error> {
        Ok(without_deletion(self.layered::<Objects>(key)?.found))
    }

    fn list_objects(
        &self,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        Self::list_objects(self, prefix, position, max_count)
    }

    fn find_record(&self, id: RecordId) -> Result<Found<Arc<Record>>, Error> {
        Ok(self.layered::<Records>(&id)?.found)
    }

    fn record_shape(&self) -> RecordShape {
        self.store.base.record_shape()
    }

    fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        Self::records_in(self, query)
    }

    fn has_origin(&self, at: ChunkAt, origin: Origin) -> Result<bool, Error> {
        if origin.layer == self.store.layer {
            Ok(self.store.has(origin))
        } else {
            self.store.base.has_origin(at, origin)
        }
    }

    fn keep_found(&self, level: Level) -> Result<(), Error> {
        self.store.keep_found(level)
    }
}

impl<S: Base> Clone for Overlay<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), arena: Arc::clone(&self.arena), tenancy: self.tenancy }
    }
}

impl<S: Base> fmt::Debug for Overlay<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay")
            .field("arena", &self.arena.number)
            .field("layer", &self.store.layer)
            .finish_non_exhaustive()
    }
}
