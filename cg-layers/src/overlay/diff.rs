//! What an overlay shows otherwise than its base.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId};
use cg_store::layer::{Base, Found, origin_of};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Property};

use super::Overlay;
use super::rows::Written;

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

/// One thing that an overlay wrote and shows otherwise than its base.
pub(super) enum Changed {
    Chunk(Change<ChunkAt, Arc<Chunk>>),
    Entity(Change<EntityId, Entity>),
    Property(Change<Property, Vec<u8>>),
    Object(Change<ObjectKey, StoredObject>),
    Record(Change<RecordId, Arc<Record>>),
}

/// One thing that an overlay wrote, as a merge needs it.
#[derive(Debug)]
pub(super) struct Change<K, T> {
    pub(super) key: K,
    /// `None` is a deletion; that of an object says at which version.
    pub(super) new: Option<T>,
    /// What the overlay wrote over.
    pub(super) origin: Origin,
    /// `None` if neither shows anything, and only the count of an object is to go on.
    pub(super) difference: Option<Difference>,
}

impl<K, T> Change<K, T> {
    fn told(self) -> Option<(K, Difference)> {
        Some((self.key, self.difference?))
    }
}

impl OverlayDiff {
    /// Whether nothing differs.
    pub const fn is_empty(&self) -> bool {
        let Self { chunks, entities, properties, objects, records } = self;
        chunks.is_empty()
            && entities.is_empty()
            && properties.is_empty()
            && objects.is_empty()
            && records.is_empty()
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
        self.changes(|changed| {
            match changed {
                Changed::Chunk(change) => diff.chunks.extend(change.told()),
                Changed::Entity(change) => diff.entities.extend(change.told()),
                Changed::Property(change) => diff.properties.extend(change.told()),
                Changed::Object(change) => diff.objects.extend(change.told()),
                Changed::Record(change) => diff.records.extend(change.told()),
            }
            Ok(())
        })?;
        Ok(diff)
    }

    /// Shows what differs from the base, chunks first, then entities, properties, objects and records; the caller has the right to write.
    pub(super) fn changes(&self, mut show: impl FnMut(Changed) -> Result<(), Error>) -> Result<(), Error> {
        let base = &self.store.base;
        self.store.for_each(self.lease(), |written| {
            let changed = match written {
                Written::Chunk(at, row) => {
                    compare(at, row.value, row.origin, base.find_chunk(at)?).map(Changed::Chunk)
                }
                Written::Entity(id, row) => {
                    compare(id, row.value, row.origin, base.find_entity(id)?).map(Changed::Entity)
                }
                Written::Property(property, row) => {
                    let below = base.find_property(&property)?;
                    compare(property, row.value, row.origin, below).map(Changed::Property)
                }
                Written::Object(key, row) => {
                    let below = base.find_object(&key)?;
                    compare_objects(key, row.value, row.origin, below).map(Changed::Object)
                }
                Written::Record(id, row) => {
                    compare(id, row.value, row.origin, base.find_record(id)?).map(Changed::Record)
                }
            };
            changed.map_or(Ok(()), &mut show)
        })
    }
}

/// As [`compare`], where a deleted one is found too. One that both have deleted, or the base never had, goes on at the higher
/// count: a reader that saw it in the overlay never sees it go back.
fn compare_objects(
    key: ObjectKey,
    here: Lookup<StoredObject>,
    origin: Origin,
    below: Found<StoredObject>,
) -> Option<Change<ObjectKey, StoredObject>> {
    let found = origin_of(&below);
    let (stored, below) = (here.here(), below.here());
    let live = |object: &StoredObject| object.bytes.is_some();
    let here = stored.clone().filter(live);
    let shown_below = below.clone().filter(|(object, _)| live(object));
    let count = below.map(|(object, _)| object.version);
    if here.is_none() && shown_below.is_none() {
        let new = stored.filter(|object| Some(object.version) > count)?;
        // Whatever the base did meanwhile is not undone.
        return Some(Change { key, new: Some(new), origin: found, difference: None });
    }
    let here = here.map_or(Lookup::Tombstone, Lookup::Found);
    let change = compare(key, here, origin, shown_below.map_or(Lookup::NotFound, Lookup::Found))?;
    // It may have come and gone in the base since.
    let behind = count.filter(|_| change.difference == Some(Difference::Added)).map(|count| count + 1);
    let new =
        stored.map(|object| StoredObject { version: behind.unwrap_or(0).max(object.version), ..object });
    Some(Change { new, ..change })
}

fn compare<K, T: PartialEq>(
    key: K,
    here: Lookup<T>,
    origin: Origin,
    below: Found<T>,
) -> Option<Change<K, T>> {
    let (new, difference) = match (here.here(), below.here()) {
        (Some(here), Some((below, _))) if here == below => return None,
        (Some(here), Some(_)) => (Some(here), Difference::Changed),
        (Some(here), None) => (Some(here), Difference::Added),
        (None, Some(_)) => (None, Difference::Deleted),
        (None, None) => return None,
    };
    Some(Change { key, new, origin, difference: Some(difference) })
}
