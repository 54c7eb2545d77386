//! The part of a merge that the root gets: the properties, objects and records that no segment has, and the records that
//! leave their segment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::RecordId;
use cg_format::record::Record;
use cg_store::engine::Level;
use cg_store::error::ConflictKey;
use cg_store::layer::Base as _;
use cg_store::layer::kind::{Kind as _, Records};
use cg_store::{Durability, Error, World};

use super::held::Held;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::rows::{departure_property, may_have_place, place_property};
use super::world::SegmentedWorld;
use crate::merge::OverlayMerge;

/// What the root gets by a merge.
#[derive(Default)]
pub(super) struct RootPart {
    /// All of it.
    pub(super) merge: OverlayMerge,
    /// Of the records in it those that segments have, as these have them.
    pub(super) leaving: BTreeMap<RecordId, (SegmentPos, Arc<Record>)>,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Merges the part of the root, and deletes what leaves a segment there. Calls `committed` after the root's commit, which
    /// the deletions follow.
    ///
    /// While the borders are closed, no segment has a commit under way that puts or deletes a value. So what is compared then
    /// holds until the root has committed.
    pub(super) fn merge_root_part(&self, part: &RootPart, committed: impl FnOnce()) -> Result<(), Error> {
        let parts = &*self.parts;
        let mut closed = None;
        let departing =
            part.leaving.iter().map(|(id, (segment, _))| (*id, *segment)).collect::<BTreeMap<_, _>>();
        let put = self.root().transaction_at(Durability::Safe, |tx| {
            part.merge.look_at(tx)?;
            // What was submitted meanwhile comes after this transaction.
            parts.open.inside(|| part.merge.check(self))?;
            closed = Some(parts.borders.close());
            let left = self.compare_root_part(part)?;
            for key in part.merge.put_keys().filter(may_have_place) {
                // The place in the segment that has deleted it: the root has the value from now on.
                let place = place_property(&key)?;
                if tx.property(&place)?.is_some() {
                    tx.set_property(place, None);
                }
            }
            for (id, segment) in &departing {
                tx.set_property(departure_property(*id)?, Some(segment.to_bytes()));
            }
            // What they have deleted stays deleted once the root has it.
            for segment in left {
                parts.open.with_stored(segment, |world| world.keep_found(Level::Power))?;
            }
            part.merge.write(tx)
        });
        if departing.is_empty() {
            return put.map(|_| committed());
        }
        // Also if the commit is in doubt.
        parts.borders.set_unfinished(true);
        put?;
        committed();
        parts.transfers.depart(&departing)?;
        // An entity may still be in transit.
        parts.transfers.finish()
    }

    /// Compares where values are with what the merge was planned for. Returns the segments that have places of what is put.
    fn compare_root_part(&self, part: &RootPart) -> Result<BTreeSet<SegmentPos>, Error> {
        let parts = &*self.parts;
        let mut left = BTreeSet::new();
        for (id, (from, record)) in &part.leaving {
            let key = Records::conflict_key(id);
            let find = |world: &World| Ok(world.find_record(*id)?.here().map(|(record, _)| record));
            let found = parts.open.with_stored(*from, find)?.flatten();
            if parts.root.segment_with(&key)? != Some(*from) || found.as_ref() != Some(record) {
                return Err(Error::Conflict { key });
            }
        }
        for key in part.merge.value_keys() {
            if matches!(&key, ConflictKey::Record(id) if part.leaving.contains_key(id)) {
                continue;
            }
            let Some(segment) = parts.root.segment_with(&key)? else { continue };
            let is_the_roots = match parts.borders.held(segment, &key)? {
                Held::Live => false,
                Held::Deleted(_) => Held::of(parts.root.world(), &key)?.is_live(),
                Held::Absent => true,
            };
            if !is_the_roots {
                return Err(Error::Conflict { key });
            }
            left.insert(segment);
        }
        Ok(left)
    }
}
