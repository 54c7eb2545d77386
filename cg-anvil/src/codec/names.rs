//! Names that a world gets with what is saved into it.

use std::collections::BTreeSet;
use std::sync::Arc;

use cg_format::BlockId;
use cg_minecraft::{kind, name};
use cg_registry::{Catalog, Registration};
use cg_store::{Error, World};

use super::prepared::LocalState;
use crate::EntityRecord;

/// Registers the block states and the kinds of entities that a world has no name of yet: by name, so that the order is
/// always the same.
pub(crate) fn register<'a>(
    world: &World,
    states: &[LocalState],
    entities: impl Iterator<Item = &'a EntityRecord>,
) -> Result<Arc<Catalog>, Error> {
    let catalog = world.catalog();
    let mut new = Registration::default();
    for state in states {
        if catalog.block_id(state.name.as_str()).is_none() {
            new.blocks.push(kind::offer(state.name.clone(), state.owns, state.is_opaque));
        }
    }
    new.blocks.sort_by(|a, b| a.name.cmp(&b.name));
    let kinds: BTreeSet<&str> = entities.map(|record| record.kind.as_str()).collect();
    for kind in kinds {
        let name = name::of_entity_kind(kind);
        if catalog.entity_type(name.as_str()).is_none() {
            new.entities.push(name);
        }
    }
    if new == Registration::default() { Ok(catalog) } else { world.registry().register(&new) }
}

/// The ids of block states that are registered.
pub(crate) fn blocks(catalog: &Catalog, states: &[LocalState]) -> Vec<BlockId> {
    let id = |state: &LocalState| catalog.block_id(state.name.as_str());
    states.iter().map(|state| id(state).expect("it was just registered")).collect()
}
