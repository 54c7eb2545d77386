//! The objects of a segmented world: those of its segments, and those of its root.

use std::fmt;

use cg_store::Error;
use cg_store::error::ConflictKey;
use cg_store::layer::Base as _;
use cg_store::objects::{Object, ObjectEntry, ObjectKey, ObjectPage, StoredObject};

use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::rows::object_places;
use super::transfers::Transfers;
use super::values::by_segment;
use super::world::SegmentedWorld;

/// The objects of a segmented world, wherever they are. Calls are named as those of
/// [`Objects`](cg_store::objects::Objects).
///
/// They are written in a [transaction](SegmentedWorld::transaction) of the segment that they belong to.
///
/// ```
/// use cg_store::prelude::*;
/// use cg_layers::{SegmentOptions, SegmentedWorld};
/// let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
/// let dimensions = vec![Name::new("game:overworld")?];
/// let names = world.register(&Registration { dimensions, ..Registration::default() })?;
/// let overworld = names.dimension("game:overworld").expect("just registered");
/// for x in [0, 100] {
///     world.transaction(ChunkAt::new(overworld, ChunkPos::new(x, 0, 0)?), |tx| {
///         tx.put_object(format!("bricks/{x}"), [7])
///     })?;
/// }
/// assert_eq!(world.objects().get("bricks/100")?.expect("was put").version, 0);
/// let keys = world.objects().list("bricks/", None, 10)?.entries.into_iter().map(|entry| entry.key.to_string());
/// assert_eq!(keys.collect::<Vec<_>>(), ["bricks/0", "bricks/100"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SegmentedObjects<'w, H: SegmentHome> {
    world: &'w SegmentedWorld<H>,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// The objects of all segments, and those of the root.
    pub const fn objects(&self) -> SegmentedObjects<'_, H> {
        SegmentedObjects { world: self }
    }
}

impl<H: SegmentHome> SegmentedObjects<'_, H> {
    /// The last committed state of an object, or `None` if there is none. One key read in the root and one in the segment,
    /// which is opened; two in the root if no segment has it.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have, and as [`SegmentedWorld::load`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let found = self.world.find_object(&ObjectKey::new(key)?)?.here();
        Ok(found.and_then(|(object, _)| object.here()))
    }

    /// The version of an object, or `None` if there is none. Costs as [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn version(&self, key: impl AsRef<[u8]>) -> Result<Option<i64>, Error> {
        Ok(self.get(key)?.map(|object| object.version))
    }

    /// At most `max_count` objects, but at least one, whose keys have a prefix, after the position at which the last
    /// page ended: as [`Objects::list`](cg_store::objects::Objects::list), over all segments and the root in one order.
    ///
    /// Reads the places of the page in the root, and then the objects, each segment in one go. Opens the segments that have
    /// any of them. What is written meanwhile may be listed or not.
    ///
    /// # Errors
    /// As [`Objects::list`](cg_store::objects::Objects::list), and the errors of opening segments.
    pub fn list(
        &self,
        prefix: impl AsRef<[u8]>,
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        self.world.list_objects(prefix.as_ref(), position, max_count)
    }
}

impl<H: SegmentHome> fmt::Debug for SegmentedObjects<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SegmentedObjects").field(self.world).finish()
    }
}

impl<H: SegmentHome> Transfers<H> {
    /// Lists objects: at most `max_count`, which is not 0.
    pub(super) fn list_objects(
        &self,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        let (mut entries, mut position) = (Vec::new(), position.cloned());
        // One more, to know whether there are more.
        let asked = max_count.saturating_add(1);
        loop {
            let of_root = self.root().world().list_objects(prefix, position.as_ref(), asked)?;
            let behind = position.clone().map(ConflictKey::Object);
            let mut places = self.root().places_behind(&object_places(prefix), behind.as_ref(), asked)?;
            let placed_until = places.last().filter(|_| places.len() == asked).map(|(key, _)| key.clone());
            let placed_until = placed_until.and_then(object_of);
            // The key up to which both lists are complete.
            let end = [of_root.next, placed_until].into_iter().flatten().min();
            let is_before = |key: &ObjectKey| end.as_ref().is_none_or(|end| key <= end);
            places.retain(|(key, _)| matches!(key, ConflictKey::Object(key) if is_before(key)));
            let mut found = self.placed_objects(places)?;
            // What a segment has hides what a host put into the root under the same key.
            let is_hidden = |entry: &ObjectEntry| {
                found.binary_search_by(|other: &ObjectEntry| other.key.cmp(&entry.key)).is_ok()
            };
            let of_root: Vec<_> = of_root
                .entries
                .into_iter()
                .filter(|entry| is_before(&entry.key) && !is_hidden(entry))
                .collect();
            entries.append(&mut found);
            entries.extend(of_root);
            if entries.len() > max_count || end.is_none() {
                entries.sort_by(|a: &ObjectEntry, b| a.key.cmp(&b.key));
                let is_cut = entries.len() > max_count;
                entries.truncate(max_count);
                let next = entries.last().filter(|_| is_cut).map(|entry| entry.key.clone());
                return Ok(ObjectPage { entries, next });
            }
            position = end;
        }
    }

    /// The entries of the objects that are in their places, ascending.
    fn placed_objects(&self, places: Vec<(ConflictKey, SegmentPos)>) -> Result<Vec<ObjectEntry>, Error> {
        let mut entries = Vec::new();
        for (segment, keys) in by_segment(places) {
            self.open().with_stored(segment, |world| {
                for key in keys.into_iter().filter_map(object_of) {
                    let Some((object, _)) = world.find_object(&key)?.here() else { continue };
                    entries.extend(ObjectEntry::of(key.as_bytes(), StoredObject::view(&object))?);
                }
                Ok(())
            })?;
        }
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(entries)
    }
}

fn object_of(key: ConflictKey) -> Option<ObjectKey> {
    if let ConflictKey::Object(key) = key { Some(key) } else { None }
}
