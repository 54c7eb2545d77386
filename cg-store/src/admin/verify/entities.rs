//! Verification of entities, and of the references between them and the chunks from both ends.

use std::collections::BTreeMap;

use cg_format::entity::{Entity, Owner};
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ComponentShape, EntityId, SchemaView as _, Space, Tier};
use cg_registry::{Catalog, ListKind};

use super::Verifier;
use crate::read::chunk::decode::row_of;

/// The chunk that refers to each entity, and the tier of its live copy.
pub(super) type Referrers = BTreeMap<EntityId, (ChunkAt, Tier)>;

impl Verifier<'_> {
    /// Checks one entity with the schema generation of its frame, and records its owner.
    pub(super) fn entity(&mut self, id: EntityId, generation: u32, entity: &Entity) {
        let owner = match &entity.owner {
            Owner::Chunk(at) => Some(*at),
            Owner::Detached(_) => None,
        };
        self.owners.insert(id, owner);
        let Some(catalog) = &self.catalog else { return };
        for what in unregistered(catalog, generation, entity) {
            self.find(Family::Entity, Some(Space::Entity), &key::entity(id), what);
        }
    }

    /// Checks that a chunk refers to an entity exactly if that entity's owner is the chunk.
    pub(super) fn references(&mut self, referrers: &Referrers) {
        let owners = std::mem::take(&mut self.owners);
        for (id, (at, tier)) in referrers {
            if !owners.contains_key(id) {
                let (space, row) = row_of(*at, *tier);
                let what = format!("{at} refers to entity {id}, which is not stored or damaged");
                self.find(space.family(), Some(space), &row, what);
            }
        }
        for (id, owner) in &owners {
            let referrer = referrers.get(id).map(|(at, _)| *at);
            if *owner != referrer {
                let name = |at: Option<ChunkAt>| at.map_or("no chunk".into(), |at| at.to_string());
                let what = format!("its owner is {}, but {} refers to it", name(*owner), name(referrer));
                self.find(Family::Entity, Some(Space::Entity), &key::entity(*id), what);
            }
        }
    }
}

/// The ids in an entity that the registry does not contain.
fn unregistered(catalog: &Catalog, generation: u32, entity: &Entity) -> Vec<String> {
    let mut found = Vec::new();
    if entity.kind.get() >= catalog.list(ListKind::Entities).len() as u64 {
        found.push(format!("entity type {} was never issued", entity.kind.get()));
    }
    let mut dimensions = vec![("position", entity.position.dimension())];
    if let Owner::Chunk(at) = &entity.owner {
        dimensions.push(("owner", at.dimension));
    }
    for (what, dimension) in dimensions {
        if dimension.get() >= catalog.list(ListKind::Dimensions).len() as u64 {
            found.push(format!("dimension {} of its {what} was never issued", dimension.get()));
        }
    }
    let Some(schema) = catalog.schema(generation) else {
        let newest = catalog.current_generation();
        found.push(format!("its schema generation is {generation}, the registry has up to {newest}"));
        return found;
    };
    for (component, bytes) in entity.components() {
        match schema.shape(component) {
            None => found.push(format!("component {:#x} was never issued", component.get())),
            Some(ComponentShape::Fixed { width_bytes }) if bytes.len() as u64 != u64::from(width_bytes) => {
                let name = catalog.component_name(component).map_or("", |name| name.as_str());
                let len_bytes = bytes.len();
                found
                    .push(format!("component `{name}` has {len_bytes} bytes, its schema says {width_bytes}"));
            }
            Some(_) => {}
        }
    }
    found
}
