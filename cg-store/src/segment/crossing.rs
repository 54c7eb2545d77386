//! Entities that cross the border between two segments, which are synced apart.
//!
//! Steps, each committed before the next begins:
//!
//! 1. root: the crossing, and for each entity that it is where it goes to
//! 2. the segments where entities arrive: each entity, owned by its new chunk
//! 3. the segments that they leave: each entity is deleted
//! 4. root: the crossing is over
//!
//! **Invariant**: whatever step a crash comes behind, [`finish_crossing`](SegmentedWorld::finish_crossing) sees from the
//! segments how far it came. Both without the entity is behind 3: it arrived, and was deleted since.
//!
//! | segment left | segment entered | what is left to do |
//! |---|---|---|
//! | has it | has it not | 2 and 3 |
//! | has it | has it | 3 |
//! | has it not | either | nothing |
//!
//! Stored, in the root's property `:crossing`: u8 version 1, u32 count, then for each entity its UUID, the segment that it
//! leaves (dimension u64, x, y, z i64), and u32 length and bytes of the entity as it arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use cg_format::entity::{Entity, Owner};
use cg_format::wire::{Reader, Writer};
use cg_format::{ChunkAt, DecodeError, EntityId};
use parking_lot::MutexGuard;

use super::place::{crossing_property, entity_property, whole};
use super::transaction::encode as encode_segment;
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};
use crate::durability::Durability;
use crate::error::Error;
use crate::transaction::Check;

const VERSION: u8 = 1;

/// Why entities did not arrive.
enum NoArrival {
    /// They were refused, and none has arrived.
    Refused(Error),
    /// The storage failed: what it holds is seen when it can be read and written again.
    Broken(Error),
}

impl NoArrival {
    fn error(self) -> Error {
        let (Self::Refused(error) | Self::Broken(error)) = self;
        error
    }
}

/// One entity on its way.
#[derive(Debug, Clone, PartialEq)]
struct Traveller {
    id: EntityId,
    from: SegmentPos,
    entity: Entity,
    /// The chunk where it arrives.
    to: ChunkAt,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Moves entities to the chunks that own them now, whichever segments they are in and go to: each arrives as it is given
    /// here and is gone where it was. All of one call together; of one that is given twice the later counts.
    ///
    /// Whatever crashes, an entity is in one place and not in two or none. Readers of chunks may see a reference in both
    /// for a moment; readers of entities wait. Costs two commits in the root and one in each segment that is left or
    /// entered, synced unless the world's durability is [`Process`](Durability::Process) or [`Fast`](Durability::Fast), under which
    /// this holds for a killed process and not for a power cut. If all stay in one segment it costs a transaction there.
    ///
    /// # Errors
    /// [`SegmentError::NoOwner`], [`SegmentError::NoEntity`] and [`Error::ChunkAbsent`], after which nothing was changed; what the
    /// segments' transactions answer. After a failure of the storage the crossing is finished as soon as that can be
    /// written again, at the latest when the world is opened; until then its entities are
    /// [`SegmentError::OnItsWay`], and the next crossing fails as this one did.
    pub fn cross(&self, entities: impl IntoIterator<Item = (EntityId, Entity)>) -> Result<(), Error> {
        let entities: BTreeMap<_, _> = entities.into_iter().collect();
        let alone = self.shared.moving.lock();
        self.settle(&alone)?;
        let _others_wait = self.shared.borders.write();
        let catalog = self.catalog();
        let limits = self.shared.root.limits();
        let check = Check { catalog: &catalog, limits: &limits };
        let mut travellers = Vec::new();
        for (id, entity) in entities {
            let Owner::Chunk(to) = entity.owner else { return Err(SegmentError::NoOwner { id }.into()) };
            let from = self.claimed(id)?.ok_or(SegmentError::NoEntity { id })?;
            if self.with_stored(from, |world| world.entity(id))?.flatten().is_none() {
                return Err(SegmentError::NoEntity { id }.into());
            }
            if self.load(to)?.is_none() {
                return Err(Error::ChunkAbsent { at: to });
            }
            check.entity(id, &entity)?;
            travellers.push(Traveller { id, from, entity, to });
        }
        let touched = travellers.iter().flat_map(|traveller| [traveller.from, self.segment_of(traveller.to)]);
        if touched.collect::<BTreeSet<_>>().len() <= 1 {
            return self.arrive(&travellers).map_err(NoArrival::error);
        }
        let crossed = self.cross_border(&travellers);
        if crossed.is_err() {
            self.shared.unfinished.store(true, Ordering::Release);
        }
        crossed
    }

    fn cross_border(&self, travellers: &[Traveller]) -> Result<(), Error> {
        self.begin_crossing(travellers)?;
        match self.arrive(travellers) {
            Ok(()) => {}
            Err(NoArrival::Refused(error)) => {
                self.give_up(travellers)?;
                return Err(error);
            }
            Err(NoArrival::Broken(error)) => return Err(error),
        }
        self.leave(travellers)?;
        self.end_crossing(travellers)
    }

    /// Finishes the crossing that failed before, if one did.
    pub(super) fn settle(&self, _alone: &MutexGuard<'_, ()>) -> Result<(), Error> {
        if !self.shared.unfinished.load(Ordering::Acquire) {
            return Ok(());
        }
        let _others_wait = self.shared.borders.write();
        self.finish_crossing()?;
        self.shared.unfinished.store(false, Ordering::Release);
        Ok(())
    }

    /// As [`settle`](Self::settle), but for what only the loss of a segment prevents, which is about to be deleted.
    pub(super) fn settle_but_for(
        &self,
        deleted: SegmentPos,
        alone: &MutexGuard<'_, ()>,
    ) -> Result<(), Error> {
        match self.settle(alone) {
            Err(Error::Segment(SegmentError::Lost { segment, .. })) if segment == deleted => Ok(()),
            settled => settled,
        }
    }

    /// As [`settle`](Self::settle), if it can be done at once. Where it fails, what is on its way is refused.
    pub(super) fn try_to_settle(&self) {
        // Not waited for: this thread may keep a segment open that whoever moves waits for.
        if self.shared.unfinished.load(Ordering::Acquire)
            && let Some(alone) = self.shared.moving.try_lock()
            && let Err(error) = self.settle(&alone)
        {
            tracing::warn!(%error, "a crossing of a border is still not finished");
        }
    }

    /// Refuses an entity of a crossing that is not finished. The caller keeps others from crossing.
    pub(super) fn refuse_on_its_way(&self, id: EntityId) -> Result<(), Error> {
        if !self.shared.unfinished.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(bytes) = self.shared.root.property(&crossing_property()?)? else { return Ok(()) };
        let travellers = whole("crossing", &bytes, decode)?;
        match travellers.into_iter().find(|traveller| traveller.id == id) {
            Some(Traveller { from, to, .. }) => {
                Err(SegmentError::OnItsWay { id, from, to: self.segment_of(to) }.into())
            }
            None => Ok(()),
        }
    }

    /// Brings a crossing that a crash interrupted to its end. If a segment of it is lost the world is opened all the same:
    /// the segment cannot be deleted otherwise.
    pub(super) fn finish_crossing_at_open(&self) -> Result<(), Error> {
        match self.finish_crossing() {
            Err(Error::Segment(error @ SegmentError::Lost { .. })) => {
                tracing::warn!(%error, "a crossing of a border is not finished");
                self.shared.unfinished.store(true, Ordering::Release);
                Ok(())
            }
            finished => finished,
        }
    }

    fn finish_crossing(&self) -> Result<(), Error> {
        let Some(bytes) = self.shared.root.property(&crossing_property()?)? else { return Ok(()) };
        let travellers = whole("crossing", &bytes, decode)?;
        let mut left = Vec::new();
        for traveller in travellers {
            let id = traveller.id;
            let to = self.segment_of(traveller.to);
            let has = |segment| {
                Ok::<_, Error>(self.with_stored(segment, |world| world.entity(id))?.flatten().is_some())
            };
            if has(traveller.from)? {
                // One that stays in its segment is put again: nothing was committed behind the crossing.
                left.push((to != traveller.from && has(to)?, traveller));
            }
        }
        let (arrived, missing): (Vec<_>, Vec<_>) = left.into_iter().partition(|(arrived, _)| *arrived);
        let of = |travellers: Vec<(bool, Traveller)>| -> Vec<_> {
            travellers.into_iter().map(|(_, traveller)| traveller).collect()
        };
        let (arrived, missing) = (of(arrived), of(missing));
        self.leave(&arrived)?;
        match self.arrive(&missing) {
            Ok(()) => {
                self.leave(&missing)?;
                self.end_crossing(&missing)
            }
            Err(NoArrival::Broken(error)) => Err(error),
            // Refused now as it was, or would have been, before the crash.
            Err(NoArrival::Refused(_)) => self.give_up(&missing),
        }
    }

    fn begin_crossing(&self, travellers: &[Traveller]) -> Result<(), Error> {
        let property = crossing_property()?;
        self.shared.root.transaction_at(self.level(), |tx| {
            tx.set_property(property, Some(encode(travellers)));
            for traveller in travellers {
                let to = encode_segment(self.segment_of(traveller.to));
                tx.set_property(entity_property(traveller.id)?, Some(to));
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }

    /// Puts entities where they arrive. All of it is durable before anything of [`leave`](Self::leave) is.
    fn arrive(&self, travellers: &[Traveller]) -> Result<(), NoArrival> {
        let entered: BTreeSet<_> = travellers.iter().map(|traveller| self.segment_of(traveller.to)).collect();
        let mut done = Vec::new();
        for segment in entered {
            let arriving: Vec<_> =
                travellers.iter().filter(|traveller| self.segment_of(traveller.to) == segment).collect();
            let arrived = self.with_segment(segment, |world| {
                world.transaction_at(self.level(), |tx| {
                    for traveller in &arriving {
                        tx.put_entity(traveller.id, traveller.entity.clone());
                    }
                    Ok::<_, Error>(())
                })
            });
            if let Err(error) = arrived {
                let lost = |error: &SegmentError| matches!(error, SegmentError::Lost { .. });
                let is_broken = match &error {
                    Error::Engine(_) | Error::Closed | Error::Open(_) => true,
                    Error::Segment(error) => lost(error),
                    _ => false,
                };
                return Err(if is_broken {
                    NoArrival::Broken(error)
                } else {
                    self.delete_from(done).map_or_else(NoArrival::Broken, |()| NoArrival::Refused(error))
                });
            }
            let entered = arriving.into_iter().filter(|traveller| traveller.from != segment);
            done.extend(entered.map(|traveller| (segment, traveller.id)));
        }
        Ok(())
    }

    fn leave(&self, travellers: &[Traveller]) -> Result<(), Error> {
        let leaving = travellers.iter().filter(|traveller| traveller.from != self.segment_of(traveller.to));
        self.delete_from(leaving.map(|traveller| (traveller.from, traveller.id)))
    }

    fn delete_from(&self, entities: impl IntoIterator<Item = (SegmentPos, EntityId)>) -> Result<(), Error> {
        let mut by_segment: BTreeMap<SegmentPos, Vec<EntityId>> = BTreeMap::new();
        for (segment, id) in entities {
            by_segment.entry(segment).or_default().push(id);
        }
        for (segment, ids) in by_segment {
            self.with_stored(segment, |world| {
                world.transaction_at(self.level(), |tx| {
                    for id in &ids {
                        tx.delete_entity(*id);
                    }
                    Ok::<_, Error>(())
                })
            })?;
        }
        Ok(())
    }

    fn end_crossing(&self, travellers: &[Traveller]) -> Result<(), Error> {
        let property = crossing_property()?;
        let stays = |traveller: &Traveller| traveller.from == self.segment_of(traveller.to);
        // That they have arrived is seen from the segments, but for those that stay in theirs.
        let level = if travellers.iter().any(stays) { self.level() } else { Durability::Process };
        self.shared.root.transaction_at(level, |tx| {
            tx.set_property(property, None);
            Ok::<_, Error>(())
        })?;
        Ok(())
    }

    /// Says that entities are where they were, and that nothing is on its way.
    fn give_up(&self, travellers: &[Traveller]) -> Result<(), Error> {
        let property = crossing_property()?;
        self.shared.root.transaction_at(self.level(), |tx| {
            tx.set_property(property, None);
            for traveller in travellers {
                tx.set_property(entity_property(traveller.id)?, Some(encode_segment(traveller.from)));
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }
}

fn encode(travellers: &[Traveller]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.u8(VERSION);
    writer.u32(u32::try_from(travellers.len()).unwrap_or(u32::MAX));
    for traveller in travellers {
        bytes.extend(traveller.id.to_bytes());
        traveller.from.encode(&mut bytes);
        let mut entity = Vec::new();
        traveller.entity.encode(&mut entity);
        let mut writer = Writer::new(&mut bytes);
        writer.u32(u32::try_from(entity.len()).unwrap_or(u32::MAX));
        writer.bytes(&entity);
    }
    bytes
}

fn decode(reader: &mut Reader<'_>) -> Result<Vec<Traveller>, DecodeError> {
    reader.version_u8("crossing version", VERSION)?;
    let count = reader.u32("entity count")?;
    let mut travellers = Vec::new();
    for _ in 0..count {
        let id = reader.array("entity uuid").map(EntityId::from_bytes)?;
        let from = SegmentPos::read(reader)?;
        let len_bytes = reader.u32("entity length")?;
        let here = reader.clone();
        let entity = Entity::decode(reader.take("entity", len_bytes as usize)?)?;
        let Owner::Chunk(to) = entity.owner else {
            let (field, found, allowed) = ("entity owner", 1, "a chunk");
            return Err(here.error(cg_format::Problem::OutOfRange { field, found, allowed }));
        };
        travellers.push(Traveller { id, from, entity, to });
    }
    Ok(travellers)
}
