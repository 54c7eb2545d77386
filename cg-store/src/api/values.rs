//! Entities and properties.

use cg_format::EntityId;
use cg_format::entity::Entity;

use crate::api::world::World;
use crate::engine::CommitSeq;
use crate::kinds::property::Property;
use crate::storage::error::Error;

impl World {
    /// The last committed state of an entity, or `None` if the world does not have it. One key read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged; [`Error::EntityNotUpgraded`] if one of its components needs an
    /// upgrade function that the host did not provide.
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.applied()?.read.entity(id)
    }

    /// The commit that last wrote an entity, or `None` if the world does not have it. One key read, nothing decoded.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// # let world = World::builder().in_memory()?;
    /// # let overworld = world.registry().register_dimension("game:overworld")?;
    /// # let cow = world.registry().register_entity("game:cow")?;
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
    pub fn entity_version(&self, id: EntityId) -> Result<Option<CommitSeq>, Error> {
        Ok(self.applied()?.read.entity_version(id)?.map(CommitSeq::new))
    }

    /// The last committed state of a property, or `None` if it was never set. One key read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        self.applied()?.read.property(property)
    }
}
