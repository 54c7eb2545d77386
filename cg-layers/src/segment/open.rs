//! The segments as worlds: created, opened when they are needed, closed and deleted.
//!
//! **Invariants**.
//! - The root stores what a segment is to become before its files are changed. So an interrupted change is finished or
//!   begun anew.
//! - A world in the place of a segment that the root does not know is neither taken for absent nor overwritten.
//! - A caller that waits to open a segment does not wait for users of it.

mod stored;

use std::sync::Arc;

use cg_store::layer::{RwLockReadGuard, check_room, prefetch_only, resources, spawn};
use cg_store::{Durability, Error, World, WorldOptions};

use super::error::SegmentError;
use super::home::SegmentHome;
use super::options::SegmentOptions;
use super::pins::Pins;
use super::pos::SegmentPos;
use super::root::Root;
use super::rows::SegmentState;
use super::slots::{Slot, Slots};
use super::time::GameTime;

/// The segments of a root, each a world in its home. Some are open.
#[derive(Debug)]
pub(super) struct OpenSegments<H> {
    root: Arc<Root>,
    home: H,
    /// The options of a segment.
    options: WorldOptions,
    slots: Slots,
    time: GameTime,
    pins: Arc<Pins>,
}

/// The lock of a slot: its world is not closed meanwhile.
type Open<'s> = RwLockReadGuard<'s, Option<World>>;

impl<H: SegmentHome> OpenSegments<H> {
    pub(super) fn new(root: Arc<Root>, home: H, options: &SegmentOptions) -> Self {
        let slots = Slots::new(options.max_open, options.world.cache_bytes);
        let cache_bytes = slots.first_cache_bytes();
        let resources = resources(root.world());
        let time = GameTime::new(root.world().tiers().clock().now(), root.side_chunks(), &options.world);
        let options = WorldOptions { cache_bytes, resources, ..options.world.clone() };
        Self { root, home, options, slots, time, pins: Arc::default() }
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// Where segments are stored.
    #[cfg(feature = "rocks")]
    pub(super) const fn home(&self) -> &H {
        &self.home
    }

    /// What segments are told of the time.
    pub(super) const fn time(&self) -> &GameTime {
        &self.time
    }

    /// The pinned areas.
    pub(super) const fn pins(&self) -> &Arc<Pins> {
        &self.pins
    }

    /// How many segments are open.
    pub(super) fn count(&self) -> usize {
        self.slots.count()
    }

    /// The memory that writes of a segment may take before they are stored.
    pub(super) const fn queue_bytes(&self) -> u64 {
        self.options.queue_bytes
    }

    /// Marks a segment as used now, if it was used before.
    pub(super) fn touch(&self, segment: SegmentPos) {
        if let Some(slot) = self.slots.find(segment) {
            self.slots.mark(&slot);
        }
    }

    /// Marks a slot as used now.
    pub(super) fn mark(&self, slot: &Slot) {
        self.slots.mark(slot);
    }

    /// Stores a refusal of what was submitted that no ticket has reported.
    pub(super) fn note_refusal(&self, refusal: Error) {
        self.slots.note_refusal(refusal);
    }

    /// Flushes a world of this one. A refusal that no ticket has reported is kept for [`check_refusals`](Self::check_refusals):
    /// the flush has done its work.
    pub(super) fn flush(&self, world: &World) -> Result<(), Error> {
        match world.flush() {
            Err(refusal @ Error::DeferredWrite { .. }) => {
                self.note_refusal(refusal);
                Ok(())
            }
            flushed => flushed,
        }
    }

    /// Reports all such refusals, as one error.
    pub(super) fn check_refusals(&self) -> Result<(), Error> {
        self.slots.check_refusals()
    }

    /// Refuses calls after [`close`](Self::close).
    pub(super) fn check(&self) -> Result<(), Error> {
        self.slots.check()
    }

    /// Calls a function with a segment's world; `None` if it is not stored.
    pub(super) fn with_stored<T>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.check()?;
        // An open segment is stored. Does not wait: if the segment is being deleted, the root says so.
        if let Some(slot) = self.slots.find(segment)
            && let Some(Some(world)) = slot.world.try_read().as_deref()
        {
            self.slots.mark(&slot);
            return show(world).map(Some);
        }
        if !self.is_there(segment)? {
            return Ok(None);
        }
        self.with_slot(
            segment,
            |world| world.map(show).transpose(),
            // It may have been deleted while this call waited.
            || if self.is_there(segment)? { self.open(segment).map(Some) } else { Ok(None) },
        )
    }

    /// As [`with_stored`](Self::with_stored), for a segment that must be stored.
    pub(super) fn with_there<T>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with_stored(segment, show)?.ok_or_else(|| SegmentError::Missing { segment }.into())
    }

    /// Refuses to create a segment that is not stored where the disk has no room for what would be put into it.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`].
    pub(super) fn check_room_for(&self, segment: SegmentPos) -> Result<(), Error> {
        if self.root.state(segment) == Some(SegmentState::There) {
            Ok(())
        } else {
            check_room(self.root.world())
        }
    }

    /// Calls a function with a segment's world, which is created if it is not stored.
    pub(super) fn with_made<T, X: From<Error>>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, X>,
    ) -> Result<T, X> {
        self.with_slot(
            segment,
            |world| match world {
                Some(world) => show(world),
                None => Err(Error::from(SegmentError::Missing { segment }).into()),
            },
            || self.open_or_create(segment).map(Some),
        )
    }

    /// Calls a function with a stored segment's world, whatever history it is of.
    pub(super) fn with_any_history<T>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check()?;
        self.with_slot(
            segment,
            |world| world.map_or_else(|| Err(SegmentError::Missing { segment }.into()), show),
            || self.open_of_any_history(segment).map(Some),
        )
    }

    /// Calls a function with the world of every open segment, until it fails. Opens none.
    pub(super) fn for_each_open(
        &self,
        mut show: impl FnMut(&World) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (_, slot) in self.slots.all() {
            if let Some(world) = &*slot.world.read_recursive() {
                show(world)?;
            }
        }
        Ok(())
    }

    /// As [`for_each_open`](Self::for_each_open), with the segments.
    pub(super) fn for_each_open_segment(&self, mut show: impl FnMut(SegmentPos, &World)) {
        for (segment, slot) in self.slots.all() {
            if let Some(world) = &*slot.world.read_recursive() {
                show(segment, world);
            }
        }
    }

    /// The segments that are open, ascending, and those that are being opened or closed.
    pub(super) fn list(&self) -> Vec<SegmentPos> {
        self.slots.list()
    }

    /// Calls a function with a segment's world, if it is open. Does not wait, and is no use of the segment: it may be
    /// closed next.
    pub(super) fn if_open<T>(&self, segment: SegmentPos, show: impl FnOnce(&World) -> T) -> Option<T> {
        let slot = self.slots.find(segment)?;
        let world = slot.world.try_read()?;
        world.as_ref().map(show)
    }

    /// As [`if_open`](Self::if_open), as a use of the segment.
    pub(super) fn use_if_open<T>(&self, segment: SegmentPos, show: impl FnOnce(&World) -> T) -> Option<T> {
        let slot = self.slots.find(segment)?;
        let world = slot.world.try_read()?;
        self.slots.mark(&slot);
        world.as_ref().map(show)
    }

    /// The slot of a segment that was used before; it may be closed.
    pub(super) fn find(&self, segment: SegmentPos) -> Option<Arc<Slot>> {
        self.slots.find(segment)
    }

    /// Opens stored segments in the background.
    pub(super) fn open_ahead(self: &Arc<Self>, segments: impl IntoIterator<Item = SegmentPos>) {
        for segment in segments {
            let weak = Arc::downgrade(self);
            spawn(self.root.world(), move || {
                let Some(open) = weak.upgrade() else { return };
                if let Err(error) = open.with_stored(segment, |_| Ok(())) {
                    tracing::warn!(%error, %segment, "opening a segment ahead of need failed");
                }
            });
        }
    }

    /// Opens a stored segment if there is room, or can be without closing pinned segments, those in use and those that are
    /// kept. Waits for no user of it. Returns whether there was room, or no need for any.
    pub(super) fn open_within(
        &self,
        segment: SegmentPos,
        is_kept: impl Fn(SegmentPos) -> bool,
    ) -> Result<bool, Error> {
        self.check()?;
        let is_there = || self.root.state(segment) == Some(SegmentState::There);
        let is_open = self.find(segment).is_some_and(|slot| slot.is_open());
        if is_open || !is_there() {
            return Ok(true);
        }
        let has_room = self.make_room(is_kept);
        let make = || if is_there() { self.open(segment).map(Some) } else { Ok(None) };
        let make = || Ok(make()?.inspect(|world| self.prepare(segment, world)));
        let filled = if has_room { self.fill_in_room(&self.slots.slot(segment), make) } else { Ok(false) };
        self.slots.divide();
        filled.map(|_| has_room)
    }

    /// Closes a segment and removes its files, after its users.
    pub(super) fn delete(&self, segment: SegmentPos) -> Result<(), Error> {
        let deleted = self.delete_locked(segment);
        self.slots.divide();
        deleted
    }

    fn delete_locked(&self, segment: SegmentPos) -> Result<(), Error> {
        let slot = self.slots.slot(segment);
        let mut world = slot.world.write();
        if self.root.state(segment).is_none() {
            return Err(SegmentError::Missing { segment }.into());
        }
        self.root.note(segment, Some(SegmentState::Deleting), Durability::Safe)?;
        if let Some(error) = world.take().and_then(|world| world.close().err()) {
            tracing::warn!(%error, %segment, "closing a segment failed; it is deleted");
        }
        self.finish_deletion(segment)
    }

    /// Removes the files of a segment that is not open, and what the root stores of it.
    pub(super) fn finish_deletion(&self, segment: SegmentPos) -> Result<(), Error> {
        self.home.remove(segment)?;
        self.root.note(segment, None, Durability::Safe)
    }

    /// Closes every segment for good. Returns the first error after all are closed.
    pub(super) fn close(&self) -> Result<(), Error> {
        self.slots.close(|world| self.home.close(world))
    }
}

/// Slots are filled.
impl<H: SegmentHome> OpenSegments<H> {
    fn with_slot<T, X: From<Error>>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(Option<&World>) -> Result<T, X>,
        make: impl Fn() -> Result<Option<World>, Error>,
    ) -> Result<T, X> {
        let slot = self.slots.slot(segment);
        let world = self.hold(&slot, || Ok(make()?.inspect(|world| self.prepare(segment, world))))?;
        show(world.as_ref().and_then(|world| world.as_ref()))
    }

    /// Tells a segment that was opened what it must know before it is used.
    fn prepare(&self, segment: SegmentPos, world: &World) {
        let side_chunks = self.root.side_chunks();
        prefetch_only(world, move |at| segment.has(at, side_chunks));
        self.time.told().tell(segment, world);
        self.pins.pin_in(segment, world, side_chunks);
    }

    /// The world in a slot, which stays open as long as it is held; `None` if `make` returns none.
    fn hold<'s>(
        &self,
        slot: &'s Slot,
        make: impl Fn() -> Result<Option<World>, Error>,
    ) -> Result<Option<Open<'s>>, Error> {
        loop {
            let world = slot.world.read_recursive();
            if world.is_some() {
                return Ok(Some(world));
            }
            drop(world);
            let filled = self.fill(slot, &make);
            self.slots.divide();
            if !filled? {
                return Ok(None);
            }
        }
    }

    /// Makes the world of an empty slot, unless another caller does. Returns whether there may be one.
    fn fill(&self, slot: &Slot, make: impl Fn() -> Result<Option<World>, Error>) -> Result<bool, Error> {
        // Before the slot is locked: closing others locks their slots one at a time.
        self.make_room(|_| false);
        self.fill_in_room(slot, make)
    }

    /// Closes segments until there is room for one more. Returns whether there is.
    fn make_room(&self, is_kept: impl Fn(SegmentPos) -> bool) -> bool {
        let side_chunks = self.root.side_chunks();
        let is_kept = |segment| is_kept(segment) || self.pins.keep_open(segment, side_chunks);
        self.slots.make_room(is_kept, |world| self.home.close(world))
    }

    fn fill_in_room(
        &self,
        slot: &Slot,
        make: impl Fn() -> Result<Option<World>, Error>,
    ) -> Result<bool, Error> {
        // Does not wait: the holder opens the world, and may wait for `Borders`, which this thread may hold.
        let Some(mut world) = slot.world.try_write() else { return Ok(true) };
        if world.is_none() {
            self.check()?;
            *world = make()?;
        }
        Ok(world.is_some())
    }
}
