//! Transfers entities between segments, which are synced separately.
//!
//! Steps, each committed before the next begins:
//!
//! 1. root: the transfer, and for each entity the segment that it enters
//! 2. the segments that entities enter: each entity is put, owned by its new chunk
//! 3. the segments that they leave: each entity is deleted
//! 4. root: the transfer is over
//!
//! **Invariant**: after a crash at any step, [`finish_transfer`](SegmentedWorld::finish_transfer) finds out from the
//! segments how far the transfer came. If neither contains the entity, step 3 is done, and the entity was deleted
//! since.
//!
//! | segment left | segment entered | steps to do |
//! |---|---|---|
//! | stored | absent | 2 and 3 |
//! | stored | stored | 3 |
//! | absent | either | none |
//! | damaged, or the other is | | none until it is quarantined; others do not wait for it |
//!
//! The root's property `:crossing` stores u8 version 1, u32 count, then for each entity its UUID, the segment that it
//! leaves (dimension u64, x, y, z i64), and u32 length and bytes of the entity as it arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use cg_format::entity::{Entity, Owner};
use cg_format::wire::{Reader, Writer};
use cg_format::{ChunkAt, DecodeError, EntityId};
use cg_store::layer::kind::Entities;
use cg_store::layer::{Check, Checked as _};
use cg_store::{Durability, Error};

use super::place::{entity_property, transfer_property, whole};
use super::transaction::encode as encode_segment;
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};

const VERSION: u8 = 1;

/// Why a transfer failed.
enum NotTransferred {
    /// It was refused, and no entity has arrived.
    Refused(Error),
    /// The storage failed. How far the transfer came is known when the storage can be read and written again.
    Broken(Error),
}

impl NotTransferred {
    fn error(self) -> Error {
        let (Self::Refused(error) | Self::Broken(error)) = self;
        error
    }
}

/// The transfer of one entity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transfer {
    pub(super) id: EntityId,
    pub(super) from: SegmentPos,
    pub(super) entity: Entity,
    /// The chunk that it goes to.
    pub(super) to: ChunkAt,
}

impl Transfer {
    /// Its size in the root's record.
    pub(super) fn len_bytes(&self) -> u64 {
        encode(std::slice::from_ref(self)).len() as u64
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Transfers entities to the chunks that own them now, within a segment or to another one. Each arrives as it is
    /// given here, and is gone from where it was. All of one call are transferred together. If an entity is given
    /// twice, the later one counts.
    ///
    /// After any crash an entity is in exactly one place. Readers of chunks may see a reference in both for a moment;
    /// readers of entities wait. Costs two commits in the root and one in each segment that is left or entered. They
    /// are synced, unless the world's durability is [`Process`](Durability::Process) or [`Fast`](Durability::Fast):
    /// then this holds for a killed process and not for a power cut. If all stay in one segment it costs a transaction
    /// there.
    ///
    /// # Errors
    /// [`SegmentError::NoOwner`], [`SegmentError::NoEntity`] and [`Error::OwnerAbsent`], after which nothing was
    /// changed; the errors of the segments' transactions. After a failure of the storage, the transfer is finished as
    /// soon as the storage can be written again, at the latest when the world is opened. Until then its entities are
    /// [`SegmentError::InTransit`], and the next transfer fails as this one did. If the row of an entity in transit is
    /// damaged, its reads return the damage until it is [quarantined](cg_store::quarantine::Quarantine::entity). Other
    /// transfers do not wait for it. [`Error::Nested`] inside a closure of [`transaction`](Self::transaction) or
    /// [`with_segment`](Self::with_segment).
    pub fn transfer_entities(
        &self,
        entities: impl IntoIterator<Item = (EntityId, Entity)>,
    ) -> Result<(), Error> {
        self.refuse_inside()?;
        let entities: BTreeMap<_, _> = entities.into_iter().collect();
        let _alone = self.shared.moving.lock();
        self.resolve_transfer()?;
        let _others_wait = self.shared.borders.write();
        let catalog = self.catalog();
        let limits = self.shared.root.limits();
        let check = Check { catalog: &catalog, limits: &limits };
        let mut transfers = Vec::new();
        for (id, entity) in entities {
            let Owner::Chunk(to) = entity.owner else { return Err(SegmentError::NoOwner { id }.into()) };
            self.refuse_in_transit(id)?;
            let from = self.home_of(id)?.ok_or(SegmentError::NoEntity { id })?;
            if self.load(to)?.is_none() {
                return Err(Error::OwnerAbsent { id, at: to });
            }
            Entities::check(&check, &id, &entity)?;
            transfers.push(Transfer { id, from, entity, to });
        }
        self.transfer(&transfers, self.level())
    }

    /// Runs a transfer. The caller keeps others from transferring entities and from looking them up.
    pub(super) fn transfer(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        if self.touched(transfers).len() <= 1 {
            return self.arrive(transfers, level).map_err(NotTransferred::error);
        }
        let crossed = self.transfer_across(transfers, level);
        if crossed.is_err() {
            self.shared.unfinished.store(true, Ordering::Release);
        }
        crossed
    }

    /// The segments that entities leave or enter.
    fn touched(&self, transfers: &[Transfer]) -> BTreeSet<SegmentPos> {
        transfers.iter().flat_map(|transfer| [transfer.from, self.segment_of(transfer.to)]).collect()
    }

    fn transfer_across(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        self.begin_transfer(transfers, level)?;
        match self.arrive(transfers, level) {
            Ok(()) => {}
            Err(NotTransferred::Refused(error)) => {
                self.give_up(transfers, level)?;
                return Err(error);
            }
            Err(NotTransferred::Broken(error)) => return Err(error),
        }
        self.leave(transfers, level)?;
        self.end_transfer(transfers, level)
    }

    /// As [`resolve_transfer`](Self::resolve_transfer), but succeeds if only the loss of the segment that is about to
    /// be deleted prevents it.
    pub(super) fn resolve_except(&self, deleted: SegmentPos) -> Result<(), Error> {
        match self.resolve_transfer() {
            Err(error) if lost_segment(&error) == Some(deleted) => Ok(()),
            resolved => resolved,
        }
    }

    /// Finishes the transfer that failed before, if one did. The caller keeps others from transferring entities.
    pub(super) fn resolve_transfer(&self) -> Result<(), Error> {
        if self.shared.unfinished.load(Ordering::Acquire) {
            let _others_wait = self.shared.borders.write();
            self.finish_transfer()?;
        }
        Ok(())
    }

    /// Finishes the transfer that failed before, if that is possible at once. If it fails, entities in transit are
    /// refused.
    pub(super) fn try_to_resolve(&self) {
        // Does not wait: a transfer may wait for a segment that this thread keeps open.
        if self.shared.unfinished.load(Ordering::Acquire)
            && let Some(_alone) = self.shared.moving.try_lock()
            && let Err(error) = self.resolve_transfer()
        {
            tracing::warn!(%error, "a crossing of a border is still not finished");
        }
    }

    /// Refuses an entity whose transfer is not finished. The caller keeps others from transferring entities.
    pub(super) fn refuse_in_transit(&self, id: EntityId) -> Result<(), Error> {
        if !self.shared.unfinished.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(bytes) = self.shared.root.property(&transfer_property()?)? else { return Ok(()) };
        let transfers = whole("crossing", &bytes, decode)?;
        match transfers.into_iter().find(|transfer| transfer.id == id) {
            Some(transfer) => {
                // Returns the damage, if that is the reason.
                self.is_where(&transfer)?;
                let Transfer { from, to, .. } = transfer;
                Err(SegmentError::InTransit { id, from, to: self.segment_of(to) }.into())
            }
            None => Ok(()),
        }
    }

    /// Finishes a transfer that a crash interrupted. If a segment of it is lost, the world is opened nevertheless:
    /// otherwise the segment could not be deleted.
    pub(super) fn finish_transfer_at_open(&self) -> Result<(), Error> {
        match self.finish_transfer() {
            Err(error) if lost_segment(&error).is_some() => {
                tracing::warn!(%error, "a crossing of a border is not finished");
                self.shared.unfinished.store(true, Ordering::Release);
                Ok(())
            }
            finished => {
                for Transfer { id, .. } in &*self.shared.stuck.lock() {
                    tracing::warn!(%id, "an entity cannot cross a border because of damage; quarantine it");
                }
                finished
            }
        }
    }

    /// Whether an entity is in the segment that it leaves, and in the one that it enters.
    fn is_where(&self, transfer: &Transfer) -> Result<[bool; 2], Error> {
        let has = |segment| self.contains(segment, transfer.id);
        Ok([has(transfer.from)?, has(self.segment_of(transfer.to))?])
    }

    /// As [`leave`](Self::leave), for one entity after the other. Returns those that damage keeps where they are.
    fn leave_if_sound(&self, transfers: Vec<Transfer>) -> Result<Vec<Transfer>, Error> {
        let mut stuck = Vec::new();
        for transfer in transfers {
            match self.leave(std::slice::from_ref(&transfer), self.level()) {
                Err(Error::Corrupt(_)) => stuck.push(transfer),
                left => left?,
            }
        }
        Ok(stuck)
    }

    fn finish_transfer(&self) -> Result<(), Error> {
        let Some(bytes) = self.shared.root.property(&transfer_property()?)? else {
            self.shared.stuck.lock().clear();
            self.shared.unfinished.store(false, Ordering::Release);
            return Ok(());
        };
        let transfers = whole("crossing", &bytes, decode)?;
        let (count, all) = (transfers.len(), transfers.clone());
        let (mut arrived, mut missing, mut stuck) = (Vec::new(), Vec::new(), Vec::new());
        for transfer in transfers {
            match self.is_where(&transfer) {
                // An entity that stays in its segment is put again: nothing was committed after the transfer.
                Ok([true, true]) if self.segment_of(transfer.to) != transfer.from => {
                    arrived.push(transfer);
                }
                Ok([true, _]) => missing.push(transfer),
                Ok([false, _]) => {}
                Err(Error::Corrupt(_)) => stuck.push(transfer),
                Err(error) => return Err(error),
            }
        }
        stuck.extend(self.leave_if_sound(arrived)?);
        let refused = match self.arrive(&missing, self.level()) {
            Ok(()) => {
                stuck.extend(self.leave_if_sound(missing.clone())?);
                false
            }
            Err(NotTransferred::Broken(error)) => return Err(error),
            // Refused now as before the crash.
            Err(NotTransferred::Refused(_)) => true,
        };
        let (is_stuck, are_fewer) = (!stuck.is_empty(), stuck.len() < count);
        *self.shared.stuck.lock() = stuck;
        if refused {
            self.give_up(&missing, self.level())?;
        } else if are_fewer {
            self.end_transfer(&all, self.level())?;
        }
        self.shared.unfinished.store(is_stuck, Ordering::Release);
        Ok(())
    }

    fn begin_transfer(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        let all: Vec<_> = self.shared.stuck.lock().iter().chain(transfers).cloned().collect();
        let mut values = vec![(transfer_property()?, Some(encode(&all)))];
        for transfer in transfers {
            values.push((entity_property(transfer.id)?, Some(encode_segment(self.segment_of(transfer.to)))));
        }
        self.set_in_root(level, values)
    }

    /// Puts entities into the segments that they enter. All of it is durable before [`leave`](Self::leave) begins.
    fn arrive(&self, transfers: &[Transfer], level: Durability) -> Result<(), NotTransferred> {
        let entered: BTreeSet<_> = transfers.iter().map(|transfer| self.segment_of(transfer.to)).collect();
        let is_across = self.touched(transfers).len() > 1;
        let mut done = Vec::new();
        for segment in entered {
            let arriving: Vec<_> =
                transfers.iter().filter(|transfer| self.segment_of(transfer.to) == segment).collect();
            let arrived = self.with_there(segment, |world| {
                world.transaction_at(level, |tx| {
                    if is_across {
                        let (property, bytes) = self.crossed_of_root()?;
                        tx.set_property(property, bytes);
                    }
                    for transfer in &arriving {
                        tx.put_entity(transfer.id, transfer.entity.clone());
                    }
                    Ok::<_, Error>(())
                })
            });
            if let Err(error) = arrived {
                let is_broken = matches!(error, Error::Engine(_) | Error::Closed | Error::Open(_))
                    || lost_segment(&error).is_some();
                return Err(if is_broken {
                    NotTransferred::Broken(error)
                } else {
                    self.delete_from(done, level)
                        .map_or_else(NotTransferred::Broken, |()| NotTransferred::Refused(error))
                });
            }
            let entered = arriving.into_iter().filter(|transfer| transfer.from != segment);
            done.extend(entered.map(|transfer| (segment, transfer.id)));
        }
        Ok(())
    }

    fn leave(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        let deleted_entities =
            transfers.iter().filter(|transfer| transfer.from != self.segment_of(transfer.to));
        self.delete_from(deleted_entities.map(|transfer| (transfer.from, transfer.id)), level)
    }

    fn delete_from(
        &self,
        entities: impl IntoIterator<Item = (SegmentPos, EntityId)>,
        level: Durability,
    ) -> Result<(), Error> {
        let mut by_segment: BTreeMap<SegmentPos, Vec<EntityId>> = BTreeMap::new();
        for (segment, id) in entities {
            by_segment.entry(segment).or_default().push(id);
        }
        for (segment, ids) in by_segment {
            self.with_stored(segment, |world| {
                world.transaction_at(level, |tx| {
                    let (property, bytes) = self.crossed_of_root()?;
                    tx.set_property(property, bytes);
                    for id in &ids {
                        tx.delete_entity(*id);
                    }
                    Ok::<_, Error>(())
                })
            })?;
        }
        Ok(())
    }

    fn end_transfer(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        let stays = |transfer: &Transfer| transfer.from == self.segment_of(transfer.to);
        // The segments show that entities have arrived, except for those that stay in theirs.
        let level = if transfers.iter().any(stays) { level } else { Durability::Process };
        let mut values = self.crossed_of(self.touched(transfers))?;
        values.push((transfer_property()?, self.still_stuck()));
        self.set_in_root(level, values)
    }

    /// The record in the root after a transfer: earlier transfers that wait because of damage.
    fn still_stuck(&self) -> Option<Vec<u8>> {
        let stuck = self.shared.stuck.lock();
        (!stuck.is_empty()).then(|| encode(&stuck))
    }

    /// Stores that entities are where they were, and that their transfer is over.
    fn give_up(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        let mut values = self.crossed_of(self.touched(transfers))?;
        values.push((transfer_property()?, self.still_stuck()));
        for transfer in transfers {
            values.push((entity_property(transfer.id)?, Some(encode_segment(transfer.from))));
        }
        self.set_in_root(level, values)
    }
}

fn encode(transfers: &[Transfer]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.u8(VERSION);
    writer.u32(u32::try_from(transfers.len()).unwrap_or(u32::MAX));
    for transfer in transfers {
        bytes.extend(transfer.id.to_bytes());
        transfer.from.encode(&mut bytes);
        let mut entity = Vec::new();
        transfer.entity.encode(&mut entity);
        let mut writer = Writer::new(&mut bytes);
        writer.u32(u32::try_from(entity.len()).unwrap_or(u32::MAX));
        writer.bytes(&entity);
    }
    bytes
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Vec<Transfer>, DecodeError> {
    reader.version_u8("crossing version", VERSION)?;
    let count = reader.u32("entity count")?;
    let mut transfers = Vec::new();
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
        transfers.push(Transfer { id, from, entity, to });
    }
    Ok(transfers)
}

/// The segment whose loss an error reports, or that it is of another history.
fn lost_segment(error: &Error) -> Option<SegmentPos> {
    match error.layer()? {
        SegmentError::Lost { segment, .. } | SegmentError::Replaced { segment, .. } => Some(*segment),
        _ => None,
    }
}
