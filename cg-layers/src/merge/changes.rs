//! The changes of a merge, as values.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::RecordId;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_store::error::ConflictKey;
use cg_store::layer::kind::{self, Chunks, Entities, Kind, Objects, Properties, Records};
use cg_store::layer::write_stored_object;
use cg_store::layer::{Base, Found, TxStore, ValueStore, origin_of};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Tx, each_kind, kind_map};

use crate::store::{OverlayError, OverlayKind};

/// At most this many chunks of a target are in memory while they are compared.
const LOOKED_AT_ONCE: usize = 1024;

/// The changes of one kind in a merge.
pub(crate) type Items<K> = BTreeMap<<K as Kind>::Key, MergeItem<<K as Kind>::Value>>;

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
    pub(crate) waits: bool,
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

    /// The keys of the properties, objects and records that change.
    pub(crate) fn value_keys(&self) -> impl Iterator<Item = ConflictKey> {
        let properties = self.properties.keys().map(Properties::conflict_key);
        let objects = self.objects.keys().map(Objects::conflict_key);
        properties.chain(objects).chain(self.records.keys().map(Records::conflict_key))
    }

    /// The keys of those that have a value afterwards.
    pub(crate) fn put_keys(&self) -> impl Iterator<Item = ConflictKey> {
        fn put<K: Kind>(items: &Items<K>) -> impl Iterator<Item = ConflictKey> {
            let is_live = |item: &MergeItem<K::Value>| item.new.as_ref().is_some_and(K::is_live);
            items.iter().filter(move |(_, item)| is_live(item)).map(|(key, _)| K::conflict_key(key))
        }
        let of_names = put::<Properties>(&self.properties).chain(put::<Objects>(&self.objects));
        of_names.chain(put::<Records>(&self.records))
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
        self.look_at(tx)?;
        self.check(target)?;
        self.write(tx)?;
        Ok(self.len())
    }

    /// Reads all keys that it changes, so that the transaction detects what changes after this.
    pub(crate) fn look_at<S: ValueStore>(&self, tx: &mut Tx<S>) -> Result<(), Error> {
        self.look_at_places(tx)?;
        self.properties.keys().try_for_each(|property| tx.property(property).map(drop))?;
        self.objects.keys().try_for_each(|key| tx.object(key).map(drop))?;
        self.records.keys().try_for_each(|id| tx.record(*id).map(drop))
    }

    /// Changes all keys, which the caller has [compared](Self::check) since the transaction has [seen](Self::look_at) them.
    pub(crate) fn write<S: ValueStore>(&self, tx: &mut Tx<S>) -> Result<(), Error> {
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
        Ok(())
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
