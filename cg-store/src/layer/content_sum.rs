//! The content hash of several worlds.

use cg_registry::Catalog;

use crate::admin::hash::{ContentHash, Sum};
use crate::api::world::World;
use crate::read::chunk::Area;
use crate::storage::error::{ConflictKey, Error};

/// The content of several worlds that are one world for their host, added up.
#[derive(Debug, Default)]
pub struct ContentSum(Sum);

impl ContentSum {
    /// Adds what a world holds in an area, but for what `leave_out` says of properties and spatial records. Reads and decodes
    /// what it adds, by the names of `catalog`: the world's own, or those that it gets when it is opened for writing.
    ///
    /// # Errors
    /// As [`World::content_hash`]. The sum is then of no use.
    pub fn add(
        &mut self,
        world: &World,
        catalog: &Catalog,
        area: Area<'_>,
        leave_out: &dyn Fn(&ConflictKey) -> bool,
    ) -> Result<(), Error> {
        world.applied()?.admin().add_content(catalog, area, leave_out, &mut self.0)
    }

    /// The hash of everything that was added: that of a world which holds it all.
    pub fn hash(self) -> ContentHash {
        self.0.finish()
    }
}
