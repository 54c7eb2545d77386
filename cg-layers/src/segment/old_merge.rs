//! Merges of earlier versions.
//!
//! Earlier versions staged the whole merge of an overlay in properties of the root, `:promotion/S.P`, and committed it
//! with the property `:promotion`. Then they wrote it to the segments. A root with `:promotion` is refused: some
//! segments may be merged and others not. The pieces alone mean nothing.

use std::ops::ControlFlow;

use cg_store::{Durability, Error, Property};

use super::error::SegmentError;
use super::root::Root;
use super::rows::{OLD_MERGE_PREFIX, old_merge_property};

/// At most this many pieces are deleted in one commit.
const DELETED_AT_ONCE: usize = 1024;

impl Root {
    /// Deletes the pieces of a merge that was never committed.
    ///
    /// # Errors
    /// [`SegmentError::UnfinishedMerge`] if one was committed and is not finished.
    pub(super) fn refuse_old_merge(&self) -> Result<(), Error> {
        let root = self.world();
        if root.property(&old_merge_property()?)?.is_some() {
            return Err(SegmentError::UnfinishedMerge.into());
        }
        let mut pieces = Vec::new();
        root.read_view(|view| {
            view.for_each_property(OLD_MERGE_PREFIX, |met| {
                pieces.extend(match &met {
                    Ok((name, _)) => Property::of_key(name.as_bytes()),
                    Err(Error::Corrupt(damage)) => Property::of_key(&damage.key),
                    Err(_) => None,
                });
                ControlFlow::<()>::Continue(())
            })
        })?;
        for some in pieces.chunks(DELETED_AT_ONCE) {
            self.set(Durability::Process, some.iter().map(|piece| (piece.clone(), None)))?;
        }
        Ok(())
    }
}
