//! Quarantine of damaged chunks: the row is kept, the place is free, and the entities stay.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use cg_format::entity::{Entity, Owner};
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::Family;
use cg_format::{ChunkAt, ChunkBox, ClusterTier, Dimension, EntityId, Lookup, Space, Tier, key};

use super::Damaged;
use crate::admin::Admin;
use crate::commit::commit_log::Committing;
use crate::commit::transaction::{put_change_marks, reason};
use crate::engine::{ALL_KEYS, Batch, EngineError, ReadableExt as _, Stamp};
use crate::kinds::opacity;
use crate::read::chunk::clusters_of;
use crate::read::chunk::decode::row_of;
use crate::read::delta::Deltas;
use crate::storage::error::{ConflictKey, Error};

/// The reason stored with an entity whose chunk was quarantined.
pub const CHUNK_QUARANTINED: &str = "its chunk was quarantined";

/// A stored entity of a chunk.
struct Owned {
    id: EntityId,
    /// The schema generation of its row. The detached entity keeps it, because its components do not change.
    generation: u32,
    entity: Entity,
}

/// The result of quarantining damaged chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuarantinedChunks {
    /// The number of chunks that were damaged, and are absent now.
    pub chunks: u64,
    /// The number of other chunks that are there without damaged deltas: a change is lost, and its chunk is not.
    pub without_deltas: u64,
    /// Whether the box has no damaged rows left, and none that an unreadable gap hides. Then every listing of chunks
    /// finds only sound ones. `false` if clearing the damage would lose chunks outside the box.
    pub is_clear: bool,
}

/// The damage of the chunks in a box.
#[derive(Debug, Default, PartialEq, Eq)]
struct DamagedChunks {
    /// Each row once.
    rows: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
    /// Each chunk with the damaged row at which its lookup ends.
    chunks: Vec<(ChunkAt, (Space, Vec<u8>))>,
}

impl Admin<'_> {
    /// Quarantines the damaged ones of some chunks, in one commit or, if that would be too large, in several. Returns
    /// the number of chunks that are absent now, and of others that lost deltas.
    fn quarantine_damaged(&self, places: &[ChunkAt]) -> Result<[u64; 2], Error> {
        match self.quarantine_batch(places) {
            Err(Error::TooLarge { .. }) if places.len() > 1 => {
                let (one, other) = places.split_at(places.len() / 2);
                let [one, other] = [self.quarantine_damaged(one)?, self.quarantine_damaged(other)?];
                Ok([one[0] + other[0], one[1] + other[1]])
            }
            done => done,
        }
    }

    fn quarantine_batch(&self, places: &[ChunkAt]) -> Result<[u64; 2], Error> {
        let mut without_deltas = BTreeSet::new();
        loop {
            // The order matters: changes that are accepted while the queue is written are detected as newer than what
            // is read.
            let begun = self.commit.log.begin();
            self.commit.drain()?;
            let found = self.damaged_chunks(places)?;
            let mut of_deltas = found.chunks.iter().filter(|(_, (space, _))| *space == Space::ChunkDelta);
            if let Some((at, row)) = of_deltas.next() {
                let damaged = self.damaged_row(row.0, &row.1)?;
                let committing = self.commit.commit_alone()?;
                if self.damaged_chunk(*at)?.as_ref() == Some(row) {
                    self.quarantine_delta(committing, *at, &damaged)?;
                    without_deltas.insert(*at);
                }
                continue;
            }
            let chunks: BTreeSet<_> = found.chunks.iter().map(|(at, _)| *at).collect();
            if chunks.is_empty() {
                return Ok([0, without_deltas.len() as u64]);
            }
            let mut owned = self.entities_of(&chunks)?;
            let mut batch = detach(&owned);

            let committing = self.commit.commit_alone()?;
            // A change of a chunk's entities writes the chunk too.
            let mut written: Vec<_> = chunks.iter().map(|at| ConflictKey::Chunk(*at)).collect();
            let again: Vec<_> = chunks.iter().copied().collect();
            if committing.written_since(begun.at, &written).is_some() || self.damaged_chunks(&again)? != found
            {
                continue;
            }
            let entities: Vec<_> = owned.iter().map(|owned| ConflictKey::Entity(owned.id)).collect();
            if committing.written_since(begun.at, &entities).is_some() {
                owned = self.read_again(&chunks, &owned)?;
                batch = detach(&owned);
            }
            written.extend(entities);
            for ((space, key), bytes) in found.rows {
                self.put_copy(&mut batch, &Damaged { space, key, bytes }, &committing)?;
            }
            let generation = self.shared.registry.catalog().current_generation();
            for at in &chunks {
                batch.put(Space::ChunkL0, key::chunk(*at), Draft::tombstone(generation), Stamp::Commit);
                self.read.deltas.delete_rows(&mut batch, *at);
                if self.shared.map.gets_patches() {
                    batch.put(
                        Space::OpacityPatch,
                        key::opacity_patch(*at),
                        opacity::nothing(),
                        Stamp::Commit,
                    );
                }
            }
            put_change_marks(&mut batch, chunks.iter().copied());
            let what = || match again.as_slice() {
                [at] => format!("setting {at} and its {} entities aside", owned.len()),
                all => format!("setting {} chunks and their {} entities aside", all.len(), owned.len()),
            };
            let announced = self.read.cache.announce(chunks.iter().copied());
            self.commit_quarantine(committing, batch, what, written, |seq| {
                for at in &chunks {
                    self.read.deltas.forget_up_to(*at, seq);
                    announced.publish(*at, Lookup::Tombstone);
                    if self.shared.map.gets_patches() {
                        self.maintain.activity.dirty_tiles.lock().add([(key::opacity_tile(*at), 1)]);
                    }
                }
            })?;
            return Ok([chunks.len() as u64, without_deltas.difference(&chunks).count() as u64]);
        }
    }

    /// The damaged ones of some chunks, and the bytes of the damaged rows.
    fn damaged_chunks(&self, places: &[ChunkAt]) -> Result<DamagedChunks, Error> {
        let read = self.read_stored(places)?;
        let suspects = places.iter().zip(read).filter_map(|(at, read)| read.is_err().then_some(*at));
        let mut found = DamagedChunks::default();
        for at in suspects {
            let Some(row) = self.damaged_chunk(at)? else { continue };
            if !found.rows.contains_key(&row) {
                let Damaged { space, key, bytes } = self.damaged_row(row.0, &row.1)?;
                found.rows.insert((space, key), bytes);
            }
            found.chunks.push((at, row));
        }
        Ok(found)
    }

    /// The damaged row at which the lookup of a chunk ends; `None` if the lookup succeeds.
    pub(super) fn damaged_chunk(&self, at: ChunkAt) -> Result<Option<(Space, Vec<u8>)>, Error> {
        if self.read.pending.chunk(at).is_some() {
            return Ok(None);
        }
        match self.read_stored(&[at])?.pop() {
            None | Some(Ok(_)) => Ok(None),
            Some(Err(Error::Corrupt(damage))) => Ok(Some((damage.space, damage.key))),
            // The changes since the chunk's row was written are unknown, so the row is quarantined too.
            Some(Err(Error::Engine(EngineError::Corrupt { place, .. })))
                if place.family() == Some(Family::ChunkDelta) =>
            {
                self.row_of_chunk(at).map(Some)
            }
            Some(Err(error)) => Err(error),
        }
    }

    /// Reads chunks from the engine. Memory contains no damage, so neither the cache nor cached deltas are used.
    fn read_stored(&self, places: &[ChunkAt]) -> Result<Vec<Result<Lookup<()>, Error>>, Error> {
        let stored = || {
            let mut deltas = self.read.deltas.list(places);
            for deltas in deltas.values_mut() {
                *deltas = Deltas::Stored;
            }
            deltas
        };
        self.read.with_reader(stored, |reader| reader.chunks(places, |_, _| Ok(())))
    }

    /// The row at which the lookup of a chunk would end if it had no deltas.
    fn row_of_chunk(&self, at: ChunkAt) -> Result<(Space, Vec<u8>), Error> {
        let engine = self.shared.engine()?;
        for tier in Tier::ALL {
            let (space, row) = row_of(at, tier);
            if !matches!(engine.get(space, &row), Ok(None)) {
                return Ok((space, row.to_vec()));
            }
        }
        Ok((Space::ChunkL0, key::chunk(at).to_vec()))
    }

    /// Copies a damaged delta into quarantine and deletes it. The chunk keeps its row and its other deltas.
    fn quarantine_delta(
        &self,
        committing: Committing<'_>,
        at: ChunkAt,
        damaged: &Damaged,
    ) -> Result<(), Error> {
        let mut batch = Batch::new();
        self.put_copy(&mut batch, damaged, &committing)?;
        batch.delete(Space::ChunkDelta, &damaged.key);
        put_change_marks(&mut batch, [at].into_iter());
        let what = || format!("setting a delta of {at} aside");
        let announced = self.read.cache.announce([at]);
        self.commit_quarantine(committing, batch, what, vec![ConflictKey::Chunk(at)], |_| {
            if let Ok((_, seq)) = key::decode_delta(&damaged.key) {
                self.read.deltas.forget(at, seq);
            }
            // The cached chunk may still contain the delta.
            announced.forget(at);
        })
    }

    /// The entities that one of some chunks owns. Reads every entity of the world.
    fn entities_of(&self, chunks: &BTreeSet<ChunkAt>) -> Result<Vec<Owned>, Error> {
        let mut found = Vec::new();
        self.shared.engine()?.scan(Family::Entity, ALL_KEYS, |row_key, row| {
            // The owner of a damaged entity is unknown; verification reports it.
            found.extend(key::decode_entity(row_key).ok().and_then(|id| owned_by(chunks, id, row)));
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// The current state of those entities that one of the chunks still owns.
    fn read_again(&self, chunks: &BTreeSet<ChunkAt>, known: &[Owned]) -> Result<Vec<Owned>, Error> {
        let mut found = Vec::new();
        let engine = self.shared.engine()?;
        for Owned { id, .. } in known {
            let row = engine.get(Space::Entity, &key::entity(*id))?;
            found.extend(row.and_then(|row| owned_by(chunks, *id, &row)));
        }
        Ok(found)
    }
}

/// A stored entity, if it is sound and one of the chunks owns it.
fn owned_by(chunks: &BTreeSet<ChunkAt>, id: EntityId, row: &[u8]) -> Option<Owned> {
    let key = key::entity(id);
    let frame = FrameView::open(Space::Entity, &key, row).ok()?;
    let entity = Entity::decode(frame.payload()).ok()?;
    let generation = frame.header().schema_generation;
    let is_theirs = matches!(entity.owner, Owner::Chunk(at) if chunks.contains(&at));
    is_theirs.then_some(Owned { id, generation, entity })
}

/// The rows of the entities after they are detached.
fn detach(owned: &[Owned]) -> Batch {
    let mut batch = Batch::new();
    for Owned { id, generation, entity } in owned {
        let detached = entity.clone().owned_by(Owner::Detached(reason(CHUNK_QUARANTINED)));
        let draft = Draft::plain(Codec::None, *generation, |out| detached.encode(out));
        batch.put(Space::Entity, key::entity(*id), draft, Stamp::Commit);
    }
    batch
}

impl Admin<'_> {
    /// See [`Quarantine::chunks_in`](crate::quarantine::Quarantine::chunks_in).
    pub(crate) fn quarantine_box(
        &self,
        dimension: Dimension,
        bounds: ChunkBox,
    ) -> Result<QuarantinedChunks, Error> {
        self.shared.check_open()?;
        let mut done = QuarantinedChunks::default();
        for cube in clusters_of(bounds, ClusterTier::L2) {
            let inside =
                ChunkBox::new(cube.min_chunk(), cube.max_chunk()).iter().filter(|pos| bounds.contains(*pos));
            let places: Vec<_> = inside.map(|pos| ChunkAt { dimension, pos }).collect();
            let [chunks, without_deltas] = self.quarantine_damaged(&places)?;
            done.chunks += chunks;
            done.without_deltas += without_deltas;
        }
        done.is_clear = self.maintain.maintenance.work(|work| {
            work.damage_log.forget_gaps();
            self.clear(dimension, bounds)
        })?;
        Ok(done)
    }
}
