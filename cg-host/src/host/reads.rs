//! Reads of a host beside columns. They see what was accepted and is not committed.

use cg_format::EntityId;
use cg_format::entity::Entity;
use cg_store::prelude::Property;
use cg_store::settings::WorldSettings;

use super::handle::Host;
use crate::error::Error;

impl Host {
    /// An entity; `None` if the world does not have it.
    ///
    /// # Errors
    /// What the store says.
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        match self.inner.pending_entity(id)? {
            Some(pending) => Ok(pending.value()),
            None => Ok(self.world().entity(id)?),
        }
    }

    /// A property; `None` if it is not set.
    ///
    /// # Errors
    /// What the store says.
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        match self.inner.pending_property(property) {
            Some(pending) => Ok(pending.value()),
            None => Ok(self.world().property(property)?),
        }
    }

    /// The settings of the world.
    ///
    /// # Errors
    /// What the store says.
    pub fn settings(&self) -> Result<WorldSettings, Error> {
        let pending = self.inner.pending_settings();
        let mut settings = WorldSettings::of(self.world())?;
        for newer in &pending {
            settings.update(newer);
        }
        Ok(settings)
    }

    /// Commits what was accepted, for a read of the world itself.
    ///
    /// # Errors
    /// Why the world takes no commits: a read would not see what was accepted.
    pub fn commit_accepted(&self) -> Result<(), Error> {
        self.inner.commit_group()
    }
}
