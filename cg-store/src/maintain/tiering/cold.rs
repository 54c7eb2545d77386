//! The cold cluster that is being built. It is read and written in the background; its groups are built in slices of
//! ticks.

use cg_format::ClusterTier;
use cg_tiering::{CubeAt, GameTick, Step};

use super::{Due, MoveCounts, Work, heat_after_move};
use crate::maintain::background::{Awaited, Background};
use crate::maintain::move_tier::{ColdEnd, ColdMerge, Outcome};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The one cold cluster that may be being built.
#[derive(Debug)]
pub(super) enum Cold {
    /// A thread of the pool reads it, because that may take longer than a tick.
    Beginning(Background<Begun>),
    /// Groups are being built, from these cubes.
    Making(Box<ColdMerge>, Vec<Taken>),
    /// A thread of the pool writes it, for the same reason.
    Writing(Background<ColdEnd>, Vec<Taken>),
}

/// The result of reading a cluster, which may be damaged.
type Begun = Result<Box<ColdMerge>, Error>;

/// A cube whose chunks go into the cluster, with its last access at the time of taking them.
pub(super) type Taken = (CubeAt, GameTick);

impl MaintainState {
    /// Starts to read the cold cluster of the held step on a thread of the pool.
    pub(super) fn begin_cold(&self, work: &mut Work) {
        let Some(step) = work.held else { return };
        work.cold = Some(Cold::Beginning(self.in_background("reading a cold cluster", move |world| {
            Ok(ColdMerge::begin(&*world.shared.engine()?, step.cluster)?.map(Box::new))
        })));
    }

    /// Builds groups of the current cold cluster. Starts to write it after the last group.
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
                    // The chunks to be moved may not exist, or may be in a warm cluster now.
                    work.cube_index.moved(step.cube);
                    self.end(work, &[step.cube], end, counts);
                }
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            // Some cubes may have got a warm cluster on the way into the cold one.
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

    /// Waits for the cold cluster that is being read or written. Returns `false` if the deadline comes first.
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
                    // Other cubes for this cluster stay too, and may still get warm clusters.
                    work.cube_index.leave_cluster_alone(step.cluster, self.left_alone_until());
                    work.cube_index.moved(step.cube);
                }
                work.damage_log.report(&damage);
                counts.refused += 1;
            }
            // The held step starts it again.
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
                // The write may have succeeded.
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
        // The other groups were written without these cubes.
        for cube in &left_out {
            self.end(work, &[*cube], Outcome::TooLarge, counts);
        }
        let cubes: Vec<_> = cubes.into_iter().filter(|(cube, _)| !left_out.contains(cube)).collect();
        let mut moved: Vec<_> = cubes.iter().map(|(cube, _)| *cube).collect();
        if let Outcome::Done(_) = &end {
            if let Some(cube) = moved.first() {
                work.cleanup.written_anew(cube.cluster(ClusterTier::L2));
            }
            // Completely cold cubes are not searched, so their heat is not needed, unless they were accessed meanwhile.
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
