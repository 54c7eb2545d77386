//! Versioned objects: bytes under a key of the host, with a version that counts the changes.
//!
//! The keys provide the structure: `block/32,64,32/bricks` and `block/32,64,32/lights` are two objects, and a new
//! layout of the bricks gets a new suffix. An object is read and written whole.
//!
//! **Versions.** The first version is 0 and every change adds one. Writing the stored bytes again is not a change. A
//! cache of another store writes the versions that it received, which never decrease; the same version may come with
//! other bytes, if the store lost the end of its history and gave the version again. A deleted object keeps its
//! version until [`purge_tombstones_before`](crate::tiers::Tiers::purge_tombstones_before), so that counting continues when it
//! is written again.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::Space;
use cg_format::frame::{self, Codec, Draft, Stamp};
use cg_format::key::Family;
use cg_format::object::ObjectView;

use crate::engine::{Batch, KeyRange, Met, Readable, scan_skipping_damage};
use crate::storage::error::Error;
use crate::storage::meta::open_row;
use crate::storage::object_key::ObjectKey;

/// An object and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The number of changes since it was first written.
    pub version: i64,
    /// The content.
    pub bytes: Arc<[u8]>,
}

/// A stored object, which may be deleted. A deleted one keeps its version, so that counting continues when it is
/// written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// The number of changes since it was first written.
    pub version: i64,
    /// The content; `None` if it was deleted.
    pub bytes: Option<Arc<[u8]>>,
}

impl StoredObject {
    /// The object, if it is not deleted.
    pub fn here(self) -> Option<Object> {
        let Self { version, bytes } = self;
        bytes.map(|bytes| Object { version, bytes })
    }

    /// The object as its row holds it.
    pub fn view(&self) -> ObjectView<'_> {
        ObjectView { version: self.version, bytes: self.bytes.as_deref() }
    }

    /// The number of its bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }

    /// The number of bytes of its row's value.
    pub(crate) fn row_len_bytes(&self) -> usize {
        frame::LEN_BYTES + ObjectView::len_bytes(self.len_bytes())
    }
}

impl From<ObjectView<'_>> for StoredObject {
    fn from(ObjectView { version, bytes }: ObjectView<'_>) -> Self {
        Self { version, bytes: bytes.map(Arc::from) }
    }
}

/// Decodes an object's row.
pub(crate) fn decode<'a>(key: &[u8], row: &'a [u8]) -> Result<ObjectView<'a>, Error> {
    let what = || format!("object `{}`", key.escape_ascii());
    open_row(Space::Object, key, row, what, |frame| ObjectView::decode(frame.payload()))
}

/// Adds an object's row to a batch.
pub(crate) fn put_row(batch: &mut Batch, key: &ObjectKey, object: &StoredObject) {
    let view = object.view();
    // The engine compresses the family.
    let draft = Draft::plain(Codec::None, 0, |out| view.encode(out));
    batch.put(Space::Object, key.as_bytes(), draft, Stamp::Commit);
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPage {
    /// The objects, ascending by the bytes of their keys.
    pub entries: Vec<ObjectEntry>,
    /// The key after which the listing continues; `None` at the end.
    pub next: Option<ObjectKey>,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectEntry {
    /// Its key.
    pub key: ObjectKey,
    /// Its version.
    pub version: i64,
    /// The number of its bytes.
    pub len_bytes: u64,
    /// Whether it is deleted. Such an object is listed by [`Objects::list_with_deleted`](crate::objects::Objects::list_with_deleted)
    /// alone; it has no bytes, and the version at which it was deleted.
    pub is_deleted: bool,
}

impl ObjectEntry {
    /// The entry of a stored object, deleted or not.
    pub(crate) fn with_deleted(key: &[u8], object: ObjectView<'_>) -> Result<Self, Error> {
        let ObjectView { version, bytes } = object;
        let len_bytes = bytes.map_or(0, |bytes| bytes.len() as u64);
        Ok(Self { key: ObjectKey::new(key)?, version, len_bytes, is_deleted: bytes.is_none() })
    }

    /// The entry of a stored object; `None` if it is deleted.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] if the key is none.
    pub fn of(key: &[u8], object: ObjectView<'_>) -> Result<Option<Self>, Error> {
        let entry = Self::with_deleted(key, object)?;
        Ok((!entry.is_deleted).then_some(entry))
    }
}

/// Visits the rows of objects whose keys have a prefix, after a key. Deleted objects are included.
pub(crate) fn scan_objects<B>(
    view: &dyn Readable,
    prefix: &[u8],
    behind: Option<&[u8]>,
    mut visit: impl FnMut(Result<(&[u8], ObjectView<'_>), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let end = behind_all(prefix);
    let ended =
        scan_skipping_damage(view, Family::Object, range(prefix, behind, end.as_deref()), |met| match met {
            Met::Row(key, row) => visit(decode(key, row).map(|object| (key, object))),
            Met::Gap { error, .. } => visit(Err(error.into())),
        })?;
    Ok(ended)
}

/// The keys with a prefix that are after a key and before the [first key after all of them](behind_all).
pub fn range<'a>(prefix: &'a [u8], behind: Option<&'a [u8]>, end: Option<&'a [u8]>) -> KeyRange<'a> {
    let from = match behind {
        Some(key) if key >= prefix => Bound::Excluded(key),
        _ => Bound::Included(prefix),
    };
    (from, end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// The first key after all keys with a prefix; `None` if there is none.
pub fn behind_all(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

/// A transaction's write of an object.
#[derive(Debug, Clone)]
pub enum ObjectWrite {
    /// These bytes, at the next version.
    Put(Arc<[u8]>),
    /// These bytes, or `None` for an object that is deleted, at a version from another store.
    PutAt(i64, Option<Arc<[u8]>>),
    /// These bytes at a version, whatever is stored: what another store has, whose history may be another one by now.
    Replace(i64, Arc<[u8]>),
    /// No bytes any more.
    Delete,
}

impl ObjectWrite {
    /// The written bytes, if it is not a deletion.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Put(bytes) | Self::PutAt(_, Some(bytes)) | Self::Replace(_, bytes) => Some(bytes),
            Self::PutAt(_, None) | Self::Delete => None,
        }
    }

    /// Combines two writes of one transaction. After a version from another store, counting continues from that.
    pub(crate) fn then(self, key: &ObjectKey, next: Self) -> Result<Self, Error> {
        let (version, bytes) = match self {
            Self::PutAt(version, bytes) => (version, bytes),
            Self::Replace(version, bytes) => (version, Some(bytes)),
            Self::Put(_) | Self::Delete => return Ok(next),
        };
        if let Self::Replace(..) = next {
            return Ok(next);
        }
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
            (Self::Replace(version, bytes), _) => {
                StoredObject { version: *version, bytes: Some(Arc::clone(bytes)) }
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
