//! Transactions of an overlay: one at a time, seen together or not at all.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{
    BlockId, BlockPos, ChunkAt, ChunkSink, ComponentId, Dimension, Editor, EntityId, Lookup, RecordId,
    SchemaView, SideKind,
};
use cg_registry::Catalog;

use super::arena::Arena;
use super::base::Base;
use super::store::{Edits, RecordEdit};
use super::{Overlay, Shown};
use crate::commit::transaction::{Check, Ground, Writes, set_side, settle};
use crate::kinds::object::{Object, ObjectWrite, StoredObject};
use crate::kinds::property::Property;
use crate::kinds::record::leaf_of;
use crate::read::cache::Stored;
use crate::rt::lock_order::{self, MutexGuard};
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

/// A running transaction of an overlay: sees what the overlay shows and what it wrote itself; writes nothing before its
/// closure has ended well.
///
/// The rules are those of a world's [`Transaction`](crate::Transaction): references and owners of entities follow each
/// other, ids must be registered, limits hold.
#[derive(Debug)]
pub struct OverlayTransaction<'o, S: Base> {
    overlay: &'o Overlay<S>,
    catalog: Arc<Catalog>,
    writes: Writes,
    /// What was there when the closure looked first. What it writes is built on that, whatever the base did since.
    seen: Origins,
}

/// The right to write to an arena.
pub(super) struct Writing<'a> {
    arena: &'a Arena,
    _guard: MutexGuard<'a, ()>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        *self.arena.writer.lock() = None;
    }
}

impl<S: Base> Overlay<S> {
    /// Runs a closure once and writes what it changed into the overlay as one batch, or nothing if it returns an error.
    ///
    /// One transaction runs at a time, and waits for the one before it; reads go on beside it. So it never meets a conflict.
    ///
    /// # Errors
    /// The closure's own error; [`Error::Nested`] if this thread is inside a transaction of this overlay; the ownership,
    /// damage and limit errors of [`Error`]; the errors of [`catalog`](Self::catalog) and [`load`](Self::load).
    pub fn transaction<T, X: From<Error>>(
        &self,
        body: impl FnOnce(&mut OverlayTransaction<'_, S>) -> Result<T, X>,
    ) -> Result<T, X> {
        let _alone = self.write()?;
        let catalog = self.store.catalog()?;
        let mut tx = OverlayTransaction {
            overlay: self,
            catalog,
            writes: Writes::default(),
            seen: Origins::default(),
        };
        let value = lock_order::host(|| body(&mut tx))?;
        tx.commit()?;
        Ok(value)
    }

    /// Waits for the right to write.
    pub(super) fn write(&self) -> Result<Writing<'_>, Error> {
        let me = thread::current().id();
        if *self.arena.writer.lock() == Some(me) {
            return Err(Error::Nested);
        }
        let guard = self.arena.writing.lock();
        *self.arena.writer.lock() = Some(me);
        let writing = Writing { arena: &self.arena, _guard: guard };
        self.check()?;
        Ok(writing)
    }
}

impl<S: Base> OverlayTransaction<'_, S> {
    /// The overlay's names as they were when the transaction began.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// A chunk, or `None` if it is not stored: generate it then. Costs what [`Overlay::load`] costs.
    ///
    /// # Errors
    /// As [`Overlay::load`].
    pub fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        if let Some(written) = self.writes.chunks.get(&at) {
            return Ok(written.clone());
        }
        let shown = self.overlay.show_chunk(at)?;
        self.seen.chunks.entry(at).or_insert(shown.origin);
        Ok(shown.found.here().map(|(chunk, _)| chunk))
    }

    /// Many chunks, as [`load`](Self::load) loads each; one result per position in the order asked. Those that the overlay
    /// does not hold itself are asked of its base together.
    pub fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        let unwritten: Vec<_> =
            at.iter().copied().filter(|at| !self.writes.chunks.contains_key(at)).collect();
        let mut shown = self.overlay.show_chunks(&unwritten).into_iter();
        at.iter()
            .map(|at| {
                if let Some(written) = self.writes.chunks.get(at) {
                    return Ok(written.clone());
                }
                let shown = shown.next().expect("one was shown for each that was not written")?;
                self.seen.chunks.entry(*at).or_insert(shown.origin);
                Ok(shown.found.here().map(|(chunk, _)| chunk))
            })
            .collect()
    }

    /// Stores a chunk in place of what the overlay shows there, **its entity references too**, as
    /// [`Transaction::save`](crate::Transaction::save). One that is equal to what is shown writes nothing.
    pub fn save(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        self.writes.chunks.insert(at, Some(chunk.into()));
    }

    /// Stores a chunk and keeps the entity references that are shown there, as
    /// [`Transaction::save_blocks`](crate::Transaction::save_blocks).
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn save_blocks(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) -> Result<(), Error> {
        let shown = self.load(at)?;
        self.writes.save_blocks(at, chunk.into(), shown.as_deref());
        Ok(())
    }

    /// Deletes a chunk, and its entities unless this transaction moves them. Deleting an absent one is no error.
    pub fn delete(&mut self, at: ChunkAt) {
        self.writes.chunks.insert(at, None);
    }

    /// Changes a chunk in place.
    ///
    /// # Errors
    /// [`Error::ChunkAbsent`], and as [`load`](Self::load).
    pub fn edit<T>(&mut self, at: ChunkAt, change: impl FnOnce(&mut Chunk) -> T) -> Result<T, Error> {
        if !self.writes.has_chunk(at) {
            let chunk = self.load(at)?.ok_or(Error::ChunkAbsent { at })?;
            self.writes.chunks.insert(at, Some(chunk));
        }
        self.writes.change_chunk(at, change)
    }

    /// The block in layer 0 of a cell, or `None` if its chunk is not stored.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn block(&mut self, dimension: Dimension, pos: BlockPos) -> Result<Option<BlockId>, Error> {
        let chunk = self.load(ChunkAt::new(dimension, pos.chunk()))?;
        Ok(chunk.map(|chunk| chunk.block(pos.local())))
    }

    /// Sets the block in layer 0 of a cell; returns what was there.
    ///
    /// # Errors
    /// [`Error::ChunkAbsent`], [`Error::Edit`], and as [`load`](Self::load).
    pub fn set_block(
        &mut self,
        dimension: Dimension,
        pos: BlockPos,
        block: BlockId,
    ) -> Result<BlockId, Error> {
        let schema = self.catalog.current_schema();
        let set = |chunk: &mut Chunk| chunk.set_block(pos.local(), block, &schema);
        Ok(self.edit(ChunkAt::new(dimension, pos.chunk()), set)??)
    }

    /// Replaces one component of one block.
    ///
    /// # Errors
    /// As [`Transaction::set_component`](crate::Transaction::set_component).
    pub fn set_component(
        &mut self,
        at: ChunkAt,
        place: CellLayer,
        component: ComponentId,
        bytes: &[u8],
    ) -> Result<(), Error> {
        Ok(self.edit(at, |chunk| chunk.set_component(place, component, bytes))??)
    }

    /// Replaces a chunk's data of one side kind; `None` removes it.
    ///
    /// # Errors
    /// [`Error::ChunkAbsent`], and as [`load`](Self::load).
    pub fn set_side(&mut self, at: ChunkAt, kind: SideKind, bytes: Option<Vec<u8>>) -> Result<(), Error> {
        self.edit(at, |chunk| set_side(chunk, kind, bytes))
    }

    /// An entity, or `None` if the overlay shows none.
    ///
    /// # Errors
    /// As [`Overlay::entity`].
    pub fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        if let Some(written) = self.writes.entities.get(&id) {
            return Ok(written.clone());
        }
        let shown = self.overlay.show_entity(id)?;
        self.seen.entities.entry(id).or_insert(shown.origin);
        Ok(shown.found.here().map(|(entity, _)| entity))
    }

    /// Stores an entity; the references of the chunks that own it and that owned it before follow by themselves.
    pub fn put_entity(&mut self, id: EntityId, entity: Entity) {
        self.writes.entities.insert(id, Some(entity));
    }

    /// Deletes an entity and the reference to it. Deleting an absent one is no error.
    pub fn delete_entity(&mut self, id: EntityId) {
        self.writes.entities.insert(id, None);
    }

    /// Gives an entity to a chunk or detaches it; `false` if the overlay shows no such entity.
    ///
    /// # Errors
    /// As [`entity`](Self::entity).
    pub fn move_entity(&mut self, id: EntityId, owner: Owner) -> Result<bool, Error> {
        let Some(entity) = self.entity(id)? else { return Ok(false) };
        self.put_entity(id, entity.owned_by(owner));
        Ok(true)
    }

    /// A property, or `None` if the overlay shows none.
    ///
    /// # Errors
    /// As [`Overlay::property`].
    pub fn property(&mut self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        if let Some(written) = self.writes.properties.get(property) {
            return Ok(written.clone());
        }
        let shown = self.overlay.show_property(property)?;
        self.seen.properties.entry(property.clone()).or_insert(shown.origin);
        Ok(shown.found.here().map(|(bytes, _)| bytes))
    }

    /// Sets a property; `None` removes it.
    pub fn set_property(&mut self, property: Property, bytes: Option<Vec<u8>>) {
        self.writes.properties.insert(property, bytes);
    }

    /// An object, or `None` if the overlay shows none. Of one that this transaction wrote, the version that it gets.
    ///
    /// # Errors
    /// As [`Overlay::object`], and what [`put_object_at_version`](Self::put_object_at_version) says at commit.
    pub fn object(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let key = ObjectKey::new(key)?;
        let shown = self.overlay.show_object(&key)?;
        self.seen.objects.entry(key.clone()).or_insert(shown.origin);
        self.writes.object(&key, shown.found.here().map(|(object, _)| object))
    }

    /// Writes an object, as [`Transaction::put_object`](crate::Transaction::put_object).
    ///
    /// # Errors
    /// As [`Transaction::put_object`](crate::Transaction::put_object).
    pub fn put_object(&mut self, key: impl AsRef<[u8]>, bytes: impl Into<Arc<[u8]>>) -> Result<(), Error> {
        self.writes.put_object(key, bytes)
    }

    /// Writes an object at a version that another store gave it, as
    /// [`Transaction::put_object_at_version`](crate::Transaction::put_object_at_version).
    ///
    /// # Errors
    /// As [`Transaction::put_object_at_version`](crate::Transaction::put_object_at_version).
    pub fn put_object_at_version(
        &mut self,
        key: impl AsRef<[u8]>,
        version: i64,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<(), Error> {
        self.writes.put_object_at_version(key, version, bytes)
    }

    /// Deletes an object. Deleting an absent one is no error.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have.
    pub fn delete_object(&mut self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        self.writes.delete_object(key)
    }

    /// A spatial record, or `None` if the overlay shows none.
    ///
    /// # Errors
    /// As [`Overlay::record`].
    pub fn record(&mut self, id: RecordId) -> Result<Option<Record>, Error> {
        if let Some(written) = self.writes.records.get(&id) {
            return Ok(written.as_deref().cloned());
        }
        let shown = self.overlay.show_record(id)?;
        self.seen.records.entry(id).or_insert(shown.origin);
        Ok(shown.found.here().map(|(record, _)| Arc::unwrap_or_clone(record)))
    }

    /// Stores a record, in place of the one with this id wherever that lies; one equal to it writes nothing.
    pub fn put_record(&mut self, id: RecordId, record: Record) {
        self.writes.records.insert(id, Some(Arc::new(record)));
    }

    /// Moves a record, leaving the rest of it as it is; `false` if the overlay shows no such record.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn move_record(&mut self, id: RecordId, position: EntityPos) -> Result<bool, Error> {
        let Some(record) = self.record(id)? else { return Ok(false) };
        self.put_record(id, record.moved_to(position));
        Ok(true)
    }

    /// Deletes a record. Deleting an absent one is no error.
    pub fn delete_record(&mut self, id: RecordId) {
        self.writes.records.insert(id, None);
    }

    /// As [`put_object_at_version`](Self::put_object_at_version), of an object that is deleted at its version too.
    pub(super) fn write_stored_object(&mut self, key: ObjectKey, object: &StoredObject) -> Result<(), Error> {
        self.writes.write_object(key, ObjectWrite::PutAt(object.version, object.bytes.clone()))
    }

    pub(super) fn overlay(&self) -> &Overlay<S> {
        self.overlay
    }

    fn commit(self) -> Result<(), Error> {
        let Self { overlay, catalog, writes, seen } = self;
        let ground = OverlayGround { overlay, origins: RefCell::default() };
        let settled = settle(&ground, &writes.chunks, &writes.entities)?;
        let check = Check { catalog: &catalog, limits: &overlay.store.limits };
        let now = ground.origins.into_inner();
        let Origins { mut chunks, mut entities, properties, objects, records } = seen;
        // What the closure did not write itself is as it is now, but for a reference.
        chunks.retain(|at, _| writes.chunks.contains_key(at));
        entities.retain(|id, _| writes.entities.contains_key(id));
        let mut edits = Edits::default();
        for (at, change) in settled.chunks {
            if let Some(new) = &change.new {
                check.chunk(at, new)?;
            }
            let origin = chunks.get(&at).or_else(|| now.chunks.get(&at)).copied().unwrap_or_default();
            edits.chunks.push((at, change.new, origin));
        }
        for (id, entity) in settled.entities {
            if let Some(entity) = &entity {
                check.entity(id, entity)?;
            }
            let origin = entities.get(&id).or_else(|| now.entities.get(&id)).copied().unwrap_or_default();
            edits.entities.push((id, entity, origin));
        }
        for (property, new) in writes.properties {
            let Shown { found, origin } = overlay.show_property(&property)?;
            if found.here().map(|(bytes, _)| bytes) == new {
                continue;
            }
            check.property(&property, new.as_deref())?;
            let origin = properties.get(&property).copied().unwrap_or(origin);
            edits.properties.push((property, new, origin));
        }
        for (key, write) in writes.objects {
            let Shown { found, origin } = overlay.show_object(&key)?;
            let stored = found.here().map(|(object, _)| object);
            if let Some(after) = write.after(&key, stored.as_ref())? {
                check.object(&key, &after)?;
                let origin = objects.get(&key).copied().unwrap_or(origin);
                edits.objects.push((key, after, origin));
            }
        }
        let shape = overlay.store.base.record_shape();
        for (id, new) in writes.records {
            let Shown { found, origin } = overlay.show_record(id)?;
            if found.here().map(|(record, _)| record) == new {
                continue;
            }
            if let Some(record) = &new {
                check.record(id, record)?;
            }
            let own = overlay.store.record(overlay.lease(), id)?;
            let old = own.and_then(|row| row.value.here()).map(|record| leaf_of(shape, &record));
            let new = new.map(|record| (leaf_of(shape, &record), record));
            let origin = records.get(&id).copied().unwrap_or(origin);
            edits.records.push((id, RecordEdit { old, new }, origin));
        }
        if !edits.is_empty() {
            overlay.store.write(overlay.lease(), edits, catalog.current_generation())?;
        }
        Ok(())
    }
}

impl<S: Base> ChunkSink for OverlayTransaction<'_, S> {
    type Error = Error;

    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Error> {
        OverlayTransaction::save(self, at, chunk);
        Ok(())
    }

    fn delete(&mut self, at: ChunkAt) -> Result<(), Error> {
        OverlayTransaction::delete(self, at);
        Ok(())
    }
}

impl<S: Base> Editor for OverlayTransaction<'_, S> {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        OverlayTransaction::load(self, at)
    }

    fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        OverlayTransaction::load_many(self, at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog.current_schema())
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        OverlayTransaction::entity(self, id)
    }

    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Error> {
        OverlayTransaction::put_entity(self, id, entity);
        Ok(())
    }

    fn delete_entity(&mut self, id: EntityId) -> Result<(), Error> {
        OverlayTransaction::delete_entity(self, id);
        Ok(())
    }
}

/// What an overlay's transaction stands on, with what was there before the overlay.
struct OverlayGround<'o, S: Base> {
    overlay: &'o Overlay<S>,
    origins: RefCell<Origins>,
}

#[derive(Debug, Default)]
struct Origins {
    chunks: BTreeMap<ChunkAt, Origin>,
    entities: BTreeMap<EntityId, Origin>,
    properties: BTreeMap<Property, Origin>,
    objects: BTreeMap<ObjectKey, Origin>,
    records: BTreeMap<RecordId, Origin>,
}

impl<S: Base> OverlayGround<'_, S> {
    fn note(&self, at: ChunkAt, shown: Shown<Arc<Chunk>>) -> Lookup<Stored> {
        self.origins.borrow_mut().chunks.insert(at, shown.origin);
        shown.found.map(|(chunk, from)| Stored { chunk, version: from.version, is_current: true })
    }
}

impl<S: Base> Ground for OverlayGround<'_, S> {
    fn stored(&self, at: ChunkAt) -> Result<Lookup<Stored>, Error> {
        Ok(self.note(at, self.overlay.show_chunk(at)?))
    }

    fn stored_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        let shown = self.overlay.show_chunks(at);
        at.iter().zip(shown).map(|(at, shown)| Ok(self.note(*at, shown?))).collect()
    }

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        let shown = self.overlay.show_entity(id)?;
        self.origins.borrow_mut().entities.insert(id, shown.origin);
        Ok(shown.found.here().map(|(entity, _)| entity))
    }
}
