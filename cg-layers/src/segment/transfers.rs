//! Transfers entities between segments, which are synced separately.
//!
//! Steps, each committed before the next begins:
//!
//! 1. the segments that entities leave: what they accepted is made as durable as the steps that follow.
//!    Root: the transfer, and for each entity the segment that it enters
//! 2. the segments that entities enter: each entity is put, owned by its new chunk
//! 3. the segments that they leave: each entity is deleted
//! 4. root: the transfer is over
//!
//! **Invariant**: after a crash at any step, `finish` of [`resolve`](super::resolve) finds out from the
//! segments how far the transfer came. If neither contains the entity, step 3 is done, and the entity was deleted
//! since.
//!
//! | segment left | segment entered | steps to do |
//! |---|---|---|
//! | stored | absent | 2 and 3 |
//! | stored | stored | 3 |
//! | absent | either | none |
//! | damaged, or the other is | | none until it is quarantined; others do not wait for it |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkSource as _, EntityId};
use cg_store::error::ConflictKey;
use cg_store::layer::kind::Entities;
use cg_store::layer::{Base as _, Check, Checked as _, values_of};
use cg_store::{Durability, Error};

use super::borders::Borders;
use super::error::{SegmentError, lost_segment};
use super::history::{ToSet, crossed_of_root, crossed_of_segment};
use super::home::SegmentHome;
use super::open::OpenSegments;
use super::places::level_of;
use super::pos::SegmentPos;
use super::root::Root;
use super::rows::{entity_property, transfer_property};
use super::transfer::{Transfer, encode};

/// Why a transfer failed.
pub(super) enum NotTransferred {
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

/// Transfers between the segments of a world.
#[derive(Debug)]
pub(super) struct Transfers<H> {
    open: Arc<OpenSegments<H>>,
    borders: Arc<Borders<H>>,
}

impl<H: SegmentHome> Transfers<H> {
    pub(super) const fn new(open: Arc<OpenSegments<H>>, borders: Arc<Borders<H>>) -> Self {
        Self { open, borders }
    }

    pub(super) fn root(&self) -> &Root {
        self.open.root()
    }

    pub(super) fn open(&self) -> &OpenSegments<H> {
        &self.open
    }

    pub(super) fn borders(&self) -> &Borders<H> {
        &self.borders
    }

    /// Transfers entities to the chunks that own them now. The caller keeps others from transferring entities, and has
    /// [resolved](Self::resolve) the transfer that failed before.
    pub(super) fn transfer(&self, entities: BTreeMap<EntityId, Entity>) -> Result<(), Error> {
        let _others_wait = self.borders.close();
        let catalog = self.root().world().catalog();
        let limits = self.root().world().limits();
        let values = values_of(self.root().world());
        let check = Check { catalog: &catalog, limits: &limits, values };
        let mut transfers = Vec::new();
        for (id, entity) in entities {
            let Owner::Chunk(to) = entity.owner else { return Err(SegmentError::NoOwner { id }.into()) };
            self.borders.refuse_in_transit(id)?;
            let from =
                self.borders.home_of(&ConflictKey::Entity(id))?.ok_or(SegmentError::NoEntity { id })?;
            if self.open.look_up(to, |world| world.lookup(to))?.here().is_none() {
                return Err(Error::OwnerAbsent { id, at: to });
            }
            Entities::check(&check, &id, &entity)?;
            transfers.push(Transfer { id, from, entity, to });
        }
        self.run(&transfers, self.root().level())
    }

    /// Runs a transfer. The caller keeps others from transferring entities and from looking them up.
    pub(super) fn run(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        if self.touched(transfers).len() <= 1 {
            return self.arrive(transfers, level).map_err(NotTransferred::error);
        }
        let crossed = self.across(transfers, level);
        if crossed.is_err() {
            self.borders.set_unfinished(true);
        }
        crossed
    }

    /// The segments that entities leave or enter.
    fn touched(&self, transfers: &[Transfer]) -> BTreeSet<SegmentPos> {
        transfers.iter().flat_map(|transfer| [transfer.from, self.root().segment_of(transfer.to)]).collect()
    }

    fn across(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        self.keep_left(transfers, level)?;
        self.begin(transfers, level)?;
        match self.arrive(transfers, level) {
            Ok(()) => {}
            Err(NotTransferred::Refused(error)) => {
                self.give_up(transfers, level)?;
                return Err(error);
            }
            Err(NotTransferred::Broken(error)) => return Err(error),
        }
        self.leave(transfers, level)?;
        self.end(transfers, level)
    }

    /// Makes what the segments accepted that entities leave as durable as the transfer: an entity may carry a part of it away,
    /// which a crash would otherwise put back.
    fn keep_left(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        // What was submitted to them is accepted: the entities were looked up there since the borders are closed.
        let left: BTreeSet<_> = transfers.iter().map(|transfer| transfer.from).collect();
        for segment in left {
            self.open.with_stored(segment, |world| world.keep_found(level_of(level)))?;
        }
        Ok(())
    }

    fn begin(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        let all: Vec<_> = self.borders.stuck().iter().chain(transfers).cloned().collect();
        let mut values = vec![(transfer_property()?, Some(encode(&all)))];
        for transfer in transfers {
            values
                .push((entity_property(transfer.id)?, Some(self.root().segment_of(transfer.to).to_bytes())));
        }
        self.root().set(level, values)
    }

    /// Puts entities into the segments that they enter. All of it is durable before [`leave`](Self::leave) begins.
    pub(super) fn arrive(&self, transfers: &[Transfer], level: Durability) -> Result<(), NotTransferred> {
        let entered: BTreeSet<_> =
            transfers.iter().map(|transfer| self.root().segment_of(transfer.to)).collect();
        let is_across = self.touched(transfers).len() > 1;
        let mut done = Vec::new();
        for segment in entered {
            let arriving: Vec<_> =
                transfers.iter().filter(|transfer| self.root().segment_of(transfer.to) == segment).collect();
            let arrived = self.open.with_there(segment, |world| {
                world.transaction_at(level, |tx| {
                    if is_across {
                        let (property, bytes) = crossed_of_root(self.root().world())?;
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

    pub(super) fn leave(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        let deleted_entities =
            transfers.iter().filter(|transfer| transfer.from != self.root().segment_of(transfer.to));
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
            self.open.with_stored(segment, |world| {
                world.transaction_at(level, |tx| {
                    let (property, bytes) = crossed_of_root(self.root().world())?;
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

    pub(super) fn end(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        let stays = |transfer: &Transfer| transfer.from == self.root().segment_of(transfer.to);
        // The segments show that entities have arrived, except for those that stay in theirs.
        let level = if transfers.iter().any(stays) { level } else { Durability::Process };
        let mut values = self.crossed_of(self.touched(transfers))?;
        values.push((transfer_property()?, self.still_stuck()));
        self.root().set(level, values)
    }

    /// The record in the root after a transfer: earlier transfers that wait because of damage.
    fn still_stuck(&self) -> Option<Vec<u8>> {
        let stuck = self.borders.stuck();
        (!stuck.is_empty()).then(|| encode(&stuck))
    }

    /// Stores that entities are where they were, and that their transfer is over.
    pub(super) fn give_up(&self, transfers: &[Transfer], level: Durability) -> Result<(), Error> {
        let mut values = self.crossed_of(self.touched(transfers))?;
        values.push((transfer_property()?, self.still_stuck()));
        for transfer in transfers {
            values.push((entity_property(transfer.id)?, Some(transfer.from.to_bytes())));
        }
        self.root().set(level, values)
    }

    /// The properties of the root that say which transfers of segments it knows, after a transfer.
    fn crossed_of(&self, segments: impl IntoIterator<Item = SegmentPos>) -> Result<Vec<ToSet>, Error> {
        let mut values = Vec::new();
        for segment in segments.into_iter().collect::<BTreeSet<_>>() {
            values.extend(self.open.with_stored(segment, |world| crossed_of_segment(segment, world))?);
        }
        Ok(values)
    }
}
