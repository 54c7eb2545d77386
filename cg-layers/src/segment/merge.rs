//! Merges an overlay into the segments that it changes, one segment after the other.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | all values to be merged are compared with the origins that the overlay wrote over | nothing merged |
//! | for each segment: its part in one synced transaction; then the overlay drops these rows | these segments merged |
//! | [`transfer_entities`](SegmentedWorld::transfer_entities) of those that leave their segment | all segments merged |
//! | root: the properties, objects and records that no segment has, and the records that leave their segment, in one transaction, synced | the whole merge |
//! | for each segment that records leave: their deletion, see [`departures`](super::departures) | the whole merge |
//!
//! A segment commits before the overlay deletes the rows. After a crash between the two, the next merge finds its own
//! values in the base. They are no conflict, and are not written again.
//!
//! An entity that goes to another segment stays in its own, detached, until both parts are committed. So one segment
//! contains it at any time, and neither part needs the other. The overlay keeps the entity and its new chunk until
//! then.
//!
//! A property or an object stays where it is, and a new one goes to the root. A record goes to the segment of its position,
//! if that has it or no one has. One that leaves its segment goes to the root: from the root's commit on the segment's
//! copy is dead, and after a crash it is deleted when the world is opened.
//!
//! What it is *not*: atomic over several segments. Readers may see one side of a border merged and the other not yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::entity::{Entity, Owner};
use cg_format::record::Record;
use cg_format::{ChunkSource as _, RecordId};
use cg_store::error::ConflictKey;
use cg_store::layer::Base as _;
use cg_store::layer::kind::{Objects, Properties, Records};
use cg_store::{Durability, Error};

use super::error::{MergedInPart, SegmentError};
use super::held::Held;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::root_part::RootPart;
use super::transfer::Transfer;
use super::world::SegmentedWorld;
use super::written::chunk_of;
use crate::merge::{MergeItem, Merged, OverlayMerge, leaving};
use crate::store::OverlayKind;

/// The plan of a merge.
#[derive(Default)]
struct Plan {
    /// The part of each segment.
    parts: BTreeMap<SegmentPos, OverlayMerge>,
    /// Entities that go to another segment.
    transfers: Vec<Transfer>,
    /// The part of the root.
    root: RootPart,
}

impl Plan {
    /// The part of a segment, or of the root.
    fn part(&mut self, home: Option<SegmentPos>) -> &mut OverlayMerge {
        match home {
            Some(segment) => self.parts.entry(segment).or_default(),
            None => &mut self.root.merge,
        }
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Merges one part after the other, and reports each committed part. Returns the number of changes. The caller
    /// keeps transfers, deletions and other merges out.
    ///
    /// # Errors
    /// As [`Overlay::merge_into`](crate::Overlay::merge_into).
    pub(super) fn merge(&self, merge: OverlayMerge, merged: &mut Merged<'_>) -> Result<u64, Error> {
        if let Some(property) = merge.properties.keys().find(|property| property.is_engines()) {
            return Err(SegmentError::EnginesProperty { property: property.to_string() }.into());
        }
        let changes = merge.len();
        let merging = Merging { world: self };
        let plan = merging.plan(merge)?;
        let (mut done, segments) = (0, plan.parts.len() + usize::from(!plan.root.leaving.is_empty()));
        if plan.parts.len() + usize::from(!plan.root.merge.is_empty()) > 1 {
            // A single transaction compares by itself.
            plan.parts.values().chain([&plan.root.merge]).try_for_each(|part| part.check(self))?;
        }
        match merging.parts(plan, merged, &mut done) {
            Ok(()) => Ok(changes),
            Err(error) if done == 0 => Err(error),
            Err(error) => Err(MergedInPart { merged: done, segments, error: Box::new(error) }.into()),
        }
    }
}

/// A merge into a segmented world.
struct Merging<'w, H: SegmentHome> {
    world: &'w SegmentedWorld<H>,
}

impl<H: SegmentHome> Merging<'_, H> {
    fn parts(&self, plan: Plan, merged: &mut Merged<'_>, done: &mut usize) -> Result<(), Error> {
        let mut arrived = OverlayMerge::default();
        for (segment, part) in plan.parts {
            self.world.transaction_at(Durability::Safe, segment, |tx| part.put_into(tx, self.world))?;
            *done += 1;
            merged(&part)?;
            part.arrive(&mut arrived);
        }
        self.transfer_all(&plan.transfers)?;
        merged(&arrived)?;
        if !plan.root.merge.is_empty() {
            let leave = usize::from(!plan.root.leaving.is_empty());
            self.world.merge_root_part(&plan.root, || *done += leave)?;
        }
        Ok(())
    }

    /// An entity without a chunk stays in its segment. If no segment contains it, it goes to the segment of its
    /// position.
    fn plan(&self, merge: OverlayMerge) -> Result<Plan, Error> {
        let OverlayMerge { mut chunks, entities, properties, objects, records } = merge;
        let mut plan = Plan::default();
        for (property, item) in properties {
            plan.part(self.home_of::<Properties>(&property)?).properties.insert(property, item);
        }
        for (key, item) in objects {
            plan.part(self.home_of::<Objects>(&key)?).objects.insert(key, item);
        }
        for (id, item) in records {
            let home = self.home_of_record(id, &item, &mut plan.root.leaving)?;
            plan.part(home).records.insert(id, item);
        }
        for (id, mut item) in entities {
            let home = self.world.parts.borders.home_of(&ConflictKey::Entity(id))?;
            let to = item.new.as_ref().map(|entity| self.destination(entity, home));
            let Some(segment) = home.or(to) else { continue };
            if let Some(entity) = item.new.take_if(|_| to != Some(segment)) {
                // An entity without a chunk stays in its segment.
                let Owner::Chunk(to) = entity.owner else { continue };
                item.wait_as(leaving(&entity));
                if let Some(arrival) = chunks.get_mut(&to)
                    && let Some(mut chunk) = arrival.new.take()
                {
                    Arc::make_mut(&mut chunk).remove_entity(id);
                    arrival.wait_as(chunk);
                }
                plan.transfers.push(Transfer { id, from: segment, entity, to });
            }
            plan.parts.entry(segment).or_default().entities.insert(id, item);
        }
        for (at, item) in chunks {
            plan.parts.entry(self.world.segment_of(at)).or_default().chunks.insert(at, item);
        }
        Ok(plan)
    }

    /// The segment that has a value, or that has deleted an object which the root does not have.
    fn home_of<K: OverlayKind>(&self, key: &K::Key) -> Result<Option<SegmentPos>, Error> {
        let parts = &self.world.parts;
        let key = K::conflict_key(key);
        let Some(segment) = parts.root.segment_with(&key)? else { return Ok(None) };
        Ok(match parts.borders.held(segment, &key)? {
            Held::Live => Some(segment),
            Held::Deleted(_) if !Held::of(parts.root.world(), &key)?.is_live() => Some(segment),
            _ => None,
        })
    }

    /// The segment that a record stays in or goes to; `None` for the root.
    fn home_of_record(
        &self,
        id: RecordId,
        item: &MergeItem<Arc<Record>>,
        leaving: &mut BTreeMap<RecordId, (SegmentPos, Arc<Record>)>,
    ) -> Result<Option<SegmentPos>, Error> {
        let home = self.home_of::<Records>(&id)?;
        let Some(new) = &item.new else { return Ok(home) };
        let to = self.world.segment_of(chunk_of(&new.position));
        let Some(segment) = home else {
            let is_in_root = self.world.root().find_record(id)?.here().is_some();
            return Ok((!is_in_root).then_some(to));
        };
        if segment == to {
            return Ok(home);
        }
        if let Some((record, _)) = self.world.find_record(id)?.here() {
            leaving.insert(id, (segment, record));
        }
        Ok(None)
    }

    /// The segment that an entity goes to or stays in.
    fn destination(&self, entity: &Entity, home: Option<SegmentPos>) -> SegmentPos {
        match &entity.owner {
            Owner::Chunk(at) => self.world.segment_of(*at),
            Owner::Detached(_) => home.unwrap_or_else(|| self.world.segment_of(chunk_of(&entity.position))),
        }
    }

    /// Transfers entities, as many at once as fit into the root's record of a transfer.
    fn transfer_all(&self, transfers: &[Transfer]) -> Result<(), Error> {
        let limit_bytes = self.world.root().limits().property_bytes / 2;
        let mut left = transfers;
        while !left.is_empty() {
            let mut len_bytes = 0;
            let fits = |transfer: &&Transfer| {
                len_bytes += transfer.len_bytes();
                len_bytes <= limit_bytes
            };
            let count = left.iter().take_while(fits).count().max(1);
            let (some, rest) = left.split_at(count);
            let _others_wait = self.world.parts.borders.close();
            some.iter().try_for_each(|transfer| self.refuse_changed(transfer))?;
            self.world.parts.transfers.run(some, Durability::Safe)?;
            left = rest;
        }
        Ok(())
    }

    /// Refuses an entity that was changed after its segment's part was committed, and one whose chunk was deleted
    /// since.
    fn refuse_changed(&self, Transfer { id, from, entity, to }: &Transfer) -> Result<(), Error> {
        let found = self.world.parts.open.with_stored(*from, |world| world.entity(*id))?.flatten();
        if found != Some(leaving(entity)) {
            return Err(Error::Conflict { key: ConflictKey::Entity(*id) });
        }
        if self.world.parts.open.look_up(*to, |world| world.lookup(*to))?.here().is_none() {
            return Err(Error::Conflict { key: ConflictKey::Chunk(*to) });
        }
        Ok(())
    }
}
