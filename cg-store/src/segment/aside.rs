//! A promotion that counts and of which a part cannot be read: the segments whose part is sound get it, the others stay as
//! they were, and all go on.

use std::ops::ControlFlow;

use cg_format::EntityId;
use parking_lot::MutexGuard;

use super::pieces::Pieces;
use super::place::{entity_property, promoted_property, promotion_property};
use super::redo::{Redo, is_damage};
use super::transaction::encode as encode_segment;
use super::{SegmentHome, SegmentPos, SegmentedWorld};
use crate::durability::Durability;
use crate::error::Error;

/// What became of a promotion of which a part was damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromotionInPart {
    /// The segments that have their part.
    pub carried_out: Vec<SegmentPos>,
    /// Those that have not, each with what is wrong; no segment where that could not be read either.
    pub lost: Vec<(Option<SegmentPos>, String)>,
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Gives up what cannot be read of a promotion that keeps segments closed: what is left of the damaged parts is copied
    /// into the root's quarantine, their segments stay as they were before the promotion, the others get their part, and all
    /// are open again. `Ok(None)` if nothing of a promotion is damaged; what could be carried out was then.
    ///
    /// This is the one way in which a part of a promotion is ever seen. An entity that was to go from a segment that has
    /// its part to one that gets none is gone with that part; one that came from there is not doubled. A backup, if there is one, is the better
    /// choice. Killed in the middle, it is done again.
    ///
    /// # Errors
    /// What the engines say, and whatever else than damage keeps a part from being carried out; [`Error::Nested`] inside a
    /// closure that was given to [`transaction`](Self::transaction) or [`with_segment`](Self::with_segment).
    pub fn set_aside_promotion(&self) -> Result<Option<PromotionInPart>, Error> {
        self.refuse_inside()?;
        let alone = self.shared.moving.lock();
        if !self.has_promotion() || self.finish_what_counts(&alone).is_ok() {
            return Ok(None);
        }
        let record = promotion_property()?;
        let (redo, unknown, is_read) = match self.read_redo() {
            Ok(Some(redo)) => (redo, Vec::new(), true),
            Ok(None) => return Ok(None),
            Err(error) if is_damage(&error) => {
                let (redo, unknown) = self.redo_of_pieces()?;
                (redo, unknown, false)
            }
            Err(error) => return Err(error),
        };
        let mut found = PromotionInPart { carried_out: Vec::new(), lost: Vec::new() };
        let pieces = Pieces::of(&self.shared.root);
        let mut given_up = Vec::new();
        for kept in &redo.segments {
            match self.carry_out_in(&redo, kept.segment) {
                Ok(_) => found.carried_out.push(kept.segment),
                Err(error) if self.read_part(&redo, kept.segment).is_err_and(|error| is_damage(&error)) => {
                    found.lost.push((Some(kept.segment), error.to_string()));
                    given_up.push(kept.number);
                }
                Err(error) => return Err(error),
            }
        }
        for number in unknown {
            found.lost.push((None, format!("part {number} of the promotion cannot be read")));
            given_up.push(number);
        }
        if !is_read && given_up.is_empty() {
            found.lost.push((None, "nothing of the promotion can be read".into()));
        }
        // Before any segment is said to have its part: what has no pieces and no mark is found to be damaged again.
        for number in given_up {
            self.shared.root.set_aside_properties(&pieces.of_part(number)?)?;
        }
        for segment in self.segments() {
            if !found.carried_out.contains(&segment) && self.shared.together.is_changing(segment) {
                self.go_on_without(&redo, segment)?;
            }
        }
        if !is_read {
            self.shared.root.set_aside_properties(&[record])?;
        }
        self.open_again(&alone)?;
        Ok(Some(found))
    }

    /// Notes that a segment is not to get its part, and has it let go of entities that others have got by theirs. What was to
    /// go to another segment that has not got it either is found here again.
    fn go_on_without(&self, redo: &Redo, segment: SegmentPos) -> Result<(), Error> {
        self.with_there(segment, |world| {
            let mut ids = Vec::new();
            world.for_each_entity(|met| {
                // A damaged one belongs to nobody.
                ids.extend(met.ok().map(|(id, _)| id));
                ControlFlow::<()>::Continue(())
            })?;
            let (mut strays, mut stay) = (Vec::new(), Vec::new());
            for id in ids {
                if self.is_elsewhere(id, segment)? {
                    strays.push(id);
                } else if self.claimed(id)? != Some(segment) {
                    stay.push(id);
                }
            }
            // Before the mark: a crash in between has this done again.
            self.place(segment, &stay)?;
            let mark = promoted_property()?;
            world.transaction_at(Durability::Safe, |tx| {
                tx.let_in();
                for id in strays {
                    tx.delete_entity(id);
                }
                tx.set_property(mark, Some(redo.id.as_bytes().to_vec()));
                Ok::<_, Error>(())
            })?;
            Ok(())
        })
    }

    /// Notes in the root that a segment has entities, which no other has.
    fn place(&self, segment: SegmentPos, ids: &[EntityId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        self.shared.root.transaction_at(Durability::Safe, |tx| {
            for id in ids {
                tx.set_property(entity_property(*id)?, Some(encode_segment(segment)));
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }

    /// Whether another segment has an entity.
    fn is_elsewhere(&self, id: EntityId, than: SegmentPos) -> Result<bool, Error> {
        let Some(other) = self.claimed(id)?.filter(|other| *other != than) else { return Ok(false) };
        Ok(self.with_stored(other, |world| world.entity(id))?.flatten().is_some())
    }

    fn open_again(&self, alone: &MutexGuard<'_, ()>) -> Result<(), Error> {
        self.end_promotion(Vec::new(), alone)?;
        self.shared.together.close_again([]).open();
        Ok(())
    }
}
