//! Takes the steps of the plan on several threads, until they are done or the deadline is reached.
//!
//! Warm clusters are written within a tick, which waits for the threads. Cold clusters are read, built and written in the
//! background: the row is as large as 64 cubes, an engine reads it as a whole, and its compression takes longer than a tick.

use cg_format::{ClusterTier, Tier};
use cg_tiering::{Budget, Candidate, CubeAt, GameTick, Heat, MovePlan, Step};

use super::jobs::{Ended, JobKind, Jobs};
use super::{Cleanup, CubeIndex, DamageLog, Due, Gathered, MoveCounts, Tiering, heat_after_move};
use crate::maintain::move_tier::{ColdMerge, Outcome, demote_warm, past_damage, promote};
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
    pub(super) jobs: Jobs,
    /// Rows that this tick has read, over a network.
    pub(crate) gathered: Gathered,
    /// The one cold cluster that may be being built.
    pub(super) merge: Option<Box<ColdMerge>>,
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
        self.jobs.forget(JobKind::ColdRead);
        self.merge = None;
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
        self.gathered = Gathered::default();
        if written.is_err() {
            // The engine may have been opened again.
            self.damage_log.forget_gaps();
        }
        self.cube_index.note(written);
    }

    /// Whether nothing is planned or in progress.
    pub(crate) fn is_done(&self) -> bool {
        let is_planned = !self.plan.is_empty() || self.held.is_some();
        let is_begun = !self.jobs.is_empty() || self.merge.is_some();
        !is_planned && !is_begun && self.cleanup.shadowed.is_empty() && self.cleanup.marked.is_empty()
    }

    /// Whether groups of the held step's cold cluster are being built.
    fn is_cold_begun(&self) -> bool {
        let next = self.held.map(|step| step.cluster);
        self.merge.as_ref().is_some_and(|merge| Some(merge.cluster()) == next)
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
    pub(super) fn next_steps(&mut self, count: usize) -> Vec<Step> {
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
            if !self.collect_jobs(work, usize::MAX, due, counts)? {
                return Ok(false);
            }
            let has_room = self.has_room(work, due)?;
            let next = if has_room { work.next_tier() } else { None };
            let most = if next == Some(Tier::L0) { self.promotions_at_once(work, due) } else { 0 };
            if !self.collect_jobs(work, most, due, counts)? {
                work.others_waited |= next != Some(Tier::L0);
                return Ok(false);
            }
            if due.is_over() {
                return Ok(work.is_done());
            }
            if self.is_over_network {
                // Closing waits for this thread.
                self.shared.check_open()?;
            }
            let has_begun = match next {
                Some(tier) => self.begin_move(work, tier, due, counts).map(|()| true)?,
                None => self.begin_cleanup(work, has_room, due, counts)?,
            };
            if !has_begun {
                work.others_waited = false;
                return Ok(true);
            }
        }
    }

    /// Begins the held step, or takes some like it.
    fn begin_move(&self, work: &mut Work, to: Tier, due: Due, counts: &mut MoveCounts) -> Result<(), Error> {
        if self.is_over_network {
            return self.move_together(work, to, due, counts);
        }
        match to {
            Tier::L0 => self.begin_promotion(work, due),
            Tier::L1 => {
                let steps = work.next_steps(self.threads_to_use(due));
                self.warm_cubes(work, &steps, due, counts)?;
            }
            Tier::L2 if work.is_cold_begun() => {
                let steps = work.next_steps(self.threads_to_use(due));
                self.begin_cold_groups(work, steps, due);
            }
            Tier::L2 => self.begin_cold(work),
        }
        Ok(())
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

    /// Starts the held promotion.
    fn begin_promotion(&self, work: &mut Work, due: Due) {
        let Some(step) = work.next_step() else { return };
        self.begin_job(work, JobKind::Promotion, vec![step.cube], move |world| {
            if !world.activity.tiering.observers(|seen| due.confirms(seen, &step)) {
                return Ok(Ended::Promotion(Outcome::Nothing));
            }
            let end = promote(&*world.shared.engine()?, &world.shared.counters, step.cube);
            past_damage(end).map(Ended::Promotion)
        });
    }

    /// Demotes cubes into warm clusters.
    fn warm_cubes(
        &self,
        work: &mut Work,
        steps: &[Step],
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let ends = self.shared.pool.each(steps, |step: &Step| self.warm_cube(step, due));
        let mut failed = None;
        for (step, end) in steps.iter().zip(ends) {
            match end {
                Ok(None) => {}
                Ok(Some(end)) => self.end_warm(work, step, end, counts),
                // The other steps ran all the same, and this one may have been written.
                Err(error) => {
                    work.cube_index.moved(step.cube);
                    failed = failed.or(Some(error));
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Records the result of a demotion into a warm cluster.
    pub(super) fn end_warm(&self, work: &mut Work, step: &Step, end: Outcome, counts: &mut MoveCounts) {
        match end {
            Outcome::Done(_) => work.cleanup.written_anew(step.cluster),
            // The rows to be moved do not exist: they changed since they were read.
            Outcome::Nothing => work.cube_index.moved(step.cube),
            _ => {}
        }
        counts.warmed += self.end(work, &[step.cube], end, counts);
    }

    /// Demotes a cube into its warm cluster. Returns `None` if the step is not right any more.
    fn warm_cube(&self, step: &Step, due: Due) -> Result<Option<Outcome>, Error> {
        let Some(heat) = self.heat_if_confirmed(step, due) else { return Ok(None) };
        let end = demote_warm(&*self.shared.engine()?, &self.shared.counters, step.cube, heat);
        past_damage(end).map(Some)
    }

    /// The heat of a cube when it is demoted now; `None` if the step is not right any more.
    pub(super) fn heat_if_confirmed(&self, step: &Step, due: Due) -> Option<Heat> {
        let now = self.activity.tiering.now();
        self.activity
            .tiering
            .observers(|seen| due.confirms(seen, step).then(|| heat_after_move(seen, step.cube, now)))
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
}

#[cfg(test)]
mod tests;
