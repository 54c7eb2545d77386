//! A damaged entity: its row is kept, and no chunk refers to it any more.

use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::{Chunk, ChunkView};
use cg_format::frame::{Codec, Draft};
use cg_format::{ChunkAt, EntityId, Lookup, Space, key};
use cg_registry::Upgrader;

use super::{Damaged, put_change_marks};
use crate::api::world::{Inner, World};
use crate::engine::{Batch, EngineError, Stamp};
use crate::kinds::entity;
use crate::read::cache::{Announced, Stored};
use crate::read::chunk::Area;
use crate::read::chunk::decode::damage;
use crate::read::delta::walk_folded;
use crate::storage::error::{ConflictKey, Error};

/// A chunk without its reference to an entity.
struct Released {
    at: ChunkAt,
    /// The schema generation that it is stored with, and stays stored with: nothing but the reference changes.
    generation: u32,
    chunk: Chunk,
}

impl World {
    /// Sets a damaged entity aside: its row is kept in quarantine, and the world has no such entity from then on.
    ///
    /// Its owner cannot be read any more, so the chunk that refers to it is searched for: a walk over every stored chunk,
    /// beside which other commits go on. The reference is dropped in the same commit, which is synced; the chunk changes
    /// in nothing else. A chunk that is damaged itself keeps what it says.
    /// `Ok(false)` if the entity is not damaged or not there; nothing was written then.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it is too much for one batch; nothing was written, and
    /// [`raise_limits`](Self::raise_limits) helps. Otherwise what the engine says.
    pub fn set_aside_entity(&self, id: EntityId) -> Result<bool, Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        loop {
            // In this order: what is accepted while the queue is written is newer than what is read.
            let begun = inner.commits.begin();
            inner.drain()?;
            let Some(damaged) = inner.damaged_entity(id)? else { return Ok(false) };
            // Who adds or drops a reference reads the entity, so none can as long as it is damaged.
            let referrers = inner.referrers_of(id)?;
            let mut released = inner.release(id, &referrers)?;

            let committing = inner.commit_alone()?;
            if inner.damaged_entity(id)?.as_ref() != Some(&damaged) {
                continue;
            }
            let mut written: Vec<_> = referrers.iter().copied().map(ConflictKey::Chunk).collect();
            if committing.written_since(begun.at, &written).is_some() {
                released = inner.release(id, &referrers)?;
            }
            written.push(ConflictKey::Entity(id));
            let mut batch = Batch::new();
            inner.put_copy(&mut batch, &damaged, &committing)?;
            batch.delete(Space::Entity, key::entity(id));
            for Released { at, generation, chunk } in &released {
                let draft = Draft::plain(Codec::None, *generation, |out| chunk.encode(out));
                batch.put(Space::ChunkL0, key::chunk(*at), draft, Stamp::Commit);
                inner.deltas.delete_rows(&mut batch, *at);
                put_change_marks(&mut batch, *at);
            }
            let what = || format!("setting entity {id} aside");
            let announced = inner.cache.announce(released.iter().map(|released| released.at));
            inner.commit_aside(committing, batch, what, written, |seq| {
                for released in released {
                    inner.deltas.forget_up_to(released.at, seq);
                    inner.show(&announced, released, seq);
                }
            })?;
            return Ok(true);
        }
    }
}

impl Inner {
    /// An entity's row, if it is damaged.
    fn damaged_entity(&self, id: EntityId) -> Result<Option<Damaged>, Error> {
        let row = key::entity(id);
        match self.engine()?.get(Space::Entity, &row) {
            Ok(None) => return Ok(None),
            Ok(Some(stored)) => {
                if entity::decode(id, &stored).is_ok() {
                    return Ok(None);
                }
            }
            Err(EngineError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.damaged_row(Space::Entity, &row).map(Some)
    }

    /// The chunks that refer to an entity: one in a sound world, or none. Reads every chunk, and decodes those in whose
    /// bytes the UUID stands.
    fn referrers_of(&self, id: EntityId) -> Result<Vec<ChunkAt>, Error> {
        let catalog = self.registry.catalog();
        let uuid = id.to_bytes();
        let mut found = Vec::new();
        walk_folded(self, &self.engine()?.snapshot()?, Area::World, |stored| {
            // Nobody can tell what a damaged chunk refers to.
            if let Ok(stored) = stored
                && stored.value.windows(uuid.len()).any(|bytes| bytes == uuid)
                && let Some(schema) = catalog.schema(stored.schema_generation)
                && let Ok(view) = ChunkView::new(stored.value, &schema)
                && view.entities().any(|entity| entity == id)
            {
                found.push(stored.at);
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// Chunks as they are now, without their references to an entity; those that have none are left out.
    fn release(&self, id: EntityId, referrers: &[ChunkAt]) -> Result<Vec<Released>, Error> {
        let catalog = self.registry.catalog();
        let mut released = Vec::new();
        for at in referrers {
            let found = self.find_folded(*at, |stored| {
                let generation = stored.schema_generation;
                let schema = catalog.schema(generation).ok_or_else(|| Error::UnknownGeneration {
                    what: at.to_string(),
                    found: generation,
                    newest: catalog.current_generation(),
                })?;
                let chunk =
                    Chunk::decode(stored.value, &schema).map_err(|problem| damage(stored, problem))?;
                Ok(Released { at: *at, generation, chunk })
            })?;
            if let Some(mut found) = found.here()
                && found.chunk.remove_entity(id)
            {
                released.push(found);
            }
        }
        Ok(released)
    }

    /// Makes a chunk without its reference visible to those who ask memory.
    fn show(&self, seen: &Announced<'_>, Released { at, generation, chunk }: Released, version: u64) {
        let catalog = self.registry.catalog();
        // What cannot be upgraded cannot be loaded, so memory does not have it.
        if let Ok(upgraded) = Upgrader::new(&catalog, &self.options.upgrades).upgrade(&chunk, generation) {
            let chunk = Arc::new(upgraded.map_or(chunk, |upgrade| upgrade.chunk));
            seen.publish(at, Lookup::Here(Stored { chunk, version, is_current: false }));
        }
    }
}
