//! The rows of a lease over the base's present values.

use cg_format::Lookup;
use cg_format::overlay::Origin;
use cg_store::Error;
use cg_store::layer::{Base, Found, origin_of};

use super::choice::OverlayChoice;
use super::difference::Change;
use super::merge_kind::MergeKind;
use crate::store::{LeaseView, Row, Store};

impl<S: Base> LeaseView<'_, S> {
    /// A row over the base's present value: if both have changed it and their changes fit together, the row with both.
    pub(crate) fn onto_base<K: MergeKind>(
        &self,
        key: &K::Key,
        mut row: Row<K::Value>,
        below: &Found<K::Value>,
    ) -> Result<Row<K::Value>, Error> {
        let found = origin_of(below);
        row.origin = self.store.present_origin::<K>(self.lease, &row, below)?;
        if row.origin != found
            && let Some(merged) = K::merged(self.store, self.lease, key, &row, below, OverlayChoice::Ask)?
        {
            (row.value, row.origin) = (Lookup::Found(merged), found);
        }
        Ok(row)
    }

    /// Visits the values that differ from the base's. The caller holds the right to write.
    pub(crate) fn for_each_change<K: MergeKind>(
        &self,
        mut visit: impl FnMut(Change<K>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.for_each::<K>(|key, row| {
            let below = K::find(&self.store.base, &key)?;
            let row = self.onto_base::<K>(&key, row, &below)?;
            K::compare(key, row, below).map_or(Ok(()), &mut visit)
        })
    }
}

impl<S: Base> Store<S> {
    /// The origin that a row writes over. It is the base's present one if a merge has written the row's value to the
    /// base and then ended early.
    pub(crate) fn present_origin<K: MergeKind>(
        &self,
        lease: u64,
        row: &Row<K::Value>,
        below: &Found<K::Value>,
    ) -> Result<Origin, Error> {
        let found = origin_of(below);
        if found == row.origin {
            return Ok(found);
        }
        Ok(if K::is_merged(self, lease, row, below)? { found } else { row.origin })
    }
}
