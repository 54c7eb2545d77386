//! Objects in a transaction.

use std::sync::Arc;

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
    /// The stored version may be written again, and the later bytes replace the earlier ones. A store that lost the end
    /// of its history sends such writes.
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
}
