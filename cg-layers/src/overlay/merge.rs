//! Merges an overlay into its base.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_registry::{Catalog, Registration};
use cg_store::engine::Level;
use cg_store::layer::kind;
use cg_store::layer::{Base, MutexGuard};
use cg_store::{Error, ErrorKind, each_kind};

use super::handle::Overlay;
use super::transaction::overlay_of;
use super::writing::Writing;
use crate::merge::{Change, MergeItem, MergeLock, MergeTarget, Merged, OverlayMerge};
use crate::store::{OverlayError, OverlayKind as _};

/// The rights that a merge holds: that of its target, if there is one, and that of the overlay.
type MergeRights<'a, S> = (Option<MutexGuard<'a, ()>>, Writing<'a, S>);

/// The result of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverlayMerged {
    /// Chunks, entities, properties, objects and records that were changed in the base.
    pub changes: u64,
}

impl<S: Base> Overlay<S> {
    /// Merges all values that differ into the base, and empties the overlay.
    ///
    /// The overlay's own names are registered in the base first. Everything else is one transaction, which survives a
    /// power cut when this returns. After a crash before the transaction, only names are merged. After a later crash,
    /// no value differs from the base's, and merging again changes nothing.
    ///
    /// A segmented world takes one transaction for each segment, one after the other. One in the root follows, for the
    /// properties, objects and records that no segment has, and for records that leave their segment. Readers of several segments may see some merged and others not yet. An entity
    /// that goes to another segment is detached until its transfer. The overlay deletes its rows of each merged part.
    /// After a crash or an error it keeps the rest: call this again to continue. Nothing is merged twice. The overlay
    /// may be edited before that.
    ///
    /// Other readers of this overlay see the same values before and after. Costs [`diff`](Self::diff), the
    /// transactions, and the memory of everything that differs.
    ///
    /// # Errors
    /// [`OverlayError::WrongBase`] and [`OverlayError::BaseReplaced`] if it is not the overlay's base.
    /// [`OverlayError::BaseChanged`] if the base has changed a value since the overlay wrote over it.
    /// [`Error::Conflict`] if a value changes meanwhile. This call has merged nothing then, because it compares all
    /// segments before it writes the first. [`MergedInPart`](crate::MergedInPart) if a segment is refused, changed or
    /// fails after others were merged.
    pub fn merge_into(&self, base: &impl MergeTarget) -> Result<OverlayMerged, Error> {
        self.store().names.head().check(base.identity())?;
        let _alone = self.write_to_merge(base)?;
        base.begin_merge()?;
        if let Some(names) = self.store().names.own() {
            // Fails if the base has issued the same ids for other names.
            self.store().catalog()?;
            base.register_names(&names)?;
            self.store().names.adopted(&self.store().rows, self.base())?;
        }
        let mut merge = OverlayMerge::default();
        self.store().in_view(self.lease(), |rows| {
            each_kind!(mut merge, |items: K| {
                rows.for_each_change::<K>(|Change { key, new, origin, .. }| {
                    items.insert(key, MergeItem { new, origin, waits: false });
                    Ok(())
                })?;
            });
            Ok::<_, Error>(())
        })?;
        // From here on the base may contain what the rows do.
        self.arena.merged_until.store(self.store().rows.engine().last_commit().get(), Ordering::Release);
        let mut merged = |part: &OverlayMerge| self.forget_merged(part);
        let changes = if merge.is_empty() { 0 } else { self.apply(base, merge, &mut merged)? };
        // Values that were equal already may not be synced yet.
        base.keep_found(Level::Power)?;
        self.empty()?;
        Ok(OverlayMerged { changes })
    }

    /// Applies a merge to the base. The store notes it first, unless the base refuses: of a row that may be merged it is
    /// not known what the base has changed since. If parts were merged before the base refused another, in this call or an
    /// earlier one, the note says so as long as the overlay keeps the rest.
    fn apply(
        &self,
        base: &impl MergeTarget,
        merge: OverlayMerge,
        merged: &mut Merged<'_>,
    ) -> Result<u64, Error> {
        let mut is_in_part = self.store().rows.is_merge_open(self.lease())?;
        self.store().rows.note_merge(self.lease(), Some(self.store().rows.engine().last_commit().get()))?;
        let mut forgotten = |part: &OverlayMerge| {
            is_in_part = true;
            merged(part)
        };
        let applied = base.apply(merge, &mut forgotten);
        let is_refused = |error: &Error| {
            error.kind() == ErrorKind::Conflict
                || matches!(error.layer(), Some(OverlayError::BaseChanged { .. }))
        };
        if applied.as_ref().is_err_and(is_refused) {
            self.store().rows.note_merge(self.lease(), is_in_part.then_some(0))?;
        }
        applied
    }

    /// Waits for the right to write, and for the target's [lock](MergeTarget::merge_lock).
    ///
    /// It waits for each without holding the other. A user of a segment may wait for this overlay, while a deletion of
    /// that segment holds the target's lock and waits for the user.
    fn write_to_merge<'a>(&'a self, base: &'a impl MergeTarget) -> Result<MergeRights<'a, S>, Error> {
        let target = base.merge_lock()?;
        loop {
            let writing = self.write()?;
            let Some(lock) = target else { return Ok((None, writing)) };
            if let Some(guard) = lock.try_lock() {
                return Ok((Some(guard), writing));
            }
            drop(writing);
            drop(lock.lock());
        }
    }

    /// Deletes the rows that a part has merged. Rows that wait for a transfer stay.
    fn forget_merged(&self, part: &OverlayMerge) -> Result<(), Error> {
        let (store, lease) = (self.store(), self.lease());
        let (mut chunks, mut rows) = (Vec::new(), Vec::new());
        chunks.extend(part.chunks.iter().filter(|(_, item)| !item.waits).map(|(at, _)| *at));
        each_kind!(part, |items: K| {
            let merged = items.iter().filter(|(_, item)| !item.waits);
            rows.extend(merged.map(|(key, item)| K::rows(store, lease, key, item.new.as_ref())));
        });
        store.forget(lease, &chunks, &rows)
    }
}

impl<S: Base> MergeTarget for Overlay<S> {
    fn merge_lock(&self) -> Result<Option<&MergeLock>, Error> {
        Ok(None)
    }

    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let names = self.register(new)?;
        self.store().keep_found(Level::Power)?;
        Ok(names)
    }

    fn apply(&self, merge: OverlayMerge, _: &mut Merged<'_>) -> Result<u64, Error> {
        let applied = self.transaction(|tx| {
            let target = overlay_of(tx).clone();
            merge.put_into(tx, &target)
        })?;
        self.store().keep_found(Level::Power)?;
        Ok(applied)
    }
}
