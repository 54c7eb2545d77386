//! Segments on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use cg_registry::Catalog;
use cg_store::error::Location;
use cg_store::layer::{create_world, open_world, sync_parent};
use cg_store::{Error, OpenError, World, WorldOptions};

use super::error::SegmentError;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::root::read_side;

/// Segments on disk. Each is a world in a directory of its own, which `cg` opens like any other.
#[derive(Debug)]
pub struct OnDisk {
    dir: PathBuf,
}

impl OnDisk {
    /// Segments are opened later, whatever the current directory of the process is then.
    pub(super) fn new(dir: &Path) -> Self {
        // Without a current directory, opening the root fails.
        Self { dir: std::path::absolute(dir).unwrap_or_else(|_| dir.into()) }
    }

    /// The directory of the root's world.
    pub(super) fn root_dir(&self) -> PathBuf {
        self.dir.join("root")
    }

    /// Opens the root for reading. Returns the side of a segment too.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`], [`SegmentError::DamagedRoot`], and the errors of opening it.
    pub(super) fn read_root(&self, options: &WorldOptions) -> Result<(World, u32), Error> {
        let not_segmented = |why| SegmentError::NotSegmented { path: self.dir.clone(), why };
        if !self.root_dir().is_dir() {
            return Err(not_segmented("it has no directory `root`").into());
        }
        let root = World::builder().options(options).open_read_only(self.root_dir())?;
        match read_side(&root)? {
            Some(side_chunks) => Ok((root, side_chunks)),
            None => Err(not_segmented("its root says nothing of segments").into()),
        }
    }

    /// The directory of a segment's world.
    pub(super) fn path(&self, segment: SegmentPos) -> PathBuf {
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
        let world = create_world(&self.path(segment), Catalog::clone(&names), options)?;
        // Another call may have made the directory, and not synced it yet.
        sync_parent(&self.dir.join("segments"))?;
        Ok(world)
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
