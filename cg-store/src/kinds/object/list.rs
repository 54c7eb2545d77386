//! Listing objects in the order of their keys.

use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;
use cg_format::object::ObjectView;

use super::decode;
use crate::engine::{KeyRange, Met, Readable, scan_skipping_damage};
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

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
}

impl ObjectEntry {
    /// The entry of a stored object; `None` if it is deleted.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] if the key is none.
    pub fn of(key: &[u8], object: ObjectView<'_>) -> Result<Option<Self>, Error> {
        let ObjectView { version, bytes: Some(bytes) } = object else { return Ok(None) };
        Ok(Some(Self { key: ObjectKey::new(key)?, version, len_bytes: bytes.len() as u64 }))
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
