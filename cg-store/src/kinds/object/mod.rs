//! Versioned objects: bytes under a key of the host's own, counted by how often they changed.
//!
//! Structure lives in the keys: `block/32,64,32/bricks` and `block/32,64,32/lights` are two objects, and a new layout
//! of the bricks is a new ending. An object is read and written whole.
//!
//! **Versions.** The first is 0 and every change is one more; writing the bytes that are there is no change. A cache of
//! another store writes the versions that it was told, which never go back. A deleted object keeps its version until
//! [`forget_before`](World::forget_before), so that it counts on when it is written anew.

mod forget;
mod key;
mod list;
mod settle;

use std::sync::Arc;

use cg_format::Space;
use cg_format::frame::{self, Codec, Draft, FrameView, Stamp};
use cg_format::object::ObjectView;

pub use key::ObjectKey;
pub use list::{ObjectEntry, ObjectPage};
pub(crate) use list::{behind_all, range, scan_objects};
pub(crate) use settle::{ObjectWrite, settle};

use crate::api::world::{Inner, World};
use crate::engine::Batch;
use crate::storage::error::{Damage, Error};

/// An object and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// How often it was changed since it was first written.
    pub version: i64,
    /// What it holds.
    pub bytes: Arc<[u8]>,
}

/// What is stored of an object, of a deleted one too: that keeps its version, so that it counts on when it is written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// How often it was changed since it was first written.
    pub version: i64,
    /// What it holds; `None` if it was deleted.
    pub bytes: Option<Arc<[u8]>>,
}

impl StoredObject {
    pub(crate) fn here(self) -> Option<Object> {
        let Self { version, bytes } = self;
        bytes.map(|bytes| Object { version, bytes })
    }

    pub(crate) fn view(&self) -> ObjectView<'_> {
        ObjectView { version: self.version, bytes: self.bytes.as_deref() }
    }

    /// Bytes that it holds.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }

    /// Bytes of its row's value.
    pub(crate) fn row_len_bytes(&self) -> usize {
        frame::LEN_BYTES + ObjectView::len_bytes(self.len_bytes())
    }
}

/// The objects of a world. Cheap to make; keeps the world open as any handle does.
///
/// Changes that belong together are made in a [transaction](World::transaction) with
/// [`put_object`](crate::Transaction::put_object) and its siblings; the calls here are one transaction each.
///
/// A new layout, in batches, while the world is in use:
/// ```
/// use cg_store::prelude::*;
/// # let world = World::temporary(&[], &WorldOptions::default())?;
/// # for x in 0..5 { world.objects().put(format!("block/{x},64,32/bricks"), [x; 4])?; }
/// # world.objects().put("block/0,64,32/lights", *b"dim")?;
/// let objects = world.objects();
/// let mut position = None;
/// loop {
///     let page = objects.list(b"block/", position.as_ref(), 2)?;
///     world.transaction(|tx| {
///         for entry in &page.entries {
///             let Some(place) = entry.key.as_bytes().strip_suffix(b"/bricks") else { continue };
///             // Read in the transaction: who changes it meanwhile makes a conflict, not a loss.
///             let Some(bricks) = tx.object(&entry.key)? else { continue };
///             let wider: Vec<u8> = bricks.bytes.iter().flat_map(|brick| [*brick, 0]).collect();
///             tx.put_object([place, b"/bigbricks"].concat(), wider)?;
///             tx.delete_object(&entry.key)?;
///         }
///         Ok::<_, Error>(())
///     })?;
///     position = page.next;
///     if position.is_none() {
///         break;
///     }
/// }
/// assert_eq!(objects.get("block/3,64,32/bigbricks")?.expect("is new").bytes[..], [3, 0, 3, 0, 3, 0, 3, 0]);
/// assert_eq!(objects.get("block/3,64,32/bricks")?, None);
/// # let left = objects.list(b"", None, 100)?;
/// # assert_eq!(left.entries.len(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Objects {
    world: World,
}

impl World {
    /// The world's objects.
    pub fn objects(&self) -> Objects {
        Objects { world: self.clone() }
    }
}

impl Objects {
    /// An object as last committed, or `None` if there is none. One key read.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have; [`Error::Corrupt`] if it is stored and damaged.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let stored = self.world.settled()?.stored_object(&ObjectKey::new(key)?)?;
        Ok(stored.and_then(StoredObject::here))
    }

    /// The version of an object, or `None` if there is none: what is compared with "I have version 1234". One key read.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn version(&self, key: impl AsRef<[u8]>) -> Result<Option<i64>, Error> {
        Ok(self.get(key)?.map(|object| object.version))
    }

    /// Writes an object and returns its version.
    ///
    /// # Errors
    /// As [`Transaction::put_object`](crate::Transaction::put_object) and [`World::transaction`].
    pub fn put(&self, key: impl AsRef<[u8]>, bytes: impl Into<Arc<[u8]>>) -> Result<i64, Error> {
        let key = ObjectKey::new(key)?;
        let committed = self.world.transaction(|tx| {
            tx.put_object(&key, bytes)?;
            Ok::<_, Error>(tx.object(&key)?.map_or(0, |object| object.version))
        })?;
        Ok(committed.value)
    }

    /// Writes an object at a version that another store gave it.
    ///
    /// # Errors
    /// As [`Transaction::put_object_at_version`](crate::Transaction::put_object_at_version) and [`World::transaction`].
    pub fn put_at_version(
        &self,
        key: impl AsRef<[u8]>,
        version: i64,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<(), Error> {
        self.world.transaction(|tx| tx.put_object_at_version(key, version, bytes)).map(drop)
    }

    /// Deletes an object, and says whether there was one.
    ///
    /// # Errors
    /// As [`Transaction::delete_object`](crate::Transaction::delete_object) and [`World::transaction`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = ObjectKey::new(key)?;
        let committed = self.world.transaction(|tx| {
            let is_there = tx.object(&key)?.is_some();
            tx.delete_object(&key)?;
            Ok::<_, Error>(is_there)
        })?;
        Ok(committed.value)
    }
}

impl Inner {
    pub(crate) fn stored_object(&self, key: &ObjectKey) -> Result<Option<StoredObject>, Error> {
        Ok(self.found_object(key)?.map(|(object, _)| object))
    }

    /// What is stored of an object, and the commit that wrote it.
    pub(crate) fn found_object(&self, key: &ObjectKey) -> Result<Option<(StoredObject, u64)>, Error> {
        if let Some((commit, queued)) = self.queue.object(key) {
            return Ok(Some((queued, commit)));
        }
        let engine = self.engine()?;
        match engine.get(Space::Object, key.as_bytes())? {
            Some(row) => {
                let object = decode(key.as_bytes(), &row)?.into();
                Ok(Some((object, frame::version_of(&row).unwrap_or_default())))
            }
            None => Ok(None),
        }
    }
}

impl From<ObjectView<'_>> for StoredObject {
    fn from(ObjectView { version, bytes }: ObjectView<'_>) -> Self {
        Self { version, bytes: bytes.map(Arc::from) }
    }
}

/// Decodes an object's row.
pub(crate) fn decode<'a>(key: &[u8], row: &'a [u8]) -> Result<ObjectView<'a>, Error> {
    let view = FrameView::open(Space::Object, key, row).and_then(|frame| ObjectView::decode(frame.payload()));
    view.map_err(|problem| {
        let place = format!("object `{}`", key.escape_ascii());
        Damage::of_row(Space::Object, key, place, problem)
    })
}

/// Adds an object's row to a batch.
pub(crate) fn put_row(batch: &mut Batch, key: &ObjectKey, object: &StoredObject) {
    let view = object.view();
    // The engine compresses the family.
    let draft = Draft::plain(Codec::None, 0, |out| view.encode(out));
    batch.put(Space::Object, key.as_bytes(), draft, Stamp::Commit);
}
