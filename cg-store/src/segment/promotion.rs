//! Promotions: an overlay merged into as many segments as it has changed, all of it or nothing.
//!
//! What lies in one segment is one transaction there, and so are properties, objects and records in the root, which
//! has them. What lies in more takes these steps:
//!
//! | step | a crash behind it leaves |
//! |---|---|
//! | segments that do not exist are created | empty segments |
//! | its segments take no more commits; all that it changes is compared with what it wrote over, and rehearsed in each segment, which is synced | the same |
//! | root, synced: what is to become of each segment ([`Redo`]), and where its entities are from now on; properties, objects and records. **It counts.** | the promotion, none of it carried out |
//! | each segment, synced: its part, and in the same commit the promotion's UUID as its `:promoted` | the promotion, carried out in some |
//! | root: the record is gone | the promotion |
//!
//! Who opens the world carries out what the root remembers before anybody reads. A segment that has the UUID has its part,
//! whatever was done to it since, and does not get it again; one that was deleted since gets nothing.
//!
//! **Invariant**: from the commit of the root on, until all segments have their part, nobody reads any of them but by
//! [`with_segment`](SegmentedWorld::with_segment) where that got stuck.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use cg_format::EntityId;
use cg_format::entity::Owner;
use parking_lot::MutexGuard;
use uuid::Uuid;

use super::place::{entity_property, promoted_property};
use super::redo::{Part, Redo};
use super::together::ClosedSegments;
use super::transaction::encode as encode_segment;
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};
use crate::durability::Durability;
use crate::error::{ConflictKey, Error};
use crate::overlay::{PromoteTarget as _, Promotion, Takes as _};

/// A property of the root that is part of a record is not made longer than this.
const PIECE_BYTES: u64 = 1 << 20;

/// A segment, and the entities that it has no more.
type Lost = (SegmentPos, Vec<EntityId>);

/// Where everything belongs that a promotion changes.
#[derive(Default)]
struct Plan {
    parts: BTreeMap<SegmentPos, Part>,
    /// Which segment has each entity now.
    homes: BTreeMap<EntityId, Option<SegmentPos>>,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    pub(super) fn promote(&self, promotion: &Promotion) -> Result<u64, Error> {
        self.refuse_inside()?;
        if let Some(property) = promotion.properties.keys().find(|property| property.is_engines()) {
            return Err(SegmentError::EnginesProperty { property: property.to_string() }.into());
        }
        let alone = self.shared.moving.lock();
        self.settle(&alone)?;
        let plan = self.plan(promotion)?;
        let mut segments = plan.parts.keys();
        match (segments.next(), segments.next()) {
            (None, _) => self.root().apply(promotion),
            (Some(segment), None) if !promotion.has_kept() => {
                drop(alone);
                self.promote_in(*segment, promotion)
            }
            _ => {
                self.promote_together(promotion, &plan, &alone)?;
                Ok(promotion.len())
            }
        }
    }

    /// An entity that no chunk owns stays in the segment that has it, or goes to the one that it is in by its position.
    fn plan(&self, promotion: &Promotion) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        for (at, promoting) in &promotion.chunks {
            let part = plan.parts.entry(self.segment_of(*at)).or_default();
            part.chunks.push((*at, promoting.new.clone()));
        }
        for (id, promoting) in &promotion.entities {
            let home = self.home_of(*id)?;
            plan.homes.insert(*id, home);
            let to = promoting.new.as_ref().map(|entity| match &entity.owner {
                Owner::Chunk(at) => self.segment_of(*at),
                Owner::Detached(_) => home.unwrap_or_else(|| {
                    let (dimension, pos) = (entity.position.dimension(), entity.position.block().chunk());
                    self.segment_of(cg_format::ChunkAt { dimension, pos })
                }),
            });
            if let Some(left) = home.filter(|home| Some(*home) != to) {
                plan.parts.entry(left).or_default().entities.push((*id, None));
            }
            if let (Some(to), Some(entity)) = (to, &promoting.new) {
                plan.parts.entry(to).or_default().entities.push((*id, Some(entity.clone())));
            }
        }
        Ok(plan)
    }

    /// The segment that has an entity, if any has.
    fn home_of(&self, id: EntityId) -> Result<Option<SegmentPos>, Error> {
        let Some(segment) = self.claimed(id)? else { return Ok(None) };
        let is_there = self.with_stored(segment, |world| world.entity(id))?.flatten().is_some();
        Ok(is_there.then_some(segment))
    }

    fn promote_together(
        &self,
        promotion: &Promotion,
        plan: &Plan,
        alone: &MutexGuard<'_, ()>,
    ) -> Result<(), Error> {
        for segment in plan.parts.keys() {
            self.with_made(*segment, |_| Ok::<_, Error>(()))?;
        }
        let closed = self.shared.together.close(plan.parts.keys().copied());
        promotion.check(self)?;
        for (segment, part) in &plan.parts {
            self.with_there(*segment, |world| {
                world.rehearse(|tx| {
                    part.fill(tx);
                    Ok::<_, Error>(())
                })?;
                // What it was compared with and is put upon must not be lost where it is kept.
                world.flush()
            })?;
        }
        let redo = match self.decide(promotion, plan, &closed) {
            Ok(redo) => redo,
            Err(error) => {
                // What the root shows may be lost yet, or may not.
                if matches!(self.read_redo(), Ok(None)) && !is_in_doubt(&error) {
                    closed.open();
                } else {
                    closed.stuck(&error.to_string());
                }
                return Err(error);
            }
        };
        let deleted = self.carry_out(&redo, Some(&plan.parts), closed)?;
        if let Err(error) = self.end_promotion(&redo, deleted, alone) {
            // Every segment has its part, and knows it.
            tracing::warn!(%error, "the record of a promotion that was carried out stays for now");
        }
        Ok(())
    }

    /// Makes the promotion count.
    fn decide(&self, promotion: &Promotion, plan: &Plan, closed: &ClosedSegments<'_>) -> Result<Redo, Error> {
        let catalog = self.catalog();
        let piece_bytes = PIECE_BYTES.min(self.shared.root.limits().property_bytes) as usize;
        let generation = catalog.current_generation();
        let (redo, rows) = Redo::encode(Uuid::new_v4(), generation, &plan.parts, piece_bytes)?;
        self.check_room(rows.iter().map(|(_, bytes)| bytes.len() as u64).sum())?;
        let _nobody_puts = self.shared.borders.write();
        for (id, home) in &plan.homes {
            // Another segment's, which was not closed.
            if self.home_of(*id)? != *home {
                return Err(Error::Conflict { key: ConflictKey::Entity(*id) });
            }
        }
        closed.to_everybody();
        self.shared.root.transaction_at(Durability::Safe, |tx| {
            tx.look_at_kept(promotion)?;
            promotion.check_kept(&self.shared.root)?;
            tx.take_kept(promotion)?;
            for (property, bytes) in rows {
                tx.set_property(property, Some(bytes));
            }
            for (segment, part) in &plan.parts {
                for (id, _) in part.entities.iter().filter(|(_, entity)| entity.is_some()) {
                    tx.set_property(entity_property(*id)?, Some(encode_segment(*segment)));
                }
            }
            Ok::<_, Error>(())
        })?;
        Ok(redo)
    }

    /// Refuses what would fill the disk once it counts: the root and the segments write it, each in parts if it is large.
    fn check_room(&self, len_bytes: u64) -> Result<(), Error> {
        let root = self.shared.root.settled()?;
        let times = if len_bytes > root.batch_limit()? { 4 } else { 2 };
        root.space.check(&*root.engine()?, len_bytes.saturating_mul(times))
    }

    /// Gives each segment its part, and lets everybody in. Returns the entities that each segment lost by it.
    ///
    /// Whoever has the parts in memory gives them, because readers wait until all is done.
    fn carry_out(
        &self,
        redo: &Redo,
        parts: Option<&BTreeMap<SegmentPos, Part>>,
        closed: ClosedSegments<'_>,
    ) -> Result<Vec<Lost>, Error> {
        self.shared.promoted.store(true, Ordering::Release);
        let lost = redo.segments().map(|segment| {
            let part = parts.and_then(|parts| parts.get(&segment));
            Ok((segment, self.carry_out_in(redo, segment, part)?))
        });
        match lost.collect::<Result<_, Error>>() {
            Ok(lost) => {
                closed.open();
                Ok(lost)
            }
            Err(error) => {
                closed.stuck(&error.to_string());
                Err(error)
            }
        }
    }

    fn carry_out_in(
        &self,
        redo: &Redo,
        segment: SegmentPos,
        known: Option<&Part>,
    ) -> Result<Vec<EntityId>, Error> {
        let mark = promoted_property()?;
        let lost = self.with_stored(segment, |world| {
            if world.property(&mark)?.as_deref() == Some(redo.id.as_bytes()) {
                // It may be in doubt whether the disk has it. Places of what it lost stay in the root and mean nothing.
                world.flush()?;
                return Ok(Vec::new());
            }
            // Before all of it is read in vain.
            world.settled()?.queue.check()?;
            let read = if known.is_some() { Part::default() } else { self.read_part(redo, segment)? };
            let part = known.unwrap_or(&read);
            world.transaction_at(Durability::Safe, |tx| {
                tx.let_in();
                part.fill(tx);
                tx.set_property(mark, Some(redo.id.as_bytes().to_vec()));
                Ok::<_, Error>(())
            })?;
            let lost = part.entities.iter().filter(|(_, entity)| entity.is_none());
            Ok(lost.map(|(id, _)| *id).collect())
        })?;
        // One that is gone was deleted since.
        Ok(lost.unwrap_or_default())
    }

    /// Forgets a promotion that is carried out, and where entities were.
    fn end_promotion(&self, redo: &Redo, lost: Vec<Lost>, _alone: &MutexGuard<'_, ()>) -> Result<(), Error> {
        for (segment, ids) in lost {
            let _nobody_puts = self.shared.borders.write();
            self.unclaim(segment, &ids)?;
        }
        let properties = redo.properties()?;
        self.shared.root.transaction_at(Durability::Process, |tx| {
            for property in properties {
                tx.set_property(property, None);
            }
            Ok::<_, Error>(())
        })?;
        self.shared.promoted.store(false, Ordering::Release);
        Ok(())
    }

    /// Whether there may be a promotion that counts and is not carried out or not forgotten.
    pub(super) fn has_promotion(&self) -> bool {
        self.shared.promoted.load(Ordering::Acquire) || self.shared.together.is_stuck()
    }

    /// Carries out what counts and could not be before.
    pub(super) fn finish_promotion(&self, alone: &MutexGuard<'_, ()>) -> Result<(), Error> {
        if self.has_promotion() { self.finish_what_counts(alone) } else { Ok(()) }
    }

    fn finish_what_counts(&self, alone: &MutexGuard<'_, ()>) -> Result<(), Error> {
        let Some(redo) = self.read_redo()? else {
            // It was in doubt, and does not count.
            self.shared.together.close_again([]).open();
            self.shared.promoted.store(false, Ordering::Release);
            return Ok(());
        };
        let closed = self.shared.together.close_again(redo.segments());
        if let Err(error) = self.shared.root.flush() {
            closed.stuck(&error.to_string());
            return Err(error);
        }
        let lost = self.carry_out(&redo, None, closed)?;
        self.end_promotion(&redo, lost, alone)
    }

    /// Carries out what a crash interrupted. What cannot be leaves its segments closed and the others open, and what is
    /// carried out and cannot be forgotten keeps nobody out.
    pub(super) fn finish_promotion_at_open(&self) -> Result<(), Error> {
        let alone = self.shared.moving.lock();
        match self.finish_what_counts(&alone) {
            Err(error) if self.has_promotion() => {
                tracing::warn!(%error, "a promotion is not carried out, or its record stays");
                Ok(())
            }
            finished => finished,
        }
    }

    /// Waits until segments are as they are to stay; what could not be carried out in them before is first, if it can be
    /// now. Who reads others does not try: it may take long, and fail again.
    ///
    /// # Errors
    /// [`SegmentError::NotCarriedOut`].
    pub(super) fn pass(&self, segments: &[SegmentPos]) -> Result<(), Error> {
        // Not waited for, as where a crossing is settled.
        if self.shared.together.is_stuck()
            && segments.iter().any(|segment| self.shared.together.is_changing(*segment))
            && let Some(alone) = self.shared.moving.try_lock()
            && let Err(error) = self.finish_promotion(&alone)
        {
            tracing::warn!(%error, "a promotion is still not carried out");
        }
        Ok(self.shared.together.pass(segments)?)
    }

    /// Reads of several segments what is of one state as far as promotions go.
    pub(super) fn of_one_state<T>(&self, segments: &[SegmentPos], read: impl Fn() -> T) -> Result<T, Error> {
        loop {
            let closings = self.shared.together.closings();
            self.pass(segments)?;
            let value = read();
            if segments.len() < 2 || self.shared.together.closings() == closings {
                return Ok(value);
            }
        }
    }
}

/// Whether a commit that failed with this may count all the same.
fn is_in_doubt(error: &Error) -> bool {
    matches!(error, Error::Engine(error) if !error.wrote_nothing())
}
