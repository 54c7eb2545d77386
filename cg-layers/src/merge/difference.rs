//! How an overlay differs from its base.

use cg_format::overlay::Origin;
use cg_format::{ChunkAt, EntityId, RecordId};
use cg_store::layer::kind::{Kind, Objects};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Property, each_kind};

/// How a value of an overlay differs from its base's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// Only the overlay's value exists.
    Added,
    /// Both exist and differ.
    Changed,
    /// Only the base's value exists.
    Deleted,
}

/// One entity that differs. [`OverlayDiff::chunks`] lists the chunks.
pub type EntityDifference = (EntityId, Difference);

/// All values that differ between an overlay and its base now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OverlayDiff {
    /// Chunks, in the order of their keys.
    pub chunks: Vec<(ChunkAt, Difference)>,
    /// Entities, ascending.
    pub entities: Vec<EntityDifference>,
    /// Properties, in the order of their keys.
    pub properties: Vec<(Property, Difference)>,
    /// Objects, ascending by key. Objects with equal bytes and different versions differ.
    pub objects: Vec<(ObjectKey, Difference)>,
    /// Spatial records, ascending by id.
    pub records: Vec<(RecordId, Difference)>,
}

/// One value that an overlay wrote and that differs from its base's, as a merge needs it.
pub(crate) struct Change<K: Kind> {
    pub(crate) key: K::Key,
    /// `None` is a deletion. A deleted object is an object without bytes, at its version.
    pub(crate) new: Option<K::Value>,
    /// The origin that the overlay wrote over.
    pub(crate) origin: Origin,
    /// `None` if neither exists, and only the version of a deleted object continues.
    pub(crate) difference: Option<Difference>,
}

impl<K: Kind> Change<K> {
    pub(crate) fn told(self) -> Option<(K::Key, Difference)> {
        Some((self.key, self.difference?))
    }
}

impl OverlayDiff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        !each_kind!(self, |differences| differences.is_empty()).contains(&false)
    }
}

/// The change that a row makes to the base's value; `None` if there is none.
pub(super) fn compare<K: Kind>(
    key: K::Key,
    here: Option<K::Value>,
    origin: Origin,
    below: Option<&K::Value>,
) -> Option<Change<K>> {
    let difference = match (&here, below) {
        (Some(here), Some(below)) if here == below => return None,
        (Some(_), Some(_)) => Difference::Changed,
        (Some(_), None) => Difference::Added,
        (None, Some(_)) => Difference::Deleted,
        (None, None) => return None,
    };
    Some(Change { key, new: here, origin, difference: Some(difference) })
}

/// As [`compare`], but deleted objects are found too. If both are deleted, or the base never stored it, the object
/// continues at the higher version: no reader of the overlay sees the version go back.
pub(super) fn compare_objects(
    key: ObjectKey,
    stored: Option<StoredObject>,
    origin: Origin,
    below: Option<(StoredObject, Origin)>,
) -> Option<Change<Objects>> {
    let (below, found) = below.unzip();
    let version = below.as_ref().map(|object| object.version);
    let here = stored.clone().filter(Objects::is_live);
    let below = below.filter(Objects::is_live);
    if here.is_none() && below.is_none() {
        let new = stored.filter(|object| Some(object.version) > version)?;
        // The base's present origin: no change of the base is undone.
        let origin = found.unwrap_or(Origin::ABSENT);
        return Some(Change { key, new: Some(new), origin, difference: None });
    }
    if let (Some(here), Some(below), Some(found)) = (&here, &below, found)
        && is_merged_object(here, origin, below, found)
    {
        return None;
    }
    let change = compare::<Objects>(key, here, origin, below.as_ref())?;
    // The base may have created and deleted the object since, or have a merged one at a higher version.
    let next = version.map(|version| version + i64::from(change.difference != Some(Difference::Deleted)));
    let new = stored.map(|object| StoredObject { version: next.unwrap_or(0).max(object.version), ..object });
    Some(Change { new, ..change })
}

/// Whether the base's object, of the origin `found`, is what a merge leaves of the overlay's. It has a higher version if
/// the base had created and deleted the object since the overlay first wrote it.
pub(super) fn is_merged_object(
    own: &StoredObject,
    origin: Origin,
    below: &StoredObject,
    found: Origin,
) -> bool {
    let is_higher = own.version < below.version && [Origin::ABSENT, found].contains(&origin);
    own.bytes == below.bytes && (own.version == below.version || is_higher)
}
