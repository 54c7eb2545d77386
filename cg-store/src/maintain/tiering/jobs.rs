//! Jobs of a tick on the pool, which may outlast it: promotions, and all that reads or makes a cold cluster, because an
//! engine reads that row as a whole and its groups are compressed as small as they get.
//!
//! A tick waits for their results until its budget ends, if it has enough time. Otherwise it only collects those that
//! ended. It does not wait for promotions if other work keeps all threads busy: its promotions come after that.

use std::collections::VecDeque;
use std::time::Duration;

use cg_tiering::{ClusterAt, CubeAt, Step};

use super::{Due, MoveCounts, Work};
use crate::maintain::move_tier::{ColdEnd, ColdMerge, CubeMade, Outcome};
use crate::maintain::state::{Awaited, Background, MaintainState};
use crate::storage::error::Error;

/// The jobs that were begun and not collected yet, the oldest first. They are promotions, each of another cube, or one
/// job of another kind.
#[derive(Debug, Default)]
pub(super) struct Jobs(VecDeque<Job>);

#[derive(Debug)]
struct Job {
    kind: JobKind,
    /// The cubes whose rows it changes.
    cubes: Vec<CubeAt>,
    running: Background<Ended>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobKind {
    Promotion,
    ColdRead,
    ColdGroups,
    ColdWrite,
    Shrinking,
    Purge,
}

/// The result of a job.
#[derive(Debug)]
pub(super) enum Ended {
    Promotion(Outcome),
    /// The cluster may be damaged.
    ColdRead(Result<Box<ColdMerge>, Error>),
    /// The cluster, and the groups that were built for it.
    ColdGroups(Box<ColdMerge>, Vec<(Step, MadeCube)>),
    ColdWrite(ColdEnd),
    Shrinking {
        cluster: ClusterAt,
        /// The slots of the cluster that hold a chunk; 0 if there is no cluster.
        present: u32,
        end: Outcome,
    },
    Purge(Outcome),
}

/// A cube of a cold cluster; `None` if its step was not right any more.
pub(super) type MadeCube = Result<Option<Result<CubeMade, Outcome>>, Error>;

impl JobKind {
    /// The name for errors.
    const fn operation(self) -> &'static str {
        match self {
            Self::Promotion => "promoting chunks",
            Self::ColdRead => "reading a cold cluster",
            Self::ColdGroups => "building groups of a cold cluster",
            Self::ColdWrite => "writing a cold cluster",
            Self::Shrinking => "writing a cluster without its shadows",
            Self::Purge => "forgetting tombstones",
        }
    }
}

impl Jobs {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(super) fn has(&self, kind: JobKind) -> bool {
        self.0.iter().any(|job| job.kind == kind)
    }

    /// Drops jobs of a kind. They run on, and their results are lost.
    pub(super) fn forget(&mut self, kind: JobKind) {
        self.0.retain(|job| job.kind != kind);
    }
}

impl MaintainState {
    /// Starts a job.
    pub(super) fn begin_job(
        &self,
        work: &mut Work,
        kind: JobKind,
        cubes: Vec<CubeAt>,
        job: impl FnOnce(&Self) -> Result<Ended, Error> + Send + 'static,
    ) {
        let running = self.in_background(kind.operation(), job);
        work.jobs.0.push_back(Job { kind, cubes, running });
    }

    /// Collects the jobs that ended. Waits until at most `most` promotions and no other jobs are left. Returns `false` if
    /// the deadline comes first, or if other work keeps all threads busy.
    pub(crate) fn collect_jobs(
        &self,
        work: &mut Work,
        most: usize,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        loop {
            let count = work.jobs.0.len();
            let Some(Job { kind, cubes, running }) = work.jobs.0.pop_front() else { return Ok(true) };
            let is_promotion = kind == JobKind::Promotion;
            let is_enough = is_promotion && count <= most;
            let gives_way = is_promotion && due.has_end() && self.shared.pool.is_busy_beside(count);
            let time = if is_enough || gives_way { Some(Duration::ZERO) } else { due.time_to_wait() };
            match running.wait(time) {
                Awaited::Done(ended) => self.end_job(work, kind, &cubes, ended, counts)?,
                Awaited::Running(running) => {
                    work.jobs.0.push_front(Job { kind, cubes, running });
                    return Ok(is_enough);
                }
            }
        }
    }

    /// Records the result of a job.
    pub(super) fn end_job(
        &self,
        work: &mut Work,
        kind: JobKind,
        cubes: &[CubeAt],
        ended: Result<Ended, Error>,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let is_tried_again = matches!(ended, Ok(Ended::Promotion(Outcome::Conflict)) | Err(_));
        if kind == JobKind::Promotion && is_tried_again {
            self.activity.tiering.observers(|seen| cubes.iter().for_each(|cube| seen.again(*cube)));
        }
        match ended {
            Ok(Ended::Promotion(end)) => counts.promoted += self.end(work, cubes, end, counts),
            Ok(Ended::ColdRead(merge)) => self.end_cold_read(work, merge, counts),
            Ok(Ended::ColdGroups(merge, made)) => self.end_cold_groups(work, merge, made, counts)?,
            Ok(Ended::ColdWrite(end)) => self.end_cold_write(work, end, counts),
            Ok(Ended::Shrinking { cluster, present, end }) => {
                match &end {
                    Outcome::Done(_) => work.cleanup.written_anew(cluster),
                    // It is tried again when more slots are shadowed.
                    Outcome::Nothing | Outcome::TooLarge => {
                        work.cleanup.counted(cluster, present, self.activity.tiering.now());
                    }
                    _ => {}
                }
                counts.shadows_dropped += self.end(work, &[], end, counts);
            }
            Ok(Ended::Purge(end)) => self.end_purge(work, cubes, end, counts),
            Err(error) => {
                // It may have been written.
                for cube in cubes {
                    work.cube_index.moved(*cube);
                }
                return Err(error);
            }
        }
        Ok(())
    }
}
