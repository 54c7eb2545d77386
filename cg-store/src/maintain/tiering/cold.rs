//! The cold cluster in the making: it is read in the background, its groups are made in slices of them, and it is written after
//! them.

use cg_format::ClusterTier;
use cg_tiering::{CubeAt, GameTick, Step};

use super::{Due, MoveCounts, Work, heat_after_move};
use crate::maintain::background::{Awaited, Background};
use crate::maintain::move_tier::{ColdEnd, ColdMerge, Outcome};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The one cold cluster that may be in the making.
#[derive(Debug)]
pub(super) enum Cold {
    /// It is being read by a thread of the pool, as that may take longer than a tick has.
    Beginning(Background<Begun>),
    /// Groups are being made; these cubes are in it.
    Making(Box<ColdMerge>, Vec<Taken>),
    /// It is being written by a thread of the pool, for the same reason.
    Writing(Background<ColdEnd>, Vec<Taken>),
}

/// What came of reading a cluster, which may be damaged.
type Begun = Result<Box<ColdMerge>, Error>;

/// A cube whose chunks go into the cluster, and when it was last accessed when they were taken.
pub(super) type Taken = (CubeAt, GameTick);

impl MaintainState {
    /// Has a thread of the pool read the cold cluster into which the step that is held goes.
    pub(super) fn begin_cold(&self, work: &mut Work) {
        let Some(step) = work.held else { return };
        work.cold = Some(Cold::Beginning(self.in_background("reading a cold cluster", move |world| {
            Ok(ColdMerge::begin(&*world.shared.engine()?, step.cluster)?.map(Box::new))
        })));
    }

    /// Makes groups of the cold cluster that was begun, and has it written when they were the last.
    pub(super) fn make_cold(
        &self,
        work: &mut Work,
        steps: &[Step],
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let Some(Cold::Making(mut merge, mut cubes)) = work.cold.take() else { return Ok(()) };
        let made = self.shared.pool.each(steps, |step: &Step| {
            let confirmed = self.activity.tiering.observers(|seen| due.confirms(seen, step));
            let heat = self
                .activity
                .tiering
                .observers(|seen| heat_after_move(seen, step.cube, self.activity.tiering.now()));
            let made = || merge.make(&*self.shared.engine()?, &self.shared.counters, step.cube, heat);
            confirmed.then(|| Ok::<_, Error>((made()?, heat.last_access))).transpose()
        });
        let mut failed = None;
        for (step, made) in steps.iter().zip(made) {
            match made {
                Ok(Some((Ok(made), last_access))) => {
                    merge.take(made);
                    cubes.push((step.cube, last_access));
                }
                Ok(Some((Err(end), _))) => {
                    // What was to be moved may be not there, or be a warm cluster now.
                    work.cube_index.moved(step.cube);
                    self.end(work, &[step.cube], end, counts);
                }
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            // On the way into the cold cluster some may have grown warm.
            let begun = cubes.iter().map(|(cube, _)| *cube).chain(steps.iter().map(|step| step.cube));
            begun.for_each(|cube| work.cube_index.moved(cube));
            return Err(error);
        }
        if steps.last().is_some_and(|last| last.remaining_steps > 0) {
            work.cold = Some(Cold::Making(merge, cubes));
            return Ok(());
        }
        let writing = self.in_background("writing a cold cluster", move |world| {
            merge.commit(&*world.shared.engine()?, &world.shared.counters)
        });
        work.cold = Some(Cold::Writing(writing, cubes));
        Ok(())
    }

    /// Waits for the cold cluster that is being read or written; `false` if the deadline comes first.
    pub(super) fn await_cold(
        &self,
        work: &mut Work,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        match work.cold.take() {
            Some(Cold::Beginning(reading)) => self.await_begun(work, reading, due, counts),
            Some(Cold::Writing(writing, cubes)) => self.await_written(work, writing, cubes, due, counts),
            making => {
                work.cold = making;
                Ok(true)
            }
        }
    }

    fn await_begun(
        &self,
        work: &mut Work,
        reading: Background<Begun>,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        match reading.wait(due) {
            Awaited::Done(Ok(Ok(merge))) => work.cold = Some(Cold::Making(merge, Vec::new())),
            Awaited::Done(Ok(Err(damage))) => {
                if let Some(step) = work.held.take() {
                    work.plan.abandon();
                    // Whatever else was to go there stays too, and may still grow warm.
                    work.sweep.leave_cluster_alone(step.cluster, self.left_alone_until());
                    work.cube_index.moved(step.cube);
                }
                work.damage_log.report(&damage);
                counts.refused += 1;
            }
            // The step that is held begins it again.
            Awaited::Done(Err(error)) => return Err(error),
            Awaited::Running(reading) => {
                work.cold = Some(Cold::Beginning(reading));
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn await_written(
        &self,
        work: &mut Work,
        writing: Background<ColdEnd>,
        cubes: Vec<Taken>,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        let ColdEnd { end, left_out } = match writing.wait(due) {
            Awaited::Done(Ok(end)) => end,
            Awaited::Done(Err(error)) => {
                // It may have been written all the same.
                for (cube, _) in &cubes {
                    work.cube_index.moved(*cube);
                }
                return Err(error);
            }
            Awaited::Running(writing) => {
                work.cold = Some(Cold::Writing(writing, cubes));
                return Ok(false);
            }
        };
        // The others have gone without them.
        for cube in &left_out {
            self.end(work, &[*cube], Outcome::TooLarge, counts);
        }
        let cubes: Vec<_> = cubes.into_iter().filter(|(cube, _)| !left_out.contains(cube)).collect();
        let mut moved: Vec<_> = cubes.iter().map(|(cube, _)| *cube).collect();
        if let Outcome::Done(_) = &end {
            if let Some(cube) = moved.first() {
                work.sweep.written_anew(cube.cluster(ClusterTier::L2));
            }
            // What is cold as a whole is not looked for, so its heat is of no use; but somebody may have come since.
            for (cube, _) in &cubes {
                work.cube_index.moved(*cube);
            }
            self.activity.tiering.observers(|seen| {
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
}
