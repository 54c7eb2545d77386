//! What becomes of an object that a transaction writes.

use std::sync::Arc;

use super::StoredObject;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

/// What a transaction wants to become of an object.
#[derive(Debug, Clone)]
pub(crate) enum ObjectWrite {
    /// These bytes, at the next version.
    Put(Arc<[u8]>),
    /// These bytes, or none of an object that is deleted again, at a version from elsewhere.
    PutAt(i64, Option<Arc<[u8]>>),
    Delete,
}

impl ObjectWrite {
    /// What is written, if it is no deletion.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Put(bytes) | Self::PutAt(_, Some(bytes)) => Some(bytes),
            Self::PutAt(_, None) | Self::Delete => None,
        }
    }

    /// What two writes of one transaction come to: after a version from elsewhere, counting goes on from that.
    pub(crate) fn then(self, key: &ObjectKey, next: Self) -> Result<Self, Error> {
        let Self::PutAt(version, bytes) = self else { return Ok(next) };
        let stored = StoredObject { version, bytes };
        let after = next.after(key, Some(&stored))?.unwrap_or(stored);
        Ok(Self::PutAt(after.version, after.bytes))
    }

    /// The row that is written over another one; `None` if it stays as it is.
    pub(crate) fn after(
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
