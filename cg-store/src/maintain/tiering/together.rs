//! Moves over a network: those of many cubes are read in few calls and committed in few batches.
//!
//! They are made on one thread, which is one of the pool. If it waited for others of the pool, it would take other jobs
//! meanwhile, whose locks come before those of a tick.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use cg_format::{ClusterTier, Space, Tier};
use cg_tiering::{ClusterAt, CubeAt, Step};

use super::gathered::Gathered;
use super::heat::cold_heat_key;
use super::jobs::{Ended, JobKind};
use super::{Due, MoveCounts, Work};
use crate::engine::Readable;
use crate::maintain::move_tier::{
    ColdMerge, Outcome, Prepared, commit_together, promotion, row_of, split_damage, tombstones_to_purge,
    warm_demotion,
};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The maximum number of cubes that are promoted or become warm together.
const STEPS_TOGETHER: usize = 256;
/// The maximum number of clusters whose shadows are counted together. A cold one may take some megabytes.
const SHRUNK_TOGETHER: usize = 16;

/// A row in a cold cluster.
type Wanted = (ClusterAt, Space, Vec<u8>);

/// The cold cluster around a cluster.
fn around(cluster: ClusterAt) -> ClusterAt {
    match cluster.pos.tier() {
        ClusterTier::L1 => CubeAt::of_cluster(cluster).cluster(ClusterTier::L2),
        ClusterTier::L2 => cluster,
    }
}

fn row_wanted(cluster: ClusterAt) -> Wanted {
    let (space, row_key) = row_of(cluster);
    (around(cluster), space, row_key.to_vec())
}

impl MaintainState {
    /// Takes steps like the held one, and moves their cubes.
    pub(super) fn move_together(
        &self,
        work: &mut Work,
        to: Tier,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let steps = work.next_steps(if to == Tier::L2 { usize::MAX } else { STEPS_TOGETHER });
        let mut left = &steps[..];
        while !left.is_empty() {
            // The rows leave the state of the tick, so that both can be used.
            let mut gathered = std::mem::take(&mut work.gathered);
            let count = self.move_some(work, &mut gathered, (to, left), due, counts);
            let (ended, later) = left.split_at(count.as_ref().map_or(left.len(), |count| *count));
            for step in ended {
                gathered.forget(around(step.cluster));
            }
            work.gathered = gathered;
            if let Err(error) = count {
                for step in ended {
                    // It may have been written. Otherwise it is decided about again.
                    work.cube_index.moved(step.cube);
                    if to == Tier::L0 {
                        self.activity.tiering.observers(|seen| seen.again(step.cube));
                    }
                }
                return Err(error);
            }
            left = later;
        }
        Ok(())
    }

    /// Moves the cubes of the first steps, as many as fit into memory. Returns their number.
    fn move_some(
        &self,
        work: &mut Work,
        gathered: &mut Gathered,
        (to, steps): (Tier, &[Step]),
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<usize, Error> {
        let tombstone_horizon = self.tombstone_horizon();
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        if gathered.is_full() {
            *gathered = Gathered::default();
        }
        let (mut count, mut wanted) = (0, BTreeSet::new());
        for step in steps {
            // The steps into a cold cluster are one move.
            if count > 0 && gathered.is_full() && to != Tier::L2 {
                break;
            }
            let warm = step.cube.cluster(ClusterTier::L1);
            gathered.read_hot(&view, around(warm), tombstone_horizon)?;
            wanted.insert(row_wanted(warm));
            if to != Tier::L1 {
                wanted.insert(row_wanted(around(warm)));
            }
            if to == Tier::L2 {
                wanted.insert((step.cluster, Space::ColdHeat, cold_heat_key(step.cluster).to_vec()));
            }
            count += 1;
        }
        gathered.read_rows(&view, &wanted)?;
        let steps = steps.get(..count).unwrap_or_default();
        if to == Tier::L2 {
            self.cool_together(work, gathered, &view, steps, due, counts)?;
        } else {
            self.warm_or_promote(work, gathered, &view, steps, due, counts)?;
        }
        Ok(count)
    }

    /// Promotes cubes, or demotes them into their warm clusters.
    fn warm_or_promote(
        &self,
        work: &mut Work,
        gathered: &Gathered,
        view: &dyn Readable,
        steps: &[Step],
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let (mut begun, mut moves) = (Vec::new(), Vec::new());
        for step in steps {
            let view = gathered.over(around(step.cluster), view);
            let prepared = split_damage(self.prepare(&view, step, due))?;
            match prepared.unwrap_or_else(|damage| Some(Err(Outcome::Damaged(damage)))) {
                None => {}
                Some(Ok(writes)) => {
                    begun.push(step);
                    moves.push(writes);
                }
                Some(Err(end)) => self.end_step(work, step, end, counts)?,
            }
        }
        let ends = commit_together(&*self.shared.engine()?, &self.shared.counters, moves)?;
        begun.into_iter().zip(ends).try_for_each(|(step, end)| self.end_step(work, step, end, counts))
    }

    /// Reads what a step moves. Returns `None` if the step is not right any more.
    fn prepare(&self, view: &dyn Readable, step: &Step, due: Due) -> Result<Option<Prepared>, Error> {
        if step.to == Tier::L0 {
            let is_right = self.activity.tiering.observers(|seen| due.confirms(seen, step));
            let prepared = is_right.then(|| promotion(view, &self.shared.counters, step.cube));
            return prepared.transpose();
        }
        let heat = self.heat_if_confirmed(step, due);
        heat.map(|heat| warm_demotion(view, step.cube, heat)).transpose()
    }

    fn end_step(
        &self,
        work: &mut Work,
        step: &Step,
        end: Outcome,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        if step.to == Tier::L0 {
            let ended = Ok(Ended::Promotion(end));
            return self.end_job(work, JobKind::Promotion, &[step.cube], ended, counts);
        }
        self.end_warm(work, step, end, counts);
        Ok(())
    }

    /// Demotes cubes into the cold cluster around them.
    fn cool_together(
        &self,
        work: &mut Work,
        gathered: &Gathered,
        view: &dyn Readable,
        steps: &[Step],
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let Some(first) = steps.first() else { return Ok(()) };
        let view = gathered.over(first.cluster, view);
        let merge = split_damage(ColdMerge::begin(&view, first.cluster))?;
        if merge.is_err() {
            // The step that is left as it is if the cluster is damaged.
            work.held = Some(*first);
        }
        self.end_cold_read(work, merge.map(Box::new), counts);
        let Some(merge) = work.merge.take() else { return Ok(()) };
        let make = |step: &Step| {
            let Some(heat) = self.heat_if_confirmed(step, due) else { return Ok(None) };
            merge.make_from(&view, &self.shared.counters, step.cube, heat).map(Some)
        };
        let groups = steps.iter().map(|step| (*step, make(step))).collect();
        self.end_cold_groups(work, merge, groups, counts)
    }

    /// Drops the shadows of some clusters or, without them, purges the tombstones of a cold cluster. Returns `false` if
    /// there is nothing to do.
    pub(super) fn clean_together(
        &self,
        work: &mut Work,
        has_room: bool,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        if has_room && !work.cleanup.shadowed.is_empty() {
            self.shrink_together(work, due, counts)?;
        } else if let Some(last) = work.cleanup.marked.last() {
            let place = last.cluster(ClusterTier::L2);
            let is_here = |cube: &CubeAt| cube.cluster(ClusterTier::L2) == place;
            let (cubes, others): (Vec<_>, Vec<_>) =
                std::mem::take(&mut work.cleanup.marked).into_iter().partition(is_here);
            work.cleanup.marked = others;
            let purged = self.purge_together(work, place, &cubes, counts);
            if purged.is_err() {
                work.cleanup.marked.extend(cubes);
            }
            purged?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn shrink_together(&self, work: &mut Work, due: Due, counts: &mut MoveCounts) -> Result<(), Error> {
        let waiting = &mut work.cleanup.shadowed;
        let mut shadowed = waiting.split_off(waiting.len().saturating_sub(SHRUNK_TOGETHER));
        let wanted: BTreeSet<_> = shadowed.iter().map(|(cluster, _)| row_wanted(*cluster)).collect();
        let mut gathered = std::mem::take(&mut work.gathered);
        let mut shrink = || -> Result<(), Error> {
            let engine = self.shared.engine()?;
            let view = engine.snapshot_of_now()?;
            gathered.read_rows(&view, &wanted)?;
            while let Some((cluster, since)) = shadowed.last().copied() {
                let view = gathered.over(around(cluster), &view);
                let shrunk = self.shrunk_in(&view, cluster, since, due.at());
                shadowed.pop();
                self.end_job(work, JobKind::Shrinking, &[], shrunk, counts)?;
            }
            Ok(())
        };
        let done = shrink();
        for (place, ..) in &wanted {
            gathered.forget(*place);
        }
        work.gathered = gathered;
        work.cleanup.shadowed.extend(shadowed);
        done
    }

    fn purge_together(
        &self,
        work: &mut Work,
        place: ClusterAt,
        cubes: &[CubeAt],
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let before = self.tombstone_horizon();
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        work.gathered.read_hot(&view, place, before)?;
        let clusters =
            cubes.iter().flat_map(|cube| [ClusterTier::L1, ClusterTier::L2].map(|tier| cube.cluster(tier)));
        work.gathered.read_rows(&view, &clusters.map(row_wanted).collect())?;
        let view = work.gathered.over(place, &view);
        let (mut begun, mut moves, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        for cube in cubes {
            let prepared = tombstones_to_purge(&view, &self.shared.counters, *cube, before);
            match split_damage(prepared)?.unwrap_or_else(|damage| Err(Outcome::Damaged(damage))) {
                Ok(writes) => {
                    begun.push(*cube);
                    moves.push(writes);
                }
                Err(end) => ended.push((*cube, end)),
            }
        }
        let ends = commit_together(&*engine, &self.shared.counters, moves);
        work.gathered.forget(place);
        ended.extend(begun.into_iter().zip(ends?));
        ended.into_iter().try_for_each(|(cube, end)| {
            self.end_job(work, JobKind::Purge, &[cube], Ok(Ended::Purge(end)), counts)
        })
    }

    fn tombstone_horizon(&self) -> u64 {
        self.shared.tombstone_horizon.load(Ordering::Relaxed)
    }
}
