//! Properties of an overlay: what it set itself, and the base's beside it.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::{self, Family};
use cg_format::overlay::{Origin, OverlayRow};
use cg_format::wire::Reader;
use cg_format::{DecodeError, Lookup, Problem, Section, Space};
use cg_registry::Name;
use cg_store::engine::{Batch, Readable as _, ReadableExt as _, Stamp};
use cg_store::error::Damage;
use cg_store::layer::Base;
use cg_store::{Error, Property};

use super::rows::Row;
use super::store::Store;
use super::values::whole;
use super::{Overlay, Shown};

impl<S: Base> Overlay<S> {
    /// A property as the overlay shows it, or `None` if there is none. One key read for each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.show_property(property)?.found.here().map(|(bytes, _)| bytes))
    }

    /// The named properties that begin with a text: the base's and what the overlay set. Reads their rows in each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load), at the first that is damaged.
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

    pub(super) fn show_property(&self, property: &Property) -> Result<Shown<Vec<u8>>, Error> {
        self.of_one_lease(|lease| match self.store.property(lease, property)? {
            Some(row) => Ok(self.here(row)),
            None => self.below(self.store.base.find_property(property)),
        })
    }
}

impl<S: Base> Store<S> {
    /// A property's row in a lease; `None` if it has none. One key read.
    fn property(&self, lease: u64, property: &Property) -> Result<Option<Row<Vec<u8>>>, Error> {
        let row_key = key::overlay_property(lease, property.row().1);
        let guard = self.apply_latch.lock_shared()?;
        let bytes = self.engine.get(Space::WorldProperty, &row_key)?;
        drop(guard);
        let Some(bytes) = bytes else { return Ok(None) };
        Ok(Some(decode_property(&row_key, &bytes)?.1))
    }

    /// Shows the named properties of a lease that begin with a text.
    fn each_named(
        &self,
        lease: u64,
        prefix: &str,
        mut show: impl FnMut(Name, Row<Vec<u8>>),
    ) -> Result<(), Error> {
        let guard = self.apply_latch.lock_shared()?;
        let view = self.engine.snapshot()?;
        drop(guard);
        let from = key::overlay_property(lease, prefix.as_bytes());
        let range = (Bound::Included(from.as_slice()), Bound::Unbounded);
        let failed = view.scan(Family::WorldProperties, range, |row_key, bytes| {
            if !row_key.starts_with(&from) {
                return ControlFlow::Break(None);
            }
            match decode_property(row_key, bytes) {
                Ok((Property::Named(name), row)) => show(name, row),
                Ok(_) => {}
                Err(error) => return ControlFlow::Break(Some(error)),
            }
            ControlFlow::Continue(())
        })?;
        failed.flatten().map_or(Ok(()), Err)
    }
}

/// A property that a lease set, and its row.
pub(super) fn decode_property(row_key: &[u8], bytes: &[u8]) -> Result<(Property, Row<Vec<u8>>), Error> {
    let read = || -> Result<_, DecodeError> {
        let (_, key) = key::decode_overlay_property(row_key)?;
        let found = key.len() as u64;
        let (field, allowed) = ("property key length", "that of the name of a property");
        let no_name = || Reader::new(key, Section::Key).error(Problem::OutOfRange { field, found, allowed });
        let property = Property::of_key(key).ok_or_else(no_name)?;
        let frame = FrameView::open(Space::WorldProperty, row_key, bytes)?;
        let row = OverlayRow::decode(frame.payload())?;
        let value = whole(row)?.map_or(Lookup::Tombstone, |value| Lookup::Found(value.to_vec()));
        Ok((property, Row { value, version: frame.header().version, origin: row.origin }))
    };
    read().map_err(|problem| {
        Damage::of_row(Space::WorldProperty, row_key, "a property of the overlay", problem)
    })
}

/// Adds a property's row to a batch.
pub(super) fn put_property(
    batch: &mut Batch,
    lease: u64,
    property: &Property,
    bytes: Option<&[u8]>,
    origin: Origin,
) {
    let value = bytes.map(|bytes| move |out: &mut Vec<u8>| out.extend(bytes));
    let draft = Draft::plain(Codec::None, 0, |out| OverlayRow::encode(origin, value, out));
    batch.put(Space::WorldProperty, key::overlay_property(lease, property.row().1), draft, Stamp::Commit);
}
