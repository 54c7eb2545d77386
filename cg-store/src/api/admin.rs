//! Verification, counts, hashes and quarantine.

use cg_format::{ChunkBox, Dimension};

use crate::admin::census::Census;
use crate::admin::hash::ContentHash;
use crate::admin::verify::{VerifyDepth, VerifyReport};
use crate::api::world::World;
use crate::storage::error::Error;

impl World {
    /// Counts everything as it is now. Reads every row once except those of the opacity map, and decodes no chunk.
    ///
    /// # Errors
    /// If the engine fails for another reason than a damaged row.
    pub fn census(&self) -> Result<Census, Error> {
        self.applied()?.admin().census()
    }

    /// The hash of everything: chunks with their side data, entities, properties, objects and spatial records. Reads
    /// and decodes the whole world.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged row, because a partial hash would be meaningless.
    pub fn content_hash(&self) -> Result<ContentHash, Error> {
        self.applied()?.admin().content_hash()
    }

    /// The hash of the chunks of a box with their side data, of the entities that they own, and of the spatial records
    /// in the box.
    ///
    /// Properties, objects and entities without a chunk are not in any box. So the hash of a box around everything is
    /// not that of the world. Reads and decodes the chunks of the box, and one row for each of their entities.
    ///
    /// # Errors
    /// As [`content_hash`](Self::content_hash).
    pub fn content_hash_of(&self, dimension: Dimension, area: ChunkBox) -> Result<ContentHash, Error> {
        self.applied()?.admin().content_hash_of(dimension, area)
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
