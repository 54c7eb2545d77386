//! Reading many things of one state of a world: chunks, boxes, walks, changes.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{
    BlockBox, BlockId, CellOrder, ChunkAt, ChunkBox, ChunkPos, ChunkSource, ClusterPos, ClusterTier,
    Dimension, EntityId, EntitySource, Lookup, SchemaView, Space, key,
};
use cg_registry::Catalog;

use crate::admin::changes::{Changes, ChunkVersion};
use crate::api::world::World;
use crate::commit::commit_log::CommitLog;
use crate::engine::{CommitSeq, Readable};
use crate::kinds::property;
use crate::read::cache::Column;
use crate::read::chunk::{Area, StoredChunk, WorldView};
use crate::read::iterate::{StoredPlace, entities};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

impl World {
    /// Shows the world as it is now, to be read for a while: for walks, snapshots, maps and exports of one state.
    ///
    /// Waits until nothing is queued and for a commit under way. The closure runs on the calling thread, without a lock.
    ///
    /// ```
    /// use cg_format::ChunkSource;
    /// use cg_store::prelude::*;
    /// # let world = World::builder().in_memory()?;
    /// # let overworld = world.registry().register_dimension("game:overworld")?;
    /// # let [air, stone] = world.registry().register_blocks([":air", "game:stone"])?;
    /// # let at = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?);
    /// # let put = |block| world.transaction(|tx| {
    /// #     tx.save(at, tx.new_chunk(block)?);
    /// #     Ok::<_, Box<dyn std::error::Error>>(())
    /// # });
    /// put(air)?;
    /// let then = world.read_view(|view| {
    ///     put(stone)?;
    ///     let chunk = view.lookup(at)?.here().expect("it was there");
    ///     Ok::<_, Box<dyn std::error::Error>>(chunk.block(LocalPos::new(0, 0, 0)))
    /// })?;
    /// assert_eq!(then, air);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// That of the closure; [`Error::Closed`], and what a queued write failed with.
    pub fn read_view<T, X: From<Error>>(
        &self,
        read: impl FnOnce(&ReadView<'_>) -> Result<T, X>,
    ) -> Result<T, X> {
        let rooms = self.applied()?;
        let mut engine = None;
        let inner = rooms.commit.read_view(&mut engine)?;
        read(&ReadView { inner, log: &rooms.commit.log })
    }
}

/// A world as it was at one moment: what is committed or moved while it is read is not seen.
///
/// Made by [`World::read_view`]. Chunks come from memory where memory has them as they were then. A view keeps old rows
/// alive: hold it no longer than needed.
pub struct ReadView<'w> {
    inner: WorldView<'w>,
    log: &'w CommitLog,
}

impl ReadView<'_> {
    /// The registry as it was at that moment, which issued the ids of what is read.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.inner.catalog
    }

    /// The last commit that the view has.
    pub fn commit(&self) -> CommitSeq {
        self.inner.commit
    }

    /// Reads layer 0 of a box into a flat slice in the host's order.
    ///
    /// Blocks of chunks that are not
    /// stored are left as they are in the slice; how many chunks those were is returned.
    ///
    /// Costs, for chunks that memory does not have, what [`World::load_many`] costs: each cluster is read
    /// once, and only its groups with chunks of the box are decompressed. Takes memory for one cold cluster at a
    /// time, whatever the size of the box. `map` is called in no order; it may use the world.
    ///
    /// # Errors
    /// [`Error::BoxLength`] if the slice does not fit the box; [`Error::Corrupt`] at the first damaged chunk.
    pub fn read_box<T>(
        &self,
        dimension: Dimension,
        area: BlockBox,
        order: CellOrder,
        out: &mut [T],
        map: impl FnMut(BlockId) -> T,
    ) -> Result<u64, Error> {
        self.inner.read_box(dimension, area, order, out, map)
    }

    /// Shows every live chunk of an area as it is stored, each once whatever its tier, until `visit` breaks.
    ///
    /// Chunks come in Morton order, the order of their keys. What is damaged is shown as an error, once for each 16³ cube
    /// that it reaches into, and the walk goes on after it. Reads each row once, decodes nothing and keeps nothing in
    /// memory. Of a large box, what lies between two of its parts in the order of keys is skipped by a seek.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cg_store::prelude::*;
    /// use cg_store::view::Area;
    /// # let world = World::builder().in_memory()?;
    /// # let overworld = world.registry().register_dimension("game:overworld")?;
    /// # let [air] = world.registry().register_blocks([":air"])?;
    /// world.transaction(|tx| {
    ///     let schema = tx.catalog().current_schema();
    ///     tx.save(ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?), Chunk::filled(air, &schema)?);
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })?;
    /// let mut heights = Vec::new();
    /// world.read_view(|view| {
    ///     view.for_each_chunk(Area::World, |stored| {
    ///         heights.extend(stored.map(|stored| stored.at.pos.y()));
    ///         ControlFlow::<()>::Continue(())
    ///     })
    /// })?;
    /// assert_eq!(heights, [4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_chunk<B>(
        &self,
        area: Area<'_>,
        visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.inner.world.walk(&self.inner.view, area, visit)
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), with the chunks decoded and carried to the current schema generation.
    /// What cannot be decoded is shown as an error.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_decoded<B>(
        &self,
        area: Area<'_>,
        mut visit: impl FnMut(Result<(ChunkAt, Chunk), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.for_each_chunk(area, |stored| {
            visit(stored.and_then(|stored| Ok((stored.at, self.decode(stored)?))))
        })
    }

    /// Shows where every live chunk of an area is, in Morton order, until `visit` breaks.
    ///
    /// As [`for_each_chunk`](Self::for_each_chunk), but opens clusters only up to their directories: nothing is
    /// decompressed, and a damaged group inside one is not noticed.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_place<B>(
        &self,
        area: Area<'_>,
        visit: impl FnMut(Result<StoredPlace, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.inner.world.for_each_place(&self.inner.view, area, visit)
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), by the threads of the world's own pool: each takes whole 16³ cubes, in
    /// each of which chunks come in Morton order. Where one thread's visitor breaks the others stop at their next cube;
    /// of several values the one that is found first is returned.
    ///
    /// [`decode`](Self::decode) may be called by the visitor, and is then done by all threads too. A panic of the visitor
    /// goes on in the caller.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use cg_store::prelude::*;
    /// use cg_store::view::Area;
    /// # let world = World::builder().in_memory()?;
    /// let entities = AtomicU64::new(0);
    /// let damage = world.read_view(|view| {
    ///     view.par_for_each_chunk(Area::World, |stored| match stored.and_then(|stored| view.decode(stored)) {
    ///         Ok(chunk) => {
    ///             entities.fetch_add(chunk.entities().len() as u64, Ordering::Relaxed);
    ///             ControlFlow::Continue(())
    ///         }
    ///         Err(error) => ControlFlow::Break(error),
    ///     })
    /// })?;
    /// damage.map_or(Ok(()), Err)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the engine fails.
    pub fn par_for_each_chunk<B: Send>(
        &self,
        area: Area<'_>,
        visit: impl Fn(Result<StoredChunk<'_>, Error>) -> ControlFlow<B> + Sync,
    ) -> Result<Option<B>, Error> {
        self.inner.world.par_for_each_chunk(&self.inner.view, area, visit)
    }

    /// Shows the columns of a box that have a chunk in it, each with its chunks, until `visit` breaks. Position and column, or
    /// the error of a damaged chunk of it.
    ///
    /// Columns come in squares of 16 by 16, which ascend by x and then z, and inside a square in that order too. Each position
    /// is shown once, and a walk that goes on behind any of them shows the rest: `behind`, also in a later view.
    ///
    /// Damage that hides which chunks there are is shown at a position of its square, or of the last square of the box, where
    /// no column is known; if there is none, in place of the last column. The columns of that square, or of the box, may lack
    /// chunks.
    ///
    /// Reads past memory, and is no access for the tiers. Holds the chunks of four by sixteen columns, and some bytes for each
    /// square. Reads a cold cluster once for each four columns along x.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cg_store::prelude::*;
    /// # let world = World::builder().in_memory()?;
    /// # let overworld = world.registry().register_dimension("game:overworld")?;
    /// # let [air] = world.registry().register_blocks([":air"])?;
    /// # world.transaction(|tx| {
    /// #     for x in 0..3 {
    /// #         tx.save(ChunkAt::new(overworld, ChunkPos::new(x, 4, 0)?), tx.new_chunk(air)?);
    /// #     }
    /// #     Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// let mut heights = Vec::new();
    /// world.read_view(|view| {
    ///     view.for_each_column(overworld, &ChunkBox::EVERYTHING, Some([0, 0]), |[x, _], column| {
    ///         heights.extend(column.iter().flat_map(|column| column.chunks().map(|(y, _)| [x, y])));
    ///         ControlFlow::<()>::Continue(())
    ///     })
    /// })?;
    /// assert_eq!(heights, [[1, 4], [2, 4]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the engine fails. A column with more than 4,096 heights between its lowest and its highest chunk is shown as
    /// [`Error::ColumnTooHigh`].
    pub fn for_each_column<B>(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        behind: Option<[i64; 2]>,
        visit: impl FnMut([i64; 2], Result<Column, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.inner.for_each_column(dimension, area, behind, visit)
    }

    /// Decodes a stored chunk and carries it to the current schema generation. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::UnknownGeneration`] or [`Error::NotUpgraded`].
    pub fn decode(&self, stored: StoredChunk<'_>) -> Result<Chunk, Error> {
        self.inner.world.decode(&self.inner.catalog, stored)
    }

    /// Shows every entity of that moment, ascending by UUID, until `visit` breaks. A damaged one is shown as an error.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_entity<B>(
        &self,
        visit: impl FnMut(Result<(EntityId, Entity), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        entities(&self.inner.view, visit)
    }

    /// Shows the named properties that begin with a text, ascending by name, until `visit` breaks. A damaged one is
    /// shown as an error. Reads their rows once.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cg_store::prelude::*;
    /// let world = World::builder().in_memory()?;
    /// world.transaction(|tx| {
    ///     for name in ["game:a/1", "game:a/2", "game:b", "other:a/3"] {
    ///         tx.set_property(Property::Named(Name::new(name)?), Some(name.into()));
    ///     }
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })?;
    /// let mut names = Vec::new();
    /// world.read_view(|view| {
    ///     view.for_each_property("game:a/", |property| {
    ///         names.extend(property.map(|(name, _)| name.to_owned()));
    ///         ControlFlow::<()>::Continue(())
    ///     })
    /// })?;
    /// assert_eq!(names, ["game:a/1", "game:a/2"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_property<B>(
        &self,
        prefix: &str,
        visit: impl FnMut(Result<(&str, &[u8]), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.for_each_property_behind(prefix, None, visit)
    }

    /// As [`for_each_property`](Self::for_each_property), after a name.
    pub(crate) fn for_each_property_behind<B>(
        &self,
        prefix: &str,
        behind: Option<&str>,
        visit: impl FnMut(Result<(&str, &[u8]), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        property::for_each(&self.inner.view, prefix, behind, visit)
    }

    /// Reads many chunks past memory; one result for each in the order asked. Each is decoded and carried to the current
    /// schema generation, and `read` makes of it what the caller wants.
    ///
    /// It keeps nothing in memory, and is no access for the tiers: for copies of a world, which no player sees. A damaged chunk
    /// fails alone. Each cluster is read once. The deltas of each chunk are scanned for.
    pub fn read_many<T>(
        &self,
        at: &[ChunkAt],
        mut read: impl FnMut(ChunkAt, Chunk) -> Result<T, Error>,
    ) -> Vec<Result<Lookup<T>, Error>> {
        let reader = self.inner.reader();
        reader.chunks(at, |at, stored| read(at, Arc::unwrap_or_clone(stored.chunk)))
    }

    /// Shows the 4³ cubes of a box in which chunks changed after a commit, each with the chunks of the box that did, until
    /// `visit` breaks.
    ///
    /// A chunk that was deleted is shown as long as the world remembers the deletion: for all of them `since` must be at
    /// least [`Tiers::tombstone_horizon`](crate::tiers::Tiers::tombstone_horizon) − 1. A cube that is damaged is shown as an error.
    /// Maps and backups use it to read only what changed.
    ///
    /// Costs one read for each chunk that changed, where memory holds the commits since: it holds up to 65,536 changed
    /// chunks, from the first call on. Of older commits it costs the marks of the box's 16³ cubes, those of the 4³ cubes in
    /// each that changed, and up to 64 rows for each 4³ cube that did. Of a box of more than 64 cubes of 16³ the marks are
    /// scanned between its corners in Morton order, which may pass over some beside it.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_changed<B>(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: CommitSeq,
        visit: impl FnMut(ClusterPos, Result<Vec<(ChunkPos, ChunkVersion)>, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.changes().for_each(dimension, area, since.get(), visit)
    }

    /// The last commit that changed something in a cube of 4³ or 16³ chunks; `None` if none ever did. One key read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the row that has it is damaged.
    pub fn last_change(&self, dimension: Dimension, cube: ClusterPos) -> Result<Option<CommitSeq>, Error> {
        Ok(self.changes().mark(dimension, cube)?.map(CommitSeq::new))
    }

    /// The versions of the chunks of a 4³ cube that are stored or deleted. Costs two reads and two scans; of clusters only
    /// the directories are read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a row of the cube is damaged.
    ///
    /// # Panics
    /// If the cube is one of 16³ chunks.
    pub fn chunk_versions(
        &self,
        dimension: Dimension,
        cube: ClusterPos,
    ) -> Result<Vec<(ChunkPos, ChunkVersion)>, Error> {
        assert_eq!(cube.tier(), ClusterTier::L1, "a cube of 4³ chunks");
        self.changes().versions(dimension, cube)
    }

    /// The view of its world.
    pub(crate) const fn inner(&self) -> &WorldView<'_> {
        &self.inner
    }

    /// Its rows.
    pub(crate) fn rows(&self) -> &dyn Readable {
        &self.inner.view
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.inner.world.shared.counters
    }

    fn changes(&self) -> Changes<'_> {
        let WorldView { world, view, commit, .. } = &self.inner;
        Changes { view, counters: &world.shared.counters, log: self.log, commit: commit.get() }
    }
}

impl ChunkSource for ReadView<'_> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        let mut found = Lookup::NotFound;
        self.inner.show(&[at], |_, chunk| found = Lookup::Found(Arc::clone(chunk)))?;
        Ok(found)
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        let mut found = HashMap::with_capacity(at.len());
        let shown = self.inner.show(at, |at, chunk| drop(found.insert(at, Arc::clone(chunk))));
        // One bad chunk fails alone: who is asked for alone is read alone.
        let read = |at: &ChunkAt| match (found.get(at), &shown) {
            (Some(chunk), _) => Ok(Lookup::Found(Arc::clone(chunk))),
            (None, Ok(_)) => Ok(Lookup::NotFound),
            (None, Err(_)) => self.lookup(*at),
        };
        at.iter().map(read).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.inner.catalog.current_schema())
    }
}

impl EntitySource for ReadView<'_> {
    type Error = Error;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        let WorldView { world, view, catalog, .. } = &self.inner;
        let row = view.get(Space::Entity, &key::entity(id))?;
        row.map(|row| world.decode_entity(catalog, id, &row)).transpose()
    }
}

impl std::fmt::Debug for ReadView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadView").field("world", self.inner.world).finish_non_exhaustive()
    }
}
