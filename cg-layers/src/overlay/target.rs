//! What an overlay can be merged into.

use std::sync::Arc;

use cg_registry::{Catalog, Registration};
use cg_store::Error;
use cg_store::layer::Base;

use super::OverlayMerge;

/// A layer that an overlay can be merged into.
pub trait MergeTarget: Base {
    /// Issues ids for names, as [`WorldRegistry::register`](cg_store::WorldRegistry::register) does. They survive a power cut when it returns: the overlay forgets
    /// that they were its own.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register).
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error>;

    /// Applies a promotion, if the target still has what the promotion writes over; returns how many changes were applied.
    /// They are safe from power cuts when it returns.
    ///
    /// Costs one transaction. A segmented world takes one for each segment, and reports what each has merged.
    ///
    /// # Errors
    /// [`OverlayError::BaseChanged`](crate::OverlayError::BaseChanged), and what a transaction answers. Nothing was written.
    /// [`MergedInPart`](crate::MergedInPart) if some segments have their part.
    fn apply(&self, merge: OverlayMerge, merged: &mut Merged<'_>) -> Result<u64, Error>;
}

/// What hears of each part of a promotion when that is durable, and forgets it in the overlay.
pub type Merged<'m> = dyn FnMut(&OverlayMerge) -> Result<(), Error> + 'm;
