//! Removal of what moves leave behind in colder tiers and among the heat rows: shadowed slots, tombstones that hide
//! nothing, and heat rows of cubes with nothing to demote.

use std::collections::{BTreeMap, HashMap};
use std::ops::{AddAssign, Bound, ControlFlow};
use std::sync::atomic::Ordering;

use cg_format::ClusterTier;
use cg_format::key::Family;
use cg_tiering::{ClusterAt, CubeAt, GameTick, Heat, ShadowedSlots};

use super::heat::{delete_heat, put_cold_heat, read_cold_heat};
use super::jobs::{Ended, JobKind};
use super::{DamageLog, Due, MoveCounts, Work};
use crate::engine::{Batch, ErrorKind, Guard, Readable, ReadableExt as _};
use crate::maintain::move_tier::{Outcome, drop_shadows, hot_keys, past_damage, purge_tombstones, row_of};
use crate::maintain::state::{MaintainState, commit_guarded};
use crate::storage::error::Error;

/// The maximum number of clusters whose shadows are remembered: the warm and the cold ones around all indexed cubes. So
/// ticks with a complete index forget none.
const REMEMBERED_CLUSTERS: usize = 1 << 17;

/// The shadows of a cluster are counted again after this time, if it is not certain that there are enough of them.
const COUNT_AGAIN_TICKS: u64 = 30 * GameTick::PER_SECOND;

/// Obsolete rows and slots that wait to be removed, and what is known of where more are.
#[derive(Debug, Default)]
pub(crate) struct Cleanup {
    /// The rows above clusters.
    above: HashMap<ClusterAt, Above>,
    /// Clusters whose shadows are to be counted, and since when the rows above them are unchanged.
    pub(super) shadowed: Vec<(ClusterAt, GameTick)>,
    /// The number of purgeable tombstones of each cube at the last purge, and the horizon of that purge.
    tombstones: HashMap<CubeAt, (u32, u64)>,
    /// Cubes whose tombstones are to be purged.
    pub(super) marked: Vec<CubeAt>,
    /// Cubes with heat rows and nothing that could move, with their last access.
    pub(super) heat_only: Vec<(CubeAt, GameTick)>,
}

/// Which clusters have waited long enough to be rewritten.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueRewrites {
    pub(super) now: GameTick,
    /// The time for which the decision is made: now, or later when a world is demoted.
    pub(super) at: GameTick,
    pub(super) after_ticks: u64,
}

/// The rows above a cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rows {
    /// Hot rows.
    pub(super) hot: u32,
    /// The maximum number of slots that these and warm clusters could shadow.
    pub(super) most_shadows: u32,
}

/// The recorded state above a cluster.
#[derive(Debug, Clone, Copy)]
struct Above {
    hot: u32,
    /// Since when the number of rows is the same.
    since: GameTick,
    /// Whether its shadows are to be counted again when it has waited long enough to be rewritten.
    waits: bool,
    /// Whether they were not counted since the number of rows changed. All slots may be shadowed then.
    is_uncounted: bool,
    /// When its slots were counted.
    counted_at: GameTick,
    /// The slots of the cluster that hold a chunk, known after its shadows were counted; 0 if there is no cluster. It
    /// is valid until the cluster is rewritten.
    present: Option<u32>,
}

impl AddAssign for Rows {
    fn add_assign(&mut self, other: Self) {
        self.hot += other.hot;
        self.most_shadows += other.most_shadows;
    }
}

impl Above {
    /// Whether all slots of the cluster may be shadowed, and it is time to count. Until then the change stays
    /// uncounted.
    fn takes_count(&mut self, rows: Rows, due: DueRewrites) -> bool {
        let (is_possible, is_time) = match self.present {
            Some(present) => {
                let has_waited = due.now.since(self.counted_at) >= COUNT_AGAIN_TICKS;
                let is_possible = present > 0 && rows.most_shadows >= present;
                // Demoting a whole world does not wait.
                (is_possible, rows.hot >= present || has_waited || due.at != due.now)
            }
            None => (true, true),
        };
        let takes = self.is_uncounted && is_possible && is_time;
        self.is_uncounted &= is_possible && !takes;
        takes
    }

    /// Whether the cluster has waited long enough to be rewritten, and enough slots may be shadowed. Returns `true`
    /// once.
    fn takes_rewrite(&mut self, rows: Rows, due: DueRewrites) -> bool {
        let takes = self.waits && due.at.since(self.since) >= due.after_ticks;
        self.waits &= !takes;
        let is_quarter = |present| present > 0 && u64::from(rows.most_shadows) * 4 >= u64::from(present);
        takes && self.present.is_none_or(is_quarter)
    }
}

impl Cleanup {
    /// Records the rows above a cluster. Its shadows are counted when the number of rows has changed, because all slots
    /// may be shadowed. They are counted once more when the number has stayed the same for as long as the policy waits.
    /// They are not counted if the rows are too few compared with the counted slots.
    pub(super) fn rows_above(&mut self, cluster: ClusterAt, rows: Rows, due: DueRewrites) {
        if rows.hot == 0 {
            self.above.remove(&cluster);
            return;
        }
        if self.above.len() >= REMEMBERED_CLUSTERS {
            self.above.clear();
        }
        let new = Above {
            hot: rows.hot,
            since: due.now,
            waits: true,
            is_uncounted: true,
            present: None,
            counted_at: due.now,
        };
        let above = self.above.entry(cluster).or_insert(new);
        if above.hot != rows.hot {
            *above = Above { present: above.present, counted_at: above.counted_at, ..new };
        }
        let (takes_rewrite, takes_count) = (above.takes_rewrite(rows, due), above.takes_count(rows, due));
        if takes_rewrite || takes_count {
            self.shadowed.push((cluster, above.since));
        }
    }

    /// Records the number of slots of a counted cluster; 0 if there is no cluster.
    pub(super) fn counted(&mut self, cluster: ClusterAt, present: u32, now: GameTick) {
        if let Some(above) = self.above.get_mut(&cluster) {
            above.present = Some(present);
            above.counted_at = now;
        }
    }

    /// Records the number of purgeable tombstones of a cube. A purge is tried when that number has changed, because
    /// clusters may be below them.
    pub(super) fn old_tombstones(&mut self, cube: CubeAt, count: u32, before: u64) {
        if self.tombstones.len() >= REMEMBERED_CLUSTERS {
            self.tombstones.clear();
        }
        if count == 0 {
            self.tombstones.remove(&cube);
        } else if self.tombstones.insert(cube, (count, before)) != Some((count, before)) {
            self.marked.push(cube);
        }
    }

    /// Forgets the recorded state above a cluster that was rewritten. The same number of rows may shadow other slots
    /// now, and tombstones may hide nothing any more.
    pub(super) fn written_anew(&mut self, cluster: ClusterAt) {
        self.above.remove(&cluster);
        self.tombstones.retain(|cube, _| cube.cluster(cluster.pos.tier()) != cluster);
    }
}

impl MaintainState {
    /// Begins to drop shadows or, without them, to purge tombstones. Returns `false` if there is nothing to do. Only
    /// purging takes no disk space.
    pub(super) fn begin_cleanup(
        &self,
        work: &mut Work,
        has_room: bool,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        if self.is_over_network {
            return self.clean_together(work, has_room, due, counts);
        }
        let shadowed = if has_room { work.cleanup.shadowed.pop() } else { None };
        if let Some((cluster, since)) = shadowed {
            self.shrink(work, cluster, since, due, counts)?;
        } else if let Some(cube) = work.cleanup.marked.pop() {
            self.purge_tombstones(work, cube, counts)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Rewrites a cluster without its shadowed slots, if the policy selects it for the state above it since `since`. A
    /// job does it for an existing cold cluster, which is as large as 64 cubes.
    fn shrink(
        &self,
        work: &mut Work,
        cluster: ClusterAt,
        since: GameTick,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<(), Error> {
        let at = due.at();
        let job = move |world: &Self| world.shrunk(cluster, since, at);
        // Usually there is no cluster, and no thread is needed.
        if cluster.pos.tier() == ClusterTier::L2 && self.may_exist(cluster)? {
            self.begin_job(work, JobKind::Shrinking, Vec::new(), job);
            return Ok(());
        }
        self.end_job(work, JobKind::Shrinking, &[], job(self), counts)
    }

    fn shrunk(&self, cluster: ClusterAt, since: GameTick, at: GameTick) -> Result<Ended, Error> {
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        self.shrunk_in(&view, cluster, since, at)
    }

    /// Drops the shadows of a cluster that a view shows.
    pub(super) fn shrunk_in(
        &self,
        view: &dyn Readable,
        cluster: ClusterAt,
        since: GameTick,
        at: GameTick,
    ) -> Result<Ended, Error> {
        let policy = self.activity.tiering.observers(|seen| *seen.policy());
        let mut present = 0;
        // Without a cluster the policy is not asked.
        let should_rewrite = |slots: ShadowedSlots| {
            present = slots.present;
            policy.should_rewrite(slots, since, at)
        };
        let engine = self.shared.engine()?;
        let end = drop_shadows(&*engine, view, &self.shared.counters, cluster, should_rewrite);
        Ok(Ended::Shrinking { cluster, end: past_damage(end)?, present })
    }

    /// Purges the tombstones of a cube that are before the horizon and hide nothing. A job does it if there may be a
    /// cold cluster below.
    fn purge_tombstones(&self, work: &mut Work, cube: CubeAt, counts: &mut MoveCounts) -> Result<(), Error> {
        let job = move |world: &Self| {
            let before = world.shared.tombstone_horizon.load(Ordering::Relaxed);
            let end = purge_tombstones(&*world.shared.engine()?, &world.shared.counters, cube, before);
            past_damage(end).map(Ended::Purge)
        };
        if self.may_exist(cube.cluster(ClusterTier::L2))? {
            self.begin_job(work, JobKind::Purge, vec![cube], job);
            return Ok(());
        }
        self.end_job(work, JobKind::Purge, &[cube], job(self), counts)
    }

    /// Records the result of a purge.
    pub(super) fn end_purge(&self, work: &mut Work, cubes: &[CubeAt], end: Outcome, counts: &mut MoveCounts) {
        match end {
            Outcome::Nothing => return,
            Outcome::Damaged(damage) => {
                work.damage_log.report(&damage);
                return;
            }
            // A saved chunk has no tombstone any more. The others are counted again when the rows are read.
            _ => cubes.iter().for_each(|cube| work.cube_index.moved(*cube)),
        }
        counts.tombstones_purged += self.end(work, &[], end, counts);
    }

    fn may_exist(&self, cluster: ClusterAt) -> Result<bool, Error> {
        let (space, row_key) = row_of(cluster);
        Ok(self.shared.engine()?.may_have(space, &row_key))
    }

    /// Writes some heat rows that are out of date, and deletes those that are not needed any more.
    pub(crate) fn update_heat(&self, work: &mut Work, due: Due) -> Result<(), Error> {
        for cube in self.keep_heat()? {
            work.cube_index.note_heat(cube);
        }
        self.forget_heat(work, due)
    }

    /// Deletes the heat rows of cubes that have nothing to demote any more.
    ///
    /// A cube may have changed since it was found, so each is read again: a warm cluster without a heat row would never
    /// be found. The heat of a cube that was accessed meanwhile is kept.
    pub(crate) fn forget_heat(&self, work: &mut Work, due: Due) -> Result<(), Error> {
        let mut batch = Batch::new();
        let mut forgotten: Vec<(CubeAt, GameTick)> = Vec::new();
        while !due.is_over()
            && let Some((cube, last_access)) = work.cleanup.heat_only.pop()
        {
            if self.may_have_rows(cube, &mut work.damage_log)? {
                continue;
            }
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
        if batch.is_empty() {
            return Ok(());
        }
        let guards = self.heat_of_cold(&mut batch, &forgotten)?;
        if !commit_guarded(&*self.shared.engine()?, batch, &guards)? {
            // A move has recorded an access to such a cluster: the rows are deleted another time.
            for (cube, _) in &forgotten {
                work.cube_index.note_heat(*cube);
            }
        }
        Ok(())
    }

    /// Whether a cube has a hot row or a warm cluster. What cannot be read may be one.
    fn may_have_rows(&self, cube: CubeAt, damage_log: &mut DamageLog) -> Result<bool, Error> {
        let cluster = cube.cluster(ClusterTier::L1);
        let (space, row_key) = row_of(cluster);
        let [first, last] = hot_keys(cluster);
        let hot = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let read = || -> Result<bool, Error> {
            let engine = self.shared.engine()?;
            let is_hot = || engine.scan(Family::ChunkL0, hot, |_, _| ControlFlow::Break(()));
            Ok(engine.get(space, &row_key)?.is_some() || is_hot()?.is_some())
        };
        read().or_else(|error| {
            if error.kind() != ErrorKind::Damaged {
                return Err(error);
            }
            damage_log.report(&error);
            Ok(true)
        })
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
