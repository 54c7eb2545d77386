//! Iterating: every live chunk of an area and every entity, each over one state of the world.

use std::ops::ControlFlow;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::key::{self, Family};
use cg_format::{EntityId, Space};

use crate::chunk::{Area, StoredChunk};
use crate::delta::walk_folded;
use crate::engine::{ALL_KEYS, Engine, ReadView};
use crate::entity;
use crate::error::{Damage, Error};
use crate::world::World;

impl<E: Engine> World<E> {
    /// Shows every live chunk of an area as it is stored, each once whatever its tier, until `visit` breaks.
    ///
    /// Chunks come cube by cube of 16³, in no order inside a cube. A damaged row is shown as an error, once, and the
    /// walk goes on behind it. Commits made meanwhile are not seen. Reads each row once, decodes nothing and keeps
    /// nothing in memory. Of a large box, what lies between two of its parts in the order of keys is skipped by a seek.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cg_store::prelude::*;
    /// use cg_store::Area;
    /// # let world = World::temporary(&[], &WorldOptions::default())?;
    /// # let overworld = world.register_dimension("game:overworld")?;
    /// # let [air] = world.register_blocks([":air"])?;
    /// world.transaction(|tx| {
    ///     let schema = tx.catalog().current_schema();
    ///     tx.save(ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?), Chunk::filled(air, &schema)?);
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })?;
    /// let mut heights = Vec::new();
    /// world.for_each_chunk(Area::World, |stored| {
    ///     heights.extend(stored.map(|stored| stored.at.pos.y()));
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(heights, [4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_chunk<B>(
        &self,
        area: Area,
        visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let inner = self.inner();
        walk_folded(inner, &inner.settled_engine()?.snapshot(), area, visit)
    }

    /// Decodes a stored chunk and carries it to the current schema generation. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::UnknownGeneration`] or [`Error::NotUpgraded`].
    pub fn decode(&self, stored: StoredChunk<'_>) -> Result<Chunk, Error> {
        let inner = self.inner();
        inner.decode(&inner.registry.catalog(), stored)
    }

    /// Shows every entity, ascending by UUID, until `visit` breaks. A damaged one is shown as an error.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_entity<B>(
        &self,
        visit: impl FnMut(Result<(EntityId, Entity), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        entities(&self.inner().settled_engine()?.snapshot(), visit)
    }
}

/// Shows every entity of a view.
pub(crate) fn entities<V: ReadView, B>(
    view: &V,
    mut visit: impl FnMut(Result<(EntityId, Entity), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let stopped = view.scan(Family::Entity, ALL_KEYS, |row_key, row| {
        let id = key::decode_entity(row_key)
            .map_err(|problem| Damage::of_row(Space::Entity, row_key, "an entity", problem));
        visit(id.and_then(|id| Ok((id, entity::decode(id, row)?))))
    })?;
    Ok(stopped)
}
