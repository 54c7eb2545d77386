//! Entities of a save as entities of a world.

use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_format::{Dimension, EntityId};
use cg_minecraft::name;
use cg_registry::Catalog;
use cg_store::Error;

use crate::EntityRecord;
use crate::mapping::origin::ListedIn;
use crate::mapping::{Ids, NO_CHUNK, Origin, place};
use crate::region::ColumnPos;

/// The list of a slot that entities stand in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub(crate) place: ListedIn,
    pub(crate) column: ColumnPos,
    pub(crate) data_version: i32,
}

/// An entity of a list with the ids that it and its riders get, and where it stood.
pub(crate) type Member = (EntityId, EntityRecord<EntityId>, Origin);

impl List {
    /// The entity at this place of the list with its riders, which have these ids.
    pub(crate) fn members(&self, index: u32, group: Vec<EntityRecord>, ids: &[EntityId]) -> Vec<Member> {
        let Self { place, column, data_version } = *self;
        let mut vehicles = vec![None; group.len()];
        for (record, id) in group.iter().zip(ids) {
            for rider in record.riders.iter().flat_map(|riders| &riders.ids) {
                vehicles[*rider] = Some(*id);
            }
        }
        let member = |((record, id), vehicle): ((EntityRecord, &EntityId), _)| {
            let record = record.map_riders(|rider| ids[rider]);
            let (riders, schematic) = (record.riders.clone(), None);
            let origin = Origin { place, data_version, column, index, vehicle, riders, schematic };
            (*id, record, origin)
        };
        group.into_iter().zip(ids).zip(vehicles).map(member).collect()
    }
}

/// Where an entity of a save is in a world.
pub(crate) fn position(dimension: Dimension, record: &EntityRecord<EntityId>, origin: &Origin) -> EntityPos {
    place::of_entity(dimension, record.pos, origin.column)
}

/// An entity of a world, of a kind that is registered, with the stored form of where it stood.
pub(crate) fn made(
    catalog: &Catalog,
    ids: &Ids,
    (owner, position): (Owner, EntityPos),
    record: EntityRecord<EntityId>,
    origin: Vec<u8>,
) -> Result<Entity, Error> {
    let kind = name::of_entity_kind(&record.kind);
    let kind = catalog.entity_type(kind.as_str()).expect("the kinds of a column are registered");
    let mut entity = Entity::new(kind, owner, position);
    for (component, bytes) in [(ids.entity_nbt, record.nbt), (ids.entity_origin, origin)] {
        let component = component.expect("registered when the import, or the codec, began");
        entity.set_component(component, bytes)?;
    }
    Ok(entity)
}

/// The owner of an entity where no chunk is. Entities never make a chunk.
pub(crate) fn without_chunk() -> Owner {
    Owner::Detached(Reason::new(NO_CHUNK).expect("a short text"))
}
