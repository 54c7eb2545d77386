//! Records that go from their segment to the root, which is another database.
//!
//! Steps, each synced before the next begins. All of them are one exclusive hold of the borders:
//!
//! | step | what there is after a crash |
//! |---|---|
//! | root: the record, its departure, and its place is deleted | the record is the root's; the segment's copy is dead |
//! | segment: the copy is deleted | the record is the root's |
//! | root: the departure is over | the same |
//!
//! **Invariant**: as long as a segment has a dead copy, the root has its departure. A dead copy is neither read nor found, no
//! segment puts the record, and the deletion is tried again before each call until it is done. Departures do not wait for each
//! other, nor do transfers of entities wait for them.

use std::collections::BTreeMap;

use cg_format::RecordId;
use cg_store::error::ConflictKey;
use cg_store::layer::Base as _;
use cg_store::{Durability, Error, World};

use super::borders::Borders;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::rows::{DEPARTURE_PREFIX, departure_property, whole};
use super::transfers::Transfers;

/// The segments that have dead copies, by the records.
pub(super) fn departures(root: &World) -> Result<BTreeMap<RecordId, SegmentPos>, Error> {
    let mut all = BTreeMap::new();
    for (name, bytes) in root.named_properties(DEPARTURE_PREFIX)? {
        let segment = whole(&name, &bytes, SegmentPos::read)?;
        if let Some(id) = name.as_str().strip_prefix(DEPARTURE_PREFIX).and_then(|id| id.parse().ok()) {
            all.insert(RecordId::new(id), segment);
        }
    }
    Ok(all)
}

impl<H: SegmentHome> Borders<H> {
    /// The dead copies that segments have, if there may be any.
    pub(super) fn dead_copies(&self) -> Result<BTreeMap<RecordId, SegmentPos>, Error> {
        if self.is_unfinished() { departures(self.open().root().world()) } else { Ok(BTreeMap::new()) }
    }

    /// Refuses a record whose dead copy a segment has.
    ///
    /// # Errors
    /// [`Error::Conflict`].
    pub(super) fn refuse_departing(&self, key: &ConflictKey) -> Result<(), Error> {
        if let ConflictKey::Record(id) = key
            && self.is_unfinished()
            && self.open().root().world().property(&departure_property(*id)?)?.is_some()
        {
            return Err(Error::Conflict { key: key.clone() });
        }
        Ok(())
    }
}

impl<H: SegmentHome> Transfers<H> {
    /// Deletes the dead copies of records. The caller keeps others from putting any.
    pub(super) fn depart(&self, departing: &BTreeMap<RecordId, SegmentPos>) -> Result<(), Error> {
        let mut by_segment = BTreeMap::<_, Vec<_>>::new();
        for (id, segment) in departing {
            by_segment.entry(*segment).or_default().push(*id);
        }
        let mut outcome = Ok(());
        for (segment, ids) in by_segment {
            let departed = self.depart_from(segment, &ids);
            outcome = outcome.and(departed.inspect_err(|error| {
                tracing::warn!(%error, %segment, "records that went to the root are not deleted yet");
            }));
        }
        outcome
    }

    fn depart_from(&self, segment: SegmentPos, ids: &[RecordId]) -> Result<(), Error> {
        self.open().with_stored(segment, |world| {
            world.transaction_at(Durability::Safe, |tx| {
                for id in ids {
                    tx.delete_record(*id);
                }
                Ok::<_, Error>(())
            })
        })?;
        let over = ids.iter().map(|id| Ok((departure_property(*id)?, None)));
        self.root().set(Durability::Process, over.collect::<Result<Vec<_>, Error>>()?)
    }

    /// Deletes the dead copies that a crash or a failure left. Returns whether some are left.
    pub(super) fn finish_departures(&self) -> Result<bool, Error> {
        let departing = departures(self.root().world())?;
        Ok(!departing.is_empty() && self.depart(&departing).is_err())
    }
}
