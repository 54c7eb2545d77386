//! Transactions of an overlay: one at a time, seen together or not at all.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, Owner};
use cg_format::overlay::Origin;
use cg_format::{
    BlockId, BlockPos, ChunkAt, ChunkSink, ComponentId, Dimension, Editor, EntityId, Lookup, SchemaView,
    SideKind,
};
use cg_registry::Catalog;
use parking_lot::MutexGuard;

use super::arena::Arena;
use super::base::Base;
use super::store::Edits;
use super::{Overlay, Shown};
use crate::cache::Stored;
use crate::engine::Engine;
use crate::error::Error;
use crate::transaction::{Check, Ground, settle};

/// A running transaction of an overlay: sees what the overlay shows and what it wrote itself; writes nothing before its
/// closure has ended well.
///
/// The rules are those of a world's [`Transaction`](crate::Transaction): references and owners of entities follow each
/// other, ids must be registered, limits hold.
#[derive(Debug)]
pub struct OverlayTransaction<'o, S: Base, E: Engine> {
    overlay: &'o Overlay<S, E>,
    catalog: Arc<Catalog>,
    chunks: BTreeMap<ChunkAt, Option<Arc<Chunk>>>,
    entities: BTreeMap<EntityId, Option<Entity>>,
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

impl<S: Base, E: Engine> Overlay<S, E> {
    /// Runs a closure once and writes what it changed into the overlay as one batch, or nothing if it returns an error.
    ///
    /// One transaction runs at a time, and waits for the one before it; reads go on beside it. So it never meets a conflict.
    ///
    /// # Errors
    /// The closure's own error; [`Error::Nested`] if this thread is inside a transaction of this overlay; the ownership,
    /// damage and limit errors of [`Error`]; the errors of [`catalog`](Self::catalog) and [`load`](Self::load).
    pub fn transaction<T, X: From<Error>>(
        &self,
        body: impl FnOnce(&mut OverlayTransaction<'_, S, E>) -> Result<T, X>,
    ) -> Result<T, X> {
        let _alone = self.write()?;
        let catalog = self.store.catalog()?;
        let mut tx = OverlayTransaction {
            overlay: self,
            catalog,
            chunks: BTreeMap::new(),
            entities: BTreeMap::new(),
            seen: Origins::default(),
        };
        let value = body(&mut tx)?;
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

impl<S: Base, E: Engine> OverlayTransaction<'_, S, E> {
    /// The overlay's names as they were when the transaction began.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// A chunk, or `None` if it is not stored: generate it then. Costs what [`Overlay::load`] costs.
    ///
    /// # Errors
    /// As [`Overlay::load`].
    pub fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        if let Some(written) = self.chunks.get(&at) {
            return Ok(written.clone());
        }
        let shown = self.overlay.show_chunk(at)?;
        self.seen.chunks.entry(at).or_insert(shown.origin);
        Ok(shown.found.here().map(|(chunk, _)| chunk))
    }

    /// Many chunks, as [`load`](Self::load) loads each; one result per position in the order asked. Those that the overlay
    /// does not hold itself are asked of its base together.
    pub fn load_many(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        let unwritten: Vec<_> = at.iter().copied().filter(|at| !self.chunks.contains_key(at)).collect();
        let mut shown = self.overlay.show_chunks(&unwritten).into_iter();
        at.iter()
            .map(|at| {
                if let Some(written) = self.chunks.get(at) {
                    return Ok(written.clone());
                }
                let shown = shown.next().expect("one was shown for each that was not written")?;
                self.seen.chunks.entry(*at).or_insert(shown.origin);
                Ok(shown.found.here().map(|(chunk, _)| chunk))
            })
            .collect()
    }

    /// Stores a chunk with its side data and its entity references, replacing what the overlay shows there. One that is
    /// equal to what is shown writes nothing.
    pub fn save(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        self.chunks.insert(at, Some(chunk.into()));
    }

    /// Deletes a chunk, and its entities unless this transaction moves them. Deleting an absent one is no error.
    pub fn delete(&mut self, at: ChunkAt) {
        self.chunks.insert(at, None);
    }

    /// Changes a chunk in place.
    ///
    /// # Errors
    /// [`Error::ChunkAbsent`], and as [`load`](Self::load).
    pub fn edit<T>(&mut self, at: ChunkAt, change: impl FnOnce(&mut Chunk) -> T) -> Result<T, Error> {
        if !matches!(self.chunks.get(&at), Some(Some(_))) {
            let chunk = self.load(at)?.ok_or(Error::ChunkAbsent { at })?;
            self.chunks.insert(at, Some(chunk));
        }
        match self.chunks.get_mut(&at) {
            Some(Some(chunk)) => Ok(change(Arc::make_mut(chunk))),
            _ => Err(Error::ChunkAbsent { at }),
        }
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
        self.edit(at, |chunk| match bytes {
            Some(bytes) => drop(chunk.set_side(kind, bytes)),
            None => drop(chunk.remove_side(kind)),
        })
    }

    /// An entity, or `None` if the overlay shows none.
    ///
    /// # Errors
    /// As [`Overlay::entity`].
    pub fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        if let Some(written) = self.entities.get(&id) {
            return Ok(written.clone());
        }
        let shown = self.overlay.show_entity(id)?;
        self.seen.entities.entry(id).or_insert(shown.origin);
        Ok(shown.found.here().map(|(entity, _)| entity))
    }

    /// Stores an entity; the references of the chunks that own it and that owned it before follow by themselves.
    pub fn put_entity(&mut self, id: EntityId, entity: Entity) {
        self.entities.insert(id, Some(entity));
    }

    /// Deletes an entity and the reference to it. Deleting an absent one is no error.
    pub fn delete_entity(&mut self, id: EntityId) {
        self.entities.insert(id, None);
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

    pub(super) fn overlay(&self) -> &Overlay<S, E> {
        self.overlay
    }

    fn commit(self) -> Result<(), Error> {
        let ground = OverlayGround { overlay: self.overlay, origins: RefCell::default() };
        let settled = settle(&ground, &self.chunks, &self.entities)?;
        let check = Check { catalog: &self.catalog, limits: &self.overlay.store.limits };
        let now = ground.origins.into_inner();
        let Origins { mut chunks, mut entities } = self.seen;
        // What the closure did not write itself is as it is now, but for a reference.
        chunks.retain(|at, _| self.chunks.contains_key(at));
        entities.retain(|id, _| self.entities.contains_key(id));
        let mut edits = Edits::default();
        for (at, change) in settled.chunks {
            if !change.is_change() {
                continue;
            }
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
        if !edits.chunks.is_empty() || !edits.entities.is_empty() {
            let generation = self.catalog.current_generation();
            self.overlay.store.write(self.overlay.lease(), edits, generation)?;
        }
        Ok(())
    }
}

impl<S: Base, E: Engine> ChunkSink for OverlayTransaction<'_, S, E> {
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

impl<S: Base, E: Engine> Editor for OverlayTransaction<'_, S, E> {
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
struct OverlayGround<'o, S: Base, E: Engine> {
    overlay: &'o Overlay<S, E>,
    origins: RefCell<Origins>,
}

#[derive(Debug, Default)]
struct Origins {
    chunks: BTreeMap<ChunkAt, Origin>,
    entities: BTreeMap<EntityId, Origin>,
}

impl<S: Base, E: Engine> OverlayGround<'_, S, E> {
    fn note(&self, at: ChunkAt, shown: Shown<Arc<Chunk>>) -> Lookup<Stored> {
        self.origins.borrow_mut().chunks.insert(at, shown.origin);
        shown.found.map(|(chunk, from)| Stored { chunk, version: from.version, is_current: true })
    }
}

impl<S: Base, E: Engine> Ground for OverlayGround<'_, S, E> {
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
