//! Takes the steps of the plan on several threads, until they are done or the deadline is reached.
//!
//! Warm clusters are written within a tick, which waits for the threads. Cold clusters are read and written in the
//! background: the row is as large as 64 cubes, and an engine reads it as a whole.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;
use cg_format::{ClusterTier, Tier};
use cg_tiering::{Budget, Candidate, CubeAt, GameTick, Heat, MovePlan, Step};

use super::cold::Cold;
use super::promotions::Promoting;
use super::purge::{Purge, await_purge};
use super::shrink::Shrinking;
use super::{
    Cleanup, CubeIndex, DamageLog, Due, MoveCounts, Tiering, delete_heat, heat_after_move, put_cold_heat,
    read_cold_heat,
};
use crate::engine::{Batch, EngineError, ErrorKind, Guard, Level, ReadableExt as _};
use crate::maintain::move_tier::{Outcome, demote_warm, hot_keys, past_damage, row_of};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The maximum number of settled cubes that are offered to the plan at a time.
const SETTLED_AT_ONCE: usize = 256;

/// Planned work and work in progress between two ticks.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) plan: MovePlan,
    pub(super) cube_index: CubeIndex,
    pub(super) cleanup: Cleanup,
    /// A step that was taken from the plan and not begun.
    pub(super) held: Option<Step>,
    pub(super) promoting: Promoting,
    pub(super) cold: Option<Cold>,
    pub(super) shrinking: Option<Shrinking>,
    pub(super) purge: Option<Purge>,
    pub(crate) damage_log: DamageLog,
    /// Whether another kind of move had to wait for promotions. It may have to wait again.
    others_waited: bool,
    /// The reason why known work waits, if the disk has too little free space.
    pub(crate) skipped_low_disk: Option<Error>,
}

impl Work {
    /// Drops planned steps, and forgets all indexed rows; they are read again. Returns the cubes that were to be
    /// promoted: a search finds all others again, but these are reported only once.
    #[must_use = "somebody stays in them and waits to be promoted"]
    pub(crate) fn begin_again(&mut self) -> Vec<CubeAt> {
        let planned = std::iter::from_fn(|| self.next_step());
        let promotions = planned.filter(|step| step.to == Tier::L0).map(|step| step.cube).collect();
        if matches!(self.cold, Some(Cold::Beginning(..) | Cold::Making(..))) {
            self.cold = None;
        }
        self.cube_index.begin_again();
        promotions
    }

    /// Drops planned steps, and forgets all that was found.
    pub(super) fn know_nothing(&mut self) {
        drop(self.begin_again());
        self.cube_index = CubeIndex::default();
        self.cleanup = Cleanup::default();
    }

    /// Records in the index the rows that commits put.
    pub(crate) fn note_written(&mut self, tiering: &Tiering) {
        let written = tiering.written.lock().take();
        if written.is_err() {
            // The engine may have been opened again.
            self.damage_log.forget_gaps();
        }
        self.cube_index.note(written);
    }

    /// Writes the heat of some cubes whose rows are out of date; see [`MaintainState::keep_heat`].
    pub(crate) fn keep_heat(&mut self, world: &MaintainState) -> Result<(), Error> {
        for cube in world.keep_heat()? {
            self.cube_index.note_heat(cube);
        }
        Ok(())
    }

    /// Whether nothing is planned or in progress.
    pub(crate) fn is_done(&self) -> bool {
        let is_planned = !self.plan.is_empty() || self.held.is_some();
        let is_behind = self.cold.is_some() || self.shrinking.is_some() || self.purge.is_some();
        let is_begun = is_behind || self.promoting.is_under_way();
        !is_planned && !is_begun && self.cleanup.shadowed.is_empty() && self.cleanup.marked.is_empty()
    }

    /// Whether groups of the held step's cold cluster are being built.
    fn is_cold_begun(&self) -> bool {
        let next = self.held.map(|step| step.cluster);
        matches!(&self.cold, Some(Cold::Making(merge, _)) if Some(merge.cluster()) == next)
    }

    /// The target tier of the next step. The step is held until it is taken.
    fn next_tier(&mut self) -> Option<Tier> {
        self.held = self.next_step();
        self.held.map(|step| step.to)
    }

    pub(super) fn next_step(&mut self) -> Option<Step> {
        self.held.take().or_else(|| self.plan.next_step(&mut Budget { ..Budget::UNLIMITED }))
    }

    /// The steps that may be taken at once: of one kind, and into one cluster if it is a cold one.
    fn next_steps(&mut self, count: usize) -> Vec<Step> {
        let Some(first) = self.next_step() else { return Vec::new() };
        let mut steps = vec![first];
        while steps.len() < count
            && (first.to != Tier::L2 || steps.last().is_some_and(|step| step.remaining_steps > 0))
        {
            let Some(next) = self.next_step() else { break };
            if next.to != first.to || (next.to == Tier::L2 && next.cluster != first.cluster) {
                self.held = Some(next);
                break;
            }
            steps.push(next);
        }
        steps
    }
}

impl MaintainState {
    /// Offers the cubes in which a player has stayed long enough.
    pub(crate) fn offer_settled(&self, work: &mut Work, now: GameTick) {
        let settled = self.activity.tiering.observers(|seen| {
            let cubes = seen.take_settled(now, SETTLED_AT_ONCE);
            let decided = cubes.into_iter().map(|cube| {
                let here = seen.observe(cube, Tier::L2);
                (cube, seen.policy().decide(&here, now), here)
            });
            decided.collect::<Vec<_>>()
        });
        for (cube, decision, here) in settled {
            // Which of its chunks are in clusters is determined by the move.
            work.plan.offer(Candidate {
                cube,
                from: Tier::L2,
                decision,
                chunks: 0,
                bytes: 0,
                last_access: here.last_access,
                nearest_player_blocks: here.nearest_player_blocks,
            });
        }
    }

    /// Whether there is disk space for what maintenance writes. Records the error if there is not.
    pub(crate) fn has_room(&self, work: &mut Work, due: Due) -> Result<bool, Error> {
        let checked =
            if due.shrinks() { self.commit.check_room_to_shrink() } else { self.commit.check_room() };
        match checked {
            Err(error @ Error::LowDiskSpace { .. }) => {
                work.skipped_low_disk = Some(error);
                Ok(false)
            }
            checked => checked.map(|()| true),
        }
    }

    /// Takes steps until the plan is empty or the deadline is reached. The last steps may exceed it by one cube's work
    /// on each thread. Returns `false` if something is left, even if it only has to be waited for. Without enough disk
    /// space only tombstones are purged. The rest waits and does not count as left.
    pub(crate) fn work(&self, work: &mut Work, due: Due, counts: &mut MoveCounts) -> Result<bool, Error> {
        loop {
            // One kind of move at a time: none runs beside a cold move in the background.
            if !self.await_cold(work, due, counts)?
                || !self.await_shrinking(work, due, counts)?
                || !await_purge(work, due, counts)?
            {
                return Ok(false);
            }
            let has_room = self.has_room(work, due)?;
            let next = if has_room { work.next_tier() } else { None };
            let most = if next == Some(Tier::L0) { self.promotions_at_once(work, due) } else { 0 };
            if !self.await_promotions(work, most, due, counts)? {
                work.others_waited |= next != Some(Tier::L0);
                return Ok(false);
            }
            if due.is_over() {
                return Ok(work.is_done());
            }
            match next {
                Some(Tier::L0) => self.begin_promotion(work, due),
                Some(Tier::L1) => {
                    let steps = work.next_steps(self.threads_to_use(due));
                    self.warm_cubes(work, &steps, due, counts)?;
                }
                Some(Tier::L2) if work.is_cold_begun() => {
                    let steps = work.next_steps(self.threads_to_use(due));
                    self.make_cold(work, &steps, due, counts)?;
                }
                Some(Tier::L2) => self.begin_cold(work),
                None => {
                    let shadowed = if has_room { work.cleanup.shadowed.pop() } else { None };
                    if let Some((cluster, since)) = shadowed {
                        self.shrink(work, (cluster, since), due, counts)?;
                    } else if let Some(cube) = work.cleanup.marked.pop() {
                        self.purge_tombstones(work, cube, counts)?;
                    } else {
                        work.others_waited = false;
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Promotions run in parallel: one on each thread. A tick that does not wait starts enough of them to occupy the
    /// threads until the next tick. If another kind of move had to wait for that, it starts only one for each thread.
    fn promotions_at_once(&self, work: &Work, due: Due) -> usize {
        const UNTIL_THE_NEXT_TICK: usize = 8;
        let for_each = if due.waits() || work.others_waited { 1 } else { UNTIL_THE_NEXT_TICK };
        self.shared.pool.thread_count() * for_each
    }

    fn threads_to_use(&self, due: Due) -> usize {
        if !due.waits() || self.shared.pool.is_busy() { 1 } else { self.shared.pool.thread_count() }
    }

    /// Demotes cubes into warm clusters.
    fn warm_cubes(
        &self,
        work: &mut Work,
        steps: &[Step],
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let engine = self.shared.engine()?;
        let (engine, counters) = (&*engine, &self.shared.counters);
        // Whether each step was still right, and its result.
        let ends: Vec<Result<_, Error>> = self.shared.pool.each(steps, |step: &Step| {
            if !self.activity.tiering.observers(|seen| due.confirms(seen, step)) {
                return Ok((false, Outcome::Nothing));
            }
            let heat = self
                .activity
                .tiering
                .observers(|seen| heat_after_move(seen, step.cube, self.activity.tiering.now()));
            Ok((true, past_damage(demote_warm(engine, counters, step.cube, heat))?))
        });
        let mut failed = None;
        for (step, end) in steps.iter().zip(ends) {
            let (was_right, end) = match end {
                Ok(end) => end,
                // The other steps ran all the same, and this one may have been written.
                Err(error) => {
                    work.cube_index.moved(step.cube);
                    failed = failed.or(Some(error));
                    continue;
                }
            };
            if was_right && matches!(end, Outcome::Nothing) {
                // The rows to be moved do not exist: they changed since they were read.
                work.cube_index.moved(step.cube);
            }
            if matches!(end, Outcome::Done(_)) {
                work.cleanup.written_anew(step.cube.cluster(ClusterTier::L1));
            }
            counts.warmed += self.end(work, &[step.cube], end, counts);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Records the result of a move of cubes. Returns the number of moved chunks.
    pub(super) fn end(
        &self,
        work: &mut Work,
        cubes: &[CubeAt],
        end: Outcome,
        counts: &mut MoveCounts,
    ) -> u64 {
        let now = self.activity.tiering.now();
        if !matches!(end, Outcome::Nothing) {
            for cube in cubes {
                work.cube_index.moved(*cube);
            }
        }
        match end {
            Outcome::Nothing => 0,
            Outcome::Done(moved) => {
                self.activity.tiering.observers(|seen| cubes.iter().for_each(|cube| seen.moved(*cube, now)));
                counts.add(moved)
            }
            Outcome::Conflict => {
                counts.conflicts += 1;
                0
            }
            end @ (Outcome::Damaged(_) | Outcome::TooLarge) => {
                if let Outcome::Damaged(damage) = end {
                    work.damage_log.report(&damage);
                }
                counts.refused += 1;
                for cube in cubes {
                    work.cube_index
                        .leave_cluster_alone(cube.cluster(ClusterTier::L1), self.left_alone_until());
                }
                0
            }
        }
    }

    /// Until when a move that damage prevented is not tried again.
    pub(super) fn left_alone_until(&self) -> GameTick {
        let later = self.activity.tiering.observers(|seen| seen.policy().cold_after_ticks);
        GameTick::new(self.activity.tiering.now().get().saturating_add(later.max(1)))
    }

    /// Deletes the heat rows of cubes that have nothing to demote any more.
    ///
    /// A cube may have changed since it was found, so each is read again: a warm cluster without a heat row
    /// would never be found. The heat of a cube that was accessed meanwhile is kept.
    pub(crate) fn forget_heat(&self, work: &mut Work, due: Due) -> Result<(), Error> {
        let mut batch = Batch::new();
        let mut forgotten: Vec<(CubeAt, GameTick)> = Vec::new();
        while let Some((cube, last_access)) = work.cleanup.heat_only.pop() {
            if due.is_over() {
                work.cleanup.heat_only.push((cube, last_access));
                break;
            }
            let (space, row_key) = row_of(cube.cluster(ClusterTier::L1));
            // What cannot be read may be a warm cluster, or a hot row.
            let [first, last] = hot_keys(cube.cluster(ClusterTier::L1));
            let hot = (Bound::Included(&first[..]), Bound::Included(&last[..]));
            let has_any = || -> Result<bool, Error> {
                let engine = self.shared.engine()?;
                let is_hot = || engine.scan(Family::ChunkL0, hot, |_, _| ControlFlow::Break(()));
                Ok(engine.get(space, &row_key)?.is_some() || is_hot()?.is_some())
            };
            match has_any() {
                Ok(true) => {}
                Ok(false) => {
                    let is_left = self.activity.tiering.observers(|seen| {
                        let is_left = seen.heat().last_access(cube) == last_access;
                        if is_left {
                            seen.heat().forget(cube);
                        }
                        is_left
                    });
                    if is_left {
                        delete_heat(&mut batch, cube);
                        forgotten.push((cube, last_access));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Damaged => work.damage_log.report(&error),
                Err(error) => return Err(error),
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        let guards = self.heat_of_cold(&mut batch, &forgotten)?;
        match self.shared.engine()?.commit(batch.maintenance(), &guards, Level::Process) {
            // A move has recorded an access to such a cluster: the rows are deleted another time.
            Err(EngineError::Conflict { .. }) => {
                for (cube, _) in &forgotten {
                    work.cube_index.note_heat(*cube);
                }
                Ok(())
            }
            done => Ok(done.map(drop)?),
        }
    }

    /// Adds to a batch the accesses to the cold clusters around some cubes. Returns the guards of the changed rows.
    fn heat_of_cold(&self, batch: &mut Batch, accessed: &[(CubeAt, GameTick)]) -> Result<Vec<Guard>, Error> {
        let mut latest = BTreeMap::new();
        for (cube, last_access) in accessed {
            let known: &mut GameTick = latest.entry(cube.cluster(ClusterTier::L2)).or_default();
            *known = (*known).max(*last_access);
        }
        let (engine, mut guards) = (self.shared.engine()?, Vec::new());
        for (cluster, last_access) in latest {
            let (known, guard) = read_cold_heat(&*engine, cluster)?;
            // An unknown access time stays unknown.
            if let Some(known) = known.filter(|known| known.last_access < last_access) {
                put_cold_heat(batch, cluster, Heat { last_access, ..known });
                guards.push(guard);
            }
        }
        Ok(guards)
    }
}

#[cfg(test)]
mod tests;
