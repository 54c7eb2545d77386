//! Properties of an overlay: its own and the base's.

use std::collections::BTreeMap;
use std::ops::Bound;

use cg_format::Lookup;
use cg_format::key::{self, Family};
use cg_registry::Name;
use cg_store::engine::ReadableExt as _;
use cg_store::layer::kind::Properties;
use cg_store::layer::{Base, behind_all};
use cg_store::{Error, Property};

use super::Overlay;
use super::kind::OverlayKind as _;
use super::rows::{Row, key_of};
use super::store::Store;

impl<S: Base> Overlay<S> {
    /// A property as the overlay reads it, or `None` if there is none. One key read for each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        self.shown::<Properties>(property)
    }

    /// The named properties with a prefix: the base's and the overlay's. Reads their rows in each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load), at the first damaged one.
    pub fn properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error> {
        self.of_one_lease(|lease| {
            let mut all = self.store.base.named_properties(prefix)?;
            self.store.each_named(lease, prefix, |name, row| match row.value {
                Lookup::Found(bytes) => drop(all.insert(name, bytes)),
                Lookup::Tombstone | Lookup::NotFound => drop(all.remove(&name)),
            })?;
            Ok(all)
        })
    }
}

impl<S: Base> Store<S> {
    /// Visits the named properties of a lease with a prefix.
    fn each_named(
        &self,
        lease: u64,
        prefix: &str,
        mut visit: impl FnMut(Name, Row<Vec<u8>>),
    ) -> Result<(), Error> {
        let from = key::overlay_property(lease, prefix.as_bytes());
        let end = behind_all(&from);
        let range =
            (Bound::Included(from.as_slice()), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        self.in_view(lease, |rows| {
            rows.view.try_scan(Family::WorldProperties, range, |row_key, row| {
                let property = key_of::<Properties>(row_key)?;
                let row = Properties::decode(rows, &property, row)?;
                if let Property::Named(name) = property {
                    visit(name, row);
                }
                Ok(())
            })
        })
    }
}
