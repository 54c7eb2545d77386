//! What an overlay shows otherwise than its base.

use cg_format::overlay::Origin;
use cg_format::{ChunkAt, EntityId, RecordId};
use cg_store::layer::Base;
use cg_store::layer::kind::{self, Kind, Objects};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Property, each_kind};

use super::Overlay;
use super::kind::OverlayKind;
use super::rows::LeaseView;

/// How a place in an overlay differs from its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// The base has nothing there.
    Added,
    /// Both have something, and it differs.
    Changed,
    /// Only the base has something.
    Deleted,
}

/// One entity that differs; chunks are told by [`OverlayDiff::chunks`].
pub type EntityDifference = (EntityId, Difference);

/// Everything that an overlay shows otherwise than its base does now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OverlayDiff {
    /// Chunks, in the order of their keys.
    pub chunks: Vec<(ChunkAt, Difference)>,
    /// Entities, ascending.
    pub entities: Vec<EntityDifference>,
    /// Properties, in the order of their keys.
    pub properties: Vec<(Property, Difference)>,
    /// Objects, ascending by key. One whose bytes are the same again and whose version is another differs.
    pub objects: Vec<(ObjectKey, Difference)>,
    /// Spatial records, ascending by id.
    pub records: Vec<(RecordId, Difference)>,
}

/// One value that an overlay wrote and shows otherwise than its base, as a merge needs it.
pub(super) struct Change<K: Kind> {
    pub(super) key: K::Key,
    /// `None` is a deletion; that of an object says at which version.
    pub(super) new: Option<K::Value>,
    /// What the overlay wrote over.
    pub(super) origin: Origin,
    /// `None` if neither shows anything, and only the count of an object is to go on.
    pub(super) difference: Option<Difference>,
}

impl<K: Kind> Change<K> {
    fn told(self) -> Option<(K::Key, Difference)> {
        Some((self.key, self.difference?))
    }
}

impl OverlayDiff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        !each_kind!(self, |differences| differences.is_empty()).contains(&false)
    }
}

impl<S: Base> Overlay<S> {
    /// Lists what the overlay shows otherwise than its base does. What was written and is equal again is not listed.
    ///
    /// Costs a scan of what was written, and the base's load of each place. Waits for a transaction under way and holds the
    /// next one off.
    ///
    /// # Errors
    /// [`Error::Nested`]; [`Error::Corrupt`] if anything is damaged on either side.
    pub fn diff(&self) -> Result<OverlayDiff, Error> {
        let _alone = self.write()?;
        let mut diff = OverlayDiff::default();
        self.store.in_view(self.lease(), |rows| {
            each_kind!(mut diff, |list: K| {
                rows.for_each_change::<K>(|change| {
                    list.extend(change.told());
                    Ok(())
                })?;
            });
            Ok(diff)
        })
    }
}

impl<S: Base> LeaseView<'_, S> {
    /// Visits what differs from the base; the caller has the right to write.
    pub(super) fn for_each_change<K: OverlayKind>(
        &self,
        mut visit: impl FnMut(Change<K>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.for_each::<K>(|key, row| {
            let below = K::find(&self.store.base, &key)?;
            K::compare(key, row, below).map_or(Ok(()), &mut visit)
        })
    }
}

/// What a row changes of what the base has; `None` if nothing.
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

/// As [`compare`], where a deleted object is found too. One that both have deleted, or the base never had, goes on at the
/// higher version: a reader that saw it in the overlay never sees it go back.
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
        // Whatever the base did meanwhile is not undone.
        let origin = found.unwrap_or(Origin::ABSENT);
        return Some(Change { key, new: Some(new), origin, difference: None });
    }
    let change = compare::<Objects>(key, here, origin, below.as_ref())?;
    // It may have come and gone in the base since.
    let next = version.filter(|_| change.difference == Some(Difference::Added)).map(|version| version + 1);
    let new = stored.map(|object| StoredObject { version: next.unwrap_or(0).max(object.version), ..object });
    Some(Change { new, ..change })
}
