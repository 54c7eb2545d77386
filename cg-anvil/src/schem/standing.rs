//! A schematic's entities on their way into the chunks that they stand in, each under a UUID that is the same next time.

use std::collections::HashSet;

use cg_format::entity::{Owner, Reason};
use cg_format::{ChunkAt, EntityId, EntityTypeId};
use cg_minecraft::name;
use cg_registry::Catalog;
use cg_store::Error;

use super::entity::{Arrival, Arriving};
use super::import::{ImportError, Importer};
use crate::mapping::NO_CHUNK;
use crate::mapping::entity_id::derived;

/// Bytes of an entity besides its NBT; an upper bound.
const ENTITY_BYTES: usize = 512;

/// An entity that waits for its chunk.
pub(super) struct Standing {
    id: EntityId,
    kind: EntityTypeId,
    arriving: Arriving,
}

/// The holder of a UUID in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Nobody,
    /// The same entity, by an earlier import of the schematic to this place.
    Itself,
    Another,
}

impl Importer<'_> {
    fn arrival(&self) -> Arrival {
        let corner = self.area.min();
        let data_version = self.file.schematic.data_version();
        Arrival { ids: self.ids, dimension: self.dimension, corner, data_version }
    }

    /// Gives each entity its UUID and the chunk in which it will stand.
    pub(super) fn take_entities(&mut self, catalog: &Catalog) -> Result<(), ImportError> {
        let (file, arrival) = (self.file, self.arrival());
        let limit_bytes = self.world.limits().entity_bytes;
        let mut taken = HashSet::new();
        for (entity, index) in file.schematic.entities().zip(0..) {
            let Ok(arriving) = arrival.take(&entity, index) else {
                self.not_carried("entities nested too deeply", 1);
                continue;
            };
            self.not_carried(
                "places of entities that are not in the world: they stand at the lowest corner",
                u64::from(!arriving.is_placed),
            );
            if (arriving.nbt.len() + ENTITY_BYTES) as u64 > limit_bytes {
                self.not_carried(format!("entities of more than the world's {limit_bytes} bytes"), 1);
                continue;
            }
            let kind = name::of_entity_kind(&entity.id);
            let kind = catalog.entity_type(kind.as_str()).expect("it was just registered");
            let id = self.id_of(&arriving, &mut taken)?;
            self.report.rekeyed += u64::from(arriving.uuid.map(EntityId::new) != Some(id));
            self.standing.entry(arriving.chunk()).or_default().push(Standing { id, kind, arriving });
        }
        Ok(())
    }

    /// The UUID that an entity says; where another has it, one that follows from the file and the place.
    fn id_of(&self, arriving: &Arriving, taken: &mut HashSet<EntityId>) -> Result<EntityId, ImportError> {
        let seed =
            [&self.dimension.get().to_le_bytes()[..], &arriving.origin.encode(), &arriving.nbt].concat();
        let derived = |n| derived(arriving.uuid, &seed, n);
        // One that was given another before keeps that, though its own may be free by now.
        if self.holder(derived(0), arriving)? == Holder::Itself && taken.insert(derived(0)) {
            return Ok(derived(0));
        }
        for id in arriving.uuid.map(EntityId::new).into_iter().chain((0..).map(derived)) {
            if !taken.contains(&id) && self.holder(id, arriving)? != Holder::Another {
                taken.insert(id);
                return Ok(id);
            }
        }
        unreachable!("there are more numbers than entities");
    }

    fn holder(&self, id: EntityId, arriving: &Arriving) -> Result<Holder, ImportError> {
        let found = match self.world.entity(id) {
            Ok(None) => return Ok(Holder::Nobody),
            Ok(Some(found)) => found,
            // Damage is never written over.
            Err(Error::Corrupt(_)) => return Ok(Holder::Another),
            Err(error) => return Err(error.into()),
        };
        let origin = self.ids.entity_origin.and_then(|component| found.component(component));
        let is_itself = found.position.dimension() == self.dimension
            && origin.is_some_and(|origin| origin == arriving.origin.encode());
        Ok(if is_itself { Holder::Itself } else { Holder::Another })
    }

    /// Puts the entities of a chunk.
    pub(super) fn put_entities(&mut self, at: ChunkAt, owner: &Owner) -> Result<(), ImportError> {
        let arrival = self.arrival();
        for Standing { id, kind, arriving } in self.standing.remove(&at).unwrap_or_default() {
            let len_bytes = arriving.nbt.len() + ENTITY_BYTES;
            let entity = arrival.entity(arriving, kind, owner.clone()).map_err(Error::from)?;
            self.pending.entities.insert(id, entity);
            self.pending.len_bytes += len_bytes;
            self.report.entities += 1;
            self.commit_if_full()?;
        }
        Ok(())
    }

    /// Puts those in whose chunk the schematic has no block. Entities never make a chunk.
    pub(super) fn put_other_entities(&mut self) -> Result<(), ImportError> {
        let places: Vec<ChunkAt> = self.standing.keys().copied().collect();
        for at in places {
            let owner = match self.world.load(at)? {
                Some(_) => Owner::Chunk(at),
                None => Owner::Detached(Reason::new(NO_CHUNK).expect("a short text")),
            };
            self.put_entities(at, &owner)?;
        }
        Ok(())
    }
}
