//! Objects and spatial records in a transaction.

use std::sync::Arc;

use cg_format::RecordId;
use cg_format::entity::EntityPos;
use cg_format::record::Record;

use super::{Tx, ValueStore};
use crate::kinds::object::{Object, ObjectWrite, StoredObject};
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

impl<S: ValueStore> Tx<S> {
    /// An object, or `None` if there is none. An object that this transaction wrote has the version that it will get.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have; [`Error::Corrupt`] if it is stored and damaged; the
    /// errors that [`put_object_at_version`](Self::put_object_at_version) returns at commit.
    pub fn object(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let key = ObjectKey::new(key)?;
        let stored = self.store.object(&key)?;
        self.writes.object(&key, stored).map_err(|error| self.store.refused(error))
    }

    /// Writes an object; its version is one more than before, or 0. Writing the stored bytes again changes nothing.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that is empty or longer than 512 bytes. At commit: [`Error::TooLarge`], and
    /// [`Error::Corrupt`] if what is stored is damaged.
    pub fn put_object(&mut self, key: impl AsRef<[u8]>, bytes: impl Into<Arc<[u8]>>) -> Result<(), Error> {
        self.writes.put_object(key, bytes)
    }

    /// Writes an object at a version that another store gave it. For caches.
    ///
    /// The stored version may be written again, also with other bytes, and the later bytes replace the earlier ones.
    /// That is not refused: a store that lost the end of its history, or was put back from a copy, gives a version again
    /// to other bytes, and its caches must take them. So equal versions mean equal bytes only within one history of the
    /// store that gave them. A host with two such stores compares which of them it reads first.
    ///
    /// # Errors
    /// As [`put_object`](Self::put_object); [`Error::NegativeVersion`]; [`Error::VersionGoesBack`] if this transaction
    /// wrote a higher version. At commit: [`Error::VersionGoesBack`] if the object was at a higher version, deleted or
    /// not.
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

    /// As [`put_object_at_version`](Self::put_object_at_version), also for an object that was deleted at its version.
    pub(crate) fn write_stored_object(&mut self, key: ObjectKey, object: &StoredObject) -> Result<(), Error> {
        self.writes.write_object(key, ObjectWrite::PutAt(object.version, object.bytes.clone()))
    }

    /// Writes an object at a version, whatever is stored.
    pub(crate) fn replace_stored_object(&mut self, key: ObjectKey, object: &Object) -> Result<(), Error> {
        let Object { version, bytes } = object;
        if *version < 0 {
            return Err(Error::NegativeVersion { key, offered: *version });
        }
        self.writes.write_object(key, ObjectWrite::Replace(*version, Arc::clone(bytes)))
    }

    /// A record, or `None` if the world does not have it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn record(&mut self, id: RecordId) -> Result<Option<Record>, Error> {
        if let Some(written) = self.writes.records.get(&id) {
            return Ok(written.as_deref().cloned());
        }
        Ok(self.store.record(id)?.map(Arc::unwrap_or_clone))
    }

    /// Stores a record in place of the one with this id, wherever that is. A record equal to the stored one writes
    /// nothing.
    ///
    /// # Errors
    /// At commit: [`Error::UnknownDimension`], [`Error::TooLarge`]; [`Error::Corrupt`] if the stored one is damaged.
    pub fn put_record(&mut self, id: RecordId, record: Record) {
        self.writes.records.insert(id, Some(Arc::new(record)));
    }

    /// Moves a record and keeps the rest of it; `Ok(false)` if the world does not have it.
    ///
    /// # Errors
    /// As [`record`](Self::record) and [`put_record`](Self::put_record).
    pub fn move_record(&mut self, id: RecordId, position: EntityPos) -> Result<bool, Error> {
        let Some(record) = self.record(id)? else { return Ok(false) };
        self.put_record(id, record.moved_to(position));
        Ok(true)
    }

    /// Deletes a record. Deleting an absent one is no error.
    pub fn delete_record(&mut self, id: RecordId) {
        self.writes.records.insert(id, None);
    }

    /// As [`put_record`](Self::put_record) for each.
    pub(crate) fn put_shared_records(&mut self, records: &[(RecordId, Arc<Record>)]) {
        self.writes.records.extend(records.iter().map(|(id, record)| (*id, Some(Arc::clone(record)))));
    }
}
