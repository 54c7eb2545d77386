//! The worlds of a segmented world that no process has open, one after the other.

use std::path::Path;

use cg_store::{Error, World, WorldOptions};

use super::closed::ClosedWorld;
use super::disk::OnDisk;
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
    /// [`SegmentError::NotSegmented`](crate::SegmentError::NotSegmented),
    /// [`SegmentError::DamagedRoot`](crate::SegmentError::DamagedRoot), the errors of opening the root for reading, and those of
    /// `show`, which end the walk.
    pub fn for_each_world<X: From<Error>>(
        dir: impl AsRef<Path>,
        options: &WorldOptions,
        mut show: impl FnMut(Option<SegmentPos>, Result<&World, Error>) -> Result<(), X>,
    ) -> Result<(), X> {
        let closed = ClosedWorld::open(dir.as_ref(), options)?;
        show(None, Ok(closed.root()))?;
        for segment in closed.segments() {
            match closed.segment(segment) {
                Ok(world) => show(Some(segment), Ok(&world))?,
                Err(error) => show(Some(segment), Err(error))?,
            }
        }
        Ok(())
    }
}
