//! What an overlay can be merged into.

use std::sync::Arc;

use cg_registry::{Catalog, Registration};
use cg_store::layer::{Base, Mutex, rank};
use cg_store::{Durability, Error, World};

use super::changes::OverlayMerge;

/// A layer that an overlay can be merged into.
pub trait MergeTarget: Base {
    /// The lock that the overlay holds while it is merged, besides its own right to write; `None` if the target's
    /// transactions suffice.
    ///
    /// # Errors
    /// [`Error::Nested`] where waiting for it could wait for this thread.
    fn merge_lock(&self) -> Result<Option<&MergeLock>, Error>;

    /// Finishes what an earlier call left, before the overlay is compared with the target. The caller holds the
    /// [`merge_lock`](Self::merge_lock).
    ///
    /// # Errors
    /// The errors of the storage.
    fn begin_merge(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Issues ids for names, as [`WorldRegistry::register`](cg_store::WorldRegistry::register) does. They survive a
    /// power cut when it returns, because the overlay drops them from its own.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register).
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error>;

    /// Applies a merge, if the target's values are still those that it writes over. The caller holds the
    /// [`merge_lock`](Self::merge_lock). Returns how many changes were applied. They survive a power cut when it
    /// returns.
    ///
    /// Costs one transaction. A segmented world takes one for each segment, and reports each merged part.
    ///
    /// # Errors
    /// [`OverlayError::BaseChanged`](crate::OverlayError::BaseChanged), and the errors of a transaction. Nothing was
    /// written. [`MergedInPart`](crate::MergedInPart) if only some segments were merged.
    fn apply(&self, merge: OverlayMerge, merged: &mut Merged<'_>) -> Result<u64, Error>;
}

/// Held by merges, entity transfers and deletions of segments.
pub type MergeLock = Mutex<(), rank::SegmentMoving>;

/// Called with each part of a merge after it is durable. Deletes the part's rows in the overlay.
pub type Merged<'m> = dyn FnMut(&OverlayMerge) -> Result<(), Error> + 'm;

impl MergeTarget for World {
    fn merge_lock(&self) -> Result<Option<&MergeLock>, Error> {
        Ok(None)
    }

    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let names = self.registry().register(new)?;
        self.flush()?;
        Ok(names)
    }

    fn apply(&self, merge: OverlayMerge, _: &mut Merged<'_>) -> Result<u64, Error> {
        let committed = self.transaction_at(Durability::Safe, |tx| merge.put_into(tx, self))?;
        Ok(committed.value)
    }
}
