//! Settling a world: every chunk goes at once to where it would lie after a while in which nobody comes.

use std::ops::Bound;

use cg_format::ClusterTier;
use cg_format::key::Family;
use cg_tiering::{CubeAt, GameTick};

use crate::api::world::{Inner, World};
use crate::engine::ALL_KEYS;
use crate::maintain::move_tier::hot_keys;
use crate::maintain::tiering::{Due, MoveCounts, Work};
use crate::read::delta::Which;
use crate::rt::visits::Visitor;
use crate::storage::error::Error;

/// Settling does what it has found when it has found so much.
const STEPS_GATHERED: u64 = 1 << 12;

impl World {
    /// Folds all deltas, moves every chunk to where it would lie after so many more ticks in which nobody comes, and returns when that is
    /// done, and what was moved away is compacted. The world's clock does not move. For archiving a world, and for trying a policy out.
    ///
    /// `progress` is told the counts so far after each round over the world; it may take hours in a large one. Ticks
    /// wait meanwhile; loads and saves do not.
    ///
    /// Goes on where commits are refused for want of room, down to a quarter of what is to
    /// [stay free](crate::WorldOptions::min_free_bytes): what was moved away is then compacted before more is moved, and at the
    /// end only those kinds of row are that fit into what is free twice.
    ///
    /// # Errors
    /// If the engine fails; [`Error::NoRoom`] if the disk has less room than that: what was moved by then is moved.
    pub fn settle_tiers(
        &self,
        after_ticks: u64,
        mut progress: impl FnMut(&MoveCounts),
    ) -> Result<MoveCounts, Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        let mut state = inner.maintenance.state.lock();
        let at = GameTick::new(inner.tiering.now().get().saturating_add(after_ticks));
        let due = Due::when_nobody_comes(at);
        let state = &mut *state;
        inner.check_room_to_shrink()?;
        let folded = inner.settle_waiting(&mut state.unsettled, Which::All, due, &mut state.work.told)?;
        let counts = inner.settle(&self.visitor(), &mut state.work, due, &mut progress)?;
        if counts.moved() > 0 || folded > 0 {
            inner.compact_settled()?;
        }
        Ok(counts)
    }
}

impl Inner {
    /// Takes all steps. Where there is too little room, what was moved away is compacted, and the rest is taken then.
    /// `given_back` is how much had been moved when that was done last.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if that makes too little.
    fn work_with_room(
        &self,
        visitor: &Visitor<Inner>,
        work: &mut Work,
        due: Due,
        counts: &mut MoveCounts,
        given_back: &mut u64,
    ) -> Result<(), Error> {
        loop {
            self.work(visitor, work, due, counts)?;
            match work.lacks_room.take() {
                None => return Ok(()),
                Some(error) if counts.moved() == *given_back => return Err(error),
                Some(_) => self.give_room_back(work.sweep.behind())?,
            }
            *given_back = counts.moved();
        }
    }

    /// Has the engine give back what hot rows took up to a cube; `None`: all of them. Of those next to none are left.
    fn give_room_back(&self, up_to: Option<CubeAt>) -> Result<(), Error> {
        let last = up_to.map(|cube| hot_keys(cube.cluster(ClusterTier::L1))[1]);
        let last = last.as_ref().map_or(Bound::Unbounded, |key| Bound::Included(&key[..]));
        let engine = self.engine()?;
        // The log is given back, too.
        engine.flush()?;
        engine.compact(Family::ChunkL0, (Bound::Unbounded, last))?;
        self.space.ask_again();
        Ok(())
    }

    /// Compacts what was moved away, which is still in the engine's files: who settles a world wants it to be small. Where
    /// commits are refused for want of room, only what fits into the room twice.
    fn compact_settled(&self) -> Result<(), Error> {
        // The log, too, still holds what was moved.
        self.engine()?.flush()?;
        for family in [
            Family::ChunkL0,
            Family::ChunkL1,
            Family::ChunkL2,
            Family::Index,
            Family::OpacityMap,
            Family::ChunkDelta,
            // What was deleted with chunks.
            Family::Entity,
            Family::Object,
            Family::Record,
        ] {
            let engine = self.engine()?;
            self.space.ask_again();
            if self.check_room().is_err() {
                let families = engine.usage()?.families;
                let held = families.iter().find(|held| held.family == family);
                let bytes = held.map_or(0, |held| held.table_bytes + held.blob_bytes + held.buffered_bytes);
                if engine.free_bytes().is_some_and(|free| bytes > free / 2) {
                    tracing::warn!(family = family.name(), bytes, "too little room to compact");
                    continue;
                }
            }
            engine.compact(family, ALL_KEYS)?;
        }
        Ok(())
    }

    /// Goes round until a whole round moves nothing: what was overtaken by then is being played with.
    fn settle(
        &self,
        visitor: &Visitor<Inner>,
        work: &mut Work,
        due: Due,
        progress: &mut impl FnMut(&MoveCounts),
    ) -> Result<MoveCounts, Error> {
        let (mut counts, mut given_back) = (MoveCounts::default(), 0);
        self.await_promotions(work, 0, due, &mut counts)?;
        loop {
            let before = counts.moved();
            let promotions = work.restart();
            self.tiering.observers(|seen| promotions.into_iter().for_each(|cube| seen.again(cube)));
            while self.sweep_one(work, due)? {
                if work.plan.left().steps >= STEPS_GATHERED {
                    self.work_with_room(visitor, work, due, &mut counts, &mut given_back)?;
                }
            }
            self.work_with_room(visitor, work, due, &mut counts, &mut given_back)?;
            work.keep_heat(self)?;
            self.forget_heat(work, due)?;
            progress(&counts);
            if counts.moved() == before {
                return Ok(counts);
            }
        }
    }
}
