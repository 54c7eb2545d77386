//! A damaged chunk: its row is kept, its place is free, its entities live on.

use std::ops::ControlFlow;

use cg_format::entity::{Entity, Owner};
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::Family;
use cg_format::{ChunkAt, EntityId, Lookup, Space, Tier, key};

use super::{Damaged, put_change_marks};
use crate::chunk::decode::row_of;
use crate::commit_log::Committing;
use crate::engine::{ALL_KEYS, Batch, Engine, EngineError, Place, Stamp};
use crate::error::{ConflictKey, Error};
use crate::opacity;
use crate::transaction::reason;
use crate::world::{Inner, World};

/// Why an entity whose chunk was set aside is still there.
pub const CHUNK_SET_ASIDE: &str = "its chunk was set aside";

/// An entity of a chunk, as it is stored.
struct Owned {
    id: EntityId,
    /// The schema generation of its row, which the detached one keeps: not a component is touched.
    generation: u32,
    entity: Entity,
}

impl<E: Engine> World<E> {
    /// Sets a damaged chunk aside: its row is kept in quarantine, and the chunk is absent from then on.
    ///
    /// Its entities are kept, detached with the reason [`CHUNK_SET_ASIDE`]. Finding them reads every entity of the world,
    /// beside which other commits go on. All of it is one commit, which is synced.
    /// `Ok(false)` if the chunk is not damaged; nothing was written then.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the row and the chunk's entities are too much for one batch; nothing was written,
    /// and [`raise_limits`](Self::raise_limits) helps. Otherwise what the engine says.
    pub fn set_aside(&self, at: ChunkAt) -> Result<bool, Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        loop {
            // In this order: what is accepted while the queue is written is newer than what is read.
            let begun = inner.commits.begin();
            inner.drain()?;
            let Some(damaged) = inner.damaged_chunk(at)? else { return Ok(false) };
            let mut owned = inner.entities_of(at)?;
            let mut batch = detach(&owned);

            let committing = inner.commit_alone()?;
            // Who gives the chunk an entity or takes one from it writes the chunk too.
            let chunk = ConflictKey::Chunk(at);
            if committing.written_since(begun.at, [&chunk]).is_some()
                || inner.damaged_chunk(at)?.as_ref() != Some(&damaged)
            {
                continue;
            }
            if damaged.space == Space::ChunkDelta {
                return inner.set_delta_aside(committing, at, &damaged);
            }
            let mut written: Vec<_> = owned.iter().map(|owned| ConflictKey::Entity(owned.id)).collect();
            if committing.written_since(begun.at, &written).is_some() {
                owned = inner.read_again(at, &owned)?;
                batch = detach(&owned);
            }
            written.push(chunk);
            inner.put_copy(&mut batch, &damaged, &committing)?;
            let generation = inner.registry.catalog().current_generation();
            batch.put(Space::ChunkL0, key::chunk(at), Draft::tombstone(generation), Stamp::Commit);
            inner.deltas.delete_rows(&mut batch, at);
            put_change_marks(&mut batch, at);
            if inner.options.opacity {
                batch.put(Space::OpacityPatch, key::opacity_patch(at), opacity::nothing(), Stamp::Commit);
            }
            let what = || format!("setting {at} and its {} entities aside", owned.len());
            let announced = inner.cache.announce([at]);
            inner.commit_aside(committing, batch, what, written, |seq| {
                inner.deltas.forget_up_to(at, seq);
                announced.publish(at, Lookup::Deleted);
                if inner.options.opacity {
                    inner.unfolded.lock().add([(key::opacity_tile(at), 1)]);
                }
            })?;
            return Ok(true);
        }
    }
}

impl<E: Engine> Inner<E> {
    /// The damaged row at which a look-up of a chunk ends; `None` if it ends well.
    fn damaged_chunk(&self, at: ChunkAt) -> Result<Option<Damaged>, Error> {
        // Memory holds no damage, so the engine is asked, not the cache, and not what is remembered of deltas.
        if self.queue.chunk(at).is_some() {
            return Ok(None);
        }
        let (space, row) = match self.read_rows(at) {
            Ok(_) => return Ok(None),
            Err(Error::Corrupt(damage)) => (damage.space, damage.key),
            Err(Error::Engine(EngineError::Corrupt { place: Place::Row { family, key }, .. })) => {
                (Space::of_row(family, &key).unwrap_or(Space::ChunkL0), key.into())
            }
            // Nobody can tell what became of the chunk since its row was written, so the row goes too.
            Err(Error::Engine(EngineError::Corrupt { place: Place::Family(Family::ChunkDelta), .. })) => {
                self.row_of_chunk(at)?
            }
            Err(error) => return Err(error),
        };
        self.damaged_row(space, &row).map(Some)
    }

    /// The row at which a look-up of a chunk would end if it had no deltas.
    fn row_of_chunk(&self, at: ChunkAt) -> Result<(Space, Vec<u8>), Error> {
        let engine = self.engine()?;
        for tier in Tier::ALL {
            let (space, row) = row_of(at, tier);
            if !matches!(engine.get(space, &row), Ok(None)) {
                return Ok((space, row.to_vec()));
            }
        }
        Ok((Space::ChunkL0, key::chunk(at).to_vec()))
    }

    /// Copies a damaged delta into quarantine and takes it away: the chunk is as its row and its other deltas say.
    fn set_delta_aside(
        &self,
        committing: Committing<'_>,
        at: ChunkAt,
        damaged: &Damaged,
    ) -> Result<bool, Error> {
        let mut batch = Batch::new();
        self.put_copy(&mut batch, damaged, &committing)?;
        batch.delete(Space::ChunkDelta, &damaged.key);
        put_change_marks(&mut batch, at);
        let what = || format!("setting a delta of {at} aside");
        let announced = self.cache.announce([at]);
        self.commit_aside(committing, batch, what, vec![ConflictKey::Chunk(at)], |_| {
            if let Ok((_, seq)) = key::decode_delta(&damaged.key) {
                self.deltas.forget(at, seq);
            }
            // What memory holds of the chunk was read or written before.
            announced.forget(at);
        })?;
        Ok(true)
    }

    /// The entities whose owner is a chunk. Reads every entity of the world.
    fn entities_of(&self, at: ChunkAt) -> Result<Vec<Owned>, Error> {
        let mut found = Vec::new();
        self.engine()?.scan(Family::Entity, ALL_KEYS, |row_key, row| {
            // A damaged entity has no owner to be told from; verification reports it.
            found.extend(key::decode_entity(row_key).ok().and_then(|id| owned_by(at, id, row)));
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// Those of some entities that are still a chunk's, as they are now.
    fn read_again(&self, at: ChunkAt, known: &[Owned]) -> Result<Vec<Owned>, Error> {
        let mut found = Vec::new();
        let engine = self.engine()?;
        for Owned { id, .. } in known {
            let row = engine.get(Space::Entity, &key::entity(*id))?;
            found.extend(row.and_then(|row| owned_by(at, *id, &row)));
        }
        Ok(found)
    }
}

/// A stored entity, if it is sound and a chunk's.
fn owned_by(at: ChunkAt, id: EntityId, row: &[u8]) -> Option<Owned> {
    let key = key::entity(id);
    let frame = FrameView::open(Space::Entity, &key, row).ok()?;
    let entity = Entity::decode(frame.payload()).ok()?;
    let generation = frame.header().schema_generation;
    (entity.owner == Owner::Chunk(at)).then_some(Owned { id, generation, entity })
}

/// The rows of entities that belong to no chunk any more.
fn detach(owned: &[Owned]) -> Batch {
    let mut batch = Batch::new();
    for Owned { id, generation, entity } in owned {
        let detached = entity.clone().owned_by(Owner::Detached(reason(CHUNK_SET_ASIDE)));
        let draft = Draft::plain(Codec::None, *generation, |out| detached.encode(out));
        batch.put(Space::Entity, key::entity(*id), draft, Stamp::Commit);
    }
    batch
}
