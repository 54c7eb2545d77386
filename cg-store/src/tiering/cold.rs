//! The cold cluster in the making: its groups are made in slices of ticks, and it is written behind them.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use cg_format::ClusterTier;
use cg_tiering::{CubeAt, GameTick, Step};

use super::{Due, MoveCounts, Work, heat_after_move};
use crate::engine::Engine;
use crate::error::Error;
use crate::handle::Visitor;
use crate::move_tier::{ColdMerge, Outcome};
use crate::pool;
use crate::world::Inner;

/// The one cold cluster that may be in the making.
#[derive(Debug)]
pub(super) enum Cold {
    /// Groups are being made; these cubes are in it.
    Making(Box<ColdMerge>, Vec<Taken>),
    /// It is being written by a thread of the pool, as that may take longer than a tick has.
    Writing(Receiver<CommitEnd>, Vec<Taken>),
}

/// A cube whose chunks go into the cluster, and when it was last accessed when they were taken.
pub(super) type Taken = (CubeAt, GameTick);

pub(super) type CommitEnd = Result<Outcome, Error>;

impl<E: Engine> Inner<E> {
    /// Makes groups of a cold cluster, and has it written when they were the last.
    pub(super) fn make_cold(
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
                // Whatever else was to go there stays too, and may still grow warm.
                work.sweep.leave_cluster_alone(first.cluster, self.left_alone_until());
                for step in steps {
                    work.known.moved(step.cube);
                }
                work.told.tell(&damage);
                counts.refused += 1;
                return Ok(());
            }
        };
        let made = self.pool.each(steps, |step: &Step| {
            let confirmed = self.tiering.observers(|seen| due.confirms(seen, step));
            let heat = self.tiering.observers(|seen| heat_after_move(seen, step.cube, self.tiering.now()));
            let made = || merge.make(&*self.engine()?, &self.counters, step.cube, heat);
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
                    work.known.moved(step.cube);
                    self.end(work, &[step.cube], end, counts);
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
            let end = visitor.visit(|world| {
                pool::told("writing a cold cluster", || merge.commit(&*world.engine()?, &world.counters))
            });
            if let Ok(end) = end {
                let _ = sender.send(end);
            }
        });
        work.cold = Some(Cold::Writing(receiver, cubes));
        Ok(())
    }

    /// Waits for the cold cluster that is being written; `false` if the deadline comes first.
    pub(super) fn await_cold(
        &self,
        work: &mut Work,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        let (receiver, cubes) = match work.cold.take() {
            Some(Cold::Writing(receiver, cubes)) => (receiver, cubes),
            making => {
                work.cold = making;
                return Ok(true);
            }
        };
        let end = match due.receive(&receiver) {
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
}
