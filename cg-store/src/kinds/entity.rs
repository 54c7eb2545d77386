//! Entities as stored: one row per UUID, owned by one chunk or by none.

use cg_format::entity::Entity;
use cg_format::frame::{FrameView, version_of};
use cg_format::{ComponentId, EntityId, Space, key};
use cg_registry::{Catalog, UpgradeFunctions, Upgrader};

use crate::api::world::{Inner, World};
use crate::storage::error::{Damage, Error};

impl World {
    /// An entity as last committed, or `None` if the world does not have it. One key read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged; [`Error::EntityNotUpgraded`] if a component of it needs a
    /// function that the host has not brought.
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.settled()?.entity(id)
    }

    /// The commit that last wrote an entity, or `None` if the world does not have it. One key read, nothing decoded.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// # let world = World::temporary(&[], &WorldOptions::default())?;
    /// # let overworld = world.register_dimension("game:overworld")?;
    /// # let cow = world.register_entity("game:cow")?;
    /// # let id = EntityId::from_bytes([7; 16]);
    /// # let nowhere = Owner::Detached(cg_format::entity::Reason::new("cargo")?);
    /// # let place = EntityPos::new(overworld, BlockPos::new(0, 64, 0), [0.0; 3])?;
    /// assert_eq!(world.entity_version(id)?, None);
    /// let put = world.transaction(|tx| {
    ///     tx.put_entity(id, Entity::new(cow, nowhere, place));
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(world.entity_version(id)?, Some(put.seq));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the storage fails.
    pub fn entity_version(&self, id: EntityId) -> Result<Option<u64>, Error> {
        if let Some((version, entity)) = self.settled()?.queue.entity(id) {
            return Ok(entity.map(|_| version));
        }
        let engine = self.settled()?.engine()?;
        let row = engine.get(Space::Entity, &key::entity(id))?;
        Ok(row.and_then(|row| version_of(&row)))
    }
}

impl Inner {
    pub(crate) fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        if let Some((_, entity)) = self.queue.entity(id) {
            return Ok(entity);
        }
        let key = key::entity(id);
        let engine = self.engine()?;
        match engine.get(Space::Entity, &key)? {
            Some(row) => self.decode_entity(&self.registry.catalog(), id, &row).map(Some),
            None => Ok(None),
        }
    }

    /// Decodes an entity's row and carries its components to their newest registrations, in memory.
    pub(crate) fn decode_entity(&self, catalog: &Catalog, id: EntityId, row: &[u8]) -> Result<Entity, Error> {
        upgrade(catalog, &self.options.upgrades, id, decode(id, row)?)
    }
}

/// Carries an entity's components to their newest registrations, in memory.
pub(crate) fn upgrade(
    catalog: &Catalog,
    functions: &UpgradeFunctions,
    id: EntityId,
    mut entity: Entity,
) -> Result<Entity, Error> {
    let is_old = |component: &ComponentId| catalog.newest_registration(*component) != *component;
    let old: Vec<_> = entity.components().map(|(component, _)| component).filter(is_old).collect();
    let upgrader = Upgrader::new(catalog, functions);
    for component in old {
        let bytes = entity.remove_component(component).unwrap_or_default();
        let (newest, bytes) =
            upgrader.upgrade_value(component, &bytes).map_err(|why| Error::EntityNotUpgraded { id, why })?;
        // What was already put under the newest id is the later word.
        if entity.component(newest).is_none() {
            entity.set_component(newest, bytes.into_owned())?;
        }
    }
    Ok(entity)
}

/// Decodes an entity's row as it is stored.
pub(crate) fn decode(id: EntityId, row: &[u8]) -> Result<Entity, Error> {
    let key = key::entity(id);
    let entity = FrameView::open(Space::Entity, &key, row).and_then(|frame| Entity::decode(frame.payload()));
    entity.map_err(|problem| Damage::of_row(Space::Entity, &key, format!("entity {id}"), problem))
}
