//! The objects of a world.

use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::object::ObjectView;

use crate::api::world::World;
use crate::kinds::object::{Object, ObjectEntry, ObjectPage, StoredObject, scan_objects};
use crate::storage::engine_cell::EngineGuard;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

/// The objects of a world. Cheap to create; like any handle, it keeps the world open.
///
/// Changes that belong together are made in a [transaction](World::transaction) with
/// [`put_object`](crate::Transaction::put_object) and related calls. Each call here is a transaction of its own.
///
/// An example that changes a layout in batches while the world is in use:
/// ```
/// use cg_store::prelude::*;
/// # let world = World::builder().in_memory()?;
/// # for x in 0..5 { world.objects().put(format!("block/{x},64,32/bricks"), [x; 4])?; }
/// # world.objects().put("block/0,64,32/lights", *b"dim")?;
/// let objects = world.objects();
/// let mut position = None;
/// loop {
///     let page = objects.list(b"block/", position.as_ref(), 2)?;
///     world.transaction(|tx| {
///         for entry in &page.entries {
///             let Some(place) = entry.key.as_bytes().strip_suffix(b"/bricks") else { continue };
///             // Read in the transaction: a change in between causes a conflict, not a loss.
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

impl Objects {
    /// The last committed state of an object, or `None` if there is none. One key read.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have; [`Error::Corrupt`] if it is stored and damaged.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let stored = self.world.applied()?.read.stored_object(&ObjectKey::new(key)?)?;
        Ok(stored.and_then(StoredObject::here))
    }

    /// The version of an object, or `None` if there is none, for comparison with the version that a client has. One key
    /// read.
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

    /// Deletes an object, and returns whether there was one.
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

    /// At most `max_count` objects, but at least one, whose keys have a prefix, after the position at which the last
    /// page ended.
    ///
    /// A position is a key and is valid for ever: it may be stored in a file, and its object may be deleted. Objects
    /// written after it meanwhile are listed, objects written before it are not. Reads the rows of the listed objects.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if one of them is damaged; [`for_each`](Self::for_each) continues after it.
    pub fn list(
        &self,
        prefix: impl AsRef<[u8]>,
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        self.page(prefix.as_ref(), position, max_count, ObjectEntry::of)
    }

    /// As [`list`](Self::list), with the objects that were deleted: their entries say so, and have the version at which
    /// each was deleted. So one who has an older listing learns which objects are gone. A deleted object is listed until
    /// [`purge_tombstones_before`](crate::tiers::Tiers::purge_tombstones_before).
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// let world = World::builder().in_memory()?;
    /// let objects = world.objects();
    /// objects.put("a/1", *b"one")?;
    /// objects.put("a/2", *b"two")?;
    /// objects.delete("a/1")?;
    /// let page = objects.list_with_deleted("a/", None, 100)?;
    /// let deleted: Vec<_> = page.entries.iter().map(|entry| entry.is_deleted).collect();
    /// assert_eq!(deleted, [true, false]);
    /// assert_eq!(objects.list("a/", None, 100)?.entries.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn list_with_deleted(
        &self,
        prefix: impl AsRef<[u8]>,
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        let entry = |key: &[u8], object: ObjectView<'_>| ObjectEntry::with_deleted(key, object).map(Some);
        self.page(prefix.as_ref(), position, max_count, entry)
    }

    fn page(
        &self,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
        entry: impl Fn(&[u8], ObjectView<'_>) -> Result<Option<ObjectEntry>, Error>,
    ) -> Result<ObjectPage, Error> {
        let mut page = ObjectPage { entries: Vec::new(), next: None };
        let behind = position.map(ObjectKey::as_bytes);
        let engine = self.engine()?;
        let _guard = engine.hold_apply()?;
        let failed = scan_objects(&*engine, prefix, behind, |object| {
            let entry = match object.and_then(|(key, object)| entry(key, object)) {
                Ok(Some(entry)) => entry,
                Ok(None) => return ControlFlow::Continue(()),
                Err(error) => return ControlFlow::Break(Err(error)),
            };
            if page.entries.len() >= max_count.max(1) {
                page.next = page.entries.last().map(|entry: &ObjectEntry| entry.key.clone());
                return ControlFlow::Break(Ok(()));
            }
            page.entries.push(entry);
            ControlFlow::Continue(())
        })?;
        failed.unwrap_or(Ok(())).map(|()| page)
    }

    /// Visits every object whose key has a prefix, ascending by key, until `visit` breaks, with its key, version and
    /// bytes. A damaged object is visited as an error, and the scan continues. Commits made meanwhile are not visible.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each<B>(
        &self,
        prefix: impl AsRef<[u8]>,
        mut visit: impl FnMut(Result<(&[u8], i64, &[u8]), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        scan_objects(&self.engine()?.snapshot()?, prefix.as_ref(), None, |object| match object {
            Ok((key, ObjectView { version, bytes: Some(bytes) })) => visit(Ok((key, version, bytes))),
            Ok((_, ObjectView { bytes: None, .. })) => ControlFlow::Continue(()),
            Err(error) => visit(Err(error)),
        })
    }

    fn engine(&self) -> Result<EngineGuard<'_>, Error> {
        self.world.applied()?.commit.drained_engine()
    }
}

impl World {
    /// The world's objects.
    pub fn objects(&self) -> Objects {
        Objects { world: self.clone() }
    }
}
