//! Places that keys get while the world is copied.

#[cfg(feature = "rocks")]
use std::collections::BTreeMap;

use cg_store::error::ConflictKey;
use cg_store::layer::{Mutex, rank};

use super::place::Place;

/// The places that keys got since a copy was begun, in their order; `None` while there is no copy.
///
/// A key is noted after the root has committed its place, and before the segment has the value. So what the copy of a segment
/// has got its place before the copy of the root, or is noted here.
#[derive(Debug, Default)]
pub(super) struct Placed(Mutex<Option<Vec<(ConflictKey, Place)>>, rank::SegmentPlaced>);

/// Places are noted until this is dropped.
#[cfg(feature = "rocks")]
pub(super) struct PlacedSince<'p>(&'p Placed);

impl Placed {
    /// Begins to note places. There is one copy at a time.
    #[cfg(feature = "rocks")]
    pub(super) fn begin(&self) -> PlacedSince<'_> {
        *self.0.lock() = Some(Vec::new());
        PlacedSince(self)
    }

    pub(super) fn note<'k>(&self, placed: impl IntoIterator<Item = (&'k ConflictKey, Place)>) {
        if let Some(all) = &mut *self.0.lock() {
            all.extend(placed.into_iter().map(|(key, place)| (key.clone(), place)));
        }
    }
}

#[cfg(feature = "rocks")]
impl PlacedSince<'_> {
    /// The places of each key so far, oldest first.
    pub(super) fn places(&self) -> BTreeMap<ConflictKey, Vec<Place>> {
        let mut places = BTreeMap::<_, Vec<_>>::new();
        for (key, place) in self.0.0.lock().iter().flatten() {
            places.entry(key.clone()).or_default().push(*place);
        }
        places
    }
}

#[cfg(feature = "rocks")]
impl Drop for PlacedSince<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}
