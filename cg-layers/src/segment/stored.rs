//! Segments in the root: created, opened when they are needed, and deleted.
//!
//! **Invariants**.
//! - The root stores what a segment is to become before its files are changed. So an interrupted change is finished or
//!   begun anew.
//! - A world in the place of a segment that the root does not know is neither taken for absent nor overwritten.
//! - A caller that waits to open a segment does not wait for users of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::EntityId;
use cg_registry::{Catalog, ListKind};
use cg_store::layer::{Base as _, RwLockReadGuard};
use cg_store::{Durability, Error, Property, World};
use uuid::Uuid;

use super::open::Slot;
use super::place::{ENTITY_PREFIX, SEGMENT_PREFIX, SegmentState, crossed_property, own_property, whole};
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld, history, transaction};

/// The lock of a slot: its world is not closed meanwhile.
type Open<'s> = RwLockReadGuard<'s, Option<World>>;

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Deletes a segment with its chunks and entities.
    ///
    /// Waits for users of the segment. A deletion that a crash interrupts is finished when the world is opened.
    ///
    /// # Errors
    /// [`SegmentError::Missing`], and the errors of the disk; [`Error::Nested`] inside a closure of
    /// [`transaction`](Self::transaction) or [`with_segment`](Self::with_segment).
    pub fn delete_segment(&self, segment: SegmentPos) -> Result<(), Error> {
        self.refuse_inside()?;
        self.shared.open.check()?;
        let _alone = self.shared.moving.lock();
        self.resolve_except(segment)?;
        // The segment is released first: a call that puts entities reads it while it blocks transfers.
        let deleted = self.delete_locked(segment);
        self.shared.open.divide();
        deleted?;
        self.forget_entities_of(segment)?;
        self.resolve_transfer()
    }

    /// Closes a segment and removes its files, after its users.
    fn delete_locked(&self, segment: SegmentPos) -> Result<(), Error> {
        let slot = self.shared.open.slot(segment);
        let mut world = slot.world.write();
        if !self.shared.known.read().contains_key(&segment) {
            return Err(SegmentError::Missing { segment }.into());
        }
        self.note(segment, Some(SegmentState::Deleting), Durability::Safe)?;
        if let Some(error) = world.take().and_then(|world| world.close().err()) {
            tracing::warn!(%error, %segment, "closing a segment failed; it is deleted");
        }
        self.shared.home.remove(segment)?;
        self.note(segment, None, Durability::Safe)
    }

    /// Deletes the places of a deleted segment's entities from the root. Costs a scan of all places.
    fn forget_entities_of(&self, segment: SegmentPos) -> Result<(), Error> {
        let _nobody_puts = self.shared.borders.write();
        let mut ids = Vec::new();
        let value = transaction::encode(segment);
        let failed = self.shared.root.read_view(|view| {
            view.for_each_property(ENTITY_PREFIX, |property| {
                match property {
                    Ok((name, place)) if place == value => {
                        let id = name.strip_prefix(ENTITY_PREFIX).and_then(|id| id.parse().ok());
                        ids.extend(id.map(EntityId::new));
                    }
                    Ok(_) => {}
                    Err(error) => return ControlFlow::Break(error),
                }
                ControlFlow::Continue(())
            })
        })?;
        failed.map_or(Ok(()), Err)?;
        self.unclaim(segment, &ids)
    }

    /// Calls a function with a segment's world; `None` if it is not stored.
    pub(super) fn with_stored<T>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.shared.open.check()?;
        // An open segment is stored. Does not wait: if the segment is being deleted, the root says so.
        if let Some(slot) = self.shared.open.find(segment)
            && let Some(Some(world)) = slot.world.try_read().as_deref()
        {
            self.shared.open.mark(&slot);
            return show(world).map(Some);
        }
        if !self.is_there(segment)? {
            return Ok(None);
        }
        self.with_slot(
            segment,
            |world| world.map(show).transpose(),
            // It may have been deleted while this call waited.
            |world| if world.is_there(segment)? { world.open_segment(segment).map(Some) } else { Ok(None) },
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

    /// Whether a segment is stored, by its state in the root.
    ///
    /// # Errors
    /// [`SegmentError::NotKnown`] if a world is in its place and the root does not know it: the segment is not absent.
    fn is_there(&self, segment: SegmentPos) -> Result<bool, Error> {
        let state = || self.shared.known.read().get(&segment).copied();
        match state() {
            Some(state) => Ok(state == SegmentState::There),
            // It may have been created since the first check.
            None if self.shared.home.has(segment)? && state().is_none() => Err(self.not_known(segment)),
            None => Ok(false),
        }
    }

    fn not_known(&self, segment: SegmentPos) -> Error {
        SegmentError::NotKnown { segment, at: self.shared.home.location(segment) }.into()
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
            |world| world.open_or_create(segment).map(Some),
        )
    }

    fn with_slot<T, X: From<Error>>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(Option<&World>) -> Result<T, X>,
        make: impl Fn(&Self) -> Result<Option<World>, Error>,
    ) -> Result<T, X> {
        let slot = self.shared.open.slot(segment);
        let world = self.hold(&slot, make)?;
        show(world.as_ref().and_then(|world| world.as_ref()))
    }

    /// The world in a slot, which stays open as long as it is held; `None` if `make` returns none.
    fn hold<'s>(
        &self,
        slot: &'s Slot,
        make: impl Fn(&Self) -> Result<Option<World>, Error>,
    ) -> Result<Option<Open<'s>>, Error> {
        loop {
            let world = slot.world.read_recursive();
            if world.is_some() {
                return Ok(Some(world));
            }
            drop(world);
            let filled = self.fill(slot, &make);
            self.shared.open.divide();
            if !filled? {
                return Ok(None);
            }
        }
    }

    /// Makes the world of an empty slot, unless another caller does. Returns whether there may be one.
    fn fill(&self, slot: &Slot, make: impl Fn(&Self) -> Result<Option<World>, Error>) -> Result<bool, Error> {
        // Before the slot is locked: closing others locks their slots one at a time.
        self.shared.open.make_room(|world| self.shared.home.close(world));
        // Does not wait: the holder opens the world, and may wait for `borders`, which this thread may hold.
        let Some(mut world) = slot.world.try_write() else { return Ok(true) };
        if world.is_none() {
            self.shared.open.check()?;
            *world = make(self)?;
        }
        Ok(world.is_some())
    }

    fn open_or_create(&self, segment: SegmentPos) -> Result<World, Error> {
        let state = self.shared.known.read().get(&segment).copied();
        if state == Some(SegmentState::There) {
            self.open_segment(segment)
        } else {
            self.create_segment(segment)
        }
    }

    fn create_segment(&self, segment: SegmentPos) -> Result<World, Error> {
        let safe = self.level();
        if !self.shared.known.read().contains_key(&segment) && self.shared.home.has(segment)? {
            return Err(self.not_known(segment));
        }
        self.note(segment, Some(SegmentState::Creating), safe)?;
        let world = self.shared.home.create(segment, self.catalog(), &self.shared.options)?;
        let property = own_property()?;
        let mut bytes = self.shared.root.identity().uuid.as_bytes().to_vec();
        segment.encode(&mut bytes);
        world.transaction_at(safe, |tx| {
            tx.set_property(property, Some(bytes));
            Ok::<_, Error>(())
        })?;
        self.note(segment, Some(SegmentState::There), safe)?;
        Ok(world)
    }

    fn open_segment(&self, segment: SegmentPos) -> Result<World, Error> {
        let world = self.open_of_any_history(segment)?;
        history::check(&self.shared.root, &world, segment)?;
        Ok(world)
    }

    fn open_of_any_history(&self, segment: SegmentPos) -> Result<World, Error> {
        if !self.shared.home.has(segment)? {
            return Err(SegmentError::Lost { segment, at: self.shared.home.location(segment) }.into());
        }
        let names = self.catalog();
        let check = |stored: &Catalog| Ok(check_names(segment, stored, &names)?);
        let world = self.shared.home.open(segment, Arc::clone(&names), &check, &self.shared.options)?;
        check_is_segment(&self.shared.root, &world, segment)?;
        Ok(world)
    }

    /// Calls a function with a stored segment's world, whatever history it is of.
    pub(super) fn with_any_history<T>(
        &self,
        segment: SegmentPos,
        show: impl FnOnce(&World) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.shared.open.check()?;
        self.with_slot(
            segment,
            |world| world.map_or_else(|| Err(SegmentError::Missing { segment }.into()), show),
            |world| world.open_of_any_history(segment).map(Some),
        )
    }

    /// Sets properties of the root in one commit; `None` removes one.
    pub(super) fn set_in_root(
        &self,
        level: Durability,
        values: impl IntoIterator<Item = (Property, Option<Vec<u8>>)>,
    ) -> Result<(), Error> {
        let set = self.shared.root.transaction_at(level, |tx| {
            values.into_iter().for_each(|(property, bytes)| tx.set_property(property, bytes));
            Ok::<_, Error>(())
        });
        set.map(drop)
    }

    /// Stores the state of a segment in the root; `None` removes it.
    fn note(&self, segment: SegmentPos, state: Option<SegmentState>, level: Durability) -> Result<(), Error> {
        let mut values = vec![(segment.property()?, state.map(SegmentState::encode))];
        if state != Some(SegmentState::There) {
            // What is in its place from now on has another history.
            values.push((crossed_property(segment)?, None));
        }
        self.set_in_root(level, values)?;
        let mut known = self.shared.known.write();
        match state {
            Some(state) => drop(known.insert(segment, state)),
            None => drop(known.remove(&segment)),
        }
        Ok(())
    }

    /// The durability of commits of the root and of segments that belong together: synced, if any commit of the world
    /// is.
    pub(super) fn level(&self) -> Durability {
        match self.shared.options.durability {
            Durability::Fast | Durability::Process => Durability::Process,
            _ => Durability::Safe,
        }
    }

    pub(super) fn finish_deletions(&self) -> Result<(), Error> {
        let known = self.shared.known.read().clone();
        for (segment, state) in known {
            if state == SegmentState::Deleting {
                self.shared.home.remove(segment)?;
                self.note(segment, None, Durability::Safe)?;
                self.forget_entities_of(segment)?;
            }
        }
        Ok(())
    }
}

/// The segments in the root, with their states.
pub(super) fn read_known(root: &World) -> Result<BTreeMap<SegmentPos, SegmentState>, Error> {
    let mut known = BTreeMap::new();
    for (name, bytes) in root.named_properties(SEGMENT_PREFIX)? {
        let state = SegmentState::decode(&bytes)
            .map_err(|problem| SegmentError::DamagedRoot { what: name.to_string(), problem })?;
        if let Some(place) = name.as_str().strip_prefix(SEGMENT_PREFIX).and_then(SegmentPos::parse) {
            known.insert(place, state);
        }
    }
    Ok(known)
}

/// Refuses a world that is not this segment of this root.
pub(super) fn check_is_segment(root: &World, world: &World, segment: SegmentPos) -> Result<(), Error> {
    let Some(bytes) = world.property(&own_property()?)? else {
        let why = "it does not say that it is one";
        return Err(SegmentError::NotASegment { segment, why }.into());
    };
    let (found, place) = whole(segment, &bytes, |reader| {
        let root = reader.array("root uuid").map(Uuid::from_bytes)?;
        Ok((root, SegmentPos::read(reader)?))
    })?;
    let expected = root.identity().uuid;
    if found != expected {
        return Err(SegmentError::WrongRoot { segment, expected, found }.into());
    }
    if place != segment {
        return Err(SegmentError::Misplaced { segment, found: place }.into());
    }
    Ok(())
}

/// Refuses a segment whose names differ from the root's.
pub(super) fn check_names(segment: SegmentPos, stored: &Catalog, root: &Catalog) -> Result<(), SegmentError> {
    for list in ListKind::ALL {
        for (id, name) in (0..).zip(stored.list(list).names()) {
            if root.list(list).id(name.as_str()) != Some(id) {
                return Err(SegmentError::Names { segment, list, id, name: name.clone() });
            }
        }
    }
    Ok(())
}
