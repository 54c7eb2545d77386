//! Setting damage aside, so that it stops nothing else.

use cg_format::{ChunkAt, ChunkBox, Dimension, EntityId, RecordId, Space};

use crate::admin::quarantine::{Quarantined, QuarantinedChunks};
use crate::api::world::World;
use crate::storage::error::Error;

/// Damaged rows that are out of the way, and the calls that put them there.
#[derive(Debug, Clone, Copy)]
pub struct Quarantine<'w> {
    world: &'w World,
}

impl World {
    /// The quarantine: where damaged rows go, so that they stop nothing else.
    pub fn quarantine(&self) -> Quarantine<'_> {
        Quarantine { world: self }
    }
}

impl Quarantine<'_> {
    /// Sets a damaged chunk aside: its row is kept in quarantine, and the chunk is absent from then on.
    ///
    /// As [`chunks_in`](Self::chunks_in) of that chunk. `Ok(false)` if it is not damaged; nothing was written then.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the row and the chunk's entities are too much for one batch; nothing was written,
    /// and [`raise_limits`](World::raise_limits) helps. Otherwise what the engine says.
    pub fn chunk(&self, at: ChunkAt) -> Result<bool, Error> {
        let done = self.chunks_in(at.dimension, ChunkBox::new(at.pos, at.pos))?;
        Ok(done.chunks > 0)
    }

    /// Sets the damaged chunks of a box aside: their rows are kept in quarantine, and they are absent from then on. Then
    /// what held them is cleared: a cluster is written without what is damaged of it, and what can be read around a damaged
    /// block of a file is written anew, so that it can be listed.
    ///
    /// Their entities are kept, detached with the reason [`CHUNK_QUARANTINED`](crate::CHUNK_QUARANTINED). Finding them reads every entity of the world,
    /// once for each 16³ cube of chunks with damage. What is quarantined of such a cube is one commit, if it fits into one,
    /// and synced. Costs up to three key reads for each chunk that the box has room for, stored or not. Other commits go on
    /// beside it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if a row and its chunk's entities are too much for one batch, and
    /// [`raise_limits`](World::raise_limits) helps. Otherwise what the engine says. What was quarantined before stays so.
    pub fn chunks_in(&self, dimension: Dimension, bounds: ChunkBox) -> Result<QuarantinedChunks, Error> {
        self.world.applied()?.admin().quarantine_box(dimension, bounds)
    }

    /// Sets a damaged entity aside: its row is kept in quarantine, and the world has no such entity from then on.
    ///
    /// Its owner cannot be read any more, so the chunk that refers to it is searched for: a walk over every stored chunk,
    /// beside which other commits go on. The reference is dropped in the same commit, which is synced; the chunk changes
    /// in nothing else. A chunk that is damaged itself keeps what it says.
    /// `Ok(false)` if the entity is not damaged or not there; nothing was written then.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it is too much for one batch; nothing was written, and
    /// [`raise_limits`](World::raise_limits) helps. Otherwise what the engine says.
    pub fn entity(&self, id: EntityId) -> Result<bool, Error> {
        self.world.applied()?.admin().quarantine_entity(id)
    }

    /// Sets a damaged object aside: its row is kept in quarantine, and the world has no such object from then on.
    ///
    /// How often it was changed went with it: written anew it counts from 0, so caches that hold a copy must drop theirs,
    /// or its version is set with [`put_object_at_version`](crate::Transaction::put_object_at_version). One commit, which
    /// is synced. `Ok(false)` if the object is not damaged or not there; nothing was written then.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have. [`Error::TooLarge`] if it is too much for one transaction;
    /// nothing was written, and [`raise_limits`](World::raise_limits) helps. Otherwise what the engine says.
    pub fn object(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.world.applied()?.admin().quarantine_object(key)
    }

    /// Sets a damaged record aside: its rows are kept in quarantine, and the world has no such record from then on. One
    /// that is sound, and whose place is damaged, lost or names another leaf, is found again instead; of one that lies in
    /// several leaves the one that was written last stays.
    ///
    /// Reads every record of the world, beside which other commits go on. All of it is one commit, which is synced.
    /// `Ok(false)` if nothing is wrong with the record, or it is not there; nothing was written then.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it is too much for one transaction; nothing was written, and
    /// [`raise_limits`](World::raise_limits) helps. Otherwise what the engine says.
    pub fn record(&self, id: RecordId) -> Result<bool, Error> {
        self.world.applied()?.admin().quarantine_record(id)
    }

    /// What lies in quarantine, in the order of the rows' kinds and keys; copies of one row from the oldest.
    ///
    /// # Errors
    /// If a quarantined row is itself damaged, or the engine fails.
    pub fn list(&self) -> Result<Vec<Quarantined>, Error> {
        self.world.applied()?.admin().quarantined()
    }

    /// Forgets one copy of a quarantined row for good: the one that a commit quarantined. `Ok(false)` if there is none;
    /// nothing was written then. A copy that is itself damaged is forgotten like any other.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn delete(&self, space: Space, row: &[u8], commit: u64) -> Result<bool, Error> {
        self.world.applied()?.admin().delete_quarantined(space, row, commit)
    }
}
