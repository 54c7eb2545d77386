//! Verification of chunks, entities, objects and records: ids, references from both ends, leaves and places.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::entity::{Entity, Owner};
use cg_format::frame::FrameView;
use cg_format::object::ObjectView;
use cg_format::record::RecordView;
use cg_format::{ChunkAt, ComponentShape, DecodeError, EntityId, SchemaView as _, Space, Tier, key};
use cg_registry::{Catalog, ListKind};

use super::{Verifier, VerifyDepth};
use crate::admin::Admin;
use crate::engine::{ErrorKind, Readable};
use crate::kinds::record::decode_place;
use crate::read::chunk::Area;
use crate::read::chunk::decode::row_of;
use crate::storage::error::Error;

impl Verifier<'_> {
    /// Decodes every live chunk, and checks every reference from both ends.
    pub(super) fn content(
        &mut self,
        view: &dyn Readable,
        world: &Admin<'_>,
        catalog: &Catalog,
    ) -> Result<(), Error> {
        let mut referrers = Referrers::new();
        let walked = world.read.walk(view, Area::World, |stored| {
            // A row that does not open was already reported.
            let Ok(stored) = stored else { return ControlFlow::<()>::Continue(()) };
            self.count("chunks");
            let (space, row) = row_of(stored.at, stored.tier);
            let chunk = match world.read.decode(catalog, stored) {
                Ok(chunk) => chunk,
                Err(Error::Corrupt(damage)) => {
                    self.damaged(space, &row, damage);
                    return ControlFlow::Continue(());
                }
                Err(error) => {
                    self.find(space, &row, error.to_string());
                    return ControlFlow::Continue(());
                }
            };
            let mut find = |what: String| self.find(space, &row, what);
            let issued = |list| catalog.list(list).len() as u64;
            let dimension = stored.at.dimension.get();
            if dimension >= issued(ListKind::Dimensions) {
                find(format!("dimension {dimension} was never issued"));
            }
            for entry in chunk.palette() {
                if entry.block.get() >= issued(ListKind::Blocks) {
                    find(format!("block id {} was never issued", entry.block.get()));
                }
            }
            for (kind, _) in chunk.sides() {
                if u64::from(kind.get()) >= issued(ListKind::Sides) {
                    find(format!("kind {} of side data was never issued", kind.get()));
                }
            }
            for id in chunk.entities() {
                self.count("references");
                if let Some((other, _)) = referrers.insert(*id, (stored.at, stored.tier)) {
                    let what = format!("entity {id} is referred to by {other} too");
                    self.find(space, &row, what);
                }
            }
            ControlFlow::Continue(())
        });
        match walked {
            Ok(_) => self.references(&referrers),
            // The deltas cannot be read, which was reported with their rows. The content of the chunks is unknown.
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

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
            self.find(Space::Entity, &key::entity(id), what);
        }
    }

    /// Checks that a chunk refers to an entity exactly if that entity's owner is the chunk.
    pub(super) fn references(&mut self, referrers: &Referrers) {
        let owners = std::mem::take(&mut self.owners);
        for (id, (at, tier)) in referrers {
            if !owners.contains_key(id) {
                let (space, row) = row_of(*at, *tier);
                let what = format!("{at} refers to entity {id}, which is not stored or damaged");
                self.find(space, &row, what);
            }
        }
        for (id, owner) in &owners {
            let referrer = referrers.get(id).map(|(at, _)| *at);
            if *owner != referrer {
                let name = |at: Option<ChunkAt>| at.map_or("no chunk".into(), |at| at.to_string());
                let what = format!("its owner is {}, but {} refers to it", name(*owner), name(referrer));
                self.find(Space::Entity, &key::entity(*id), what);
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

impl Verifier<'_> {
    /// Checks one object.
    pub(super) fn object(key: &[u8], frame: &FrameView<'_>) -> Result<(), DecodeError> {
        key::check_object(key)?;
        ObjectView::decode(frame.payload()).map(drop)
    }

    /// Checks that a record is in the leaf of its position, and that its place names this leaf.
    pub(super) fn record(
        &mut self,
        view: &dyn Readable,
        key: &[u8],
        frame: &FrameView<'_>,
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        let (leaf, id) = key::decode_record(key)?;
        let record = RecordView::decode(frame.payload())?;
        let shape = self.shape;
        let mut find = |what: String| self.find(Space::Record, key, what);
        let position = record.position;
        if shape.leaf(position.dimension(), position.block()) != leaf {
            find(format!("record {id} does not lie in the leaf that its position names"));
        }
        if depth == VerifyDepth::Quick {
            return Ok(());
        }
        // A damaged place is reported with its own row.
        let place = view.get(Space::RecordPlace, &key::record_place(id)).ok().flatten();
        match place.as_deref().map(|row| decode_place(id, row)) {
            Some(Ok(place)) if place != leaf => find(format!("record {id} has its place in another leaf")),
            None => find(format!("record {id} has no place, so nobody finds it by its id")),
            Some(_) => {}
        }
        let issued = self.catalog.as_ref().map(|catalog| catalog.list(ListKind::Dimensions).len() as u64);
        let dimension = position.dimension().get();
        if issued.is_some_and(|issued| dimension >= issued) {
            let what = format!("dimension {dimension} of its position was never issued");
            self.find(Space::Record, key, what);
        }
        Ok(())
    }

    /// Checks that the record of a place exists.
    pub(super) fn record_place(
        &mut self,
        view: &dyn Readable,
        key: &[u8],
        frame: &FrameView<'_>,
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        let id = key::decode_record_place(key)?;
        let leaf = key::decode_record_leaf(frame.payload())?;
        if depth == VerifyDepth::Full && matches!(view.get(Space::Record, &key::record(&leaf, id)), Ok(None))
        {
            let what = format!("record {id} is not in the leaf that its place names");
            self.find(Space::RecordPlace, key, what);
        }
        Ok(())
    }
}
