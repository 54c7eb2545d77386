//! Detached entities: those that belong to no chunk.

use std::ops::ControlFlow;

use cg_anvil::mapping::NO_CHUNK;
use cg_format::entity::Owner;
use cg_format::{ChunkPos, Dimension, EntityId};
use cg_store::World;
use cg_store::quarantine::CHUNK_QUARANTINED;

use crate::output::Failure;

/// A detached entity.
#[derive(Debug, Clone, Copy)]
pub(super) struct DetachedEntity {
    pub(super) id: EntityId,
    /// The place in which it stands.
    pub(super) pos: ChunkPos,
    /// Whether it is detached for the only reason that no chunk is stored there. A host has other reasons, such as a player
    /// who is offline.
    pub(super) is_without_chunk: bool,
}

/// A dimension's detached entities whose place is wanted. Reads every entity of the world once; a damaged one
/// ends it, because its place is unknown.
pub(super) fn detached(
    world: &World,
    dimension: Dimension,
    is_wanted: impl Fn(ChunkPos) -> bool,
) -> Result<Vec<DetachedEntity>, Failure> {
    let mut found = Vec::new();
    let failed = world.read_view(|view| {
        view.for_each_entity(|entity| {
            let (id, entity) = match entity {
                Ok(entity) => entity,
                Err(error) => return ControlFlow::Break(error),
            };
            let pos = entity.position.block().chunk();
            if let Owner::Detached(reason) = &entity.owner
                && entity.position.dimension() == dimension
                && is_wanted(pos)
            {
                let is_without_chunk = [NO_CHUNK, CHUNK_QUARANTINED].contains(&reason.as_str());
                found.push(DetachedEntity { id, pos, is_without_chunk });
            }
            ControlFlow::Continue(())
        })
    })?;
    failed.map_or(Ok(found), |error| Err(error.into()))
}
