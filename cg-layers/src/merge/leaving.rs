//! Entities that leave their segment.

use cg_format::entity::{Entity, Owner};
use cg_store::layer::reason;

/// The entity in the segment that it leaves, until it is transferred.
pub(crate) fn leaving(entity: &Entity) -> Entity {
    entity.clone().owned_by(Owner::Detached(reason("leaving its segment")))
}
