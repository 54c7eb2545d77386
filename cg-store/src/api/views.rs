//! Reading many things of one state: boxes, areas, views.

use std::ops::ControlFlow;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{BlockBox, BlockId, CellOrder, ChunkAt, Dimension, EntityId};

use crate::api::world::World;
use crate::read::chunk::{Area, ReadView, StoredChunk};
use crate::read::delta::walk_folded;
use crate::read::iterate::{StoredPlace, entities};
use crate::storage::error::Error;

impl World {
    /// Shows the world as it is now, to be read for a while: for snapshots, maps and exports of one state.
    ///
    /// Waits until nothing is queued and for a commit under way; the closure runs on the calling thread, without a lock.
    ///
    /// ```
    /// use cg_format::ChunkSource;
    /// use cg_store::prelude::*;
    /// # let world = World::in_memory(&[], &WorldOptions::default())?;
    /// # let overworld = world.registry().register_dimension("game:overworld")?;
    /// # let [air, stone] = world.registry().register_blocks([":air", "game:stone"])?;
    /// # let at = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?);
    /// # let put = |block| world.transaction(|tx| {
    /// #     tx.save(at, Chunk::filled(block, &tx.catalog().current_schema())?);
    /// #     Ok::<_, Box<dyn std::error::Error>>(())
    /// # });
    /// put(air)?;
    /// let then = world.read_view(|still| {
    ///     put(stone)?;
    ///     let chunk = still.lookup(at)?.here().expect("it was there");
    ///     Ok::<_, Box<dyn std::error::Error>>(chunk.block(LocalPos::new(0, 0, 0)))
    /// })??;
    /// assert_eq!(then, air);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`], and what a queued write failed with.
    pub fn read_view<T>(&self, read: impl FnOnce(&ReadView<'_>) -> T) -> Result<T, Error> {
        let engine = self.applied()?.shared.engine()?;
        let still = ReadView { inner: self.applied()?.commit.read_view(&*engine)? };
        Ok(read(&still))
    }

    /// Reads layer 0 of a box into a flat slice in the host's order.
    ///
    /// All of it is of one state of the world, whatever is committed or moved meanwhile. Blocks of chunks that are not
    /// stored are left as they are in the slice; how many chunks those were is returned.
    ///
    /// Costs, for chunks that memory does not have, what [`load_many`](Self::load_many) costs: each cluster is read
    /// once, and only its 4³ groups with chunks of the box are decompressed. Takes memory for one cold cluster at a
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
        let engine = self.applied()?.shared.engine()?;
        self.applied()?.commit.read_view(&*engine)?.read_box(dimension, area, order, out, map)
    }

    /// Shows every live chunk of an area as it is stored, each once whatever its tier, until `visit` breaks.
    ///
    /// Chunks come in Morton order, the order of their keys. What is damaged is shown as an error, once for each 16³ cube
    /// that it reaches into, and the walk goes on after it. Commits made meanwhile are not seen. Reads each row once, decodes nothing and keeps nothing in
    /// memory. Of a large box, what lies between two of its parts in the order of keys is skipped by a seek.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cg_store::prelude::*;
    /// use cg_store::Area;
    /// # let world = World::in_memory(&[], &WorldOptions::default())?;
    /// # let overworld = world.registry().register_dimension("game:overworld")?;
    /// # let [air] = world.registry().register_blocks([":air"])?;
    /// world.transaction(|tx| {
    ///     let schema = tx.catalog().current_schema();
    ///     tx.save(ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?), Chunk::filled(air, &schema)?);
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })?;
    /// let mut heights = Vec::new();
    /// world.for_each_chunk(Area::World, |stored| {
    ///     heights.extend(stored.map(|stored| stored.at.pos.y()));
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(heights, [4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_chunk<B>(
        &self,
        area: Area,
        visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let rooms = self.applied()?;
        walk_folded(&rooms.read, &rooms.commit.settled_engine()?.snapshot()?, area, visit)
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), with the chunks decoded and carried to the current schema generation.
    /// What cannot be decoded is shown as an error.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_decoded<B>(
        &self,
        area: Area,
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
        area: Area,
        visit: impl FnMut(Result<StoredPlace, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let rooms = self.applied()?;
        rooms.read.for_each_place(&rooms.commit.settled_engine()?.snapshot()?, area, visit)
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), by the threads of the world's own pool: each takes whole 16³ cubes, in
    /// each of which chunks come in Morton order. Where one thread's visitor breaks the others stop at their next cube;
    /// of several values the one that is found first is returned.
    ///
    /// [`decode`](Self::decode) may be called by the visitor, and is then done by all threads too. A panic of the visitor
    /// goes on in the caller.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn par_for_each_chunk<B: Send>(
        &self,
        area: Area,
        visit: impl Fn(Result<StoredChunk<'_>, Error>) -> ControlFlow<B> + Sync,
    ) -> Result<Option<B>, Error> {
        let rooms = self.applied()?;
        rooms.read.par_for_each_chunk(&rooms.commit.settled_engine()?.snapshot()?, area, visit)
    }

    /// Decodes a stored chunk and carries it to the current schema generation. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::UnknownGeneration`] or [`Error::NotUpgraded`].
    pub fn decode(&self, stored: StoredChunk<'_>) -> Result<Chunk, Error> {
        let rooms = self.rooms();
        rooms.read.decode(&rooms.shared.registry.catalog(), stored)
    }

    /// Shows every entity, ascending by UUID, until `visit` breaks. A damaged one is shown as an error.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_entity<B>(
        &self,
        visit: impl FnMut(Result<(EntityId, Entity), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        entities(&self.applied()?.commit.settled_engine()?.snapshot()?, visit)
    }
}
