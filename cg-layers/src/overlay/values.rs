//! Objects and spatial records of an overlay: what it wrote itself, and the base's beside it.

use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::frame::{Codec, Draft, FrameView, version_of};
use cg_format::key::{self, Family};
use cg_format::object::ObjectView;
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::record::Record;
use cg_format::wire::Reader;
use cg_format::{DecodeError, Lookup, Problem, RecordId, Section, Space};
use cg_store::Error;
use cg_store::engine::{Batch, Readable, ReadableExt as _, Stamp};
use cg_store::error::Damage;
use cg_store::layer::{Base, behind_all, decode_record, leaf_of, range, scan_area};
use cg_store::objects::{Object, ObjectEntry, ObjectKey, ObjectPage, StoredObject};
use cg_store::records::RecordQuery;

use super::edits::RecordEdit;
use super::rows::Row;
use super::store::Store;
use super::{Overlay, Shown};

impl<S: Base> Overlay<S> {
    /// An object as the overlay shows it, or `None` if there is none. One key read for each layer.
    ///
    /// Its version counts on from the base's, and is the base's after a promotion.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have, and as [`load`](Self::load).
    pub fn object(&self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let found = self.show_object(&ObjectKey::new(key)?)?.found.here();
        Ok(found.and_then(|(object, _)| object.here()))
    }

    /// At most this many objects, at least one if there are any, whose keys begin with a prefix, after the position that the last
    /// page ended with: the base's and what the overlay wrote, as one listing. Positions are those of
    /// [`Objects::list`](cg_store::objects::Objects::list).
    ///
    /// Reads the rows of what it lists here, and what the base's listing reads; more than once where much of the base's is
    /// deleted here.
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

    /// A spatial record as the overlay shows it, or `None` if there is none. Two key reads for each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn record(&self, id: RecordId) -> Result<Option<Record>, Error> {
        let found = self.show_record(id)?.found.here();
        Ok(found.map(|(record, _)| Arc::unwrap_or_clone(record)))
    }

    /// What a query asks for, in the order of the tree: the base's and what the overlay wrote.
    ///
    /// Costs the base's query, one key read for each record that it returns, and a query of what was written here.
    ///
    /// # Errors
    /// As [`Records::in_area`](cg_store::records::Records::in_area) and [`load`](Self::load).
    pub fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        self.of_one_lease(|lease| self.query(lease, query))
    }

    pub(super) fn show_object(&self, key: &ObjectKey) -> Result<Shown<StoredObject>, Error> {
        self.of_one_lease(|lease| match self.store.object(lease, key)? {
            Some(row) => Ok(self.here(row)),
            None => self.below(self.store.base.find_object(key)),
        })
    }

    pub(super) fn show_record(&self, id: RecordId) -> Result<Shown<Arc<Record>>, Error> {
        self.of_one_lease(|lease| match self.store.record(lease, id)? {
            Some(row) => Ok(self.here(row)),
            None => self.below(self.store.base.find_record(id)),
        })
    }

    fn list(
        &self,
        lease: u64,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        let (mut entries, mut position) = (Vec::new(), position.cloned());
        // One more, so that it is known whether there are more.
        let asked = max_count.saturating_add(1);
        loop {
            let below = self.store.base.list_objects(prefix, position.as_ref(), asked)?;
            let own = self.store.objects(lease, prefix, position.as_ref(), asked)?;
            // Up to where both are complete.
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

    fn query(&self, lease: u64, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        let shape = self.store.base.record_shape();
        let below = self.store.base.records_in(query)?;
        let guard = self.store.apply_latch.lock_shared()?;
        let view = self.store.engine.snapshot()?;
        drop(guard);
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

/// What a lease wrote of objects, up to a place.
struct OwnObjects {
    /// Ascending; one that is deleted has no entry.
    rows: Vec<(ObjectKey, Option<ObjectEntry>)>,
    /// The last of them, if there may be more.
    next: Option<ObjectKey>,
}

impl<S: Base> Store<S> {
    /// An object's row in a lease; `None` if it has none. One key read.
    pub(super) fn object(&self, lease: u64, key: &ObjectKey) -> Result<Option<Row<StoredObject>>, Error> {
        let row_key = key::overlay_object(lease, key.as_bytes());
        let guard = self.apply_latch.lock_shared()?;
        let bytes = self.engine.get(Space::Object, &row_key)?;
        drop(guard);
        let Some(bytes) = bytes else { return Ok(None) };
        Ok(Some(decode_object(&row_key, &bytes)?.1))
    }

    /// The objects of a lease whose keys begin with a prefix, after a key: at most this many that are there.
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
        let guard = self.apply_latch.lock_shared()?;
        let view = self.engine.snapshot()?;
        drop(guard);
        let failed = view.scan(
            Family::Object,
            range(&prefix, behind.as_deref(), end.as_deref()),
            |row_key, bytes| {
                if live >= max_count {
                    own.next = own.rows.last().map(|(key, _)| key.clone());
                    return ControlFlow::Break(Ok(()));
                }
                match entry(row_key, bytes) {
                    Ok((key, entry)) => {
                        live += usize::from(entry.is_some());
                        own.rows.push((key, entry));
                        ControlFlow::Continue(())
                    }
                    Err(error) => ControlFlow::Break(Err(error)),
                }
            },
        )?;
        failed.unwrap_or(Ok(())).map(|()| own)
    }

    /// A record's row in a lease; `None` if it has none. Two key reads.
    pub(super) fn record(&self, lease: u64, id: RecordId) -> Result<Option<Row<Arc<Record>>>, Error> {
        let guard = self.apply_latch.lock_shared()?;
        let view = self.engine.snapshot()?;
        drop(guard);
        let Some(bytes) = view.get(Space::RecordPlace, &key::overlay_record_place(lease, id))? else {
            return Ok(None);
        };
        read_record(&view, lease, id, &bytes).map(Some)
    }
}

fn entry(row_key: &[u8], bytes: &[u8]) -> Result<(ObjectKey, Option<ObjectEntry>), Error> {
    let (key, row) = decode_object(row_key, bytes)?;
    let object = row.value.here();
    let entry = object.map(|object| ObjectEntry::of(key, object.view())).transpose()?.flatten();
    Ok((ObjectKey::new(key)?, entry))
}

/// The key of an object that a lease wrote, and its row.
pub(super) fn decode_object<'k>(
    row_key: &'k [u8],
    bytes: &[u8],
) -> Result<(&'k [u8], Row<StoredObject>), Error> {
    let read = || -> Result<_, DecodeError> {
        let (_, key) = key::decode_overlay_object(row_key)?;
        let frame = FrameView::open(Space::Object, row_key, bytes)?;
        let row = OverlayRow::decode(frame.payload())?;
        let value = whole(row)?.map_or(Ok(Lookup::Tombstone), |value| {
            ObjectView::decode(value).map(|object| Lookup::Found(object.into()))
        })?;
        Ok((key, Row { value, version: frame.header().version, origin: row.origin }))
    };
    read().map_err(|problem| Damage::of_row(Space::Object, row_key, "an object of the overlay", problem))
}

/// What a lease says of a record, by the row of its place.
pub(super) fn read_record(
    view: &dyn Readable,
    lease: u64,
    id: RecordId,
    place: &[u8],
) -> Result<Row<Arc<Record>>, Error> {
    let place_key = key::overlay_record_place(lease, id);
    let read = || -> Result<_, DecodeError> {
        let frame = FrameView::open(Space::RecordPlace, &place_key, place)?;
        let row = OverlayRow::decode(frame.payload())?;
        let leaf = whole(row)?.map(key::decode_record_leaf).transpose()?;
        Ok((leaf, row.origin))
    };
    let (leaf, origin) = read().map_err(|problem| {
        Damage::of_row(Space::RecordPlace, &place_key, format!("the place of record {id}"), problem)
    })?;
    let value = match leaf {
        Some(leaf) => {
            let row_key = key::overlay_record(lease, &leaf, id);
            // A place without its record is read as an empty row: it was there.
            let row = view.get(Space::Record, &row_key)?;
            let record = decode_record(id, &row_key, row.as_deref().unwrap_or_default())?;
            Lookup::Found(Arc::new(record.to_record()))
        }
        None => Lookup::Tombstone,
    };
    Ok(Row { value, version: version_of(place).unwrap_or_default(), origin })
}

/// The value of a row of what is no chunk, as a world stores it; `None` if it was deleted.
pub(super) fn whole(row: OverlayRow<'_>) -> Result<Option<&[u8]>, DecodeError> {
    match row.value {
        OverlayValue::Deleted => Ok(None),
        OverlayValue::Here(value) => Ok(Some(value)),
        OverlayValue::Changed(value) => {
            let (field, found, allowed) = ("row state", 2, "0 or 1 where there is no chunk");
            let here = Reader::new(value, Section::Overlay);
            Err(here.error(Problem::OutOfRange { field, found, allowed }))
        }
    }
}

/// Adds an object's row to a batch.
pub(super) fn put_object(
    batch: &mut Batch,
    lease: u64,
    key: &ObjectKey,
    object: &StoredObject,
    origin: Origin,
) {
    let value = |out: &mut Vec<u8>| object.view().encode(out);
    let draft = Draft::plain(Codec::None, 0, |out| OverlayRow::encode(origin, Some(value), out));
    batch.put(Space::Object, key::overlay_object(lease, key.as_bytes()), draft, Stamp::Commit);
}

/// Adds a record's rows to a batch.
pub(super) fn put_record(batch: &mut Batch, lease: u64, id: RecordId, edit: &RecordEdit, origin: Origin) {
    let leaf = edit.new.as_ref().map(|(leaf, _)| *leaf);
    if let Some(old) = edit.old.filter(|old| Some(*old) != leaf) {
        batch.delete(Space::Record, key::overlay_record(lease, &old, id));
    }
    if let Some((leaf, record)) = &edit.new {
        let draft = Draft::plain(Codec::None, 0, |out| record.encode(out));
        batch.put(Space::Record, key::overlay_record(lease, leaf, id), draft, Stamp::Commit);
    }
    let value = leaf.map(|leaf| move |out: &mut Vec<u8>| out.extend(key::record_leaf(&leaf)));
    let draft = Draft::plain(Codec::None, 0, |out| OverlayRow::encode(origin, value, out));
    batch.put(Space::RecordPlace, key::overlay_record_place(lease, id), draft, Stamp::Commit);
}
