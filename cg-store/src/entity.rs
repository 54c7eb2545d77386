//! Entities as stored: one row per UUID, owned by one chunk or by none.

use cg_format::entity::Entity;
use cg_format::frame::FrameView;
use cg_format::{EntityId, Space, key};

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
}

impl<E: Engine> Inner<E> {
    pub(crate) fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        let key = key::entity(id);
        match self.engine.get(Space::Entity, &key)? {
            Some(row) => decode(id, &row).map(Some),
            None => Ok(None),
        }
    }
}

/// Decodes an entity's row.
pub(crate) fn decode(id: EntityId, row: &[u8]) -> Result<Entity, Error> {
    let key = key::entity(id);
    let entity = FrameView::open(Space::Entity, &key, row).and_then(|frame| Entity::decode(frame.payload()));
    entity.map_err(|problem| Damage::of_row(Space::Entity, &key, format!("entity {id}"), problem))
}
