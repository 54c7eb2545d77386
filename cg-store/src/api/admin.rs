//! Verification, hashes, and quarantine of damage, so that it blocks nothing else.

use cg_format::{ChunkAt, ChunkBox, Dimension, EntityId, RecordId, Space};

use crate::admin::hash::ContentHash;
use crate::admin::quarantine::{Quarantined, QuarantinedChunks};
use crate::admin::verify::{VerifyDepth, VerifyReport};
use crate::api::world::World;
use crate::engine::CommitSeq;
use crate::read::chunk::Area;
use crate::storage::error::Error;

/// The quarantined rows of a world, and the calls that quarantine damage.
#[derive(Debug, Clone, Copy)]
pub struct Quarantine<'w> {
    world: &'w World,
}

impl World {
    /// The quarantine, to which damaged rows are moved so that they block nothing else.
    pub fn quarantine(&self) -> Quarantine<'_> {
        Quarantine { world: self }
    }
}

impl Quarantine<'_> {
    /// Quarantines a damaged chunk: its row is kept in quarantine, and the chunk is absent from then on. Where a delta of it alone
    /// is damaged, the chunk is there without it.
    ///
    /// As [`chunks_in`](Self::chunks_in) with this chunk. Returns `Ok(false)` if it is not damaged; nothing was written
    /// then.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the row and the chunk's entities are too large for one batch. Nothing was written then,
    /// and [`raise_limits`](World::raise_limits) helps. Otherwise the errors of the engine.
    pub fn chunk(&self, at: ChunkAt) -> Result<bool, Error> {
        let done = self.chunks_in(at.dimension, ChunkBox::new(at.pos, at.pos))?;
        Ok(done.chunks + done.without_deltas > 0)
    }

    /// Quarantines the damaged chunks of a box: their rows are kept in quarantine, and the chunks are absent from then
    /// on. Where a delta alone is damaged, the chunk is there without it. Then their places are cleared. A cluster is rewritten without its damaged groups. Readable rows around a
    /// damaged block of a file are rewritten, so that they can be listed again.
    ///
    /// Their entities are kept, detached with the reason [`CHUNK_QUARANTINED`](crate::quarantine::CHUNK_QUARANTINED). Finding them
    /// reads every entity of the world, once for each 16³ cube of chunks with damage. The chunks of such a cube are
    /// quarantined in one commit, if it is not too large, and synced. Costs up to three key reads for each chunk
    /// position of the box, stored or not. Other commits continue meanwhile.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if a row and its chunk's entities are too large for one batch;
    /// [`raise_limits`](World::raise_limits) helps. Otherwise the errors of the engine. Chunks that were quarantined
    /// before the error stay quarantined.
    pub fn chunks_in(&self, dimension: Dimension, bounds: ChunkBox) -> Result<QuarantinedChunks, Error> {
        self.world.applied()?.admin().quarantine_box(dimension, bounds)
    }

    /// Quarantines a damaged entity: its row is kept in quarantine, and the entity is absent from then on.
    ///
    /// Its owner cannot be read, so every stored chunk is searched for the reference, while other commits continue. The
    /// reference is dropped in the same commit, which is synced. The chunk does not change otherwise. A chunk that is
    /// itself damaged keeps its reference.
    ///
    /// Returns `Ok(false)` if the entity is not damaged or absent; nothing was written then.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it is too large for one batch. Nothing was written then, and
    /// [`raise_limits`](World::raise_limits) helps. Otherwise the errors of the engine.
    pub fn entity(&self, id: EntityId) -> Result<bool, Error> {
        self.world.applied()?.admin().quarantine_entity(id)
    }

    /// Quarantines a damaged object: its row is kept in quarantine, and the object is absent from then on.
    ///
    /// Its version is lost. If it is written again, it counts from 0. So caches with a copy must drop it, or its
    /// version must be set with [`put_object_at_version`](crate::Transaction::put_object_at_version). One commit, which
    /// is synced. Returns `Ok(false)` if the object is not damaged or absent; nothing was written then.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have. [`Error::TooLarge`] if it is too large for one
    /// transaction. Nothing was written then, and [`raise_limits`](World::raise_limits) helps. Otherwise the errors of
    /// the engine.
    pub fn object(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.world.applied()?.admin().quarantine_object(key)
    }

    /// Quarantines a damaged record: its rows are kept in quarantine, and the record is absent from then on. A sound
    /// record is instead repaired if its place is damaged, missing or names another leaf. Of a record in several
    /// leaves, the row that was written last stays.
    ///
    /// Reads every record of the world, while other commits continue. Everything is one commit, which is synced.
    /// Returns `Ok(false)` if the record is sound or absent; nothing was written then.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it is too large for one transaction. Nothing was written then, and
    /// [`raise_limits`](World::raise_limits) helps. Otherwise the errors of the engine.
    pub fn record(&self, id: RecordId) -> Result<bool, Error> {
        self.world.applied()?.admin().quarantine_record(id)
    }

    /// The quarantined rows, in the order of their kinds and keys; copies of one row from the oldest.
    ///
    /// # Errors
    /// If a quarantined row is itself damaged, or the engine fails.
    pub fn list(&self) -> Result<Vec<Quarantined>, Error> {
        self.world.applied()?.admin().quarantined()
    }

    /// Deletes one copy of a quarantined row permanently: the one that a commit quarantined. Returns `Ok(false)` if
    /// there is none; nothing was written then. A damaged copy is deleted like any other.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn delete(&self, space: Space, row: &[u8], commit: CommitSeq) -> Result<bool, Error> {
        self.world.applied()?.admin().delete_quarantined(space, row, commit.get())
    }
}

impl World {
    /// The hash of everything, or of an area. Reads and decodes what it is of.
    ///
    /// Of [`Area::World`] it is that of all chunks with their side data, entities, properties, objects and spatial records. Of
    /// [`Area::Box`] it is that of the box's chunks with their side data, of the entities that they own, and of the spatial
    /// records in the box. [`Area::Blocks`] is all chunks that the area touches, and what is in them counts once. Properties,
    /// objects and entities without a chunk are in no box, so the hash of a box around everything is not that of the world.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged row, because a partial hash would be meaningless.
    pub fn content_hash(&self, area: Area<'_>) -> Result<ContentHash, Error> {
        self.applied()?.admin().content_hash(area)
    }

    /// Checks every row of the world as it is now. Reads everything. `progress` is called with the number of rows so
    /// far.
    ///
    /// A full verification also keeps a few dozen bytes in memory for each entity and for each reference to one.
    ///
    /// # Errors
    /// If the engine fails for another reason than a damaged row.
    pub fn verify(&self, depth: VerifyDepth, progress: impl FnMut(u64)) -> Result<VerifyReport, Error> {
        self.applied()?.admin().verify(depth, progress)
    }
}
