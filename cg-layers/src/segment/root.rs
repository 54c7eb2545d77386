//! The root of a segmented world: its names, the list of its segments, and where entities and values are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::ChunkAt;
use cg_format::wire::Writer;
use cg_registry::{Catalog, Registration};
use cg_store::engine::Level;
use cg_store::error::ConflictKey;
use cg_store::layer::{
    Base as _, Mutex, RwLock, for_each_property_behind, newest_commit, promised_transaction, rank,
};
use cg_store::{Durability, Durable, Error, Property, Transaction, World};

use super::error::SegmentError;
use super::history::ToSet;
use super::place::Place;
use super::pos::SegmentPos;
use super::rows::{
    PLACE_PREFIXES, SEGMENT_PREFIX, SegmentState, check_side, crossed_property, may_have_place,
    place_property, placed_key, side_property, state_property, whole,
};

/// The root: a world with the names and the properties of all segments, and what the root stores of them.
///
/// It knows no segment's world.
#[derive(Debug)]
pub(super) struct Root {
    world: World,
    side_chunks: u32,
    durability: Durability,
    known: RwLock<Known, rank::SegmentKnown>,
    /// Held by the one running registration.
    naming: Mutex<(), rank::SegmentNaming>,
}

#[derive(Debug, Default)]
struct Known {
    /// The state of each segment, as the root stores it.
    states: BTreeMap<SegmentPos, SegmentState>,
    /// Segments that the root does not know and in whose places nothing is stored. Some of them: a look tells.
    absent: BTreeSet<SegmentPos>,
}

/// At most this many absent segments are remembered.
const ABSENT: usize = 65_536;

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
        let known = RwLock::new(Known { states: read_known(&world)?, absent: BTreeSet::new() });
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

    /// Sets properties in one commit; `None` removes one. What the root stores of segments is small, and they are not whole
    /// without it: it may use the room of the disk that is to stay free.
    pub(super) fn set(
        &self,
        level: Durability,
        values: impl IntoIterator<Item = ToSet>,
    ) -> Result<(), Error> {
        let set = promised_transaction(&self.world, level, |tx| {
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
        self.world.keep_found(Level::Power)?;
        adopt(&names)?;
        Ok(names)
    }
}

/// The list of segments.
impl Root {
    /// The state of a segment; `None` if it is not known.
    pub(super) fn state(&self, segment: SegmentPos) -> Option<SegmentState> {
        self.known.read().states.get(&segment).copied()
    }

    /// Remembers that nothing is stored in the place of a segment.
    pub(super) fn note_absent(&self, segment: SegmentPos) {
        let mut known = self.known.write();
        if known.absent.len() >= ABSENT {
            known.absent.clear();
        }
        known.absent.insert(segment);
    }

    /// Whether a segment is known to be absent: its place is empty, or is about to be.
    pub(super) fn is_absent(&self, segment: SegmentPos) -> bool {
        let known = self.known.read();
        match known.states.get(&segment) {
            Some(state) => *state != SegmentState::There,
            None => known.absent.contains(&segment),
        }
    }

    /// The segments in a state, ascending.
    pub(super) fn segments(&self, state: SegmentState) -> Vec<SegmentPos> {
        let known = self.known.read();
        known.states.iter().filter(|(_, found)| **found == state).map(|(segment, _)| *segment).collect()
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
            Some(state) => drop(known.states.insert(segment, state)),
            None => drop(known.states.remove(&segment)),
        }
        Ok(())
    }
}

/// Where entities, properties, objects and records are. A place without its value means nothing.
impl Root {
    /// The segment that contains a key, if any does.
    pub(super) fn segment_with(&self, key: &ConflictKey) -> Result<Option<SegmentPos>, Error> {
        Ok(self.place_of(key)?.map(|place| place.segment))
    }

    /// The place of a key.
    pub(super) fn place_of(&self, key: &ConflictKey) -> Result<Option<Place>, Error> {
        if !may_have_place(key) {
            return Ok(None);
        }
        let place = self.world.property(&place_property(key)?)?;
        let read = |bytes: Vec<u8>| whole(format_args!("place of {key}"), &bytes, Place::read);
        place.map(read).transpose()
    }

    /// The ticket of the newest commit, if a power cut could take that back: the places that were found are none of a later
    /// one.
    pub(super) fn unsynced(&self) -> Option<Durable> {
        Some(newest_commit(&self.world).durable()).filter(|durable| !durable.is_durable())
    }

    /// Stores the places of keys, each with the place that it had when it was found free.
    pub(super) fn claim(&self, free: &[(&ConflictKey, Option<Place>, Place)]) -> Result<(), Error> {
        let claimed = promised_transaction(&self.world, self.level(), |tx| {
            for &(key, place, claimed) in free {
                let property = place_property(key)?;
                // Another transaction has claimed it first, or has put it into the root.
                if tx.property(&property)? != place.map(Place::to_bytes) || has(tx, key)? {
                    return Err(Error::Conflict { key: key.clone() });
                }
                tx.set_property(property, Some(claimed.to_bytes()));
            }
            Ok::<_, Error>(())
        });
        claimed.map(drop)
    }

    /// Every key that has a place, with its segment.
    pub(super) fn places(&self) -> Result<BTreeMap<ConflictKey, SegmentPos>, Error> {
        let mut places = BTreeMap::new();
        self.for_each_place(|key, name, value| {
            places.insert(key, whole(name, value, Place::read)?.segment);
            Ok(())
        })?;
        Ok(places)
    }

    /// The keys that a segment contains. Costs a scan of all places.
    pub(super) fn keys_of(&self, segment: SegmentPos) -> Result<Vec<ConflictKey>, Error> {
        let mut keys = Vec::new();
        self.for_each_place(|key, name, value| {
            keys.extend((whole(name, value, Place::read)?.segment == segment).then_some(key));
            Ok(())
        })?;
        Ok(keys)
    }

    /// The keys whose places have names with a prefix, in the order of these names, after a key: at most `max_count`.
    pub(super) fn places_behind(
        &self,
        prefix: &str,
        behind: Option<&ConflictKey>,
        max_count: usize,
    ) -> Result<Vec<(ConflictKey, SegmentPos)>, Error> {
        let behind = behind.map(place_property).transpose()?.map(|property| property.to_string());
        let mut places = Vec::new();
        let failed = self.world.read_view(|view| {
            for_each_property_behind(view, prefix, behind.as_deref(), |met| {
                if places.len() >= max_count {
                    return ControlFlow::Break(Ok(()));
                }
                let place = met.and_then(|(name, value)| {
                    let Some(key) = placed_key(name) else { return Ok(None) };
                    Ok(Some((key, whole(name, value, Place::read)?.segment)))
                });
                match place {
                    Ok(place) => {
                        places.extend(place);
                        ControlFlow::Continue(())
                    }
                    Err(error) => ControlFlow::Break(Err(error)),
                }
            })
        })?;
        failed.unwrap_or(Ok(()))?;
        Ok(places)
    }

    /// Visits the rows of places until the visitor fails.
    fn for_each_place(
        &self,
        mut visit: impl FnMut(ConflictKey, &str, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        PLACE_PREFIXES.iter().try_for_each(|prefix| {
            self.each_property(prefix, |name, value| {
                placed_key(name).map_or(Ok(()), |key| visit(key, name, value))
            })
        })
    }

    /// Visits the properties that begin with a prefix until the visitor fails.
    fn each_property(
        &self,
        prefix: &str,
        mut visit: impl FnMut(&str, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let failed = self.world.read_view(|view| {
            view.for_each_property(prefix, |met| {
                met.and_then(|(name, value)| visit(name, value))
                    .map_or_else(ControlFlow::Break, ControlFlow::Continue)
            })
        })?;
        failed.map_or(Ok(()), Err)
    }
}

/// Whether the root itself has a value. It has no entities.
fn has(tx: &mut Transaction<'_>, key: &ConflictKey) -> Result<bool, Error> {
    Ok(match key {
        ConflictKey::Record(id) => tx.record(*id)?.is_some(),
        ConflictKey::Object(key) => tx.object(key)?.is_some(),
        ConflictKey::Property(name) => match Property::of_key(name.as_bytes()) {
            Some(property) => tx.property(&property)?.is_some(),
            None => false,
        },
        _ => false,
    })
}

/// The side of a segment; `None` if the world is no root.
#[cfg(feature = "rocks")]
pub(super) fn read_side(root: &World) -> Result<Option<u32>, Error> {
    let Some(stored) = root.property(&side_property()?)? else { return Ok(None) };
    let side_chunks = whole("side of a segment", &stored, |reader| reader.u32("side"))?;
    check_side(side_chunks)?;
    Ok(Some(side_chunks))
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

/// The segments that are stored, by the root.
#[cfg(feature = "rocks")]
pub(super) fn read_there(root: &World) -> Result<BTreeSet<SegmentPos>, Error> {
    let there = read_known(root)?.into_iter().filter(|(_, state)| *state == SegmentState::There);
    Ok(there.map(|(segment, _)| segment).collect())
}
