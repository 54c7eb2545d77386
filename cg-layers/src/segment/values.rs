//! Properties, objects and records, which are in a segment or in the root.

use std::collections::BTreeMap;

use cg_format::Lookup;
use cg_format::overlay::Origin;
use cg_registry::Name;
use cg_store::error::ConflictKey;
use cg_store::layer::kind::{Kind as _, Objects};
use cg_store::layer::{Base as _, Found};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Property};

use super::home::SegmentHome;
use super::origin::of_life;
use super::place::Place;
use super::pos::SegmentPos;
use super::rows::PROPERTY_PREFIX;
use super::transfers::Transfers;
use crate::store::{OverlayKind, value_of};

impl<H: SegmentHome> Transfers<H> {
    /// A value and its origin: that of the segment that the root names, else that of the root. One key read in the root and
    /// one in the segment, or two in the root.
    pub(super) fn find_value<K: OverlayKind>(&self, key: &K::Key) -> Result<Found<K::Value>, Error> {
        let find = |world: &_| Ok(of_life(world, K::find(world, key)?));
        let in_segment = self.at_rest(&K::conflict_key(key), find)?.unwrap_or(Lookup::NotFound);
        let is_live = |found: &Found<K::Value>| value_of(found).is_some_and(K::is_live);
        if is_live(&in_segment) {
            return Ok(in_segment);
        }
        let in_root = K::find(self.root().world(), key)?;
        // An object that a segment has deleted counts on from there.
        Ok(if is_live(&in_root) || value_of(&in_segment).is_none() { in_root } else { in_segment })
    }

    /// An object and its origin. One that was deleted elsewhere counts on, and its place says at which version.
    pub(super) fn find_object(&self, key: &ObjectKey) -> Result<Found<StoredObject>, Error> {
        let found = self.find_value::<Objects>(key)?;
        let stored = value_of(&found);
        if stored.is_some_and(Objects::is_live) {
            return Ok(found);
        }
        let place = self.root().place_of(&Objects::conflict_key(key))?;
        let deleted = place.and_then(Place::deleted);
        Ok(match deleted.filter(|deleted| stored.is_none_or(|stored| stored.version < deleted.version)) {
            Some(deleted) => Lookup::Found((deleted, Origin::ABSENT)),
            None => found,
        })
    }

    /// The named properties of segments that begin with a text. Opens the segments that have any.
    pub(super) fn placed_properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error> {
        self.try_to_resolve();
        let places = self.root().places_behind(&format!("{PROPERTY_PREFIX}{prefix}"), None, usize::MAX)?;
        let mut all = BTreeMap::new();
        for (segment, keys) in by_segment(places) {
            self.open().with_stored(segment, |world| {
                for key in keys {
                    let ConflictKey::Property(name) = key else { continue };
                    let Some(Property::Named(name)) = Property::of_key(name.as_bytes()) else { continue };
                    if let Some((bytes, _)) = world.find_property(&Property::Named(name.clone()))?.here() {
                        all.insert(name, bytes);
                    }
                }
                Ok(())
            })?;
        }
        Ok(all)
    }
}

/// The keys of each segment.
pub(super) fn by_segment(
    places: impl IntoIterator<Item = (ConflictKey, SegmentPos)>,
) -> BTreeMap<SegmentPos, Vec<ConflictKey>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for (key, segment) in places {
        all.entry(segment).or_default().push(key);
    }
    all
}
