//! A running transaction of any store.

use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, Owner};
use cg_format::{
    BlockId, BlockPos, ChunkAt, ChunkSink, ComponentId, Dimension, Editor, EntityId, SchemaView, SideKind,
};
use cg_registry::Catalog;

use super::world::{TxStore, ValueStore};
use super::writes::{Writes, set_side};
use crate::kinds::property::Property;
use crate::kinds::settings::WorldSettings;
use crate::read::cache::Column;
use crate::storage::error::Error;

/// A running transaction. It reads what is stored and what it wrote itself, and writes nothing until it commits.
///
/// One type for worlds ([`Transaction`](crate::Transaction)), overlays
/// (`OverlayTransaction`) and segments
/// (`SegmentTransaction`). A save without a load replaces whatever is stored. The store
/// decides what happens if something changed after it was loaded: a world refuses the commit with [`Error::Conflict`].
#[derive(Debug)]
pub struct Tx<S> {
    pub(crate) store: S,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) writes: Writes,
}

impl<S: TxStore> Tx<S> {
    pub(crate) fn new(store: S, catalog: Arc<Catalog>) -> Self {
        Self { store, catalog, writes: Writes::default() }
    }

    /// The registry as it was when the transaction began. Names registered since are in
    /// [`World::catalog`](crate::World::catalog).
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The current registry. Ids never change, so a name that was registered since the transaction began may be used in
    /// it.
    pub fn current_catalog(&self) -> Arc<Catalog> {
        self.store.current_catalog(&self.catalog)
    }

    /// Replaces all writes of the transaction.
    pub(crate) fn write_all(&mut self, writes: Writes) {
        self.writes = writes;
    }

    /// A chunk, or `None` if it is not stored: the host may generate it then.
    ///
    /// Costs one key read if it is hot and not in memory, two or three if it is cold.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged. That is not absence: do not generate over it.
    pub fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        if let Some(written) = self.writes.chunks.get(&at) {
            return Ok(written.clone());
        }
        self.store.chunk(at)
    }

    /// Loads many chunks, as [`load`](Self::load) loads each. Returns one result per position, in the order asked.
    ///
    /// Costs what [`World::load_many`](crate::World::load_many) costs for those that this transaction did not write.
    pub fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        let unwritten: Vec<_> =
            at.iter().copied().filter(|at| !self.writes.chunks.contains_key(at)).collect();
        let mut stored = self.store.chunks(&unwritten).into_iter();
        at.iter()
            .map(|at| {
                if let Some(written) = self.writes.chunks.get(at) {
                    return Ok(written.clone());
                }
                stored.next().expect("one was read for each that was not written")
            })
            .collect()
    }

    /// A chunk with one block in every cell, to be edited and [saved](Self::save).
    ///
    /// # Errors
    /// [`Error::Edit`] if the block is not registered, or its components have too many bytes.
    pub fn new_chunk(&self, block: BlockId) -> Result<Chunk, Error> {
        Ok(Chunk::filled(block, &self.current_catalog().current_schema())?)
    }

    /// Stores a chunk in place of what is stored, **its entity references too**: an entity that the stored chunk has
    /// and this one does not becomes detached.
    ///
    /// So a host that saves its own copy loses the entities that moved into the chunk after it was loaded.
    /// [`save_blocks`](Self::save_blocks) keeps them. A chunk equal to the stored one costs a comparison and writes
    /// nothing.
    ///
    /// # Errors
    /// At commit: [`Error::UnknownBlock`], [`Error::UnknownDimension`], [`Error::UnknownSide`] and
    /// [`Error::WrongSchema`] for what could not be read again, [`Error::TooLarge`], [`Error::EntityOwned`],
    /// [`Error::EntityUnknown`], or [`Error::Corrupt`] if the stored chunk is damaged, which is never overwritten
    /// blindly.
    pub fn save(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        self.writes.chunks.insert(at, Some(chunk.into()));
    }

    /// Stores each chunk of a column as [`save`](Self::save) does. Heights of it without a chunk stay as they are.
    ///
    /// # Errors
    /// [`Error::Position`] if it ends outside the world; then nothing of it is saved.
    pub fn save_column(
        &mut self,
        dimension: Dimension,
        x: i64,
        z: i64,
        column: &Column,
    ) -> Result<(), Error> {
        for (at, chunk) in column.placed(dimension, x, z)? {
            self.save(at, Arc::clone(chunk));
        }
        Ok(())
    }

    /// Stores a chunk's blocks, components and side data, and keeps the stored entity references. Those of `chunk` are
    /// ignored. A chunk that was not stored gets none.
    ///
    /// Costs a [`load`](Self::load) in addition to a [`save`](Self::save). The chunk is copied if its references
    /// differ.
    ///
    /// # Errors
    /// As [`load`](Self::load), and at commit as [`save`](Self::save).
    pub fn save_blocks(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) -> Result<(), Error> {
        let stored = self.load(at)?;
        self.writes.save_blocks(at, chunk.into(), stored.as_deref());
        Ok(())
    }

    /// Deletes a chunk, and its entities unless this transaction moves them. Deleting an absent one is no error.
    ///
    /// The last write to a chunk is the one that is committed. So a [`save`](Self::save) after this takes its place: the
    /// entities of the stored chunk are kept, and those to which the new chunk does not refer are detached as
    /// [`World::RELEASED`](crate::World::RELEASED), for good. To begin a chunk anew without them, delete each with
    /// [`delete_entity`](Self::delete_entity), or commit the deletion before the save.
    pub fn delete(&mut self, at: ChunkAt) {
        self.writes.chunks.insert(at, None);
    }

    /// The block in layer 0 of a cell, or `None` if its chunk is not stored.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn block(&mut self, dimension: Dimension, pos: BlockPos) -> Result<Option<BlockId>, Error> {
        let chunk = self.load(ChunkAt::new(dimension, pos.chunk()))?;
        Ok(chunk.map(|chunk| chunk.block(pos.local())))
    }

    /// Replaces the block in layer 0 of a cell and returns the old one. New components hold their defaults.
    ///
    /// If the host changes at most 64 cells of a stored chunk, all in this way, the commit compares only these for its
    /// [delta](crate::WorldOptions::deltas).
    ///
    /// # Errors
    /// [`Error::ChunkAbsent`] if the chunk is not stored, and as [`load`](Self::load).
    pub fn set_block(
        &mut self,
        dimension: Dimension,
        pos: BlockPos,
        block: BlockId,
    ) -> Result<BlockId, Error> {
        let catalog = self.current_catalog();
        let schema = catalog.current_schema();
        let at = ChunkAt::new(dimension, pos.chunk());
        if let Some(stored) = self.unwritten(at)? {
            self.writes.chunks.insert_stored(at, stored);
        }
        let set = self.writes.chunks.set_block(at, pos.local(), block, &schema);
        set.ok_or(Error::ChunkAbsent { at })?.map_err(|error| self.store.refused(error.into()))
    }

    /// Replaces one component of one block.
    ///
    /// # Errors
    /// [`Error::ChunkAbsent`]; [`Error::Edit`] if the block has no such component or the length does not fit; and as
    /// [`load`](Self::load).
    pub fn set_component(
        &mut self,
        at: ChunkAt,
        place: CellLayer,
        component: ComponentId,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.edit(at, |chunk| chunk.set_component(place, component, bytes))?
            .map_err(|error| self.store.refused(error.into()))
    }

    /// Replaces the data of one side kind of a chunk; `None` removes it.
    ///
    /// # Errors
    /// [`Error::ChunkAbsent`], and as [`load`](Self::load).
    pub fn set_side(&mut self, at: ChunkAt, kind: SideKind, bytes: Option<Vec<u8>>) -> Result<(), Error> {
        self.edit(at, |chunk| set_side(chunk, kind, bytes))
    }

    /// Changes a chunk in place. The stored chunk is copied once; later edits change the copy.
    ///
    /// # Errors
    /// [`Error::ChunkAbsent`], and as [`load`](Self::load).
    pub fn edit<T>(&mut self, at: ChunkAt, change: impl FnOnce(&mut Chunk) -> T) -> Result<T, Error> {
        if let Some(stored) = self.unwritten(at)? {
            self.writes.chunks.insert(at, Some(stored));
        }
        self.writes.change_chunk(at, change)
    }

    /// A stored chunk that is to be changed; `None` if it is written already.
    fn unwritten(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        if self.writes.has_chunk(at) {
            return Ok(None);
        }
        let stored = self.load(at)?.ok_or_else(|| self.store.refused(Error::ChunkAbsent { at }))?;
        Ok(Some(stored))
    }

    /// An entity, or `None` if the world does not have it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        if let Some(written) = self.writes.entities.get(&id) {
            return Ok(written.clone());
        }
        self.store.entity(id)
    }

    /// Many entities, as [`entity`](Self::entity) reads each. Returns one result per id, in the order asked. Costs one
    /// engine call for all that this transaction did not write; in an overlay one read for each and layer.
    pub fn entities(&mut self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        let unwritten: Vec<_> =
            ids.iter().copied().filter(|id| !self.writes.entities.contains_key(id)).collect();
        let mut stored = self.store.entities(&unwritten).into_iter();
        let entity = |id: &EntityId| match self.writes.entities.get(id) {
            Some(written) => Ok(written.clone()),
            None => stored.next().expect("one was read for each that was not written"),
        };
        ids.iter().map(entity).collect()
    }

    /// Stores an entity; one equal to the stored one writes nothing. The references in its previous and its new chunk
    /// are updated automatically.
    ///
    /// # Errors
    /// At commit: [`Error::OwnerAbsent`] if the owner is a chunk that is not stored (use [`Owner::Detached`] then),
    /// [`Error::UnknownEntityType`], [`Error::UnknownComponent`], [`Error::WrongComponentWidth`],
    /// [`Error::UnknownDimension`], [`Error::TooLarge`].
    pub fn put_entity(&mut self, id: EntityId, entity: Entity) {
        self.writes.entities.insert(id, Some(entity));
    }

    /// Deletes an entity and the reference to it. Deleting an absent one is no error.
    pub fn delete_entity(&mut self, id: EntityId) {
        self.writes.entities.insert(id, None);
    }

    /// Gives an entity to a chunk or detaches it, and keeps the rest of it. Returns `Ok(false)` if the world does not
    /// have the entity.
    ///
    /// # Errors
    /// As [`entity`](Self::entity).
    pub fn move_entity(&mut self, id: EntityId, owner: Owner) -> Result<bool, Error> {
        let Some(entity) = self.entity(id)? else { return Ok(false) };
        self.put_entity(id, entity.owned_by(owner));
        Ok(true)
    }
}

impl<S: ValueStore> Tx<S> {
    /// A property, or `None` if it was never set.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn property(&mut self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        if let Some(written) = self.writes.properties.get(property) {
            return Ok(written.clone());
        }
        self.store.property(property)
    }

    /// Sets a property; `None` removes it.
    pub fn set_property(&mut self, property: Property, bytes: Option<Vec<u8>>) {
        self.writes.properties.insert(property, bytes);
    }

    /// Sets the settings that are given. One that is `None` stays as it is; [`set_property`](Self::set_property) removes
    /// it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] and [`Error::Setting`] for a value that a setting cannot have. None is set then.
    pub fn set_settings(&mut self, settings: &WorldSettings) -> Result<(), Error> {
        for (property, bytes) in settings.encode()? {
            self.set_property(property, Some(bytes));
        }
        Ok(())
    }
}

impl<S: TxStore> ChunkSink for Tx<S> {
    type Error = Error;

    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Error> {
        Tx::save(self, at, chunk);
        Ok(())
    }

    fn delete(&mut self, at: ChunkAt) -> Result<(), Error> {
        Tx::delete(self, at);
        Ok(())
    }
}

impl<S: TxStore> Editor for Tx<S> {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        Tx::load(self, at)
    }

    fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        Tx::load_many(self, at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog().current_schema())
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        Tx::entity(self, id)
    }

    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Error> {
        Tx::put_entity(self, id, entity);
        Ok(())
    }

    fn delete_entity(&mut self, id: EntityId) -> Result<(), Error> {
        Tx::delete_entity(self, id);
        Ok(())
    }
}
