//! Iterating: every live chunk of an area and every entity, each over one state of the world.

use std::ops::ControlFlow;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ClusterPos, Dimension, EntityId, Space, Tier};
use rayon::prelude::*;

use crate::api::world::World;
use crate::engine::{ALL_KEYS, Met, Readable, scan_skipping_damage};
use crate::kinds::entity;
use crate::read::chunk::{Area, Cubes, StoredChunk, walk_live, walk_one};
use crate::read::delta::{Folding, walk_folded};
use crate::storage::error::{Damage, Error};

/// Where a live chunk lies, and since which commit it is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoredPlace {
    /// Which chunk.
    pub at: ChunkAt,
    /// The commit that last changed its content.
    pub version: u64,
    /// The tier of its row.
    pub tier: Tier,
}

impl World {
    /// Shows every live chunk of an area as it is stored, each once whatever its tier, until `visit` breaks.
    ///
    /// Chunks come in Morton order, the order of their keys. What is damaged is shown as an error, once for each 16³ cube
    /// that it reaches into, and the walk goes on behind it. Commits made meanwhile are not seen. Reads each row once, decodes nothing and keeps nothing in
    /// memory. Of a large box, what lies between two of its parts in the order of keys is skipped by a seek.
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
        let inner = self.settled()?;
        walk_folded(inner, &inner.settled_engine()?.snapshot()?, area, visit)
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), with the chunks decoded and carried to the current schema generation.
    /// What cannot be decoded is shown as an error.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_decoded<B>(
        &self,
        area: Area,
        mut visit: impl FnMut(Result<(ChunkAt, Chunk), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        self.for_each_chunk(area, |stored| {
            visit(stored.and_then(|stored| Ok((stored.at, self.decode(stored)?))))
        })
    }

    /// Shows where every live chunk of an area is, in Morton order, until `visit` breaks.
    ///
    /// As [`for_each_chunk`](Self::for_each_chunk), but opens clusters only up to their directories: nothing is
    /// decompressed, and a damaged group inside one is not noticed.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_place<B>(
        &self,
        area: Area,
        mut visit: impl FnMut(Result<StoredPlace, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let inner = self.settled()?;
        let engine = inner.settled_engine()?;
        let view = engine.snapshot()?;
        let folding = Folding::of(inner, &view)?;
        walk_live(&view, &inner.counters, area, |live| {
            visit(live.map(|live| {
                let (at, of_row, tier) = live.place();
                StoredPlace { at, version: folding.version(at, of_row), tier }
            }))
        })
    }

    /// As [`for_each_chunk`](Self::for_each_chunk), by the threads of the world's own pool: each takes whole 16³ cubes, in
    /// each of which chunks come in Morton order. Where one thread's visitor breaks the others stop at their next cube;
    /// of several values the one that is found first is returned.
    ///
    /// [`decode`](Self::decode) may be called by the visitor, and is then done by all threads too. A panic of the visitor
    /// goes on in the caller.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn par_for_each_chunk<B: Send>(
        &self,
        area: Area,
        visit: impl Fn(Result<StoredChunk<'_>, Error>) -> ControlFlow<B> + Sync,
    ) -> Result<Option<B>, Error> {
        let inner = self.settled()?;
        let engine = inner.settled_engine()?;
        let view = engine.snapshot()?;
        let folding = Folding::of(inner, &view)?;
        let (mut cubes, mut damaged, mut next) = (Vec::new(), Vec::new(), Cubes::of(area));
        while let Some(cube) = next.next_past_damage(&view, &inner.counters, &mut damaged)? {
            cubes.push(cube);
        }
        if let Some(value) = damaged.into_iter().find_map(|error| visit(Err(error)).break_value()) {
            return Ok(Some(value));
        }
        let walk = |cube: &(Dimension, ClusterPos)| {
            let walked = walk_one(&view, &inner.counters, area, *cube, |stored| {
                folding.show(stored, &mut |stored: Result<StoredChunk<'_>, Error>| visit(stored))
            });
            walked.transpose()
        };
        inner.pool.install(|| cubes.par_iter().find_map_any(walk)).transpose()
    }

    /// Decodes a stored chunk and carries it to the current schema generation. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::UnknownGeneration`] or [`Error::NotUpgraded`].
    pub fn decode(&self, stored: StoredChunk<'_>) -> Result<Chunk, Error> {
        let inner = self.unsettled();
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
        entities(&self.settled()?.settled_engine()?.snapshot()?, visit)
    }
}

/// Shows every entity of a view.
pub(crate) fn entities<B>(
    view: &dyn Readable,
    mut visit: impl FnMut(Result<(EntityId, Entity), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let stopped = scan_skipping_damage(view, Family::Entity, ALL_KEYS, |met| {
        let (row_key, row) = match met {
            Met::Row(key, row) => (key, row),
            Met::Gap { error, .. } => return visit(Err(error.into())),
        };
        let id = key::decode_entity(row_key)
            .map_err(|problem| Damage::of_row(Space::Entity, row_key, "an entity", problem));
        visit(id.and_then(|id| Ok((id, entity::decode(id, row)?))))
    })?;
    Ok(stopped)
}
