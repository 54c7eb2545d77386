//! Objects in a transaction.

use std::sync::Arc;

use super::{Tx, ValueStore};
use crate::kinds::object::{Object, ObjectWrite, StoredObject};
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

impl<S: ValueStore> Tx<S> {
    /// An object, or `None` if there is none. Of one that this transaction wrote, the version that it gets.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have; [`Error::Corrupt`] if it is stored and damaged; what
    /// [`put_object_at_version`](Self::put_object_at_version) says at commit.
    pub fn object(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let key = ObjectKey::new(key)?;
        let stored = self.store.object(&key)?;
        self.writes.object(&key, stored).map_err(|error| self.store.refused(error))
    }

    /// Writes an object; its version is one more than before, or 0. The bytes that are there already are no change.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key without a byte or with more than 512. At commit: [`Error::TooLarge`], and
    /// [`Error::Corrupt`] if what is stored is damaged.
    pub fn put_object(&mut self, key: impl AsRef<[u8]>, bytes: impl Into<Arc<[u8]>>) -> Result<(), Error> {
        self.writes.put_object(key, bytes)
    }

    /// Writes an object at a version that another store gave it: for caches.
    ///
    /// The version that is there may be written again, and the later bytes count: what a store sends after it lost the
    /// end of its own history.
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

    /// As [`put_object_at_version`](Self::put_object_at_version), of an object that is deleted at its version too.
    pub(crate) fn write_stored_object(&mut self, key: ObjectKey, object: &StoredObject) -> Result<(), Error> {
        self.writes.write_object(key, ObjectWrite::PutAt(object.version, object.bytes.clone()))
    }
}
