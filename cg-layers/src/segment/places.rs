//! Where entities, properties, objects and records are, in the root and in segments.
//!
//! The root stores the segment of a key before the segment stores its value. So what is in a segment is always found, and
//! putting it into a second segment is refused. A place in the root without its value is free: its transaction failed, or
//! the value was deleted since. An object that was deleted keeps its place, because its version counts on.
//!
//! Properties, objects and records may be in the root itself. No segment may put those.
//!
//! Root and segment are two databases: after a crash, the state of one does not imply that of the other. So the root
//! keeps the place of what was deleted until the deletion can no longer be lost, and a deletion is made durable before
//! another segment gets the place. What has no place could not be found, and could be put into a second segment.

use cg_store::engine::Level;
use cg_store::error::ConflictKey;
use cg_store::layer::{Base as _, ObjectWrite, RwLockReadGuard, Writes};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Durability, Error, World};

use super::borders::Borders;
use super::error::SegmentError;
use super::held::Held;
use super::home::SegmentHome;
use super::place::Place;
use super::pos::SegmentPos;
use super::putting::PuttingGuard;
use super::rows::place_property;

/// At most this many places are remembered for each segment; the others stay in the root.
const REMEMBERED: usize = 4096;
/// At most this many are deleted at once: meanwhile no thread puts or looks up anything.
const AT_ONCE: usize = 64;

/// A transaction puts or deletes keys until this is dropped: none is transferred, and no other segment puts those.
pub(super) struct Put<'b> {
    _putting: PuttingGuard<'b>,
    _none_crosses: RwLockReadGuard<'b, ()>,
    /// Objects that were deleted elsewhere before they came here.
    deleted: Vec<(ObjectKey, StoredObject)>,
}

/// A key that no other segment contains, and not the root.
pub(super) struct Free {
    /// Its place in the root.
    place: Option<Place>,
    /// The object, if it was deleted elsewhere.
    pub(super) deleted: Option<StoredObject>,
}

impl Put<'_> {
    /// Has the versions of objects that were deleted elsewhere count on. `stored` is what the segment has.
    pub(super) fn count_on(
        &mut self,
        writes: &mut Writes,
        mut stored: impl FnMut(&ObjectKey) -> Result<Option<StoredObject>, Error>,
    ) -> Result<(), Error> {
        for (key, deleted) in self.deleted.drain(..) {
            if stored(&key)?.is_some_and(|stored| stored.version >= deleted.version) {
                continue;
            }
            if let Some(write) = writes.objects.get_mut(&key)
                && let Some(after) = write.after(&key, Some(&deleted))?
            {
                *write = ObjectWrite::PutAt(after.version, after.bytes);
            }
        }
        Ok(())
    }
}

impl<H: SegmentHome> Borders<H> {
    /// Begins to put keys into a segment: stores in the root that it will contain them.
    ///
    /// # Errors
    /// [`SegmentError::EntityElsewhere`] and [`SegmentError::Elsewhere`] if another segment, or the root, contains one of
    /// them, [`Error::Conflict`] if another is about to, [`SegmentError::InTransit`], [`SegmentError::LongPropertyName`].
    pub(super) fn put(&self, segment: SegmentPos, keys: &[ConflictKey]) -> Result<Put<'_>, Error> {
        let border = self.shared();
        let putting = self.putting.begin(segment, keys)?;
        let deleted = self.claim(segment, keys)?;
        Ok(Put { _putting: putting, _none_crosses: border, deleted })
    }

    /// Stores in the root that a segment will contain keys, unless another segment contains them. Returns the objects that
    /// were deleted elsewhere.
    fn claim(
        &self,
        segment: SegmentPos,
        put: &[ConflictKey],
    ) -> Result<Vec<(ObjectKey, StoredObject)>, Error> {
        let root = self.open().root();
        let (mut free, mut deleted) = (Vec::new(), Vec::new());
        for key in put {
            if let ConflictKey::Entity(id) = key {
                self.refuse_in_transit(*id)?;
            }
            let Free { place, deleted: object } = self.find_free(segment, key)?;
            if place.is_none_or(|place| place.segment != segment) {
                if let Some(Place { segment: other, .. }) = place {
                    self.open().with_stored(other, |world| world.keep_found(level_of(root.level())))?;
                }
                let version = object.as_ref().map(|object| object.version);
                free.push((key, place, Place { segment, version }));
            }
            if let (ConflictKey::Object(key), Some(object)) = (key, object) {
                deleted.push((key.clone(), object));
            }
        }
        if !free.is_empty() {
            root.claim(&free)?;
            self.placed.note(free.into_iter().map(|(key, _, place)| (key, place)));
        }
        Ok(deleted)
    }

    /// Looks whether a segment may put a key. Two key reads in the root, one for an entity, and one in the segment that the
    /// root names if that is another one.
    ///
    /// # Errors
    /// [`SegmentError::EntityElsewhere`] and [`SegmentError::Elsewhere`]; [`Error::Conflict`] for a record that went to the root
    /// and is not deleted in its segment yet.
    pub(super) fn find_free(&self, segment: SegmentPos, key: &ConflictKey) -> Result<Free, Error> {
        let root = self.open().root();
        self.refuse_departing(key)?;
        let place = root.place_of(key)?;
        let mut deleted = place.and_then(Place::deleted);
        let other = place.map(|place| place.segment).filter(|other| *other != segment);
        let in_other = other.map(|other| self.held(other, key)).transpose()?;
        // The root has no entities. It may have the value although the place names this segment: then the segment has deleted
        // it, and a merge has put it since.
        let is_entity = matches!(key, ConflictKey::Entity(_));
        let in_root = if is_entity { Held::Absent } else { Held::of(root.world(), key)? };
        for (held, home) in [(in_other.unwrap_or(Held::Absent), other), (in_root, None)] {
            match held {
                Held::Live => return Err(SegmentError::elsewhere(key, home).into()),
                Held::Deleted(object) if deleted.as_ref().is_none_or(|it| it.version < object.version) => {
                    deleted = Some(object);
                }
                Held::Deleted(_) | Held::Absent => {}
            }
        }
        Ok(Free { place, deleted })
    }

    /// Deletes the places of keys from the root if they name a segment. It does not contain the keys, their deletion is durable,
    /// and the caller keeps others from putting any. After a crash before this, places stay in the root and mean nothing.
    fn unclaim(&self, segment: SegmentPos, keys: &[ConflictKey]) -> Result<(), Error> {
        let root = self.open().root();
        let mut gone = Vec::new();
        for key in keys {
            if root.segment_with(key)? == Some(segment) {
                gone.push((place_property(key)?, None));
            }
        }
        if gone.is_empty() { Ok(()) } else { root.set(Durability::Process, gone) }
    }

    /// Deletes the places in a deleted segment from the root. Costs a scan of all places.
    pub(super) fn forget_places_of(&self, segment: SegmentPos) -> Result<(), Error> {
        let _no_thread_puts = self.close();
        let mut gone = Vec::new();
        for key in self.open().root().keys_of(segment)? {
            // It may have been created again.
            if self.held(segment, &key)?.is_absent() {
                gone.push(key);
            }
        }
        self.unclaim(segment, &gone)
    }

    /// Remembers what a segment has deleted, and deletes some places that can be deleted now.
    pub(super) fn purge_later(&self, segment: SegmentPos, keys: Vec<ConflictKey>) {
        let mut deleted = self.deleted.lock();
        let of_segment = deleted.entry(segment).or_default();
        of_segment.extend(keys);
        of_segment.truncate(REMEMBERED);
        drop(deleted);
        self.forget_left(1);
    }

    /// Deletes the places of what was deleted in segments that can lose no commit any more, of each segment at most `times` times [`AT_ONCE`]. Waits for no other thread. Places that stay are harmless.
    pub(super) fn forget_left(&self, times: usize) {
        let left = std::mem::take(&mut *self.deleted.lock());
        for (segment, mut keys) in left {
            for _ in 0..times {
                let some = keys.len().saturating_sub(AT_ONCE)..;
                match self.forget_some_of(segment, &keys[some.clone()]) {
                    Ok(true) => drop(keys.drain(some)),
                    Ok(false) => break,
                    Err(error) => {
                        tracing::debug!(%error, %segment, "places of what was deleted stay in the root");
                        keys.clear();
                    }
                }
                if keys.is_empty() {
                    break;
                }
            }
            if !keys.is_empty() {
                self.deleted.lock().entry(segment).or_default().append(&mut keys);
            }
        }
    }

    /// Whether the places were deleted.
    fn forget_some_of(&self, segment: SegmentPos, keys: &[ConflictKey]) -> Result<bool, Error> {
        // A closed segment is not opened for this: it can lose nothing, and is checked when it is used again.
        let is_synced = |world: &World| {
            let metrics = world.metrics();
            metrics.last_synced >= metrics.last_commit
        };
        if self.open().if_open(segment, is_synced) != Some(true) {
            return Ok(false);
        }
        let Some(_no_thread_puts) = self.try_close() else { return Ok(false) };
        let gone = self.open().if_open(segment, |world| {
            let mut gone = Vec::new();
            for key in keys {
                if Held::of(world, key)?.is_absent() {
                    gone.push(key.clone());
                }
            }
            // After the reads: if all commits are synced, no deletion that was read can be lost.
            Ok::<_, Error>(is_synced(world).then_some(gone))
        });
        let Some(gone) = gone.transpose()?.flatten() else { return Ok(false) };
        self.unclaim(segment, &gone)?;
        Ok(true)
    }
}

/// What is as durable as commits of a durability.
pub(super) const fn level_of(durability: Durability) -> Level {
    match durability {
        Durability::Safe => Level::Power,
        _ => Level::Process,
    }
}
