//! Lists how an overlay differs from its base.

use cg_store::layer::{Base, kind};
use cg_store::{Error, each_kind};

use super::handle::Overlay;
use crate::merge::OverlayDiff;

impl<S: Base> Overlay<S> {
    /// Lists the values that differ between the overlay and its base. A written value that is equal again is not
    /// listed.
    ///
    /// Costs a scan of the overlay's rows, and one load from the base for each. Waits for a running transaction; the
    /// next one waits for this.
    ///
    /// # Errors
    /// [`Error::Nested`]; [`Error::Corrupt`] if a value is damaged in either.
    pub fn diff(&self) -> Result<OverlayDiff, Error> {
        let _alone = self.write()?;
        let mut diff = OverlayDiff::default();
        self.store().in_view(self.lease(), |rows| {
            each_kind!(mut diff, |list: K| {
                rows.for_each_change::<K>(|change| {
                    list.extend(change.told());
                    Ok(())
                })?;
            });
            Ok(diff)
        })
    }
}
