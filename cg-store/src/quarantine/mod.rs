//! Setting damage aside, so that one bad row never blocks a world.
//!
//! A damaged row is copied under a quarantine key as it is, and a deletion mark takes its place in the hottest tier:
//! an older copy in a colder tier must not come back to life. From then on the chunk is absent and may be generated or
//! restored from a backup. Nothing is discarded that was not copied first, and no copy is written over: its key ends
//! with the commit that made it.

use std::ops::{Bound, ControlFlow};

use cg_format::entity::{Entity, Owner};
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::Family;
use cg_format::{ChunkAt, ClusterTier, DecodeError, Space, key};

use crate::cache::Stored;
use crate::engine::{ALL_KEYS, Batch, Engine, EngineError, Level, Place, Stamp};
use crate::entity;
use crate::error::{ConflictKey, Damage, Error};
use crate::opacity;
use crate::transaction::reason;
use crate::world::{Inner, World};

/// Why an entity whose chunk was set aside is still there.
pub const CHUNK_SET_ASIDE: &str = "its chunk was set aside";

/// A damaged row that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// What it was.
    pub space: Space,
    /// Under which key it lay.
    pub key: Vec<u8>,
    /// The commit that set it aside.
    pub commit: u64,
    /// Its bytes, damage and all; empty if the engine could not read them.
    pub bytes: Vec<u8>,
}

impl Quarantined {
    /// Reads a row of the quarantine.
    fn decode(row_key: &[u8], row: &[u8]) -> Result<Self, DecodeError> {
        let (space, key, commit) = key::decode_quarantine(row_key)?;
        let frame = FrameView::open(Space::Quarantine, row_key, row)?;
        Ok(Self { space, key: key.into(), commit, bytes: frame.payload().to_vec() })
    }
}

impl<E: Engine> World<E> {
    /// Sets a damaged chunk aside: its row is kept in quarantine, and the chunk is absent from then on.
    ///
    /// Its entities are kept, detached with the reason [`CHUNK_SET_ASIDE`]. Finding them reads every entity.
    /// `Ok(false)` if the chunk is not damaged; nothing was written then.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn set_aside(&self, at: ChunkAt) -> Result<bool, Error> {
        let inner = self.inner();
        inner.check_open()?;
        let mut committing = inner.commits.commit();
        // Memory holds no damage, so the engine is asked, not the cache.
        let (space, row) = match inner.read_through(at) {
            Ok(_) => return Ok(false),
            Err(Error::Corrupt(damage)) => (damage.space, damage.key),
            Err(Error::Engine(EngineError::Corrupt { place: Place::Row { family, key }, .. })) => {
                (Space::of_row(family, &key).unwrap_or(Space::ChunkL0), key.into())
            }
            Err(error) => return Err(error),
        };
        let bytes = match inner.engine.get(space, &row) {
            Ok(bytes) => bytes.map_or_else(Vec::new, |bytes| bytes.to_vec()),
            Err(EngineError::Corrupt { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let generation = inner.registry.catalog().current_generation();
        let mut batch = Batch::new();
        let mut written = vec![ConflictKey::Chunk(at)];
        inner.put_copy(&mut batch, (space, &row), &bytes)?;
        batch.put(Space::ChunkL0, key::chunk(at), Draft::tombstone(generation), Stamp::Commit);
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            let mark = key::change_mark(at.dimension, at.pos.cluster(tier));
            batch.put(Space::ChangeMark, mark, Draft::plain(Codec::None, 0, |_| {}), Stamp::Commit);
        }
        if inner.options.opacity {
            batch.put(Space::OpacityPatch, key::opacity_patch(at), opacity::nothing(), Stamp::Commit);
        }
        for (id, entity) in inner.entities_of(at)? {
            let detached = entity.owned_by(Owner::Detached(reason(CHUNK_SET_ASIDE)));
            let draft = Draft::plain(Codec::None, generation, |out| detached.encode(out));
            batch.put(Space::Entity, key::entity(id), draft, Stamp::Commit);
            written.push(ConflictKey::Entity(id));
        }
        let seq = inner.engine.commit(batch, &[], Level::Process)?.get();
        inner.cache.publish(at, cg_format::Lookup::<Stored>::Deleted);
        committing.publish(seq, written);
        drop(committing);
        inner.engine.sync()?;
        Ok(true)
    }

    /// What lies in quarantine, in the order of the rows' kinds and keys; copies of one row from the oldest.
    ///
    /// # Errors
    /// If a quarantined row is itself damaged, or the engine fails.
    pub fn quarantined(&self) -> Result<Vec<Quarantined>, Error> {
        let mut all = Vec::new();
        let tag = Space::Quarantine.index_tag().expect("it is in the index family");
        let (from, to) = ([tag], [tag + 1]);
        let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        let failed =
            self.inner().engine.scan(Family::Index, range, |row_key, row| {
                match Quarantined::decode(row_key, row) {
                    Ok(entry) => {
                        all.push(entry);
                        ControlFlow::Continue(())
                    }
                    Err(problem) => ControlFlow::Break(Damage::of_row(
                        Space::Quarantine,
                        row_key,
                        "a quarantined row",
                        problem,
                    )),
                }
            })?;
        failed.map_or(Ok(all), Err)
    }

    /// Forgets one copy of a quarantined row for good: the one that a commit set aside. `Ok(false)` if there is none;
    /// nothing was written then. A copy that is itself damaged is forgotten like any other.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn forget_quarantined(&self, space: Space, row: &[u8], commit: u64) -> Result<bool, Error> {
        let inner = self.inner();
        inner.check_open()?;
        let copy = key::quarantine(space, row, commit);
        let mut committing = inner.commits.commit();
        match inner.engine.get(Space::Quarantine, &copy) {
            Ok(None) => return Ok(false),
            // What the engine cannot read it can delete.
            Ok(Some(_)) | Err(EngineError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let mut batch = Batch::new();
        batch.delete(Space::Quarantine, copy);
        let seq = inner.engine.commit(batch, &[], Level::Process)?.get();
        committing.publish(seq, []);
        Ok(true)
    }
}

impl<E: Engine> Inner<E> {
    /// Adds a copy of a damaged row to a batch, unless the quarantine holds the row with the same bytes: a cluster of
    /// which chunk after chunk is set aside is copied once. The caller holds the commit lock, so that the commit whose
    /// number ends the key is the one that it makes.
    fn put_copy(&self, batch: &mut Batch, (space, row): (Space, &[u8]), bytes: &[u8]) -> Result<(), Error> {
        let keys = key::quarantine_copies(space, row);
        let range = (Bound::Included(&keys.start()[..]), Bound::Included(&keys.end()[..]));
        let known = self.engine.scan(Family::Index, range, |row_key, copy| {
            // A copy that is itself damaged keeps nothing.
            let same = |known: Quarantined| known.key == row && known.bytes == bytes;
            let known = Quarantined::decode(row_key, copy).is_ok_and(same);
            if known { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if known.is_none() {
            let commit = self.engine.last_commit().next().get();
            let copy = Draft::plain(Codec::None, 0, |out| out.extend(bytes));
            batch.put(Space::Quarantine, key::quarantine(space, row, commit), copy, Stamp::Commit);
        }
        Ok(())
    }

    fn entities_of(&self, at: ChunkAt) -> Result<Vec<(cg_format::EntityId, Entity)>, Error> {
        let mut found = Vec::new();
        self.engine.scan(Family::Entity, ALL_KEYS, |key, row| {
            // A damaged entity has no owner to be told from; verification reports it.
            if let Some((id, entity)) =
                key::decode_entity(key).ok().and_then(|id| Some((id, entity::decode(id, row).ok()?)))
                && matches!(entity.owner, Owner::Chunk(owner) if owner == at)
            {
                found.push((id, entity));
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }
}
