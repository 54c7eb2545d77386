//! Merges an overlay into its base.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::RecordId;
use cg_format::entity::{Entity, Owner};
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_registry::{Catalog, Registration};
use cg_store::engine::Level;
use cg_store::layer::kind::{self, Chunks, Entities, Kind, Objects, Properties, Records};
use cg_store::layer::{
    Base, Found, Mutex, MutexGuard, TxStore, ValueStore, origin_of, rank, reason, write_stored_object,
};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Durability, Error, ErrorKind, Tx, World, each_kind, kind_map};

use super::diff::Change;
use super::kind::OverlayKind;
use super::transaction::{Writing, overlay_of};
use super::{Overlay, OverlayError};

/// At most this many chunks of a target are in memory while they are compared.
const LOOKED_AT_ONCE: usize = 1024;

/// The rights that a merge holds: that of its target, if there is one, and that of the overlay.
type MergeRights<'a> = (Option<MutexGuard<'a, ()>>, Writing<'a>);

/// The changes of one kind in a merge.
type Items<K> = BTreeMap<<K as Kind>::Key, MergeItem<<K as Kind>::Value>>;

kind_map! {
    /// The changes that a merge makes in its target. They include deleted objects.
    #[derive(Debug, Default)]
    pub struct OverlayMerge of pub(crate) Items
}

/// One value to be merged; `None` is a deletion.
#[derive(Debug)]
pub(crate) struct MergeItem<T> {
    pub(crate) new: Option<T>,
    /// The origin that the target's value must still have.
    pub(crate) origin: Origin,
    /// Whether an entity transfer must end first. Until then, the overlay's value is not `new`.
    waits: bool,
}

/// The result of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverlayMerged {
    /// Chunks, entities, properties, objects and records that were changed in the base.
    pub changes: u64,
}

impl<S: Base> Overlay<S> {
    /// Merges all values that differ into the base, and empties the overlay.
    ///
    /// The overlay's own names are registered in the base first. Everything else is one transaction, which survives a
    /// power cut when this returns. After a crash before the transaction, only names are merged. After a later crash,
    /// no value differs from the base's, and merging again changes nothing.
    ///
    /// A segmented world takes one transaction for each segment, one after the other. One in the root follows, for
    /// properties, objects and records. Readers of several segments may see some merged and others not yet. An entity
    /// that goes to another segment is detached until its transfer. The overlay deletes its rows of each merged part.
    /// After a crash or an error it keeps the rest: call this again to continue. Nothing is merged twice. The overlay
    /// may be edited before that.
    ///
    /// Other readers of this overlay see the same values before and after. Costs [`diff`](Self::diff), the
    /// transactions, and the memory of everything that differs.
    ///
    /// # Errors
    /// [`OverlayError::WrongBase`] and [`OverlayError::BaseReplaced`] if it is not the overlay's base.
    /// [`OverlayError::BaseChanged`] if the base has changed a value since the overlay wrote over it.
    /// [`Error::Conflict`] if a value changes meanwhile. This call has merged nothing then, because it compares all
    /// segments before it writes the first. [`MergedInPart`](crate::MergedInPart) if a segment is refused, changed or
    /// fails after others were merged.
    pub fn merge_into(&self, base: &impl MergeTarget) -> Result<OverlayMerged, Error> {
        self.store.head().check(base.identity())?;
        let _alone = self.write_to_merge(base)?;
        base.begin_merge()?;
        if let Some(names) = self.store.own_names() {
            // Fails if the base has issued the same ids for other names.
            self.store.catalog()?;
            base.register_names(&names)?;
            self.store.names_adopted()?;
        }
        let mut merge = OverlayMerge::default();
        self.store.in_view(self.lease(), |rows| {
            each_kind!(mut merge, |items: K| {
                rows.for_each_change::<K>(|Change { key, new, origin, .. }| {
                    items.insert(key, MergeItem { new, origin, waits: false });
                    Ok(())
                })?;
            });
            Ok::<_, Error>(())
        })?;
        // From here on the base may contain what the rows do.
        self.arena.merged_until.store(self.store.engine.last_commit().get(), Ordering::Release);
        let mut merged = |part: &OverlayMerge| self.forget_merged(part);
        let changes = if merge.is_empty() { 0 } else { self.apply(base, merge, &mut merged)? };
        // Values that were equal already may not be synced yet.
        base.keep_found(Level::Power)?;
        self.empty()?;
        Ok(OverlayMerged { changes })
    }

    /// Applies a merge to the base. The store notes it first, unless the base refuses: of a row that may be merged it is
    /// not known what the base has changed since.
    fn apply(
        &self,
        base: &impl MergeTarget,
        merge: OverlayMerge,
        merged: &mut Merged<'_>,
    ) -> Result<u64, Error> {
        self.store.note_merge(self.lease(), Some(self.store.engine.last_commit().get()))?;
        let applied = base.apply(merge, merged);
        let is_refused = |error: &Error| {
            error.kind() == ErrorKind::Conflict
                || matches!(error.layer(), Some(OverlayError::BaseChanged { .. }))
        };
        if applied.as_ref().is_err_and(is_refused) {
            self.store.note_merge(self.lease(), None)?;
        }
        applied
    }

    /// Waits for the right to write, and for the target's [lock](MergeTarget::merge_lock).
    ///
    /// It waits for each without holding the other. A user of a segment may wait for this overlay, while a deletion of
    /// that segment holds the target's lock and waits for the user.
    fn write_to_merge<'a>(&'a self, base: &'a impl MergeTarget) -> Result<MergeRights<'a>, Error> {
        let target = base.merge_lock()?;
        loop {
            let writing = self.write()?;
            let Some(lock) = target else { return Ok((None, writing)) };
            if let Some(guard) = lock.try_lock() {
                return Ok((Some(guard), writing));
            }
            drop(writing);
            drop(lock.lock());
        }
    }

    /// Deletes the rows that a part has merged. Rows that wait for a transfer stay.
    fn forget_merged(&self, part: &OverlayMerge) -> Result<(), Error> {
        fn merged<K: Kind>(items: &Items<K>) -> Vec<K::Key> {
            items.iter().filter(|(_, item)| !item.waits).map(|(key, _)| key.clone()).collect()
        }
        let (chunks, entities) = (merged::<Chunks>(&part.chunks), merged::<Entities>(&part.entities));
        self.store.forget(self.lease(), &chunks, &entities)
    }
}

impl<T: PartialEq> MergeItem<T> {
    /// Refuses if the origin found is not the one that was written over.
    fn unchanged<K: Kind<Value = T>>(&self, key: &K::Key, found: &Found<T>) -> Result<(), OverlayError> {
        let (expected, found) = (self.origin, origin_of(found));
        if expected == found {
            return Ok(());
        }
        Err(OverlayError::BaseChanged { key: K::conflict_key(key), expected, found })
    }

    /// Merges another value for now, until an entity is transferred.
    pub(crate) fn wait_as(&mut self, new: T) {
        self.new = Some(new);
        self.waits = true;
    }
}

impl OverlayMerge {
    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many chunks, entities, properties, objects and records change.
    pub fn len(&self) -> u64 {
        each_kind!(self, |items| items.len() as u64).iter().sum()
    }

    fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &StoredObject)> {
        self.objects.iter().filter_map(|(key, item)| Some((key, item.new.as_ref()?)))
    }

    fn records(&self) -> impl Iterator<Item = (RecordId, Option<Record>)> {
        self.records.iter().map(|(id, item)| (*id, item.new.as_deref().cloned()))
    }

    /// Moves the values that wait for a transfer to `arrived`, where they no longer wait.
    pub(crate) fn arrive(self, arrived: &mut Self) {
        fn arrive<K: Kind>(items: Items<K>) -> impl Iterator<Item = (K::Key, MergeItem<K::Value>)> {
            let waiting = items.into_iter().filter(|(_, item)| item.waits);
            waiting.map(|(key, item)| (key, MergeItem { waits: false, ..item }))
        }
        arrived.chunks.extend(arrive::<Chunks>(self.chunks));
        arrived.entities.extend(arrive::<Entities>(self.entities));
    }

    /// Refuses if the target has changed a value that was written over. The caller has read the same keys in a
    /// transaction before, so a later change is a conflict.
    pub(crate) fn check(&self, target: &impl Base) -> Result<(), Error> {
        let chunks: Vec<_> = self.chunks.iter().collect();
        for some in chunks.chunks(LOOKED_AT_ONCE) {
            let positions: Vec<_> = some.iter().map(|(at, _)| **at).collect();
            for ((at, item), found) in some.iter().zip(target.find_chunks(&positions)) {
                item.unchanged::<Chunks>(at, &found?)?;
            }
        }
        unchanged::<Entities>(&self.entities, target)?;
        unchanged::<Properties>(&self.properties, target)?;
        unchanged::<Objects>(&self.objects, target)?;
        unchanged::<Records>(&self.records, target)
    }

    /// Reads all keys that it changes, compares their origins with those written over, and changes them. The
    /// transaction detects what changes after the reads.
    pub(crate) fn put_into<S: ValueStore>(&self, tx: &mut Tx<S>, target: &impl Base) -> Result<u64, Error> {
        self.look_at_places(tx)?;
        self.properties.keys().try_for_each(|property| tx.property(property).map(drop))?;
        self.objects.keys().try_for_each(|key| tx.object(key).map(drop))?;
        self.records.keys().try_for_each(|id| tx.record(*id).map(drop))?;
        self.check(target)?;
        self.write_places(tx);
        for (property, item) in &self.properties {
            tx.set_property(property.clone(), item.new.clone());
        }
        for (key, object) in self.objects() {
            write_stored_object(tx, key.clone(), object)?;
        }
        for (id, record) in self.records() {
            match record {
                Some(record) => tx.put_record(id, record),
                None => tx.delete_record(id),
            }
        }
        Ok(self.len())
    }

    /// As [`put_into`](Self::put_into), for chunks and entities only. The store need not support other kinds.
    pub(crate) fn put_places_into<S: TxStore>(
        &self,
        tx: &mut Tx<S>,
        target: &impl Base,
    ) -> Result<u64, Error> {
        self.look_at_places(tx)?;
        self.check(target)?;
        self.write_places(tx);
        Ok(self.len())
    }

    fn look_at_places<S: TxStore>(&self, tx: &mut Tx<S>) -> Result<(), Error> {
        let positions: Vec<_> = self.chunks.keys().copied().collect();
        for some in positions.chunks(LOOKED_AT_ONCE) {
            tx.load_many(some).into_iter().try_for_each(|read| read.map(drop))?;
        }
        self.entities.keys().try_for_each(|id| tx.entity(*id).map(drop))
    }

    fn write_places<S: TxStore>(&self, tx: &mut Tx<S>) {
        for (at, item) in &self.chunks {
            match &item.new {
                Some(chunk) => tx.save(*at, Arc::clone(chunk)),
                None => tx.delete(*at),
            }
        }
        for (id, item) in &self.entities {
            match &item.new {
                Some(entity) => tx.put_entity(*id, entity.clone()),
                None => tx.delete_entity(*id),
            }
        }
    }
}

/// Refuses if the target has changed a value that was written over.
fn unchanged<K: OverlayKind>(items: &Items<K>, target: &impl Base) -> Result<(), Error> {
    for (key, item) in items {
        item.unchanged::<K>(key, &K::find(target, key)?)?;
    }
    Ok(())
}

/// The entity in the segment that it leaves, until it is transferred.
pub(crate) fn leaving(entity: &Entity) -> Entity {
    entity.clone().owned_by(Owner::Detached(reason("leaving its segment")))
}

impl MergeTarget for World {
    fn merge_lock(&self) -> Result<Option<&MergeLock>, Error> {
        Ok(None)
    }

    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let names = self.registry().register(new)?;
        self.flush()?;
        Ok(names)
    }

    fn apply(&self, merge: OverlayMerge, _: &mut Merged<'_>) -> Result<u64, Error> {
        let committed = self.transaction_at(Durability::Safe, |tx| merge.put_into(tx, self))?;
        Ok(committed.value)
    }
}

impl<S: Base> MergeTarget for Overlay<S> {
    fn merge_lock(&self) -> Result<Option<&MergeLock>, Error> {
        Ok(None)
    }

    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let names = self.register(new)?;
        self.arenas().flush()?;
        Ok(names)
    }

    fn apply(&self, merge: OverlayMerge, _: &mut Merged<'_>) -> Result<u64, Error> {
        let applied = self.transaction(|tx| {
            let target = overlay_of(tx).clone();
            merge.put_into(tx, &target)
        })?;
        self.arenas().flush()?;
        Ok(applied)
    }
}

/// A layer that an overlay can be merged into.
pub trait MergeTarget: Base {
    /// The lock that the overlay holds while it is merged, besides its own right to write; `None` if the target's
    /// transactions suffice.
    ///
    /// # Errors
    /// [`Error::Nested`] where waiting for it could wait for this thread.
    fn merge_lock(&self) -> Result<Option<&MergeLock>, Error>;

    /// Finishes what an earlier call left, before the overlay is compared with the target. The caller holds the
    /// [`merge_lock`](Self::merge_lock).
    ///
    /// # Errors
    /// The errors of the storage.
    fn begin_merge(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Issues ids for names, as [`WorldRegistry::register`](cg_store::WorldRegistry::register) does. They survive a
    /// power cut when it returns, because the overlay drops them from its own.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register).
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error>;

    /// Applies a merge, if the target's values are still those that it writes over. The caller holds the
    /// [`merge_lock`](Self::merge_lock). Returns how many changes were applied. They survive a power cut when it
    /// returns.
    ///
    /// Costs one transaction. A segmented world takes one for each segment, and reports each merged part.
    ///
    /// # Errors
    /// [`OverlayError::BaseChanged`](crate::OverlayError::BaseChanged), and the errors of a transaction. Nothing was
    /// written. [`MergedInPart`](crate::MergedInPart) if only some segments were merged.
    fn apply(&self, merge: OverlayMerge, merged: &mut Merged<'_>) -> Result<u64, Error>;
}

/// Held by merges, entity transfers and deletions of segments.
pub type MergeLock = Mutex<(), rank::SegmentMoving>;

/// Called with each part of a merge after it is durable. Deletes the part's rows in the overlay.
pub type Merged<'m> = dyn FnMut(&OverlayMerge) -> Result<(), Error> + 'm;
