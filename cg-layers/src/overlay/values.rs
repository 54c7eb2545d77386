//! Properties, objects and records of an overlay: its own and the base's.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::key::{self, Family};
use cg_format::record::Record;
use cg_format::{Lookup, RecordId, Space};
use cg_registry::Name;
use cg_store::engine::{Readable as _, ReadableExt as _};
use cg_store::layer::kind::{Objects, Properties, Records};
use cg_store::layer::{Base, behind_all, leaf_of, range, scan_area};
use cg_store::objects::{Object, ObjectEntry, ObjectKey, ObjectPage, StoredObject};
use cg_store::records::RecordQuery;
use cg_store::{Error, Property};

use super::handle::Overlay;
use crate::store::{LeaseView, OverlayKind as _, Row, Store, key_of};

impl<S: Base> Overlay<S> {
    /// An object as the overlay reads it, or `None` if there is none. One key read for each layer.
    ///
    /// Its version continues from the base's. A merge writes the object to the base with this version, or a higher one
    /// if the base wrote and deleted the object since.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have, and as [`load`](Self::load).
    pub fn object(&self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let found = self.value_of::<Objects>(&ObjectKey::new(key)?)?;
        Ok(found.and_then(StoredObject::here))
    }

    /// At most `max_count` objects, but at least one, whose keys have a prefix, after the position at which the last
    /// page ended. The base's and the overlay's are one listing. Positions are those of
    /// [`Objects::list`](cg_store::objects::Objects::list).
    ///
    /// Reads the overlay's rows of the listed objects, and what the base's listing reads. It reads more than once if
    /// many of the base's objects are deleted here.
    ///
    /// # Errors
    /// As [`Objects::list`](cg_store::objects::Objects::list) and [`load`](Self::load).
    pub fn list_objects(
        &self,
        prefix: impl AsRef<[u8]>,
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        self.of_one_lease(|lease| self.list(lease, prefix.as_ref(), position, max_count.max(1)))
    }

    fn list(
        &self,
        lease: u64,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        let (mut entries, mut position) = (Vec::new(), position.cloned());
        // One more, to know whether there are more.
        let asked = max_count.saturating_add(1);
        loop {
            let below = self.store().base.list_objects(prefix, position.as_ref(), asked)?;
            let own = self.store().objects(lease, prefix, position.as_ref(), asked)?;
            // The key up to which both lists are complete.
            let end = [&below.next, &own.next].into_iter().flatten().min().cloned();
            let is_before = |key: &ObjectKey| end.as_ref().is_none_or(|end| key <= end);
            let is_written = |key: &ObjectKey| own.rows.binary_search_by(|(own, _)| own.cmp(key)).is_ok();
            entries.extend(
                below.entries.into_iter().filter(|entry| is_before(&entry.key) && !is_written(&entry.key)),
            );
            let live = own.rows.iter().filter(|(key, _)| is_before(key));
            entries.extend(live.filter_map(|(_, entry)| entry.clone()));
            if entries.len() > max_count || end.is_none() {
                entries.sort_by(|a: &ObjectEntry, b| a.key.cmp(&b.key));
                let is_cut = entries.len() > max_count;
                entries.truncate(max_count);
                let next = entries.last().filter(|_| is_cut).map(|entry| entry.key.clone());
                return Ok(ObjectPage { entries, next });
            }
            position = end;
        }
    }
}

/// Objects that a lease wrote, up to a key.
struct OwnObjects {
    /// Ascending; a deleted object has no entry.
    rows: Vec<(ObjectKey, Option<ObjectEntry>)>,
    /// The last key in `rows`, if there may be more.
    next: Option<ObjectKey>,
}

impl<S: Base> Store<S> {
    /// The objects of a lease whose keys have a prefix, after a key. At most `max_count` that are not deleted.
    fn objects(
        &self,
        lease: u64,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<OwnObjects, Error> {
        let leased = |key: &[u8]| key::overlay_object(lease, key);
        let (prefix, behind) = (leased(prefix), position.map(|key| leased(key.as_bytes())));
        let end = behind_all(&prefix);
        let mut own = OwnObjects { rows: Vec::new(), next: None };
        let mut live = 0;
        let range = range(&prefix, behind.as_deref(), end.as_deref());
        let failed = self.in_view(lease, |rows| {
            let visited = rows.view.scan(Family::Object, range, |row_key, row| {
                if live >= max_count {
                    own.next = own.rows.last().map(|(key, _)| key.clone());
                    return ControlFlow::Break(Ok(()));
                }
                match rows.entry(row_key, row) {
                    Ok((key, entry)) => {
                        live += usize::from(entry.is_some());
                        own.rows.push((key, entry));
                        ControlFlow::Continue(())
                    }
                    Err(error) => ControlFlow::Break(Err(error)),
                }
            });
            Ok(visited?)
        })?;
        failed.unwrap_or(Ok(())).map(|()| own)
    }
}

impl<S: Base> LeaseView<'_, S> {
    /// Decodes the object of a row; no entry if it is deleted.
    fn entry(&self, row_key: &[u8], row: &[u8]) -> Result<(ObjectKey, Option<ObjectEntry>), Error> {
        let key = key_of::<Objects>(row_key)?;
        let object = Objects::decode(self, &key, row_key, row)?.value.here();
        let entry =
            object.map(|object| ObjectEntry::of(key.as_bytes(), object.view())).transpose()?.flatten();
        Ok((key, entry))
    }
}

impl<S: Base> Overlay<S> {
    /// A property as the overlay reads it, or `None` if there is none. One key read for each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        self.value_of::<Properties>(property)
    }

    /// The named properties with a prefix: the base's and the overlay's. Reads their rows in each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load), at the first damaged one.
    pub fn properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error> {
        self.of_one_lease(|lease| {
            let mut all = self.store().base.named_properties(prefix)?;
            self.store().each_named(lease, prefix, |name, row| match row.value {
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
                let row = Properties::decode(rows, &property, row_key, row)?;
                if let Property::Named(name) = property {
                    visit(name, row);
                }
                Ok(())
            })
        })
    }
}

impl<S: Base> Overlay<S> {
    /// A spatial record as the overlay reads it, or `None` if there is none. Two key reads for each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn record(&self, id: RecordId) -> Result<Option<Record>, Error> {
        Ok(self.value_of::<Records>(&id)?.map(Arc::unwrap_or_clone))
    }

    /// The records that a query selects, in the order of the tree: the base's and the overlay's.
    ///
    /// Costs the base's query, one key read for each record that it returns, and a query of the overlay's records.
    ///
    /// # Errors
    /// As [`Records::in_leaves`](cg_store::records::Records::in_leaves) and [`load`](Self::load).
    pub fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        self.of_one_lease(|lease| self.query(lease, query))
    }

    fn query(&self, lease: u64, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        let shape = self.store().base.record_shape();
        let below = self.store().base.records_in(query)?;
        let view = self.store().rows.snapshot()?;
        let places: Vec<_> = below.iter().map(|(id, _)| key::overlay_record_place(lease, *id)).collect();
        let asked: Vec<_> = places.iter().map(|key| (Space::RecordPlace, &key[..])).collect();
        let mut found = Vec::new();
        for (record, written) in below.into_iter().zip(view.get_many(&asked)) {
            if written?.is_none() {
                found.push(record);
            }
        }
        let (dimension, area) = query.place();
        let failed = scan_area(&view, &key::lease(lease), shape, dimension, area, |record| {
            match record {
                Ok((id, record)) if query.wants(&record) => found.push((id, record.to_record())),
                Ok(_) => {}
                Err(error) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(()), Err)?;
        found.sort_by_cached_key(|(id, record)| key::record(&leaf_of(shape, record), *id));
        Ok(found)
    }
}
