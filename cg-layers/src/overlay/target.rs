//! The targets of a merge.

use std::sync::Arc;

use cg_registry::{Catalog, Registration};
use cg_store::Error;
use cg_store::layer::Base;

use super::OverlayMerge;

/// A layer that an overlay can be merged into.
pub trait MergeTarget: Base {
    /// Issues ids for names, as [`WorldRegistry::register`](cg_store::WorldRegistry::register) does. They survive a
    /// power cut when it returns, because the overlay drops them from its own.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register).
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error>;

    /// Applies a merge, if the target's values are still those that it writes over. Returns how many changes were
    /// applied. They survive a power cut when it returns.
    ///
    /// Costs one transaction. A segmented world takes one for each segment, and reports each merged part.
    ///
    /// # Errors
    /// [`OverlayError::BaseChanged`](crate::OverlayError::BaseChanged), and the errors of a transaction. Nothing was
    /// written. [`MergedInPart`](crate::MergedInPart) if only some segments were merged.
    fn apply(&self, merge: OverlayMerge, merged: &mut Merged<'_>) -> Result<u64, Error>;
}

/// Called with each part of a merge after it is durable. Deletes the part's rows in the overlay.
pub type Merged<'m> = dyn FnMut(&OverlayMerge) -> Result<(), Error> + 'm;
