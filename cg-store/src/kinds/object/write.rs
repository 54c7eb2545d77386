//! Resolves the objects that a transaction writes.

use std::sync::Arc;

use super::StoredObject;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

/// A transaction's write of an object.
#[derive(Debug, Clone)]
pub enum ObjectWrite {
    /// These bytes, at the next version.
    Put(Arc<[u8]>),
    /// These bytes, or `None` for an object that is deleted, at a version from another store.
    PutAt(i64, Option<Arc<[u8]>>),
    /// No bytes any more.
    Delete,
}

impl ObjectWrite {
    /// The written bytes, if it is not a deletion.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Put(bytes) | Self::PutAt(_, Some(bytes)) => Some(bytes),
            Self::PutAt(_, None) | Self::Delete => None,
        }
    }

    /// Combines two writes of one transaction. After a version from another store, counting continues from that.
    pub(crate) fn then(self, key: &ObjectKey, next: Self) -> Result<Self, Error> {
        let Self::PutAt(version, bytes) = self else { return Ok(next) };
        let stored = StoredObject { version, bytes };
        let after = next.after(key, Some(&stored))?.unwrap_or(stored);
        Ok(Self::PutAt(after.version, after.bytes))
    }

    /// The object after this write over the stored one; `None` if it does not change.
    ///
    /// # Errors
    /// [`Error::VersionGoesBack`], [`Error::NegativeVersion`], [`Error::VersionsUsedUp`].
    pub fn after(
        &self,
        key: &ObjectKey,
        stored: Option<&StoredObject>,
    ) -> Result<Option<StoredObject>, Error> {
        let after = match (self, stored) {
            (Self::Put(bytes), None) => StoredObject { version: 0, bytes: Some(Arc::clone(bytes)) },
            (Self::Put(bytes), Some(stored)) if stored.bytes.as_ref() == Some(bytes) => return Ok(None),
            (Self::Put(bytes), Some(stored)) => {
                let next = stored.version.checked_add(1);
                let version = next.ok_or_else(|| Error::VersionsUsedUp { key: key.clone() })?;
                StoredObject { version, bytes: Some(Arc::clone(bytes)) }
            }
            (Self::PutAt(offered, _), Some(stored)) if *offered < stored.version => {
                let (key, stored, offered) = (key.clone(), stored.version, *offered);
                return Err(Error::VersionGoesBack { key, stored, offered });
            }
            (Self::PutAt(version, bytes), _) => StoredObject { version: *version, bytes: bytes.clone() },
            (Self::Delete, Some(StoredObject { version, bytes: Some(_) })) => {
                StoredObject { version: *version, bytes: None }
            }
            (Self::Delete, _) => return Ok(None),
        };
        Ok((stored != Some(&after)).then_some(after))
    }
}
