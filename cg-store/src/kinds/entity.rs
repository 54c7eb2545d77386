//! Entities as stored: one row per UUID, owned by one chunk or by none.

use cg_format::entity::Entity;
use cg_format::{ComponentId, EntityId, Space, key};
use cg_registry::{Catalog, UpgradeFunctions, Upgrader};

use crate::storage::error::Error;
use crate::storage::meta::open_row;

/// Upgrades an entity's kind to the one with which it was united, and its components to their newest registrations, in
/// memory.
///
/// # Errors
/// [`Error::EntityNotUpgraded`] if a function of the host is missing or fails.
pub fn upgrade(
    catalog: &Catalog,
    functions: &UpgradeFunctions,
    id: EntityId,
    mut entity: Entity,
) -> Result<Entity, Error> {
    entity.kind = catalog.newest_entity_type(entity.kind);
    let is_old = |component: &ComponentId| catalog.newest_registration(*component) != *component;
    let old: Vec<_> = entity.components().map(|(component, _)| component).filter(is_old).collect();
    let upgrader = Upgrader::new(catalog, functions);
    for component in old {
        let bytes = entity.remove_component(component).unwrap_or_default();
        let (newest, bytes) =
            upgrader.upgrade_value(component, &bytes).map_err(|why| Error::EntityNotUpgraded { id, why })?;
        // A value under the newest id is newer than the upgraded one.
        if entity.component(newest).is_none() {
            entity.set_component(newest, bytes.into_owned())?;
        }
    }
    Ok(entity)
}

/// Decodes an entity's row as it is stored.
pub(crate) fn decode(id: EntityId, row: &[u8]) -> Result<Entity, Error> {
    let key = key::entity(id);
    open_row(Space::Entity, &key, row, || format!("entity {id}"), |frame| Entity::decode(frame.payload()))
}
