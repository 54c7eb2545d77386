//! Where the worlds of a segmented world are stored.

use std::collections::HashMap;
use std::sync::Arc;

use cg_registry::{Catalog, PackManifest};
use cg_store::error::Location;
use cg_store::layer::{Mutex, adopt_names, rank};
use cg_store::{Error, World, WorldOptions};

use super::SegmentPos;

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
        let world = known.ok_or(super::SegmentError::Missing { segment })?;
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

#[cfg(feature = "rocks")]
pub use disk::OnDisk;

#[cfg(feature = "rocks")]
mod disk {
    use cg_store::layer::{create_world, open_world};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::{fs, io};

    use cg_registry::Catalog;

    use super::SegmentHome;
    use crate::segment::SegmentPos;
    use cg_store::error::Location;
    use cg_store::{Error, OpenError, World, WorldOptions};

    /// Segments on disk. Each is a world in a directory of its own, which `cg` opens like any other.
    #[derive(Debug)]
    pub struct OnDisk {
        dir: PathBuf,
    }

    impl OnDisk {
        /// Segments are opened later, whatever the current directory of the process is then.
        pub(in crate::segment) fn new(dir: &Path) -> Self {
            // Without a current directory, opening the root fails.
            Self { dir: std::path::absolute(dir).unwrap_or_else(|_| dir.into()) }
        }

        /// The directory of the root's world.
        pub(in crate::segment) fn root_dir(&self) -> PathBuf {
            self.dir.join("root")
        }

        /// The directory of a segment's world.
        pub(in crate::segment) fn path(&self, segment: SegmentPos) -> PathBuf {
            self.dir.join("segments").join(segment.file_name())
        }
    }

    impl SegmentHome for OnDisk {
        fn location(&self, segment: SegmentPos) -> Location {
            self.path(segment).into()
        }

        fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
            let path = self.path(segment);
            let found = path.try_exists();
            found.map_err(|source| OpenError::Io { action: "find", path, source }.into())
        }

        fn create(
            &self,
            segment: SegmentPos,
            names: Arc<Catalog>,
            options: &WorldOptions,
        ) -> Result<World, Error> {
            self.remove(segment)?;
            create_world(&self.path(segment), Catalog::clone(&names), options)
        }

        fn open(
            &self,
            segment: SegmentPos,
            names: Arc<Catalog>,
            check: &dyn Fn(&Catalog) -> Result<(), Error>,
            options: &WorldOptions,
        ) -> Result<World, Error> {
            open_world(&self.path(segment), options, |catalog| {
                check(catalog)?;
                *catalog = Catalog::clone(&names);
                Ok(())
            })
        }

        fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
            let path = self.path(segment);
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(OpenError::Io { action: "remove", path, source: error }.into())
                }
                _ => Ok(()),
            }
        }
    }
}
