//! Visits the rows of one kind.

use std::ops::Bound;

use cg_format::key;
use cg_store::Error;
use cg_store::engine::ReadableExt as _;
use cg_store::error::Damage;
use cg_store::layer::Base;

use super::kind::OverlayKind;
use super::lease_view::LeaseView;
use super::row::Row;

impl<S: Base> LeaseView<'_, S> {
    /// Visits the rows of one kind, ascending by key, until the visitor fails.
    pub(crate) fn for_each<K: OverlayKind>(
        &self,
        mut visit: impl FnMut(K::Key, Row<K::Value>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (from, to) = (K::first_row_key(self.lease), key::lease(self.lease + 1));
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        self.view.try_scan(K::SPACE.family(), range, |row_key, row| {
            let key = key_of::<K>(row_key)?;
            let row = K::decode(self, &key, row_key, row)?;
            visit(key, row)
        })
    }
}

/// The key of a value, from that of its row.
pub(crate) fn key_of<K: OverlayKind>(row_key: &[u8]) -> Result<K::Key, Error> {
    let damaged = |problem| Damage::of_row(K::SPACE, row_key, "a row of the overlay", problem);
    K::key_of(row_key).map_err(damaged)
}
