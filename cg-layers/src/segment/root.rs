//! The root of a segmented world: its names, the list of its segments, and where entities are.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::wire::Writer;
use cg_format::{ChunkAt, EntityId};
use cg_registry::{Catalog, Registration};
use cg_store::error::ConflictKey;
use cg_store::layer::{Base as _, Mutex, RwLock, rank};
use cg_store::{Durability, Error, World};

use super::error::SegmentError;
use super::history::ToSet;
use super::pos::SegmentPos;
use super::rows::{
    ENTITY_PREFIX, SEGMENT_PREFIX, SegmentState, check_side, crossed_property, entity_property,
    side_property, state_property, whole,
};

/// The root: a world with the names and the properties of all segments, and what the root stores of them.
///
/// It knows no segment's world.
#[derive(Debug)]
pub(super) struct Root {
    world: World,
    side_chunks: u32,
    durability: Durability,
    /// The state of each segment, as the root stores it.
    known: RwLock<BTreeMap<SegmentPos, SegmentState>, rank::SegmentKnown>,
    /// Held by the one running registration.
    naming: Mutex<(), rank::SegmentNaming>,
}

impl Root {
    /// Begins with a world, which is new if there is a `new_side`. `durability` is that of commits of segments.
    pub(super) fn begin(world: World, new_side: Option<u32>, durability: Durability) -> Result<Self, Error> {
        if let Some(side) = new_side {
            let property = side_property()?;
            world.transaction_at(Durability::Safe, |tx| {
                let mut bytes = Vec::new();
                Writer::new(&mut bytes).u32(side);
                tx.set_property(property, Some(bytes));
                Ok::<_, Error>(())
            })?;
        }
        let stored = world.property(&side_property()?)?.unwrap_or_default();
        let side_chunks = whole("side of a segment", &stored, |reader| reader.u32("side"))?;
        check_side(side_chunks)?;
        let known = RwLock::new(read_known(&world)?);
        Ok(Self { world, side_chunks, durability, known, naming: Mutex::default() })
    }

    pub(super) const fn world(&self) -> &World {
        &self.world
    }

    pub(super) const fn side_chunks(&self) -> u32 {
        self.side_chunks
    }

    /// The segment of a chunk, whether or not it is stored.
    pub(super) fn segment_of(&self, at: ChunkAt) -> SegmentPos {
        SegmentPos::of(at, self.side_chunks)
    }

    /// The durability of transactions of hosts.
    pub(super) const fn durability(&self) -> Durability {
        self.durability
    }

    /// The durability of commits of the root and of segments that belong together: synced, if any commit of the world
    /// is.
    pub(super) const fn level(&self) -> Durability {
        match self.durability {
            Durability::Fast | Durability::Process => Durability::Process,
            _ => Durability::Safe,
        }
    }

    /// Sets properties in one commit; `None` removes one.
    pub(super) fn set(
        &self,
        level: Durability,
        values: impl IntoIterator<Item = ToSet>,
    ) -> Result<(), Error> {
        let set = self.world.transaction_at(level, |tx| {
            values.into_iter().for_each(|(property, bytes)| tx.set_property(property, bytes));
            Ok::<_, Error>(())
        });
        set.map(drop)
    }

    /// Keeps names from being registered.
    #[cfg(feature = "rocks")]
    pub(super) fn hold_names(&self) -> cg_store::layer::MutexGuard<'_, ()> {
        self.naming.lock()
    }

    /// Issues ids for names, and gives them to `adopt` when they are synced.
    pub(super) fn register(
        &self,
        new: &Registration,
        adopt: impl FnOnce(&Arc<Catalog>) -> Result<(), Error>,
    ) -> Result<Arc<Catalog>, Error> {
        let _one_at_a_time = self.naming.lock();
        let names = self.world.registry().register(new)?;
        self.world.flush()?;
        adopt(&names)?;
        Ok(names)
    }
}

/// The list of segments.
impl Root {
    /// The state of a segment; `None` if it is not known.
    pub(super) fn state(&self, segment: SegmentPos) -> Option<SegmentState> {
        self.known.read().get(&segment).copied()
    }

    /// The segments in a state, ascending.
    pub(super) fn segments(&self, state: SegmentState) -> Vec<SegmentPos> {
        let known = self.known.read();
        known.iter().filter(|(_, found)| **found == state).map(|(segment, _)| *segment).collect()
    }

    /// Stores the state of a segment; `None` removes it.
    pub(super) fn note(
        &self,
        segment: SegmentPos,
        state: Option<SegmentState>,
        level: Durability,
    ) -> Result<(), Error> {
        let mut values = vec![(state_property(segment)?, state.map(SegmentState::encode))];
        if state != Some(SegmentState::There) {
            // What is in its place from now on has another history.
            values.push((crossed_property(segment)?, None));
        }
        self.set(level, values)?;
        let mut known = self.known.write();
        match state {
            Some(state) => drop(known.insert(segment, state)),
            None => drop(known.remove(&segment)),
        }
        Ok(())
    }
}

/// Where entities are. A place without its entity means nothing.
impl Root {
    /// The segment that contains an entity, if any does.
    pub(super) fn place_of(&self, id: EntityId) -> Result<Option<SegmentPos>, Error> {
        let place = self.world.property(&entity_property(id)?)?;
        let read = |bytes: Vec<u8>| whole(format_args!("place of entity {id}"), &bytes, SegmentPos::read);
        place.map(read).transpose()
    }

    /// Stores that a segment will contain entities, each with the place that it had when it was found free.
    pub(super) fn claim(
        &self,
        segment: SegmentPos,
        free: &BTreeMap<EntityId, Option<SegmentPos>>,
    ) -> Result<(), Error> {
        self.world.transaction_at(self.level(), |tx| {
            for (id, place) in free {
                let property = entity_property(*id)?;
                // Another transaction has claimed it first.
                if tx.property(&property)? != place.map(SegmentPos::to_bytes) {
                    return Err(Error::Conflict { key: ConflictKey::Entity(*id) });
                }
                tx.set_property(property, Some(segment.to_bytes()));
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Every entity with its segment.
    pub(super) fn places(&self) -> Result<BTreeMap<EntityId, SegmentPos>, Error> {
        let mut places = BTreeMap::new();
        self.for_each_place(|id, name, value| {
            places.insert(id, whole(name, value, SegmentPos::read)?);
            Ok(())
        })?;
        Ok(places)
    }

    /// The entities that a segment contains. Costs a scan of all places.
    pub(super) fn entities_of(&self, segment: SegmentPos) -> Result<Vec<EntityId>, Error> {
        let (mut ids, of_segment) = (Vec::new(), segment.to_bytes());
        self.for_each_place(|id, _, value| {
            ids.extend((value == of_segment).then_some(id));
            Ok(())
        })?;
        Ok(ids)
    }

    /// Visits the rows of places until the visitor fails.
    fn for_each_place(
        &self,
        mut visit: impl FnMut(EntityId, &str, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let failed = self.world.read_view(|view| {
            view.for_each_property(ENTITY_PREFIX, |met| {
                let one = || {
                    let (name, value) = met?;
                    let id = name.strip_prefix(ENTITY_PREFIX).and_then(|id| id.parse().ok());
                    id.map(EntityId::new).map_or(Ok(()), |id| visit(id, name, value))
                };
                one().map_or_else(ControlFlow::Break, ControlFlow::Continue)
            })
        })?;
        failed.map_or(Ok(()), Err)
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
