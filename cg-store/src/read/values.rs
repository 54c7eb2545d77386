//! Values other than chunks: entities, properties, objects and records. Pending ones come first.

use std::cell::OnceCell;
use std::sync::Arc;

use cg_format::entity::Entity;
use cg_format::frame::{LEN_BYTES, version_of};
use cg_format::key::{self, RecordLeaf};
use cg_format::record::Record;
use cg_format::{EntityId, RecordId, Space};
use cg_registry::Catalog;

use crate::engine::{Readable, RowSlice};
use crate::kinds::entity;
use crate::kinds::object::{self, StoredObject};
use crate::kinds::property::Property;
use crate::kinds::record::{decode, decode_place};
use crate::read::state::ReadState;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

/// A record with the commit that wrote it, if it is stored.
type FoundRecord = Result<Option<(Arc<Record>, u64)>, Error>;

impl ReadState {
    pub(crate) fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        Ok(self.found_entity(id)?.map(|(entity, _)| entity))
    }

    /// An entity with the commit that wrote it.
    pub(crate) fn found_entity(&self, id: EntityId) -> Result<Option<(Entity, u64)>, Error> {
        let decode = |row: &[u8]| self.decode_entity(&self.shared.registry.catalog(), id, row);
        self.queued_or_found(
            self.pending.newest(|pending| pending.entities.get(&id)),
            Space::Entity,
            &key::entity(id),
            decode,
        )
    }

    /// Many entities, read together; one result per id, in the order asked.
    pub(crate) fn entities(&self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        let queued =
            |id: &EntityId| self.pending.newest(|pending| pending.entities.get(id)).map(|(_, entity)| entity);
        // The names are asked for after the rows were read, so they have those of the rows.
        let catalog = OnceCell::new();
        let decode = |id: &EntityId, row: &[u8]| {
            self.decode_entity(catalog.get_or_init(|| self.shared.registry.catalog()), *id, row)
        };
        let row = |id: &EntityId| (Space::Entity, key::entity(*id));
        self.queued_or_read(ids, queued, row, decode, |id| self.entity(*id))
    }

    /// The commit that last wrote an entity, or `None` if the world does not have it.
    pub(crate) fn entity_version(&self, id: EntityId) -> Result<Option<u64>, Error> {
        if let Some((version, entity)) = self.pending.newest(|pending| pending.entities.get(&id)) {
            return Ok(entity.map(|_| version));
        }
        let engine = self.shared.engine()?;
        let key = key::entity(id);
        let frame = RowSlice { space: Space::Entity, key: &key, bytes: 0..LEN_BYTES };
        let frame = engine.get_slices(&[frame]).pop().transpose()?.flatten();
        Ok(frame.and_then(|frame| version_of(&frame)))
    }

    /// Decodes an entity's row and upgrades its components to their newest registrations, in memory.
    pub(crate) fn decode_entity(&self, catalog: &Catalog, id: EntityId, row: &[u8]) -> Result<Entity, Error> {
        entity::upgrade(catalog, &self.shared.options.upgrades, id, entity::decode(id, row)?)
    }

    pub(crate) fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.found_property(property)?.map(|(bytes, _)| bytes))
    }

    /// A property with the commit that wrote it.
    pub(crate) fn found_property(&self, property: &Property) -> Result<Option<(Vec<u8>, u64)>, Error> {
        let (space, key) = property.row();
        let queued = self.pending.newest(|pending| pending.properties.get(property));
        self.queued_or_found(queued, space, key, |row| property.open(row))
    }

    pub(crate) fn stored_object(&self, key: &ObjectKey) -> Result<Option<StoredObject>, Error> {
        Ok(self.found_object(key)?.map(|(object, _)| object))
    }

    /// Many properties, read together; one result for each, in the order asked.
    pub(crate) fn properties(&self, properties: &[Property]) -> Vec<Result<Option<Vec<u8>>, Error>> {
        let queued = |property: &Property| {
            self.pending.newest(|pending| pending.properties.get(property)).map(|(_, bytes)| bytes)
        };
        let decode = |property: &Property, row: &[u8]| property.open(row);
        let alone = |property: &Property| self.property(property);
        self.queued_or_read(properties, queued, Property::row, decode, alone)
    }

    /// The stored object, deleted or not, and the commit that wrote it.
    pub(crate) fn found_object(&self, key: &ObjectKey) -> Result<Option<(StoredObject, u64)>, Error> {
        let queued = self.pending.newest(|pending| pending.objects.get(key));
        let key = key.as_bytes();
        self.queued_or_found(queued, Space::Object, key, |row| Ok(object::decode(key, row)?.into()))
    }

    /// Many stored objects, deleted or not, read together; one result for each key, in the order asked.
    pub(crate) fn stored_objects(&self, keys: &[&ObjectKey]) -> Vec<Result<Option<StoredObject>, Error>> {
        let queued = |key: &&ObjectKey| {
            self.pending.newest(|pending| pending.objects.get(*key)).map(|(_, object)| object)
        };
        let decode = |key: &&ObjectKey, row: &[u8]| Ok(object::decode(key.as_bytes(), row)?.into());
        let alone = |key: &&ObjectKey| self.stored_object(key);
        self.queued_or_read(keys, queued, |key| (Space::Object, key.as_bytes()), decode, alone)
    }

    /// A value with the commit that wrote it: what the queue has, otherwise the row of the engine.
    fn queued_or_found<T>(
        &self,
        queued: Option<(u64, Option<T>)>,
        space: Space,
        key: &[u8],
        decode: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<Option<(T, u64)>, Error> {
        if let Some((commit, value)) = queued {
            return Ok(value.map(|value| (value, commit)));
        }
        let engine = self.shared.engine()?;
        let Some(row) = engine.get(space, key)? else { return Ok(None) };
        Ok(Some((decode(&row)?, version_of(&row).unwrap_or_default())))
    }

    /// Values of many ids: what the queue has, and for the others the rows of the engine, read in one call. A result is
    /// `None` for an id that has neither.
    fn queued_or_read<'k, I, K: AsRef<[u8]>, T>(
        &self,
        ids: &'k [I],
        queued: impl Fn(&I) -> Option<Option<T>>,
        row: impl Fn(&'k I) -> (Space, K),
        decode: impl Fn(&I, &[u8]) -> Result<T, Error>,
        alone: impl Fn(&I) -> Result<Option<T>, Error>,
    ) -> Vec<Result<Option<T>, Error>> {
        if let [id] = ids {
            return vec![alone(id)];
        }
        // Asked before the engine, because a change leaves the queue only after it is in the engine.
        let queued: Vec<_> = ids.iter().map(queued).collect();
        let others = ids.iter().zip(&queued).filter(|(_, queued)| queued.is_none());
        let keys: Vec<_> = others.map(|(id, _)| row(id)).collect();
        let asked: Vec<_> = keys.iter().map(|(space, key)| (*space, key.as_ref())).collect();
        // If the engine cannot be borrowed, each value gets its own error through a single read.
        let Ok(engine) = self.shared.engine() else { return ids.iter().map(alone).collect() };
        let rows = if asked.is_empty() { Vec::new() } else { engine.get_many(&asked) };
        let mut rows = rows.into_iter();
        let result = |(id, queued): (&I, Option<Option<T>>)| match queued {
            Some(value) => Ok(value),
            None => rows.next().transpose()?.flatten().map(|row| decode(id, &row)).transpose(),
        };
        ids.iter().zip(queued).map(result).collect()
    }

    pub(crate) fn stored_record(&self, id: RecordId) -> Result<Option<Arc<Record>>, Error> {
        Ok(self.found_record(id)?.map(|(record, _)| record))
    }

    /// A record with the commit that wrote it.
    pub(crate) fn found_record(&self, id: RecordId) -> Result<Option<(Arc<Record>, u64)>, Error> {
        self.found_records(&[id]).pop().unwrap_or(Ok(None))
    }

    /// Many records with the commits that wrote them, one result for each id, in the order asked. Costs two reads for all
    /// that are not queued.
    pub(crate) fn found_records(&self, ids: &[RecordId]) -> Vec<FoundRecord> {
        let queued: Vec<_> =
            ids.iter().map(|id| self.pending.newest(|pending| pending.records.get(id))).collect();
        let others: Vec<_> =
            ids.iter().zip(&queued).filter(|(_, queued)| queued.is_none()).map(|(id, _)| *id).collect();
        // Both rows of a record must be of one state.
        let read = |ids: &[RecordId]| -> Result<Vec<_>, Error> {
            Ok(read_records(&self.shared.engine()?.snapshot_of_now()?, ids))
        };
        let alone = |id: &RecordId| read(&[*id])?.pop().unwrap_or(Ok(None));
        // If the engine cannot be read, each record gets its own error through a single read.
        let found = if others.is_empty() { Ok(Vec::new()) } else { read(&others) };
        let mut found = found.unwrap_or_else(|_| others.iter().map(alone).collect()).into_iter();
        let result = |queued: Option<(u64, Option<Arc<Record>>)>| match queued {
            Some((commit, record)) => Ok(record.map(|record| (record, commit))),
            None => found.next().unwrap_or(Ok(None)),
        };
        queued.into_iter().map(result).collect()
    }
}

/// The records of some ids in a view, with the commits that wrote them.
pub(crate) fn read_records(view: &dyn Readable, ids: &[RecordId]) -> Vec<FoundRecord> {
    let places: Vec<_> = ids.iter().map(|id| key::record_place(*id)).collect();
    let asked: Vec<_> = places.iter().map(|key| (Space::RecordPlace, &key[..])).collect();
    let leaves = ids.iter().zip(view.get_many(&asked)).map(|(id, row)| match row {
        Ok(Some(row)) => decode_place(*id, &row).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error.into()),
    });
    let leaves: Vec<Result<Option<RecordLeaf>, Error>> = leaves.collect();
    let key = |(id, leaf): (&RecordId, &Result<Option<RecordLeaf>, Error>)| match leaf {
        Ok(Some(leaf)) => Some(key::record(leaf, *id)),
        _ => None,
    };
    let keys: Vec<_> = ids.iter().zip(&leaves).map(key).collect();
    let asked: Vec<_> = keys.iter().flatten().map(|key| (Space::Record, &key[..])).collect();
    let mut rows = view.get_many(&asked).into_iter();
    let record = |(leaf, (id, key)): (Result<_, Error>, (&RecordId, &Option<Vec<u8>>))| {
        leaf?;
        let Some(key) = key else { return Ok(None) };
        // A place row without its record is damage. An empty row makes the decoding report it.
        let row = rows.next().transpose()?.flatten();
        let row = row.as_deref().unwrap_or_default();
        let record = Arc::new(decode(*id, key, row)?.to_record());
        Ok(Some((record, version_of(row).unwrap_or_default())))
    };
    leaves.into_iter().zip(ids.iter().zip(&keys)).map(record).collect()
}
