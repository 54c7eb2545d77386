//! The cold cluster that is being built. Jobs read it, build its groups and write it.

use cg_format::ClusterTier;
use cg_tiering::{CubeAt, Step};

use super::jobs::{Ended, JobKind, MadeCube};
use super::{Due, MoveCounts, Work};
use crate::maintain::move_tier::{ColdEnd, ColdMerge, Outcome, split_damage};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

impl MaintainState {
    /// Starts to read the cold cluster of the held step.
    pub(super) fn begin_cold(&self, work: &mut Work) {
        let Some(step) = work.held else { return };
        // If it fails, the held step starts it again.
        self.begin_job(work, JobKind::ColdRead, Vec::new(), move |world| {
            let merge = split_damage(ColdMerge::begin(&*world.shared.engine()?, step.cluster))?;
            Ok(Ended::ColdRead(merge.map(Box::new)))
        });
    }

    /// Continues with the cluster that was read, or leaves it alone if it is damaged.
    pub(super) fn end_cold_read(
        &self,
        work: &mut Work,
        merge: Result<Box<ColdMerge>, Error>,
        counts: &mut MoveCounts,
    ) {
        match merge {
            Ok(merge) => work.merge = Some(merge),
            Err(damage) => {
                if let Some(step) = work.held.take() {
                    work.plan.abandon();
                    // Other cubes for this cluster stay too, and may still get warm clusters.
                    work.cube_index.leave_cluster_alone(step.cluster, self.left_alone_until());
                    work.cube_index.moved(step.cube);
                }
                work.damage_log.report(&damage);
                counts.refused += 1;
            }
        }
    }

    /// Starts to build groups of the current cold cluster. That compresses them as small as they get, which takes longer
    /// than a tick.
    pub(super) fn begin_cold_groups(&self, work: &mut Work, steps: Vec<Step>, due: Due) {
        let Some(merge) = work.merge.take() else { return };
        // Some cubes may get a warm cluster on the way into the cold one.
        let cubes = merge.cubes().chain(steps.iter().map(|step| step.cube)).collect();
        self.begin_job(work, JobKind::ColdGroups, cubes, move |world| {
            let made = world.shared.pool.each(&steps, |step: &Step| world.make_cube(&merge, step, due));
            Ok(Ended::ColdGroups(merge, steps.into_iter().zip(made).collect()))
        });
    }

    /// Takes groups that were built into their cluster. Starts to write it after the last group.
    pub(super) fn end_cold_groups(
        &self,
        work: &mut Work,
        mut merge: Box<ColdMerge>,
        made: Vec<(Step, MadeCube)>,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let begun: Vec<_> = merge.cubes().chain(made.iter().map(|(step, _)| step.cube)).collect();
        let is_last = made.last().is_none_or(|(last, _)| last.remaining_steps == 0);
        let mut failed = None;
        for (step, made) in made {
            match made {
                Ok(None) => {}
                Ok(Some(Ok(made))) => merge.take(made),
                Ok(Some(Err(end))) => {
                    // The chunks to be moved may not exist, or may be in a warm cluster now.
                    work.cube_index.moved(step.cube);
                    self.end(work, &[step.cube], end, counts);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            for cube in begun {
                work.cube_index.moved(cube);
            }
            return Err(error);
        }
        if is_last {
            let cubes = merge.cubes().collect();
            self.begin_job(work, JobKind::ColdWrite, cubes, move |world| {
                let goes_on = world.is_over_network;
                merge.commit(&*world.shared.engine()?, &world.shared.counters, goes_on).map(Ended::ColdWrite)
            });
        } else {
            work.merge = Some(merge);
        }
        Ok(())
    }

    /// Builds the groups of a step. Returns `None` if the step is not right any more.
    fn make_cube(&self, merge: &ColdMerge, step: &Step, due: Due) -> MadeCube {
        let Some(heat) = self.heat_if_confirmed(step, due) else { return Ok(None) };
        merge.make(&*self.shared.engine()?, &self.shared.counters, step.cube, heat).map(Some)
    }

    /// Records that a cold cluster was written, or why not.
    pub(super) fn end_cold_write(&self, work: &mut Work, written: ColdEnd, counts: &mut MoveCounts) {
        let ColdEnd { end, made, left_out, changed } = written;
        // The other cubes were written without these.
        for cube in left_out {
            self.end(work, &[cube], Outcome::TooLarge, counts);
        }
        for cube in changed {
            self.end(work, &[cube], Outcome::Conflict, counts);
        }
        let cubes: Vec<CubeAt> = made.iter().map(|(cube, _)| *cube).collect();
        let Outcome::Done(moved) = end else {
            self.end(work, &cubes, end, counts);
            return;
        };
        if let Some(cube) = cubes.first() {
            work.cleanup.written_anew(cube.cluster(ClusterTier::L2));
        }
        // Completely cold cubes are not searched, so their heat is not needed, unless they were accessed meanwhile.
        for cube in &cubes {
            work.cube_index.moved(*cube);
        }
        self.activity.tiering.observers(|seen| {
            for (cube, heat) in made {
                if seen.heat().last_access(cube) == heat.last_access {
                    seen.heat().forget(cube);
                }
            }
        });
        counts.cooled += counts.add(moved);
    }
}
