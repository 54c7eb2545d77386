//! Entities between a schematic and a world.
//!
//! The NBT is kept byte for byte, riders inside; only a kind that it does not say is put after it. Where it stands is
//! the entity's position, as for every entity of a world.

use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{BlockPos, ChunkAt, Dimension, EntityTypeId};
use cg_snapshot::schem::SchemEntity;

use crate::mapping::origin::ListedIn;
use crate::mapping::{Ids, InSchematic, Origin, place};
use crate::nbt::{self, Compound, NbtError};

/// Parameters for taking a schematic's entities into a world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) ids: Ids,
    pub(super) dimension: Dimension,
    /// Where the schematic's lowest corner is put.
    pub(super) corner: BlockPos,
    pub(super) data_version: i32,
}

/// An entity's bytes on the way into a world.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arriving {
    pub(super) nbt: Vec<u8>,
    pub(super) position: EntityPos,
    /// Whether the schematic's place is one of the world; else the position is the lowest corner.
    pub(super) is_placed: bool,
    pub(super) uuid: Option<uuid::Uuid>,
    pub(super) origin: Origin,
}

impl Arrival {
    /// Makes an entity of the schematic one of the world, the nth.
    ///
    /// # Errors
    /// The data is no compound.
    pub(super) fn take(&self, entity: &SchemEntity, index: u32) -> Result<Arriving, NbtError> {
        let data = Compound::parse(&entity.data, &nbt::Limits::default())?;
        let is_id_added = data.text("id").is_none();
        let nbt = if is_id_added {
            nbt::payload(|out| {
                data.fields().for_each(|field| out.raw_fields(field.raw));
                // It was read from NBT, so it fits.
                let _ = out.string("id", &entity.id);
            })
        } else {
            entity.data.clone()
        };
        let Self { dimension, corner, data_version, .. } = *self;
        let column = place::column_of(corner.chunk()).unwrap_or_default();
        let position = position(dimension, corner, entity.pos);
        let is_placed = position.is_some();
        let position = position
            .unwrap_or_else(|| EntityPos::new(dimension, corner, [0.0; 3]).expect("zero is a fraction"));
        let column = place::column_of(position.block().chunk()).unwrap_or(column);
        let schematic = Some(InSchematic { pos: entity.pos, corner, is_id_added });
        let origin = Origin {
            place: ListedIn::EntityFile,
            data_version,
            column,
            index,
            vehicle: None,
            riders: None,
            schematic,
        };
        Ok(Arriving { uuid: crate::entity::uuid(data), nbt, position, is_placed, origin })
    }

    /// The world's entity, owned by a chunk or by none.
    ///
    /// # Errors
    /// The NBT is longer than a component can be.
    pub(super) fn entity(
        &self,
        arriving: Arriving,
        kind: EntityTypeId,
        owner: Owner,
    ) -> Result<Entity, cg_format::entity::TooLong> {
        let mut entity = Entity::new(kind, owner, arriving.position);
        let components =
            [(self.ids.entity_nbt, arriving.nbt), (self.ids.entity_origin, arriving.origin.encode())];
        for (component, bytes) in components {
            let component = component.expect("registered when the import began");
            entity.set_component(component, bytes)?;
        }
        Ok(entity)
    }
}

impl Arriving {
    /// The chunk that it stands in.
    pub(super) fn chunk(&self) -> ChunkAt {
        ChunkAt::new(self.position.dimension(), self.position.block().chunk())
    }
}

/// An entity of the world as a schematic has it, whose lowest corner is this block.
///
/// One that came with a schematic and was not moved comes out as it went in.
///
/// # Errors
/// The NBT is no compound.
pub(super) fn from_world(
    nbt: &[u8],
    position: EntityPos,
    origin: Option<&Origin>,
    corner: BlockPos,
) -> Result<SchemEntity, NbtError> {
    let found = Compound::parse(nbt, &nbt::Limits::default())?;
    let schematic = origin.and_then(|origin| origin.schematic);
    let id = found.text("id").map(|id| id.lossy().into_owned()).unwrap_or_default();
    let is_added = |last: bool, name: nbt::Text<'_>| last && name == *"id";
    let data = if schematic.is_some_and(|schematic| schematic.is_id_added) {
        let count = found.fields().count();
        nbt::payload(|out| {
            let own = found.fields().enumerate();
            own.filter(|(index, field)| !is_added(index + 1 == count, field.name))
                .for_each(|(_, field)| out.raw_fields(field.raw));
        })
    } else {
        nbt.to_vec()
    };
    let stays = schematic
        .filter(|was| self::position(position.dimension(), was.corner, was.pos) == Some(position))
        .map(|was| offset(was.corner, corner, was.pos));
    let pos = stays.unwrap_or_else(|| {
        let (block, fraction) = (position.block(), position.fraction());
        offset(block, corner, fraction.map(f64::from))
    });
    Ok(SchemEntity { id, pos, data })
}

/// A place that counts from one block, counted from another.
fn offset(from: BlockPos, to: BlockPos, pos: [f64; 3]) -> [f64; 3] {
    let blocks = [from.x.wrapping_sub(to.x), from.y.wrapping_sub(to.y), from.z.wrapping_sub(to.z)];
    let mut out = pos;
    for (number, blocks) in out.iter_mut().zip(blocks) {
        *number += blocks as f64;
    }
    out
}

/// The world's position of a place that counts from a block; `None` outside of the world.
fn position(dimension: Dimension, corner: BlockPos, pos: [f64; 3]) -> Option<EntityPos> {
    // The fraction is taken from the small number, far from the origin it would be lost.
    let local = EntityPos::from_f64(dimension, pos).ok()?;
    let BlockPos { x, y, z } = local.block();
    let block = BlockPos::new(x.checked_add(corner.x)?, y.checked_add(corner.y)?, z.checked_add(corner.z)?);
    EntityPos::new(dimension, block, local.fraction()).ok()
}
