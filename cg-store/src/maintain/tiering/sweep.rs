//! The sweep: visits the rows of the cubes that could move, records them in the index, and offers due moves to the
//! plan.
//!
//! It visits only cubes with hot rows or heat rows, in the order of their keys. Demoting a whole world repeats sweeps;
//! ticks use the [index](super::cube_index).

use std::collections::HashMap;
use std::ops::{AddAssign, Bound, ControlFlow};
use std::sync::atomic::Ordering;

use cg_format::cluster::Slot;
use cg_format::frame;
use cg_format::key::Family;
use cg_format::{ClusterTier, Lookup, key};
use cg_tiering::{ClusterAt, CubeAt, GameTick};

use super::cube_index::IndexedCube;
use super::next_cube::NextCubes;
use super::{Due, Work};
use crate::engine::ErrorKind;
use crate::engine::ReadableExt as _;
use crate::maintain::move_tier::hot_keys;
use crate::maintain::state::MaintainState;
use crate::read::chunk::hot;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The maximum number of clusters whose shadows are remembered: the warm and the cold ones around all indexed cubes. So
/// ticks with a complete index forget none.
const REMEMBERED_CLUSTERS: usize = 1 << 17;

/// The shadows of a cluster are counted again after this time, if it is not certain that there are enough of them.
const COUNT_AGAIN_TICKS: u64 = 30 * GameTick::PER_SECOND;

/// The state of the sweep.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// The cube that was visited last in this round.
    behind: Option<CubeAt>,
    /// The next cubes after it.
    next_cubes: NextCubes,
    /// The cold cluster that is being visited, and the rows found in it so far.
    inside: Option<(ClusterAt, Rows)>,
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
    /// Clusters from or into which nothing could be moved, and until when they are left alone.
    unmovable: HashMap<ClusterAt, GameTick>,
}

/// Which clusters have waited long enough to be rewritten.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueRewrites {
    now: GameTick,
    /// The time for which the decision is made: now, or later when a world is demoted.
    at: GameTick,
    after_ticks: u64,
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

/// The rows of a cube in the hottest tier. Sets of places have a bit for each of its 64 chunks.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Hot {
    /// The places with rows, including tombstones and damaged rows.
    pub(super) rows: u64,
    /// The places with sound chunks.
    pub(super) chunks: u64,
    /// Tombstones before the horizon.
    pub(super) old_tombstones: u32,
    /// Bytes of the chunks' rows.
    pub(super) bytes: u64,
}

impl DueRewrites {
    pub(super) const fn new(now: GameTick, at: GameTick, after_ticks: u64) -> Self {
        Self { now, at, after_ticks }
    }
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

impl Sweep {
    /// The cube that was visited last in this round; `None` at its end.
    pub(crate) const fn behind(&self) -> Option<CubeAt> {
        self.behind
    }

    /// Begins a new round.
    pub(super) fn restart(&mut self) {
        self.behind = None;
        self.next_cubes = NextCubes::default();
        self.inside = None;
    }

    /// Moves nothing to a cluster until a tick, and nothing out of it if it is a warm one.
    pub(super) fn leave_cluster_alone(&mut self, cluster: ClusterAt, until: GameTick) {
        if self.unmovable.len() >= REMEMBERED_CLUSTERS {
            self.unmovable.clear();
        }
        self.unmovable.insert(cluster, until);
    }

    pub(super) fn is_left_alone(&mut self, cluster: ClusterAt, now: GameTick) -> bool {
        match self.unmovable.get(&cluster) {
            Some(until) if *until > now => true,
            Some(_) => {
                self.unmovable.remove(&cluster);
                false
            }
            None => false,
        }
    }

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

    /// Adds the rows above the cold cluster around a cube, and completes the sum of the previous cluster.
    fn enter(&mut self, cube: Option<CubeAt>, rows: Rows, due: DueRewrites) {
        let around = cube.map(|cube| cube.cluster(ClusterTier::L2));
        match (&mut self.inside, around) {
            (Some((cluster, count)), Some(around)) if *cluster == around => *count += rows,
            (inside, around) => {
                if let Some((cluster, count)) = std::mem::replace(inside, around.map(|around| (around, rows)))
                {
                    self.rows_above(cluster, count, due);
                }
            }
        }
    }
}

impl IndexedCube {
    pub(super) const fn rows_above(&self) -> Rows {
        Rows { hot: self.rows.count_ones(), most_shadows: self.most_shadows() }
    }
}

impl MaintainState {
    /// Visits the next cube and offers its due moves. Returns `false` at the end of a round.
    ///
    /// Costs a seek, two for a cube with hot rows and heat, and a scan of the cube's hot rows. For a cube that is due
    /// to leave its warm cluster, it costs the read of that, too.
    pub(crate) fn sweep_one(&self, work: &mut Work, due: Due) -> Result<bool, Error> {
        let rewrites = self.due_rewrites(due);
        let behind = work.sweep.behind;
        if behind.is_none() {
            work.cube_index.begin_round();
        }
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let Some(cube) = self.next_cube(from, None, &mut work.sweep.next_cubes, &mut work.damage_log)? else {
            work.sweep.enter(None, Rows::default(), rewrites);
            work.sweep.behind = None;
            work.sweep.next_cubes = NextCubes::default();
            // Rows that were put meanwhile may be before the position of the sweep.
            work.cube_index.note(self.activity.tiering.take_written());
            work.cube_index.end_round();
            return Ok(false);
        };
        work.sweep.behind = Some(cube);
        let Some(mut known) = self.look(work, cube)? else { return Ok(true) };
        self.evict_excess(work);
        // A round must also find rows of which there was no report.
        known.warm = None;
        work.sweep.old_tombstones(
            cube,
            known.old_tombstones,
            self.shared.tombstone_horizon.load(Ordering::Relaxed),
        );
        // Only hot rows shadow the slots of the warm cluster.
        let hot = known.rows.count_ones();
        let above_warm = Rows { hot, most_shadows: hot };
        work.sweep.rows_above(cube.cluster(ClusterTier::L1), above_warm, rewrites);
        if !known.is_offered(self.activity.tiering.now()) {
            let due_moves = self.due_moves(&mut work.sweep, known, due);
            known.warm = self.offer(work, known, due_moves)?;
        }
        work.sweep.enter(Some(cube), known.rows_above(), rewrites);
        Ok(true)
    }

    pub(super) fn due_rewrites(&self, due: Due) -> DueRewrites {
        let after_ticks = self.activity.tiering.observers(|seen| seen.policy().rewrite_after_ticks);
        DueRewrites::new(self.activity.tiering.now(), due.at(), after_ticks)
    }

    /// Reads the hot rows of a cube, and loads its heat. Returns `None` if the rows cannot be read. Then the cube is
    /// left as it is, and forgotten until a chunk is saved in it.
    pub(super) fn look(&self, work: &mut Work, cube: CubeAt) -> Result<Option<IndexedCube>, Error> {
        // Read before the rows: tombstones that become purgeable later are searched again.
        let tombstone_horizon = self.shared.tombstone_horizon.load(Ordering::Relaxed);
        let hot = match self.hot_rows(cube, tombstone_horizon) {
            Ok((hot, damaged)) => {
                for damage in &damaged {
                    work.damage_log.report(damage);
                }
                hot
            }
            Err(error) if error.kind() == ErrorKind::Damaged => {
                work.damage_log.report(&error);
                work.cube_index.forget(cube);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let has_heat = self.learn_heat(cube)?;
        Ok(Some(work.cube_index.learn(cube, hot, has_heat, tombstone_horizon)))
    }

    /// Reads the hot rows of a cube. Returns also the errors of damaged rows, which stay where they are.
    pub(super) fn hot_rows(&self, cube: CubeAt, tombstone_horizon: u64) -> Result<(Hot, Vec<Error>), Error> {
        let (mut found, mut damaged) = (Hot::default(), Vec::new());
        let [first, last] = hot_keys(cube.cluster(ClusterTier::L1));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        self.shared.engine()?.scan(Family::ChunkL0, range, |key, row| {
            Counters::add(&self.shared.counters.keys_scanned, 1);
            let Ok(at) = key::decode_chunk(key) else { return ControlFlow::<()>::Continue(()) };
            let place = 1 << Slot::of(at.pos, ClusterTier::L1).in_group();
            found.rows |= place;
            match hot(at, key, row) {
                // A cluster cannot distinguish a chunk without bytes from an absent one, so such a row is not moved
                // either.
                Ok(Lookup::Found(chunk)) if chunk.value.is_empty() => {}
                Ok(Lookup::Found(_)) => {
                    found.chunks |= place;
                    found.bytes += row.len() as u64;
                }
                Ok(Lookup::Tombstone | Lookup::NotFound) => {
                    let is_old = frame::version_of(row).is_some_and(|version| version < tombstone_horizon);
                    found.old_tombstones += u32::from(is_old);
                }
                Err(damage) => damaged.push(damage),
            }
            ControlFlow::Continue(())
        })?;
        Ok((found, damaged))
    }
}
