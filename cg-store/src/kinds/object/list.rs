//! Listing objects in the order of their keys.

use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;
use cg_format::object::ObjectView;

use super::{ObjectKey, Objects, decode};
use crate::engine::{KeyRange, Met, Readable, scan_skipping_damage};
use crate::storage::error::Error;
use crate::storage::lease::Lease;

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPage {
    /// The objects, ascending by the bytes of their keys.
    pub entries: Vec<ObjectEntry>,
    /// Where the listing goes on; `None` if there is nothing more.
    pub next: Option<ObjectKey>,
}

/// What a listing says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectEntry {
    /// Its key.
    pub key: ObjectKey,
    /// Its version.
    pub version: i64,
    /// How many bytes it holds.
    pub len_bytes: u64,
}

impl Objects {
    /// Up to so many objects, at least one, whose keys begin with a prefix, behind the position that the last page ended with.
    ///
    /// A position is a key and stays good for ever: it may be kept in a file, and its object may be gone. What is
    /// written behind it meanwhile is listed, what is written before it is not. Reads the rows of what it lists.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if one of them is damaged; [`for_each`](Self::for_each) goes on behind it.
    pub fn list(
        &self,
        prefix: impl AsRef<[u8]>,
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        let mut page = ObjectPage { entries: Vec::new(), next: None };
        let behind = position.map(ObjectKey::as_bytes);
        let engine = self.engine()?;
        let _at_rest = engine.at_rest()?;
        let failed = scan_objects(&*engine, prefix.as_ref(), behind, |object| {
            let entry = match object.and_then(|(key, object)| ObjectEntry::of(key, object)) {
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

    /// Shows every object whose key begins with a prefix, ascending by key, until `visit` breaks: its key and its row.
    /// A damaged one is shown as an error, and the scan goes on behind it. Commits made meanwhile are not seen.
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

    fn engine(&self) -> Result<Lease<'_>, Error> {
        self.world.settled()?.settled_engine()
    }
}

impl ObjectEntry {
    pub(crate) fn of(key: &[u8], object: ObjectView<'_>) -> Result<Option<Self>, Error> {
        let ObjectView { version, bytes: Some(bytes) } = object else { return Ok(None) };
        Ok(Some(Self { key: ObjectKey::new(key)?, version, len_bytes: bytes.len() as u64 }))
    }
}

/// Shows the rows of objects whose keys begin with a prefix, behind a key; deleted ones too.
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

/// The keys that begin with a prefix, behind a key, before the [first behind all of them](behind_all).
pub(crate) fn range<'a>(prefix: &'a [u8], behind: Option<&'a [u8]>, end: Option<&'a [u8]>) -> KeyRange<'a> {
    let from = match behind {
        Some(key) if key >= prefix => Bound::Excluded(key),
        _ => Bound::Included(prefix),
    };
    (from, end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// The first key behind all that begin with a prefix; `None` if there is none.
pub(crate) fn behind_all(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
