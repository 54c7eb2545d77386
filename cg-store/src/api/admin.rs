//! Verification and hashes.

use crate::admin::hash::ContentHash;
use crate::admin::verify::{VerifyDepth, VerifyReport};
use crate::api::world::World;
use crate::read::chunk::Area;
use crate::storage::error::Error;

impl World {
    /// The hash of everything, or of a box. Reads and decodes what it is of.
    ///
    /// Of [`Area::World`] it is that of all chunks with their side data, entities, properties, objects and spatial records. Of
    /// [`Area::Box`] it is that of the box's chunks with their side data, of the entities that they own, and of the spatial
    /// records in the box. Properties, objects and entities without a chunk are in no box, so the hash of a box around
    /// everything is not that of the world.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged row, because a partial hash would be meaningless.
    pub fn content_hash(&self, area: Area) -> Result<ContentHash, Error> {
        let rooms = self.applied()?;
        match area {
            Area::World => rooms.admin().content_hash(),
            Area::Box(dimension, area) => rooms.admin().content_hash_of(dimension, area),
        }
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
