//! Transactions of an overlay: one at a time, visible as a whole or not at all.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId};
use cg_store::layer::kind::{self, Chunks, Entities, Kind, Objects, Properties, Records};
use cg_store::layer::{
    Base, Check, Checked as _, Ground, Stored, TxStore, ValueStore, begin, end, host, resolve_ownership,
    store_of,
};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, ErrorKind, Property, Tx, each_kind, kind_map};

use super::handle::Overlay;
use super::layered::Layered;
use crate::merge::MergeKind;
use crate::store::{Edit, Edits, Row, Store, Written};

/// A running transaction of an overlay. It reads the overlay and its own writes. It writes nothing before its closure
/// has returned without an error.
///
/// The rules are those of a world's [`Transaction`](cg_store::Transaction): references and owners of entities follow
/// each other, ids must be registered, limits hold.
pub type OverlayTransaction<'o, S> = Tx<OverlayReads<'o, S>>;

/// An overlay, and the origins that a transaction has read from it.
#[derive(Debug)]
pub struct OverlayReads<'o, S: Base> {
    overlay: &'o Overlay<S>,
    /// The origins at the first read of each key. The closure's writes are based on them, whatever the base changed
    /// since.
    seen: Origins,
}

impl<S: Base> Overlay<S> {
    /// Runs a closure once and writes its changes to the overlay as one batch, or nothing if it returns an error.
    ///
    /// One transaction runs at a time, and the next one waits for it. Reads continue meanwhile. So there are no
    /// conflicts.
    ///
    /// Inside a closure of another overlay, the call also waits for transactions of the overlays below this one, if batches
    /// wait in both. So transactions of several overlays are nested in one order on all threads, the upper layers first.
    ///
    /// # Errors
    /// The closure's own error; [`Error::Nested`] if this thread is inside a transaction of this overlay; the
    /// ownership, damage and limit errors of [`Error`]; the errors of [`catalog`](Self::catalog) and
    /// [`load`](Self::load).
    pub fn transaction<T, X: From<Error>>(
        &self,
        body: impl FnOnce(&mut OverlayTransaction<'_, S>) -> Result<T, X>,
    ) -> Result<T, X> {
        let _alone = self.write()?;
        let catalog = self.store().catalog()?;
        let mut tx = begin(OverlayReads::new(self), catalog);
        let value = host(|| body(&mut tx))?;
        commit(tx)?.whole()?;
        Ok(value)
    }
}

impl<'o, S: Base> OverlayReads<'o, S> {
    pub(super) fn new(overlay: &'o Overlay<S>) -> Self {
        Self { overlay, seen: Origins::default() }
    }
}

impl<S: Base> OverlayReads<'_, S> {
    /// Reads a value of the overlay. The origin at the first read is kept.
    fn see<K: MergeKind>(
        overlay: &Overlay<S>,
        seen: &mut Seen<K>,
        key: &K::Key,
    ) -> Result<Option<K::Value>, Error> {
        let shown = overlay.layered_to_write::<K>(key)?;
        seen.entry(key.clone()).or_insert(shown.origin);
        Ok(shown.value())
    }
}

impl<S: Base> TxStore for OverlayReads<'_, S> {
    fn chunk(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        Self::see::<Chunks>(self.overlay, &mut self.seen.chunks, &at)
    }

    fn chunks(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        let shown = self.overlay.layered_chunks_to_write(at);
        let mut see = |(at, shown): (&ChunkAt, Result<Layered<Arc<Chunk>>, Error>)| {
            let shown = shown?;
            self.seen.chunks.entry(*at).or_insert(shown.origin);
            Ok(shown.value())
        };
        at.iter().zip(shown).map(&mut see).collect()
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        Self::see::<Entities>(self.overlay, &mut self.seen.entities, &id)
    }
}

impl<S: Base> ValueStore for OverlayReads<'_, S> {
    fn property(&mut self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        Self::see::<Properties>(self.overlay, &mut self.seen.properties, property)
    }

    fn object(&mut self, key: &ObjectKey) -> Result<Option<StoredObject>, Error> {
        Self::see::<Objects>(self.overlay, &mut self.seen.objects, key)
    }

    fn record(&mut self, id: RecordId) -> Result<Option<Arc<Record>>, Error> {
        Self::see::<Records>(self.overlay, &mut self.seen.records, &id)
    }
}

/// The overlay of a transaction.
pub(super) fn overlay_of<'o, S: Base>(tx: &OverlayTransaction<'o, S>) -> &'o Overlay<S> {
    store_of(tx).overlay
}

/// Writes the changes of a transaction to its overlay.
/// Returns the commit; the last one if nothing was changed.
///
/// # Errors
/// Nothing was written.
pub(super) fn commit<S: Base>(tx: OverlayTransaction<'_, S>) -> Result<Written, Error> {
    let (OverlayReads { overlay, seen }, catalog, writes) = end(tx);
    let has_writes = !writes.is_empty();
    let ground = OverlayGround { overlay, origins: RefCell::default() };
    let resolved = resolve_ownership(&ground, &writes.chunks, &writes.entities)?;
    let now = ground.origins.into_inner();
    let mut edits = Edits::default();
    for (at, change) in resolved.chunks {
        // A value that the closure did not write keeps its present origin: only a reference in it changes.
        let seen = seen.chunks.get(&at).filter(|_| writes.chunks.contains_key(&at));
        let origin = seen.or_else(|| now.chunks.get(&at)).copied().unwrap_or_default();
        edits.chunks.push((at, change.new, origin));
    }
    for (id, entity) in resolved.entities {
        let seen = seen.entities.get(&id).filter(|_| writes.entities.contains_key(&id));
        let origin = seen.or_else(|| now.entities.get(&id)).copied().unwrap_or_default();
        edits.entities.push((id, entity, origin));
    }
    edits.properties =
        overlay.changed::<Properties>(writes.properties, &seen.properties, |_, stored, new| {
            Ok((stored != new).then_some(new))
        })?;
    edits.objects = overlay.changed::<Objects>(writes.objects, &seen.objects, |key, stored, write| {
        Ok(write.after(key, stored.as_ref())?.map(Some))
    })?;
    edits.records = overlay.changed::<Records>(writes.records, &seen.records, |_, stored, new| {
        Ok((stored != new).then_some(new))
    })?;
    let Store { limits, values, .. } = overlay.store();
    let check = Check { catalog: &catalog, limits, values };
    each_kind!(edits, |edits: K| {
        let mut values = edits.iter().filter_map(|(key, new, _)| Some((key, new.as_ref()?)));
        values.try_for_each(|(key, value)| K::check(&check, key, value))?;
    });
    if edits.is_empty() {
        if has_writes {
            // Here and in the base all is as the transaction leaves it, and must be as durable as its rows would be.
            overlay.store().keep_found(overlay.store().rows.level())?;
        }
        return Ok(Written::Applied(overlay.store().rows.engine().last_commit().get()));
    }
    overlay.store().write(overlay.lease(), edits, catalog.current_generation())
}

impl<S: Base> Overlay<S> {
    /// As [`layered`](Self::layered), for a value that may be written. If a merge that ended early has written the value
    /// to the base, its origin is the base's present one. That costs a read of the base and another of the row; nothing
    /// in an arena without such rows.
    ///
    /// The row is read after the base, because a delta has its value over the base's present chunk. So a change of the
    /// base in between, or later, is a conflict.
    fn layered_to_write<K: MergeKind>(&self, key: &K::Key) -> Result<Layered<K::Value>, Error> {
        let merged_until = self.arena.merged_until.load(Ordering::Acquire);
        let lease = self.lease();
        let is_merged = |row: &Row<K::Value>| row.version <= merged_until;
        if merged_until == 0 || !K::read(self.store(), lease, key)?.as_ref().is_some_and(is_merged) {
            return self.of_one_lease(|lease| match K::read(self.store(), lease, key)? {
                Some(row) => Ok(self.here(K::to_write(self.store(), lease, key, row)?)),
                None => self.below(K::find(&self.store().base, key)),
            });
        }
        let below = match K::find(&self.store().base, key) {
            // The merge reports it.
            Err(error) if error.kind() == ErrorKind::Damaged => return self.layered::<K>(key),
            below => below?,
        };
        match K::read(self.store(), lease, key)? {
            Some(row) => {
                let origin = self.store().present_origin::<K>(lease, &row, &below)?;
                let row = Row { origin, ..row };
                Ok(self.here(K::to_write(self.store(), lease, key, row)?))
            }
            None => self.layered::<K>(key),
        }
    }

    /// As [`layered_to_write`](Self::layered_to_write), for chunks.
    fn layered_chunks_to_write(&self, at: &[ChunkAt]) -> Vec<Result<Layered<Arc<Chunk>>, Error>> {
        if self.arena.merged_until.load(Ordering::Acquire) == 0 {
            return self.layered_chunks_of(at, |lease, at| {
                let row = self.store().chunk(lease, at)?;
                row.map(|row| Chunks::to_write(self.store(), lease, &at, row)).transpose()
            });
        }
        at.iter().map(|at| self.layered_to_write::<Chunks>(at)).collect()
    }

    /// The edits of one kind in a transaction. `after` returns the new value of a key, or `None` if it does not
    /// change.
    fn changed<K: MergeKind>(
        &self,
        writes: BTreeMap<K::Key, K::Write>,
        seen: &Seen<K>,
        after: impl Fn(&K::Key, Option<K::Value>, K::Write) -> Result<Option<Option<K::Value>>, Error>,
    ) -> Result<Vec<Edit<K>>, Error> {
        let mut edits = Vec::new();
        for (key, write) in writes {
            let shown = self.layered_to_write::<K>(&key)?;
            let origin = seen.get(&key).copied().unwrap_or(shown.origin);
            if let Some(new) = after(&key, shown.value(), write)? {
                edits.push((key, new, origin));
            }
        }
        Ok(edits)
    }
}

/// An overlay as ownership is resolved against it, with the origins of the values read.
struct OverlayGround<'o, S: Base> {
    overlay: &'o Overlay<S>,
    origins: RefCell<Origins>,
}

/// The origins at the first read of each key.
type Seen<K> = BTreeMap<<K as Kind>::Key, Origin>;

kind_map! {
    #[derive(Debug, Default)]
    struct Origins of Seen
}

impl<S: Base> OverlayGround<'_, S> {
    fn note(&self, at: ChunkAt, shown: Layered<Arc<Chunk>>) -> Lookup<Stored> {
        self.origins.borrow_mut().chunks.insert(at, shown.origin);
        shown.found.map(|(chunk, from)| Stored { chunk, version: from.version, is_current: true })
    }
}

impl<S: Base> Ground for OverlayGround<'_, S> {
    fn stored_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        let shown = self.overlay.layered_chunks_to_write(at);
        at.iter().zip(shown).map(|(at, shown)| Ok(self.note(*at, shown?))).collect()
    }

    fn entities(&self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        let shown = |id: &EntityId| {
            let shown = self.overlay.layered_to_write::<Entities>(id)?;
            self.origins.borrow_mut().entities.insert(*id, shown.origin);
            Ok(shown.value())
        };
        ids.iter().map(shown).collect()
    }
}
