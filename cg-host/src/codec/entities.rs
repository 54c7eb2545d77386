//! Entities of a column.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, EntityId};
use cg_store::{ErrorKind, World};

use super::load::OnDamage;
use crate::binding::Binding;
use crate::column::{Column, ColumnEntity};
use crate::error::Error;
use crate::place::ColumnAt;

/// Adds the entities of some chunks to a column. Returns `None` if one of them was moved meanwhile.
pub(crate) fn load(
    world: &World,
    binding: &Binding,
    chunks: &[(ChunkAt, Arc<Chunk>)],
    column: &mut Column,
    on_damage: OnDamage,
) -> Result<Option<()>, Error> {
    for (at, chunk) in chunks {
        for id in chunk.entities() {
            let found = match world.entity(*id) {
                Err(error) if error.kind() == ErrorKind::Damaged && on_damage == OnDamage::Partial => {
                    tracing::warn!(place = %at, %error, "a damaged entity is not shown");
                    column.kept += 1;
                    continue;
                }
                found => found.map_err(|error| Error::of_chunk(*at, error))?,
            };
            let Some(entity) = found.filter(|entity| entity.owner == Owner::Chunk(*at)) else {
                return Ok(None);
            };
            match of_host(binding, *id, &entity) {
                Some(shown) => column.entities.push(shown),
                None => column.kept += 1,
            }
        }
    }
    column.entities.sort_unstable_by_key(|entity| entity.id);
    Ok(Some(()))
}

/// An entity in the host's numbers; `None` if the host does not know its kind.
pub(crate) fn of_host(binding: &Binding, id: EntityId, entity: &Entity) -> Option<ColumnEntity> {
    let kind = binding.kind_number(entity.kind)?;
    let nbt = binding.names.entity_nbt.and_then(|component| entity.component(component));
    Some(ColumnEntity { id, kind, position: entity.position, nbt: nbt.unwrap_or_default().to_vec() })
}

/// The entity that a host's entity becomes: what the host cannot say of a stored one stays.
pub(crate) fn of_world(
    binding: &Binding,
    at: &ColumnAt,
    entity: &ColumnEntity,
    stored: Option<Entity>,
    heights: &[i32],
) -> Result<Entity, Error> {
    let kind = binding.kind_in(at, entity.kind)?;
    let owner = owner(at, entity, heights)?;
    let new = match stored {
        Some(mut stored) => {
            stored.kind = kind;
            stored.position = entity.position;
            stored.owned_by(owner)
        }
        None => Entity::new(kind, owner, entity.position),
    };
    with_nbt(binding, new, &entity.nbt)
}

/// An entity with the host's NBT.
fn with_nbt(binding: &Binding, mut entity: Entity, nbt: &[u8]) -> Result<Entity, Error> {
    let component = binding.names.entity_nbt;
    let component = component.ok_or_else(|| Error::Invalid("the world is open for reading".into()))?;
    entity.set_component(component, nbt.to_vec()).map_err(cg_store::Error::from)?;
    Ok(entity)
}

/// The chunk that owns an entity: that of its block, or the nearest one of the column that is stored.
fn owner(at: &ColumnAt, entity: &ColumnEntity, stored: &[i32]) -> Result<Owner, Error> {
    let height = entity.position.block().chunk().y();
    let nearest = stored.iter().min_by_key(|y| (i64::from(**y) - height).unsigned_abs());
    let nearest = nearest.ok_or_else(|| at.refuse(crate::problem::ColumnProblem::NoSection))?;
    Ok(Owner::Chunk(at.chunk(*nearest)?))
}
