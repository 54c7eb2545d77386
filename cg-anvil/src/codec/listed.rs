//! Entities of a world as the lists of a save: riders back into their vehicles, each list in its old order.

use std::collections::{BTreeMap, HashMap};

use cg_format::entity::Entity;
use cg_format::{EntityId, EntitySource};
use cg_registry::Catalog;
use cg_store::{Error, World};

use super::missed::Missed;
use crate::entity::{self, MAX_RIDER_DEPTH};
use crate::mapping::defaults::DATA_VERSION;
use crate::mapping::origin::ListedIn;
use crate::mapping::{Ids, Origin, place, player};
use crate::{ColumnPos, EntityRecord, nbt};

/// How an entity goes into a save.
pub(crate) enum Root {
    /// Inside the vehicle that it rides.
    Rides,
    /// Into this list of this column.
    In(ListedIn, ColumnPos),
    /// Not at all: it has no NBT.
    NoNbt,
    /// Into a file of its own, beside all columns.
    Player,
}

/// The lists of a region's columns.
pub(crate) type Lists = BTreeMap<(ListedIn, ColumnPos), Vec<Listed>>;

/// An entity as a list of a save holds it.
#[derive(Debug)]
pub(crate) struct Listed {
    index: u32,
    id: EntityId,
    pub(crate) data_version: i32,
    pub(crate) nbt: Vec<u8>,
    /// It and its riders.
    pub(crate) count: u64,
    /// Whether it came from a file of `entities/`.
    was_in_file: bool,
}

/// The first version that keeps entities in `entities/`: 20w45a, a snapshot of 1.17.
const FIRST_WITH_FILES: i32 = 2681;

impl Listed {
    /// Whether it may be written into a file of `entities/`, in a save whose `level.dat` says this version.
    pub(crate) fn may_be_in_file(&self, level: Option<i32>) -> bool {
        self.was_in_file || level.unwrap_or(self.data_version) >= FIRST_WITH_FILES
    }
}

/// Brings entities into the lists of their columns that may not be in a file of `entities/`.
pub(crate) fn into_columns(lists: &mut Lists, level: Option<i32>) {
    let mut moved = Lists::new();
    for ((_, column), list) in lists.iter_mut().filter(|((place, _), _)| *place == ListedIn::EntityFile) {
        let (stay, go) = std::mem::take(list).into_iter().partition(|listed| listed.may_be_in_file(level));
        *list = stay;
        moved.entry((ListedIn::Column, *column)).or_default().extend(go);
    }
    for (place, list) in moved.into_iter().filter(|(_, list)| !list.is_empty()) {
        lists.entry(place).or_default().extend(list);
    }
    lists.retain(|_, list| !list.is_empty());
}

/// How an entity goes into a save.
pub(crate) fn root<S: EntitySource<Error = Error>>(
    world: &S,
    catalog: &Catalog,
    id: EntityId,
    entity: &Entity,
) -> Result<Root, Error> {
    let ids = Ids::find(catalog);
    if player::is_player(catalog, &ids, entity) {
        return Ok(Root::Player);
    }
    if ids.entity_nbt.and_then(|component| entity.component(component)).is_none() {
        return Ok(Root::NoNbt);
    }
    let origin = origin(&ids, entity);
    if let Some(vehicle) = origin.as_ref().and_then(|origin| origin.vehicle) {
        let vehicle = world.entity(vehicle)?.and_then(|vehicle| self::origin(&ids, &vehicle));
        if vehicle.and_then(|vehicle| vehicle.riders).is_some_and(|riders| riders.ids.contains(&id)) {
            return Ok(Root::Rides);
        }
    }
    let listed_in = origin.as_ref().map_or(ListedIn::EntityFile, |origin| origin.place);
    Ok(Root::In(listed_in, column_of(&ids, entity)))
}

/// The column in whose lists an entity goes: one that the host has not moved goes back to the list that it stood in.
pub(crate) fn column_of(ids: &Ids, entity: &Entity) -> ColumnPos {
    let nbt = ids.entity_nbt.and_then(|component| entity.component(component));
    if let Some((origin, nbt)) = origin(ids, entity).zip(nbt) {
        let was = place::of_entity(entity.position.dimension(), position(nbt), origin.column);
        if was == entity.position {
            return origin.column;
        }
    }
    place::column_of(entity.position.block().chunk()).unwrap_or(ColumnPos::new(i32::MAX, i32::MAX))
}

/// The column in whose list the vehicle at the bottom of those that a rider rides is; `None` where they ride in a circle, or
/// the last is in no list.
pub(crate) fn vehicle_column<S: EntitySource<Error = Error>>(
    world: &S,
    catalog: &Catalog,
    rider: &Entity,
) -> Result<Option<ColumnPos>, Error> {
    let ids = Ids::find(catalog);
    let mut next = origin(&ids, rider).and_then(|origin| origin.vehicle);
    for _ in 0..=MAX_RIDER_DEPTH {
        let Some(id) = next else { break };
        let Some(vehicle) = world.entity(id)? else { break };
        match root(world, catalog, id, &vehicle)? {
            Root::In(_, column) => return Ok(Some(column)),
            Root::NoNbt | Root::Player => break,
            Root::Rides => next = origin(&ids, &vehicle).and_then(|origin| origin.vehicle),
        }
    }
    Ok(None)
}

/// An entity with its riders, outside of any list.
pub(crate) enum Whole {
    /// It is inside the vehicle that it rides.
    Rides,
    /// It is a player.
    Player,
    /// It has no NBT.
    NoNbt,
    /// Its NBT, riders inside.
    Nbt(Vec<u8>),
}

/// An entity and all that ride it as one NBT, in which `Pos` stays as it is kept.
///
/// # Errors
/// If the engine fails.
pub(crate) fn whole_entity<S: EntitySource<Error = Error>>(
    world: &S,
    catalog: &Catalog,
    id: EntityId,
    entity: &Entity,
) -> Result<Whole, Error> {
    match root(world, catalog, id, entity)? {
        Root::Rides => return Ok(Whole::Rides),
        Root::NoNbt => return Ok(Whole::NoNbt),
        Root::Player => return Ok(Whole::Player),
        Root::In(..) => {}
    }
    let ids = Ids::find(catalog);
    let nbt = ids.entity_nbt.and_then(|component| entity.component(component)).unwrap_or_default();
    if origin(&ids, entity).is_none_or(|origin| origin.riders.is_none()) {
        return Ok(Whole::Nbt(nbt.to_vec()));
    }
    let mut records = HashMap::new();
    collect(world, &ids, id, &mut records)?;
    let joined = records.get(&id).and_then(|record| entity::join(record, |rider| records.get(rider)).ok());
    Ok(Whole::Nbt(joined.unwrap_or_else(|| nbt.to_vec())))
}

/// The lists of a region, each in order.
pub(crate) fn listed(world: &World, roots: &[EntityId], missed: &mut Missed<'_>) -> Result<Lists, Error> {
    let catalog = world.catalog();
    let ids = Ids::find(&catalog);
    let mut lists = BTreeMap::<_, Vec<Listed>>::new();
    for id in roots {
        let Some(found) = world.entity(*id)? else { continue };
        let Root::In(place, column) = root(world, &catalog, *id, &found)? else { continue };
        let origin = origin(&ids, &found);
        let mut records = HashMap::new();
        collect(world, &ids, *id, &mut records)?;
        let Some(record) = records.get(id) else { continue };
        match entity::join(record, |rider| records.get(rider)) {
            Ok(nbt) => {
                let was_in_file = origin.as_ref().is_some_and(|origin| origin.place == ListedIn::EntityFile);
                let (index, data_version) =
                    origin.map_or((u32::MAX, DATA_VERSION), |origin| (origin.index, origin.data_version));
                let count = records.len() as u64;
                let list = lists.entry((place, column)).or_default();
                list.push(Listed { index, id: *id, data_version, nbt, count, was_in_file });
            }
            Err(error) => missed.add(format!("entity {id}: {error}"), records.len() as u64),
        }
    }
    for list in lists.values_mut() {
        list.sort_by_key(|listed| (listed.index, listed.id));
    }
    Ok(lists)
}

/// An entity and everything that rides it, as the records that are joined again.
///
/// A rider that is gone, or that says it rides something else, is left out of the vehicle's list.
fn collect<S: EntitySource<Error = Error>>(
    world: &S,
    ids: &Ids,
    id: EntityId,
    records: &mut HashMap<EntityId, EntityRecord<EntityId>>,
) -> Result<(), Error> {
    let mut next = vec![(id, None, 0)];
    while let Some((id, vehicle, depth)) = next.pop() {
        let Some(entity) = world.entity(id)? else { continue };
        let nbt = ids.entity_nbt.and_then(|component| entity.component(component));
        let origin = origin(ids, &entity);
        let under = origin.as_ref().and_then(|origin| origin.vehicle);
        let Some(nbt) = nbt.filter(|_| depth == 0 || under == vehicle) else { continue };
        let column = origin.as_ref().map_or(ColumnPos::default(), |origin| origin.column);
        let riders = origin.and_then(|origin| origin.riders);
        if depth < MAX_RIDER_DEPTH && !records.contains_key(&id) {
            next.extend(
                riders.iter().flat_map(|riders| &riders.ids).map(|rider| (*rider, Some(id), depth + 1)),
            );
        }
        let pos = position(nbt);
        let mut record =
            EntityRecord { uuid: Some(id.get()), kind: String::new(), pos, nbt: nbt.to_vec(), riders };
        if place::of_entity(entity.position.dimension(), pos, column) != entity.position {
            // The host moved it. An NBT that cannot be read goes out as it is.
            let _ = record.move_to(entity.position.to_f64(), &nbt::Limits::default());
        }
        records.entry(id).or_insert(record);
    }
    let there: std::collections::HashSet<_> = records.keys().copied().collect();
    for record in records.values_mut() {
        if let Some(riders) = &mut record.riders {
            riders.ids.retain(|rider| there.contains(rider));
        }
        record.riders = record.riders.take().filter(|riders| !riders.ids.is_empty());
    }
    Ok(())
}

fn origin(ids: &Ids, entity: &Entity) -> Option<Origin> {
    Origin::decode(entity.component(ids.entity_origin?)?).ok()
}

/// The position in an entity's NBT.
fn position(nbt: &[u8]) -> Option<[f64; 3]> {
    entity::split(nbt, &nbt::Limits::default()).ok()?.first()?.pos
}
