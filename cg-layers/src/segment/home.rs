//! Where the worlds of a segmented world are stored.

use std::collections::HashMap;
use std::sync::Arc;

use cg_registry::{Catalog, PackManifest};
use cg_store::error::Location;
use cg_store::layer::{Mutex, adopt_names, rank};
use cg_store::{Error, World, WorldOptions};

use super::error::SegmentError;
use super::pos::SegmentPos;

/// Where the worlds of a segmented world are stored: on disk or in memory.
pub trait SegmentHome: Send + Sync + 'static {
    /// The location of a segment, for messages.
    fn location(&self, segment: SegmentPos) -> Location;

    /// Whether anything is stored in the place of a segment.
    ///
    /// # Errors
    /// The errors of the disk or the network.
    fn has(&self, segment: SegmentPos) -> Result<bool, Error>;

    /// Creates a segment's world with the root's names. Replaces what an interrupted attempt left.
    ///
    /// # Errors
    /// As [`WorldBuilder::create`](cg_store::WorldBuilder::create).
    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error>;

    /// Opens a segment's world and updates its names to the root's. `check` gets the stored names before anything is
    /// written.
    ///
    /// # Errors
    /// As [`WorldBuilder::open`](cg_store::WorldBuilder::open), and the errors of `check`.
    fn open(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        check: &dyn Fn(&Catalog) -> Result<(), Error>,
        options: &WorldOptions,
    ) -> Result<World, Error>;

    /// Removes everything in the place of a segment, which is not open.
    ///
    /// # Errors
    /// The errors of the disk.
    fn remove(&self, segment: SegmentPos) -> Result<(), Error>;

    /// Closes a segment's world, which can be opened again.
    ///
    /// # Errors
    /// As [`World::close`].
    fn close(&self, world: World) -> Result<(), Error> {
        world.close()
    }
}

/// Segments in memory. A closed one stays there.
#[derive(Debug, Default)]
pub struct InMemory {
    worlds: Mutex<HashMap<SegmentPos, World>, rank::SegmentHome>,
}

impl InMemory {
    pub(super) fn root(packs: &[PackManifest], options: &WorldOptions) -> Result<World, Error> {
        World::builder().packs(packs).options(options).in_memory()
    }
}

impl SegmentHome for InMemory {
    fn location(&self, segment: SegmentPos) -> Location {
        Location::Address(format!("{} in memory", segment.file_name()))
    }

    fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
        Ok(self.worlds.lock().contains_key(&segment))
    }

    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let world = World::builder().options(options).in_memory()?;
        adopt_names(&world, &names)?;
        self.worlds.lock().insert(segment, world.clone());
        Ok(world)
    }

    fn open(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        check: &dyn Fn(&Catalog) -> Result<(), Error>,
        _: &WorldOptions,
    ) -> Result<World, Error> {
        let known = self.worlds.lock().get(&segment).cloned();
        let world = known.ok_or(SegmentError::Missing { segment })?;
        check(&world.catalog())?;
        adopt_names(&world, &names)?;
        Ok(world)
    }

    fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
        self.worlds.lock().remove(&segment);
        Ok(())
    }

    fn close(&self, _: World) -> Result<(), Error> {
        Ok(())
    }
}
