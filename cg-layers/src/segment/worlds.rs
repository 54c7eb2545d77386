//! The worlds of a segmented world that no process has open, one after the other.

use std::path::Path;

use cg_store::{Error, World, WorldOptions};

use super::archive::there;
use super::checks::{check_is_segment, check_names};
use super::disk::OnDisk;
use super::error::SegmentError;
use super::history;
use super::home::SegmentHome as _;
use super::pos::SegmentPos;

impl OnDisk {
    /// Shows the root of a segmented world that no process has open, with no place, and then each of its segments, in
    /// ascending order. Changes nothing. Has one segment open at a time beside the root.
    ///
    /// `show` gets a segment that cannot be read, or is none of this root, as its error. A segment has the names that it got
    /// when it was last opened for writing, and the root may have more. Where a process died while it moved an entity or a record,
    /// two worlds may have it.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`], [`SegmentError::DamagedRoot`], the errors of opening the root for reading, and those of
    /// `show`, which end the walk.
    pub fn for_each_world<X: From<Error>>(
        dir: impl AsRef<Path>,
        options: &WorldOptions,
        mut show: impl FnMut(Option<SegmentPos>, Result<&World, Error>) -> Result<(), X>,
    ) -> Result<(), X> {
        let home = Self::new(dir.as_ref());
        let (root, _) = home.read_root(options)?;
        show(None, Ok(&root))?;
        for segment in there(&root)? {
            match home.read_segment(&root, segment, options) {
                Ok(world) => show(Some(segment), Ok(&world))?,
                Err(error) => show(Some(segment), Err(error))?,
            }
        }
        Ok(())
    }

    /// Opens a segment for reading as the segmented world would open it.
    ///
    /// # Errors
    /// [`SegmentError`] if it is missing or none of this root; the errors of opening it.
    pub(super) fn read_segment(
        &self,
        root: &World,
        segment: SegmentPos,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let path = self.path(segment);
        if !self.has(segment)? {
            return Err(SegmentError::Lost { segment, at: path.into() }.into());
        }
        let world = World::builder().options(options).open_read_only(&path)?;
        check_names(segment, &world.catalog(), &root.catalog())?;
        check_is_segment(root, &world, segment)?;
        history::check(root, &world, segment)?;
        Ok(world)
    }
}
