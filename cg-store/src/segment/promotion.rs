//! Promotions: an overlay merged into as many segments as it has changed, all of it or nothing.
//!
//! What lies in one segment is one transaction there, and so are properties, objects and records in the root, which
//! has them. What lies in more takes these steps:
//!
//! | step | who waits | a crash behind it leaves |
//! |---|---|---|
//! | segments that do not exist are created | nobody | empty segments |
//! | all that it changes is compared with what it wrote over, and prepared in each segment, which is synced | nobody | the same |
//! | root: what is to become of each segment, in pieces | nobody | the same, and pieces, which the next open deletes |
//! | its segments take no more commits; what has been committed since is compared, and synced | who commits | the same |
//! | root, synced: that it counts ([`Redo`]), and where its entities are from now on; properties, objects and records. **It counts.** | who reads, too | the promotion, none of it carried out |
//! | each segment accepts its part, and in the same commit the promotion's UUID as its `:promoted` | who reads, too | the same |
//! | each segment writes and syncs it | who commits | the promotion, carried out in some |
//! | root: the record is gone | nobody | the promotion |
//!
//! Who opens the world carries out what the root remembers before anybody reads. A segment that has the UUID has its part,
//! whatever was done to it since, and does not get it again; one that was deleted since gets nothing. One that was opened
//! alone since, without its root, and changed there: what of it is written over is copied into its quarantine first.
//!
//! **Invariant**: from the commit of the root on, until all segments show their part, nobody reads any of them but by
//! [`with_segment`](SegmentedWorld::with_segment) where that got stuck; and nobody commits in one that is not durable.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use cg_format::entity::Owner;
use cg_format::frame::{Codec, Draft};
use cg_format::{EntityId, Space, key};
use parking_lot::MutexGuard;
use uuid::Uuid;

use super::place::{entity_property, promoted_property, promotion_property};
use super::redo::{Part, Redo, is_damage};
use super::together::ClosedSegments;
use super::transaction::encode as encode_segment;
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};
use crate::durability::Durability;
use crate::error::{ConflictKey, Error};
use crate::overlay::{PromoteTarget as _, Promotion, Takes as _};
use crate::quarantine::ReplacedRow;
use crate::transaction::Ahead;
use crate::world::World;

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
        let segments: Vec<_> = plan.parts.keys().copied().collect();
        self.with_all_made(&segments, |worlds| self.promote_in_all(promotion, plan, worlds))?;
        let lost = plan.parts.iter().map(|(segment, part)| (*segment, part.lost())).collect();
        if let Err(error) = self.end_promotion(lost, alone) {
            // Every segment has its part, and knows it.
            tracing::warn!(%error, "the record of a promotion that was carried out stays for now");
        }
        Ok(())
    }

    /// Promotes into segments whose worlds stay open meanwhile.
    fn promote_in_all(&self, promotion: &Promotion, plan: &Plan, worlds: &[&World]) -> Result<(), Error> {
        let (id, mark) = (Uuid::new_v4(), promoted_property()?);
        let mut ahead = Vec::with_capacity(worlds.len());
        for (world, part) in worlds.iter().zip(plan.parts.values()) {
            // Before it is compared: what comes behind this is a conflict.
            ahead.push(Ahead::begin(world, |tx| {
                part.fill(tx);
                tx.set_property(mark.clone(), Some(id.as_bytes().to_vec()));
            })?);
        }
        promotion.check(self)?;
        ahead.iter_mut().try_for_each(Ahead::prepare)?;
        let put_by = self.put_by(id, &plan.parts);
        // What it was compared with and is put upon must not be lost where it is kept. Most of it is synced before others wait.
        let synced = put_by.and_then(|put_by| {
            worlds.iter().try_for_each(|world| world.flush())?;
            Ok(put_by)
        });
        let (redo, len_bytes) = synced.inspect_err(|_| self.forget_in_vain())?;

        let closed = self.shared.together.close(plan.parts.keys().copied());
        let prepared = ahead.iter_mut().try_for_each(Ahead::settle);
        let decided = prepared.and_then(|()| self.decide(promotion, plan, worlds, redo, len_bytes, &closed));
        if let Err(error) = decided {
            // What the root shows may be lost yet, or may not.
            if matches!(self.read_redo(), Ok(None)) && !is_in_doubt(&error) {
                closed.open();
                self.forget_in_vain();
            } else {
                closed.stuck(&error.to_string());
            }
            return Err(error);
        }
        self.shared.promoted.store(true, Ordering::Release);
        let mut done: Vec<_> = ahead.into_iter().map(|ahead| ahead.accept().map(drop)).collect();
        if done.iter().all(Result::is_ok) {
            closed.to_readers();
        }
        for (done, world) in done.iter_mut().zip(worlds) {
            if done.is_ok() {
                *done = world.flush();
            }
        }
        end(closed, plan.parts.keys().copied().zip(done))
    }

    /// Deletes what was put by for a promotion that does not count, if that can be done.
    fn forget_in_vain(&self) {
        if let Err(error) = self.forget_pieces() {
            tracing::warn!(%error, "the pieces of a promotion that does not count stay for now");
        }
    }

    /// Makes the promotion count.
    fn decide(
        &self,
        promotion: &Promotion,
        plan: &Plan,
        worlds: &[&World],
        mut redo: Redo,
        len_bytes: u64,
        closed: &ClosedSegments<'_>,
    ) -> Result<(), Error> {
        for (world, kept) in worlds.iter().zip(&mut redo.segments) {
            world.flush()?;
            kept.commit = world.last_commit();
        }
        self.check_room(len_bytes)?;
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
            tx.set_property(promotion_property()?, Some(redo.encode()));
            for (segment, part) in &plan.parts {
                for (id, _) in part.entities.iter().filter(|(_, entity)| entity.is_some()) {
                    tx.set_property(entity_property(*id)?, Some(encode_segment(*segment)));
                }
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }

    /// Refuses what would fill the disk once it counts: the segments write it, each in parts if it is large, and the root has
    /// written it, which not every disk tells at once.
    fn check_room(&self, len_bytes: u64) -> Result<(), Error> {
        let root = self.shared.root.settled()?;
        let times = if len_bytes > root.batch_limit()? { 3 } else { 2 };
        root.space.check(&*root.engine()?, len_bytes.saturating_mul(times))
    }

    /// Gives each segment its part as the root remembers it, and lets everybody in where that can be done. Returns the
    /// entities that each segment lost by it.
    fn carry_out(&self, redo: &Redo, closed: ClosedSegments<'_>) -> Result<Vec<Lost>, Error> {
        self.shared.promoted.store(true, Ordering::Release);
        let (mut lost, mut done) = (Vec::new(), Vec::new());
        for segment in redo.segments() {
            let carried_out = self.carry_out_in(redo, segment);
            done.push((segment, carried_out.map(|ids| lost.push((segment, ids)))));
        }
        end(closed, done)?;
        Ok(lost)
    }

    pub(super) fn carry_out_in(&self, redo: &Redo, segment: SegmentPos) -> Result<Vec<EntityId>, Error> {
        let mark = promoted_property()?;
        let lost = self.with_stored(segment, |world| {
            if world.property(&mark)?.as_deref() == Some(redo.id.as_bytes()) {
                // It may be in doubt whether the disk has it. Places of what it lost stay in the root and mean nothing.
                world.flush()?;
                return Ok(Vec::new());
            }
            // Before all of it is read in vain.
            world.settled()?.queue.check()?;
            let part = self.read_part(redo, segment)?;
            let changed = part.changed_behind(world, redo.commit_of(segment))?;
            if !changed.is_empty() {
                let count = changed.len();
                tracing::warn!(%segment, count, "what was changed in a segment alone is copied into its quarantine");
                world.keep_copies(changed)?;
            }
            world.transaction_at(Durability::Safe, |tx| {
                tx.let_in();
                part.fill(tx);
                tx.set_property(mark, Some(redo.id.as_bytes().to_vec()));
                Ok::<_, Error>(())
            })?;
            Ok(part.lost())
        })?;
        // One that is gone was deleted since.
        Ok(lost.unwrap_or_default())
    }

    /// Forgets a promotion that is carried out, and where entities were.
    pub(super) fn end_promotion(&self, lost: Vec<Lost>, _alone: &MutexGuard<'_, ()>) -> Result<(), Error> {
        for (segment, ids) in lost {
            let _nobody_puts = self.shared.borders.write();
            self.unclaim(segment, &ids)?;
        }
        let record = promotion_property()?;
        self.shared.root.transaction_at(Durability::Process, |tx| {
            tx.set_property(record, None);
            Ok::<_, Error>(())
        })?;
        self.shared.promoted.store(false, Ordering::Release);
        self.forget_in_vain();
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

    pub(super) fn finish_what_counts(&self, alone: &MutexGuard<'_, ()>) -> Result<(), Error> {
        if self.shared.together.is_stuck() {
            // While the root takes no commits, the one that counts may be there and not be shown.
            self.shared.root.settled()?.queue.check()?;
        } else if self.shared.promoted.load(Ordering::Acquire) {
            // All segments have their part.
            return self.end_promotion(Vec::new(), alone);
        }
        let Some(redo) = self.read_redo()? else {
            // It was in doubt, and does not count.
            self.shared.together.close_again([]).open();
            self.shared.promoted.store(false, Ordering::Release);
            self.forget_in_vain();
            return Ok(());
        };
        let closed = if self.shared.together.is_stuck() {
            self.shared.together.close_again(self.shared.together.closed())
        } else {
            self.shared.together.close_again(redo.segments())
        };
        if let Err(error) = self.shared.root.flush() {
            closed.stuck(&error.to_string());
            return Err(error);
        }
        let lost = self.carry_out(&redo, closed)?;
        self.end_promotion(lost, alone)
    }

    /// Carries out what a crash interrupted. What cannot be leaves its segments closed and the others open, and what is
    /// carried out and cannot be forgotten keeps nobody out. Where it cannot even be read which segments they are, all that
    /// there are stay closed.
    pub(super) fn finish_promotion_at_open(&self) -> Result<(), Error> {
        let alone = self.shared.moving.lock();
        match self.finish_what_counts(&alone) {
            Err(error) if self.has_promotion() => {
                tracing::warn!(%error, "a promotion is not carried out, or its record stays");
                Ok(())
            }
            Err(error) if is_damage(&error) => {
                tracing::warn!(%error, "a promotion counts and cannot be read; set it aside");
                let all = self.shared.known.read().keys().copied().collect::<Vec<_>>();
                self.shared.together.close_again(all).stuck(&error.to_string());
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

/// Lets everybody into the segments that have their part, and says why to whoever comes to one of the others.
fn end(
    closed: ClosedSegments<'_>,
    done: impl IntoIterator<Item = (SegmentPos, Result<(), Error>)>,
) -> Result<(), Error> {
    let failed = done.into_iter().filter_map(|(segment, done)| Some((segment, done.err()?)));
    let (segments, errors): (Vec<_>, Vec<_>) = failed.unzip();
    match errors.into_iter().next() {
        None => {
            closed.open();
            Ok(())
        }
        Some(error) => {
            closed.stuck_in(segments, &error.to_string());
            Err(error)
        }
    }
}

impl Part {
    /// The entities that its segment has no more.
    fn lost(&self) -> Vec<EntityId> {
        self.entities.iter().filter(|(_, entity)| entity.is_none()).map(|(id, _)| *id).collect()
    }

    /// The rows of what it writes over and somebody has written behind a commit.
    fn changed_behind(&self, world: &World, commit: u64) -> Result<Vec<ReplacedRow>, Error> {
        let mut rows = Vec::new();
        if world.last_commit() <= commit {
            return Ok(rows);
        }
        let generation = world.catalog().current_generation();
        let mut add = |space, row_key: Vec<u8>, version, draft: Draft| {
            let row = draft.seal(space, &row_key, version);
            rows.push((space, row_key, row));
        };
        for (at, _) in &self.chunks {
            if let Some((chunk, version)) =
                world.load_versioned(*at)?.filter(|(_, version)| *version > commit)
            {
                let draft = Draft::plain(Codec::None, generation, |out| chunk.encode(out));
                add(Space::ChunkL0, key::chunk(*at).to_vec(), version, draft);
            }
        }
        for (id, _) in &self.entities {
            if let Some(version) = world.entity_version(*id)?.filter(|version| *version > commit)
                && let Some(entity) = world.entity(*id)?
            {
                let draft = Draft::plain(Codec::None, generation, |out| entity.encode(out));
                add(Space::Entity, key::entity(*id).to_vec(), version, draft);
            }
        }
        Ok(rows)
    }
}

/// Whether a commit that failed with this may count all the same.
fn is_in_doubt(error: &Error) -> bool {
    matches!(error, Error::Engine(error) if !error.wrote_nothing())
}
