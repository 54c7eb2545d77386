//! Transactions of an overlay: one at a time, seen together or not at all.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId};
use cg_store::layer::{
    Base, Check, Ground, MutexGuard, Stored, begin, end, host, leaf_of, resolve_ownership, store_of,
};
use cg_store::layer::{TxStore, ValueStore};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Property, Tx};

use super::arena::Arena;
use super::edits::{Edits, RecordEdit};
use super::{Overlay, Shown};

/// A running transaction of an overlay: sees what the overlay shows and what it wrote itself; writes nothing before its
/// closure has ended well.
///
/// The rules are those of a world's [`Transaction`](cg_store::Transaction): references and owners of entities follow each
/// other, ids must be registered, limits hold.
pub type OverlayTransaction<'o, S> = Tx<OverlayReads<'o, S>>;

/// An overlay, and what a transaction has seen of it.
#[derive(Debug)]
pub struct OverlayReads<'o, S: Base> {
    overlay: &'o Overlay<S>,
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
        let mut tx = begin(OverlayReads { overlay: self, seen: Origins::default() }, catalog);
        let value = host(|| body(&mut tx))?;
        commit(tx)?;
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

impl<S: Base> TxStore for OverlayReads<'_, S> {
    fn chunk(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        let shown = self.overlay.show_chunk(at)?;
        self.seen.chunks.entry(at).or_insert(shown.origin);
        Ok(shown.found.here().map(|(chunk, _)| chunk))
    }

    fn chunks(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        let shown = self.overlay.show_chunks(at);
        let mut see = |(at, shown): (&ChunkAt, Result<Shown<Arc<Chunk>>, Error>)| {
            let shown = shown?;
            self.seen.chunks.entry(*at).or_insert(shown.origin);
            Ok(shown.found.here().map(|(chunk, _)| chunk))
        };
        at.iter().zip(shown).map(&mut see).collect()
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        let shown = self.overlay.show_entity(id)?;
        self.seen.entities.entry(id).or_insert(shown.origin);
        Ok(shown.found.here().map(|(entity, _)| entity))
    }
}

impl<S: Base> ValueStore for OverlayReads<'_, S> {
    fn property(&mut self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        let shown = self.overlay.show_property(property)?;
        self.seen.properties.entry(property.clone()).or_insert(shown.origin);
        Ok(shown.found.here().map(|(bytes, _)| bytes))
    }

    fn object(&mut self, key: &ObjectKey) -> Result<Option<StoredObject>, Error> {
        let shown = self.overlay.show_object(key)?;
        self.seen.objects.entry(key.clone()).or_insert(shown.origin);
        Ok(shown.found.here().map(|(object, _)| object))
    }

    fn record(&mut self, id: RecordId) -> Result<Option<Arc<Record>>, Error> {
        let shown = self.overlay.show_record(id)?;
        self.seen.records.entry(id).or_insert(shown.origin);
        Ok(shown.found.here().map(|(record, _)| record))
    }
}

/// The overlay that a transaction is of.
pub(super) fn overlay_of<'o, S: Base>(tx: &OverlayTransaction<'o, S>) -> &'o Overlay<S> {
    store_of(tx).overlay
}

/// Writes what a transaction wrote into its overlay.
fn commit<S: Base>(tx: OverlayTransaction<'_, S>) -> Result<(), Error> {
    let (OverlayReads { overlay, seen }, catalog, writes) = end(tx);
    let ground = OverlayGround { overlay, origins: RefCell::default() };
    let resolved = resolve_ownership(&ground, &writes.chunks, &writes.entities)?;
    let check = Check { catalog: &catalog, limits: &overlay.store.limits };
    let now = ground.origins.into_inner();
    let Origins { mut chunks, mut entities, properties, objects, records } = seen;
    // What the closure did not write itself is as it is now, but for a reference.
    chunks.retain(|at, _| writes.chunks.contains_key(at));
    entities.retain(|id, _| writes.entities.contains_key(id));
    let mut edits = Edits::default();
    for (at, change) in resolved.chunks {
        if let Some(new) = &change.new {
            check.chunk(at, new)?;
        }
        let origin = chunks.get(&at).or_else(|| now.chunks.get(&at)).copied().unwrap_or_default();
        edits.chunks.push((at, change.new, origin));
    }
    for (id, entity) in resolved.entities {
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
    fn stored_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        let shown = self.overlay.show_chunks(at);
        at.iter().zip(shown).map(|(at, shown)| Ok(self.note(*at, shown?))).collect()
    }

    fn entities(&self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        let shown = |id: &EntityId| {
            let shown = self.overlay.show_entity(*id)?;
            self.origins.borrow_mut().entities.insert(*id, shown.origin);
            Ok(shown.found.here().map(|(entity, _)| entity))
        };
        ids.iter().map(shown).collect()
    }
}
