//! A copy of a segmented world that is in use.

use std::path::Path;
use std::{fs, io};

use cg_store::layer::{claim, sync_parent};
use cg_store::{CheckpointFiles, Error, OpenError, World, WorldOptions};

use super::disk::OnDisk;
use super::root::read_known;
use super::rows::SegmentState;
use super::world::SegmentedWorld;

/// The root's directory in a copy that is not finished: without `root`, the copy is no segmented world.
const UNFINISHED: &str = "root.unfinished";

impl SegmentedWorld<OnDisk> {
    /// Copies the world into a new directory, by hard links where the file system allows: each segment and the root, as
    /// [`World::checkpoint`](cg_store::World::checkpoint) copies a world. The copy opens like any segmented world.
    ///
    /// Several databases have no common moment. What the copy has is this:
    ///
    /// - Names, what is in the root, and the list of segments are of the moment at which the call began.
    /// - Each entity, property, object and record is in one segment or in none, no entity is in transit, and the root's places
    ///   are those of the copy. Calls that put these or transfer entities, register names or delete a segment wait until the
    ///   call ends.
    /// - Each segment is of one moment within the call, with all that was committed or submitted before the call began. So a
    ///   transaction is there whole or not at all. Chunks may be written meanwhile; of two commits in two segments during the
    ///   call, the copy may have the later one only.
    ///
    /// Opens every stored segment, one after the other. Costs a flush and the links or copies of the files of each. A copy
    /// that fails is removed; one that a crash interrupts is no segmented world.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`] if the directory exists and is not empty; why a segment cannot be opened; the errors of
    /// `World::checkpoint`. [`Error::Nested`] inside a closure of [`transaction`](Self::transaction) or
    /// [`Segments::with`](crate::Segments::with).
    pub fn checkpoint(&self, dir: impl AsRef<Path>, files: CheckpointFiles) -> Result<(), Error> {
        let (parts, dir) = (&*self.parts, dir.as_ref());
        parts.open.refuse_inside()?;
        parts.submissions.apply_all()?;
        let _alone = parts.borders.moving().lock();
        parts.transfers.resolve()?;
        let _no_new_names = parts.root.hold_names();
        let _no_entity_is_put = parts.borders.close();
        claim(dir)?;
        self.fill(dir, files).inspect_err(|_| {
            for part in [UNFINISHED, "segments"] {
                if let Err(error) = fs::remove_dir_all(dir.join(part))
                    && error.kind() != io::ErrorKind::NotFound
                {
                    tracing::warn!(%error, dir = %dir.display(), "a copy that failed is not removed");
                }
            }
        })
    }

    fn fill(&self, dir: &Path, files: CheckpointFiles) -> Result<(), Error> {
        let (parts, copy) = (&*self.parts, OnDisk::new(dir));
        let unfinished = dir.join(UNFINISHED);
        // First: a segment that is created meanwhile is not in its list. None is deleted meanwhile.
        self.root().checkpoint(&unfinished, files)?;
        let options =
            WorldOptions { resources: cg_store::layer::resources(self.root()), ..WorldOptions::default() };
        let known = read_known(&World::builder().options(&options).open_read_only(&unfinished)?)?;
        for (segment, state) in known {
            if state == SegmentState::There {
                parts.open.with_there(segment, |world| world.checkpoint(copy.path(segment), files))?;
            }
        }
        let root = copy.root_dir();
        fs::rename(&unfinished, &root).map_err(|source| OpenError::Io {
            action: "rename",
            path: unfinished,
            source,
        })?;
        sync_parent(&root)?;
        Ok(sync_parent(dir)?)
    }
}
