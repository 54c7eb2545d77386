//! The rows that earlier versions left in the root during a merge into several segments.
//!
//! They staged the whole merge in properties of the root, `:promotion/S.P`, and committed it with the property
//! `:promotion`. Then they wrote it to the segments. A root with `:promotion` is refused: some segments may be merged
//! and others not. The pieces alone mean nothing.

use std::ops::ControlFlow;

use cg_store::{Durability, Error, Property};

use super::place::{OLD_MERGE_PREFIX, old_merge_property};
use super::{SegmentError, SegmentHome, SegmentedWorld};

/// At most this many pieces are deleted in one commit.
const DELETED_AT_ONCE: usize = 1024;

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Deletes the pieces of a merge that was never committed.
    ///
    /// # Errors
    /// [`SegmentError::UnfinishedMerge`] if one was committed and is not finished.
    pub(super) fn refuse_old_merge(&self) -> Result<(), Error> {
        let root = self.root();
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
            root.transaction_at(Durability::Process, |tx| {
                for piece in some {
                    tx.set_property(piece.clone(), None);
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }
}
