//! Quarantine of damaged entities: the row is kept, and no chunk refers to the entity any more.

use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::{Chunk, ChunkView};
use cg_format::{ChunkAt, EntityId, Lookup, Space, key};
use cg_registry::Upgrader;

use super::Damaged;
use crate::admin::Admin;
use crate::commit::transaction::put_change_marks;
use crate::engine::{Batch, Stamp};
use crate::kinds::entity;
use crate::read::cache::{Announced, Stored};
use crate::read::chunk::decode::decode_as_stored;
use crate::read::chunk::{Area, hot_row};
use crate::storage::error::{ConflictKey, Error};

/// A chunk without its reference to an entity.
struct Released {
    at: ChunkAt,
    /// The stored schema generation, which stays the same: only the reference changes.
    generation: u32,
    chunk: Chunk,
}

impl Admin<'_> {
    /// An entity's row, if it is damaged.
    fn damaged_entity(&self, id: EntityId) -> Result<Option<Damaged>, Error> {
        self.if_damaged(Space::Entity, &key::entity(id), |row| entity::decode(id, row).is_ok())
    }

    /// The chunks that refer to an entity: at most one in a sound world. Reads every chunk, and decodes those whose
    /// bytes contain the UUID.
    fn referrers_of(&self, id: EntityId) -> Result<Vec<ChunkAt>, Error> {
        let catalog = self.shared.registry.catalog();
        let uuid = id.to_bytes();
        let mut found = Vec::new();
        self.read.walk(&self.shared.engine()?.snapshot()?, Area::World, |stored| {
            // The references of a damaged chunk are unknown.
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

    /// The current chunks without their references to an entity. Chunks without such a reference are left out.
    fn release(&self, id: EntityId, referrers: &[ChunkAt]) -> Result<Vec<Released>, Error> {
        let catalog = self.shared.registry.catalog();
        let mut released = Vec::new();
        for at in referrers {
            let found = self.read.find_folded(*at, |stored| {
                let chunk = decode_as_stored(&catalog, stored)?;
                Ok(Released { at: *at, generation: stored.schema_generation, chunk })
            })?;
            if let Some(mut found) = found.here()
                && found.chunk.remove_entity(id)
            {
                released.push(found);
            }
        }
        Ok(released)
    }

    /// Caches a chunk without its reference.
    fn show(&self, seen: &Announced<'_>, Released { at, generation, chunk }: Released, version: u64) {
        let catalog = self.shared.registry.catalog();
        // A chunk that cannot be upgraded cannot be loaded either, so it is not cached.
        if let Ok(upgraded) =
            Upgrader::new(&catalog, &self.shared.options.upgrades).upgrade(&chunk, generation)
        {
            let chunk = Arc::new(upgraded.map_or(chunk, |upgrade| upgrade.chunk));
            seen.publish(at, Lookup::Found(Stored { chunk, version, is_current: false }));
        }
    }

    /// See [`Quarantine::entity`](crate::quarantine::Quarantine::entity).
    pub(crate) fn quarantine_entity(&self, id: EntityId) -> Result<bool, Error> {
        self.shared.check_open()?;
        loop {
            // The order matters: changes that are accepted while the queue is written are detected as newer than what
            // is read.
            let begun = self.commit.log.begin();
            self.commit.drain()?;
            let Some(damaged) = self.damaged_entity(id)? else { return Ok(false) };
            // Every commit that adds or drops a reference reads the entity, so it fails while the entity is damaged.
            let referrers = self.referrers_of(id)?;
            let mut released = self.release(id, &referrers)?;

            let committing = self.commit.commit_alone()?;
            if self.damaged_entity(id)?.as_ref() != Some(&damaged) {
                continue;
            }
            let mut written: Vec<_> = referrers.iter().copied().map(ConflictKey::Chunk).collect();
            if committing.written_since(begun.at, &written).is_some() {
                released = self.release(id, &referrers)?;
            }
            written.push(ConflictKey::Entity(id));
            let mut batch = Batch::new();
            self.put_copy(&mut batch, &damaged, &committing)?;
            batch.delete(Space::Entity, key::entity(id));
            for Released { at, generation, chunk } in &released {
                let draft = hot_row(chunk, *generation, self.shared.options.hot_codec());
                batch.put(Space::ChunkL0, key::chunk(*at), draft, Stamp::Commit);
                self.read.deltas.delete_rows(&mut batch, *at);
            }
            put_change_marks(&mut batch, released.iter().map(|released| released.at));
            let what = || format!("setting entity {id} aside");
            let announced = self.read.cache.announce(released.iter().map(|released| released.at));
            self.commit_quarantine(committing, batch, what, written, |seq| {
                for released in released {
                    self.read.deltas.forget_up_to(released.at, seq);
                    self.show(&announced, released, seq);
                }
            })?;
            return Ok(true);
        }
    }
}
