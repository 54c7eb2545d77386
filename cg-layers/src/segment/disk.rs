//! Segments on disk.

use std::collections::BTreeSet;
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

/// The root's directory in a world that is not finished: without `root`, it is no segmented world.
pub(super) const UNFINISHED: &str = "root.unfinished";

/// What is in the directory of segments and is none that a root knows.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// What lies in the places of segments.
    pub(super) segments: BTreeSet<SegmentPos>,
    /// The names of all else.
    pub(super) others: BTreeSet<String>,
}

impl OnDisk {
    /// Segments are opened later, whatever the current directory of the process is then.
    pub(super) fn new(dir: &Path) -> Self {
        // Without a current directory, opening the root fails.
        Self { dir: std::path::absolute(dir).unwrap_or_else(|_| dir.into()) }
    }

    /// The directory of all of it.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory of the root's world.
    pub(super) fn root_dir(&self) -> PathBuf {
        self.dir.join("root")
    }

    /// The directory of the root's world, as long as the world is not finished.
    pub(super) fn unfinished_dir(&self) -> PathBuf {
        self.dir.join(UNFINISHED)
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
        self.segments_dir().join(segment.file_name())
    }

    /// The directory of all segments.
    pub(super) fn segments_dir(&self) -> PathBuf {
        self.dir.join("segments")
    }

    /// Lists what is in the directory of segments and is none that is known. `is_known` is asked after its place was listed.
    pub(super) fn unknown(&self, is_known: impl Fn(SegmentPos) -> bool) -> Result<Unknown, Error> {
        let path = self.segments_dir();
        let io = |source| Error::from(OpenError::Io { action: "list", path: path.clone(), source });
        let mut unknown = Unknown::default();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(unknown),
            Err(error) => return Err(io(error)),
        };
        for entry in entries {
            let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
            match SegmentPos::parse(&name).filter(|segment| segment.file_name() == name) {
                Some(segment) if is_known(segment) => {}
                Some(segment) => drop(unknown.segments.insert(segment)),
                None => drop(unknown.others.insert(name)),
            }
        }
        Ok(unknown)
    }

    /// Refuses a world in the place of a segment that is not known, as [`unknown`](Self::unknown) finds it.
    ///
    /// # Errors
    /// [`SegmentError::NotKnown`].
    pub(super) fn refuse_unknown(&self, is_known: impl Fn(SegmentPos) -> bool) -> Result<(), Error> {
        let unknown = self.unknown(is_known)?.segments.pop_first();
        unknown.map_or(Ok(()), |segment| Err(self.not_known(segment).into()))
    }

    /// The error for a world in the place of a segment that its root does not know.
    pub(super) fn not_known(&self, segment: SegmentPos) -> SegmentError {
        SegmentError::NotKnown { segment, at: self.location(segment) }
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
        sync_parent(&self.segments_dir())?;
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
