//! Objects of an overlay: what it wrote itself, and the base's beside it.

use std::ops::ControlFlow;

use cg_format::key::{self, Family};
use cg_store::Error;
use cg_store::engine::ReadableExt as _;
use cg_store::layer::kind::Objects;
use cg_store::layer::{Base, behind_all, range};
use cg_store::objects::{Object, ObjectEntry, ObjectKey, ObjectPage, StoredObject};

use super::Overlay;
use super::kind::OverlayKind as _;
use super::rows::LeaseView;
use super::store::Store;

impl<S: Base> Overlay<S> {
    /// An object as the overlay shows it, or `None` if there is none. One key read for each layer.
    ///
    /// Its version counts on from the base's, and is the base's after a promotion.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] for a key that no object can have, and as [`load`](Self::load).
    pub fn object(&self, key: impl AsRef<[u8]>) -> Result<Option<Object>, Error> {
        let found = self.shown::<Objects>(&ObjectKey::new(key)?)?;
        Ok(found.and_then(StoredObject::here))
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
}

/// What a lease wrote of objects, up to a place.
struct OwnObjects {
    /// Ascending; one that is deleted has no entry.
    rows: Vec<(ObjectKey, Option<ObjectEntry>)>,
    /// The last of them, if there may be more.
    next: Option<ObjectKey>,
}

impl<S: Base> Store<S> {
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
    /// The object of a row; no entry if it is deleted.
    fn entry(&self, row_key: &[u8], row: &[u8]) -> Result<(ObjectKey, Option<ObjectEntry>), Error> {
        let key = self.key_of::<Objects>(row_key)?;
        let object = Objects::decode(self, &key, row)?.value.here();
        let entry =
            object.map(|object| ObjectEntry::of(key.as_bytes(), object.view())).transpose()?.flatten();
        Ok((key, entry))
    }
}
