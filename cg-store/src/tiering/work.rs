//! Taking the plan's steps, several threads at once, until they are done or a deadline is there.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use cg_format::{ClusterTier, Tier};
use cg_tiering::{
    Budget, Candidate, ClusterAt, CubeAt, Decision, GameTick, MovePlan, Observation, Observers,
    ShadowedSlots, Step,
};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use super::{Known, Sweep, delete_heat, heat_after_move};
use crate::engine::{Batch, Engine, Level};
use crate::error::Error;
use crate::handle::Visitor;
use crate::move_tier::{ColdMerge, Moved, Outcome, demote_warm, drop_shadows, forget_marks, promote, row_of};
use crate::world::Inner;

/// Settled cubes are offered to the plan so many at a time.
const SETTLED_AT_ONCE: usize = 256;

/// What moves did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MoveCounts {
    /// Chunks that got rows of their own.
    pub promoted: u64,
    /// Chunks that went into warm clusters.
    pub warmed: u64,
    /// Chunks that went into cold clusters.
    pub cooled: u64,
    /// Slots dropped from clusters because a hotter tier shadowed them.
    pub shadows_dropped: u64,
    /// Marks of deleted chunks that were dropped because nobody needs them any more.
    pub marks_forgotten: u64,
    /// Bytes of the rows that were read for it.
    pub bytes_read: u64,
    /// Bytes of the rows that were written for it.
    pub bytes_written: u64,
    /// Moves that gave up because a commit came in between; they are tried again.
    pub overtaken: u64,
    /// Moves that left chunks where they are because a row is damaged, or a cluster would be too large.
    pub refused: u64,
}

/// Whose decisions are carried out, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    at: GameTick,
    who: Who,
    /// When to stop; `None` for not before all is done.
    deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Players, holds and pins as they are.
    AsSeen,
    /// As if nobody were anywhere. Pins hold.
    Nobody,
}

impl Due {
    /// What is due at a tick as things are, worked at until a deadline.
    pub(crate) const fn until(at: GameTick, deadline: Instant) -> Self {
        Self { at, who: Who::AsSeen, deadline: Some(deadline) }
    }

    /// What will be due at a tick if nobody comes till then.
    pub(crate) const fn when_nobody_comes(at: GameTick) -> Self {
        Self { at, who: Who::Nobody, deadline: None }
    }

    /// The tick whose decisions are carried out.
    pub(super) const fn at(&self) -> GameTick {
        self.at
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Where the chunks of a cube which lie in a tier are to be moved, if they are.
    pub(super) fn decide(
        &self,
        seen: &Observers,
        cube: CubeAt,
        tier: Tier,
    ) -> (Observation, Option<Decision>) {
        let here = seen.observe(cube, tier);
        let here = match self.who {
            Who::AsSeen => here,
            Who::Nobody => Observation { pinned: here.pinned, ..Observation::alone(tier, here.last_access) },
        };
        (here, seen.policy().due(&here, self.at))
    }

    /// Whether a step that was planned some time ago is still right.
    fn confirms(&self, seen: &Observers, step: &Step) -> bool {
        self.who == Who::Nobody || seen.confirms(step, self.at)
    }
}

/// Work between two ticks: what is planned and what is begun.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) plan: MovePlan,
    pub(super) sweep: Sweep,
    pub(super) known: Known,
    /// A step that was taken from the plan and not begun.
    held: Option<Step>,
    cold: Option<Cold>,
}

/// The one cold cluster that may be in the making.
#[derive(Debug)]
enum Cold {
    /// Groups are being made; these cubes are in it.
    Making(Box<ColdMerge>, Vec<Taken>),
    /// It is being written by a thread of the pool, as that may take longer than a tick has.
    Writing(Receiver<CommitEnd>, Vec<Taken>),
}

/// A cube whose chunks go into the cluster, and when it was last accessed when they were taken.
type Taken = (CubeAt, GameTick);

type CommitEnd = Result<(Outcome, Option<Error>), Error>;

impl Work {
    /// Begins a new round over all cubes, and forgets what was planned and not done.
    pub(crate) fn restart(&mut self) {
        self.sweep.restart();
        self.plan.clear();
        self.known.take_offers_back();
        self.held = None;
        if matches!(self.cold, Some(Cold::Making(..))) {
            self.cold = None;
        }
    }

    /// Writes the heat of cubes whose rows are out of date, so many at most; see [`Inner::keep_heat`].
    pub(crate) fn keep_heat<E: Engine>(&mut self, world: &Inner<E>) -> Result<(), Error> {
        for cube in world.keep_heat()? {
            self.known.note_heat(cube);
        }
        Ok(())
    }

    /// Whether nothing is planned or begun.
    pub(crate) fn is_done(&self) -> bool {
        let is_planned = !self.plan.is_empty() || self.held.is_some() || self.cold.is_some();
        !is_planned && self.sweep.shadowed.is_empty() && self.sweep.marked.is_empty()
    }

    fn next_step(&mut self) -> Option<Step> {
        self.held.take().or_else(|| self.plan.next_step(&mut Budget { ..Budget::UNLIMITED }))
    }

    /// The steps that may be taken at once: of one kind, and into one cluster if that is a cold one.
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

impl<E: Engine> Inner<E> {
    /// Offers the cubes in which somebody has stayed long enough.
    pub(crate) fn offer_settled(&self, work: &mut Work, now: GameTick) {
        let settled = self.tiering.observers(|seen| {
            let cubes = seen.take_settled(now, SETTLED_AT_ONCE);
            let decided = cubes.into_iter().map(|cube| {
                let here = seen.observe(cube, Tier::L2);
                (cube, seen.policy().decide(&here, now), here)
            });
            decided.collect::<Vec<_>>()
        });
        for (cube, decision, here) in settled {
            // Which of its chunks lie in clusters is found out when they are moved.
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

    /// Takes steps until the plan is empty or the deadline is there, which the last steps may exceed: one cube's work
    /// on each thread. `false` if something is left.
    pub(crate) fn work(
        &self,
        visitor: &Visitor<E>,
        work: &mut Work,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        loop {
            if !self.await_cold(work, due, counts)? {
                return Ok(false);
            }
            if due.is_over() {
                return Ok(work.is_done());
            }
            let steps = work.next_steps(self.pool.thread_count());
            match steps.first().map(|step| step.to) {
                Some(Tier::L2) => self.make_cold(visitor, work, &steps, due, counts)?,
                Some(_) => self.move_cubes(work, &steps, due, counts)?,
                None => {
                    if let Some((cluster, since)) = work.sweep.shadowed.pop() {
                        self.shrink(work, (cluster, since), due, counts)?;
                    } else if let Some(cube) = work.sweep.marked.pop() {
                        self.forget_marks(work, cube, counts)?;
                    } else {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Promotes cubes, or demotes them into warm clusters.
    fn move_cubes(
        &self,
        work: &mut Work,
        steps: &[Step],
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let engine = self.engine()?;
        let (engine, counters) = (&*engine, &self.counters);
        let ends: Vec<_> = self.pool.install(|| {
            let take = |step: &Step| {
                if !self.tiering.observers(|seen| due.confirms(seen, step)) {
                    return Ok(Outcome::Nothing);
                }
                if step.to == Tier::L0 {
                    return promote(engine, counters, step.cube);
                }
                let heat =
                    self.tiering.observers(|seen| heat_after_move(seen, step.cube, self.tiering.now()));
                demote_warm(engine, counters, step.cube, heat)
            };
            steps.par_iter().map(take).collect()
        });
        let mut failed = None;
        for (step, end) in steps.iter().zip(ends) {
            let end = match end {
                Ok(end) => end,
                // The others were done all the same, and so may this one have been.
                Err(error) => {
                    work.known.moved(step.cube);
                    failed = failed.or(Some(error));
                    continue;
                }
            };
            if step.to == Tier::L0 && matches!(end, Outcome::Overtaken) {
                self.tiering.observers(|seen| seen.again(step.cube));
            }
            if step.to == Tier::L1 && matches!(end, Outcome::Done(_)) {
                work.sweep.written_anew(step.cube.cluster(ClusterTier::L1));
            }
            let chunks = self.end(work, &[step.cube], end, counts);
            *(if step.to == Tier::L0 { &mut counts.promoted } else { &mut counts.warmed }) += chunks;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Makes groups of a cold cluster, and has it written when they were the last.
    fn make_cold(
        &self,
        visitor: &Visitor<E>,
        work: &mut Work,
        steps: &[Step],
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let Some(first) = steps.first() else { return Ok(()) };
        let begun = match work.cold.take() {
            Some(Cold::Making(merge, cubes)) if merge.cluster() == first.cluster => Ok((merge, cubes)),
            _ => {
                ColdMerge::begin(&*self.engine()?, first.cluster)?.map(|merge| (Box::new(merge), Vec::new()))
            }
        };
        let (mut merge, mut cubes) = match begun {
            Ok(begun) => begun,
            Err(damage) => {
                work.plan.abandon();
                self.end(work, &[first.cube], Outcome::Damaged(damage), counts);
                return Ok(());
            }
        };
        let made: Vec<_> = self.pool.install(|| {
            let make = |step: &Step| {
                let confirmed = self.tiering.observers(|seen| due.confirms(seen, step));
                let heat =
                    self.tiering.observers(|seen| heat_after_move(seen, step.cube, self.tiering.now()));
                let made = || merge.make(&*self.engine()?, &self.counters, step.cube, heat);
                confirmed.then(|| Ok::<_, Error>((made()?, heat.last_access))).transpose()
            };
            steps.par_iter().map(make).collect()
        });
        let mut failed = None;
        for (step, made) in steps.iter().zip(made) {
            match made {
                Ok(Some((made, last_access))) => {
                    merge.take(made);
                    cubes.push((step.cube, last_access));
                }
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            // On the way into the cold cluster some may have grown warm.
            let begun = cubes.iter().map(|(cube, _)| *cube).chain(steps.iter().map(|step| step.cube));
            begun.for_each(|cube| work.known.moved(cube));
            return Err(error);
        }
        if steps.last().is_some_and(|last| last.remaining_steps > 0) {
            work.cold = Some(Cold::Making(merge, cubes));
            return Ok(());
        }
        let (sender, receiver) = channel();
        let visitor = visitor.clone();
        self.pool.spawn(move || {
            // A world that is gone has nothing to be written to; the chunks are where they were.
            if let Ok(end) = visitor.visit(|world| merge.commit(&*world.engine()?, &world.counters)) {
                let _ = sender.send(end);
            }
        });
        work.cold = Some(Cold::Writing(receiver, cubes));
        Ok(())
    }

    /// Waits for the cold cluster that is being written; `false` if the deadline comes first.
    fn await_cold(&self, work: &mut Work, due: Due, counts: &mut MoveCounts) -> Result<bool, Error> {
        let (receiver, cubes) = match work.cold.take() {
            Some(Cold::Writing(receiver, cubes)) => (receiver, cubes),
            making => {
                work.cold = making;
                return Ok(true);
            }
        };
        let end = match due.deadline {
            Some(deadline) => receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let (end, damage) = match end {
            Ok(Ok(end)) => end,
            Ok(Err(error)) => {
                // It may have been written all the same.
                for (cube, _) in &cubes {
                    work.known.moved(*cube);
                }
                return Err(error);
            }
            Err(RecvTimeoutError::Timeout) => {
                work.cold = Some(Cold::Writing(receiver, cubes));
                return Ok(false);
            }
            // The thread went away with the world.
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Closed),
        };
        if let Some(damage) = damage {
            tracing::warn!(%damage, "damage keeps chunks from growing cold");
            counts.refused += 1;
        }
        let mut moved: Vec<_> = cubes.iter().map(|(cube, _)| *cube).collect();
        if let Outcome::Done(_) = &end {
            if let Some(cube) = moved.first() {
                work.sweep.written_anew(cube.cluster(ClusterTier::L2));
            }
            // What is cold as a whole is not looked for, so its heat is of no use; but somebody may have come since.
            for (cube, _) in &cubes {
                work.known.moved(*cube);
            }
            self.tiering.observers(|seen| {
                for (cube, last_access) in cubes {
                    if seen.heat().last_access(cube) == last_access {
                        seen.heat().forget(cube);
                    }
                }
            });
            moved.clear();
        }
        counts.cooled += self.end(work, &moved, end, counts);
        Ok(true)
    }

    /// Writes a cluster anew without what a hotter tier shadows, if the policy says so of what has been above it since
    /// a moment.
    fn shrink(
        &self,
        work: &mut Work,
        (cluster, since): (ClusterAt, GameTick),
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let policy = self.tiering.observers(|seen| *seen.policy());
        let mut present = None;
        let should_rewrite = |slots: ShadowedSlots| {
            present = Some(slots.present);
            policy.should_rewrite(slots, since, due.at)
        };
        let end =
            self.pool.install(|| drop_shadows(&*self.engine()?, &self.counters, cluster, should_rewrite))?;
        match end {
            Outcome::Done(moved) => {
                counts.shadows_dropped += counts.add(moved);
                work.sweep.written_anew(cluster);
            }
            Outcome::Overtaken => counts.overtaken += 1,
            Outcome::Damaged(_) | Outcome::TooLarge => counts.refused += 1,
            // Without a cluster there is nothing to be asked about.
            Outcome::Nothing => {
                work.sweep.counted(cluster, present.unwrap_or(0), self.tiering.now());
            }
        }
        Ok(())
    }

    /// Forgets the marks of a cube that hide nothing and that the host allowed to forget.
    fn forget_marks(&self, work: &mut Work, cube: CubeAt, counts: &mut MoveCounts) -> Result<(), Error> {
        let before = self.forgotten_before.load(Ordering::Relaxed);
        match forget_marks(&*self.engine()?, &self.counters, cube, before)? {
            Outcome::Done(moved) => {
                counts.marks_forgotten += counts.add(moved);
                work.known.moved(cube);
            }
            // What was saved meanwhile has no mark any more; the others are another number once they are read again.
            Outcome::Overtaken => {
                counts.overtaken += 1;
                work.known.moved(cube);
            }
            Outcome::Nothing | Outcome::Damaged(_) | Outcome::TooLarge => {}
        }
        Ok(())
    }

    /// Notes how a move of cubes ended; returns the chunks that it moved.
    fn end(&self, work: &mut Work, cubes: &[CubeAt], end: Outcome, counts: &mut MoveCounts) -> u64 {
        let now = self.tiering.now();
        if !matches!(end, Outcome::Nothing) {
            for cube in cubes {
                work.known.moved(*cube);
            }
        }
        match end {
            Outcome::Nothing => 0,
            Outcome::Done(moved) => {
                self.tiering.observers(|seen| cubes.iter().for_each(|cube| seen.moved(*cube, now)));
                counts.add(moved)
            }
            Outcome::Overtaken => {
                counts.overtaken += 1;
                0
            }
            end @ (Outcome::Damaged(_) | Outcome::TooLarge) => {
                if let Outcome::Damaged(damage) = end {
                    tracing::warn!(%damage, "damage keeps chunks from moving");
                }
                counts.refused += 1;
                let later = self.tiering.observers(|seen| seen.policy().cold_after_ticks);
                let until = GameTick::new(now.get().saturating_add(later.max(1)));
                for cube in cubes {
                    work.sweep.leave_alone(*cube, until);
                }
                0
            }
        }
    }

    /// Deletes the heat of cubes that have nothing to grow cold any more.
    ///
    /// A cube may have been played in since the sweep passed it, so each is looked at again: a warm cluster without a
    /// heat row would never be found.
    pub(crate) fn forget_heat(&self, work: &mut Work) -> Result<(), Error> {
        let mut batch = Batch::new();
        for cube in std::mem::take(&mut work.sweep.heat_only) {
            let (space, row_key) = row_of(cube.cluster(ClusterTier::L1));
            if self.engine()?.get(space, &row_key)?.is_none() && self.hot_rows(cube, 0)?.rows == 0 {
                delete_heat(&mut batch, cube);
                self.tiering.observers(|seen| seen.heat().forget(cube));
            }
        }
        if !batch.is_empty() {
            self.engine()?.commit(batch.rearranging(), &[], Level::Process)?;
        }
        Ok(())
    }
}

impl MoveCounts {
    /// Chunks, slots and marks that were moved or dropped in any way.
    pub const fn moved(&self) -> u64 {
        self.promoted + self.warmed + self.cooled + self.shadows_dropped + self.marks_forgotten
    }

    /// Counts the bytes of a move and returns its chunks.
    fn add(&mut self, moved: Moved) -> u64 {
        self.bytes_read += moved.bytes_read;
        self.bytes_written += moved.bytes_written;
        moved.chunks
    }
}

#[cfg(test)]
mod tests;
