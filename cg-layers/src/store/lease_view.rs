//! The rows of a lease in one state of the store.

use cg_store::Error;
use cg_store::engine::Readable;

use super::state::Store;

/// The rows of a lease in a view of the store.
pub(crate) struct LeaseView<'v, S> {
    pub(crate) store: &'v Store<S>,
    pub(crate) lease: u64,
    pub(crate) view: &'v dyn Readable,
}

impl<S> Store<S> {
    /// Reads rows of a lease in one state.
    pub(crate) fn in_view<T>(
        &self,
        lease: u64,
        read: impl FnOnce(&LeaseView<'_, S>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let view = self.rows.snapshot()?;
        read(&LeaseView { store: self, lease, view: &view })
    }
}
