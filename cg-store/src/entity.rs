//! Entities as stored: one row per UUID, owned by one chunk or by none.

use cg_format::entity::Entity;
use cg_format::frame::{FrameView, version_of};
use cg_format::{EntityId, Space, key};
use cg_registry::{Catalog, UpgradeFunctions, Upgrader};

use crate::engine::Engine;
use crate::error::{Damage, Error};
use crate::world::{Inner, World};

impl<E: Engine> World<E> {
    /// An entity as last committed, or `None` if the world does not have it. One key read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.inner().entity(id)
    }

    /// The commit that last wrote an entity, or `None` if the world does not have it. One key read, nothing decoded.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn entity_version(&self, id: EntityId) -> Result<Option<u64>, Error> {
        let row = self.inner().engine.get(Space::Entity, &key::entity(id))?;
        Ok(row.and_then(|row| version_of(&row)))
    }
}

impl<E: Engine> Inner<E> {
    pub(crate) fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        let key = key::entity(id);
        let Some(row) = self.engine.get(Space::Entity, &key)? else { return Ok(None) };
        let entity = decode(id, &row)?;
        upgrade(&self.registry.catalog(), &self.options.upgrades, id, entity).map(Some)
    }
}

/// Decodes an entity's row.
pub(crate) fn decode(id: EntityId, row: &[u8]) -> Result<Entity, Error> {
    let key = key::entity(id);
    let entity = FrameView::open(Space::Entity, &key, row).and_then(|frame| Entity::decode(frame.payload()));
    entity.map_err(|problem| Damage::of_row(Space::Entity, &key, format!("entity {id}"), problem))
}

/// Carries an entity's components to their newest registrations. In memory only: upgrading is no change.
fn upgrade(
    catalog: &Catalog,
    functions: &UpgradeFunctions,
    id: EntityId,
    mut entity: Entity,
) -> Result<Entity, Error> {
    let replaced = entity.components().map(|(component, _)| component);
    let replaced: Vec<_> =
        replaced.filter(|component| catalog.newest_registration(*component) != *component).collect();
    let upgrader = Upgrader::new(catalog, functions);
    for component in replaced {
        let bytes = entity.remove_component(component).expect("it was just listed");
        let not_upgraded = |why| Error::NotUpgraded { what: format!("entity {id}"), why };
        let (newest, bytes) = upgrader.upgrade_value(component, &bytes).map_err(not_upgraded)?;
        entity.set_component(newest, bytes.into_owned())?;
    }
    Ok(entity)
}
