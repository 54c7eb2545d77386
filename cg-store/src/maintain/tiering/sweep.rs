//! The sweep: goes round the rows of the cubes that could move, learns what is there and offers what is due to the plan.
//!
//! Only cubes with hot rows or heat rows are met, in the order of their keys. Settling a world goes round and round; ticks
//! look at what is [known](super::known).

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

/// Clusters whose shadows were counted are remembered up to so many: the warm and the cold ones around all cubes that
/// are known, so that ticks which know all forget none.
const REMEMBERED_CLUSTERS: usize = 1 << 17;

/// Shadows of a cluster are counted again after so many ticks, where it is not certain that there are enough of them.
const COUNT_AGAIN_TICKS: u64 = 30 * GameTick::PER_SECOND;

/// Where the sweep stands.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// The cube that was visited last in this round.
    behind: Option<CubeAt>,
    /// What comes after it.
    next_cubes: NextCubes,
    /// The cold cluster that is being gone through, and the rows met in it so far.
    inside: Option<(ClusterAt, Rows)>,
    /// What lies above clusters.
    above: HashMap<ClusterAt, Above>,
    /// Clusters whose shadows are to be counted, and since when nothing has come or gone above them.
    pub(super) shadowed: Vec<(ClusterAt, GameTick)>,
    /// How many marks that may be forgotten each cube had when they were last looked at, and up to which commit.
    tombstones: HashMap<CubeAt, (u32, u64)>,
    /// Cubes of which marks are to be forgotten.
    pub(super) marked: Vec<CubeAt>,
    /// Cubes with heat rows and nothing that could move, and when each was accessed last.
    pub(super) heat_only: Vec<(CubeAt, GameTick)>,
    /// Clusters out of which or into which nothing could be moved, and until when they are left alone.
    unmovable: HashMap<ClusterAt, GameTick>,
}

/// Which clusters have waited long enough to be written anew.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueRewrites {
    now: GameTick,
    /// The moment for which it is asked: now, or later when a world is settled.
    at: GameTick,
    after_ticks: u64,
}

/// What lies above a cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rows {
    /// Hot rows.
    pub(super) hot: u32,
    /// The slots that these and warm clusters could shadow at most.
    pub(super) most_shadows: u32,
}

/// What was met above a cluster.
#[derive(Debug, Clone, Copy)]
struct Above {
    hot: u32,
    /// Since when there are so many.
    since: GameTick,
    /// Whether its shadows are to be counted again when it has waited long enough to be written anew.
    waits: bool,
    /// Whether they were not counted since the number changed, as all of it may be shadowed.
    is_uncounted: bool,
    /// When its slots were counted.
    counted_at: GameTick,
    /// The slots of the cluster that hold a chunk, once its shadows were counted; 0 if there is no cluster. It stays so
    /// until the cluster is written anew.
    present: Option<u32>,
}

/// What a cube has in the hottest tier. Sets of places have a bit for each of its 64 chunks.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Hot {
    /// The places with rows, tombstones and damaged rows among them.
    pub(super) rows: u64,
    /// Those with chunks that are sound.
    pub(super) chunks: u64,
    /// Tombstones that the host allowed to forget.
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
    /// Whether all slots of the cluster may be shadowed, and it is time to see. What has changed stays uncounted until then.
    fn takes_count(&mut self, rows: Rows, due: DueRewrites) -> bool {
        let (is_possible, is_time) = match self.present {
            Some(present) => {
                let has_waited = due.now.since(self.counted_at) >= COUNT_AGAIN_TICKS;
                let is_possible = present > 0 && rows.most_shadows >= present;
                // A world that is settled is to be done with at once.
                (is_possible, rows.hot >= present || has_waited || due.at != due.now)
            }
            None => (true, true),
        };
        let takes = self.is_uncounted && is_possible && is_time;
        self.is_uncounted &= is_possible && !takes;
        takes
    }

    /// Whether it has waited long enough to be written anew, and so many slots may be shadowed that it will be. Once.
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

    /// Moves nothing to a cluster before a tick, and of a warm one nothing away.
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

    /// Notes what lies above a cluster. Its shadows are counted when that is another number of rows than last time, as all
    /// of it may be shadowed, and once more when it has stayed the same for as long as the policy waits; but not if the
    /// rows are too few to matter to a cluster of which the slots were counted.
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

    /// Notes how many slots a cluster has that was counted; 0 if there is none.
    pub(super) fn counted(&mut self, cluster: ClusterAt, present: u32, now: GameTick) {
        if let Some(above) = self.above.get_mut(&cluster) {
            above.present = Some(present);
            above.counted_at = now;
        }
    }

    /// Notes how many marks of a cube may be forgotten. They are looked at when that is another number than last time,
    /// as clusters may hide below them.
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

    /// Forgets what was known of what lies above a cluster: it was written anew, so as many rows above it may hide
    /// other slots now, and marks may hide nothing any more.
    pub(super) fn written_anew(&mut self, cluster: ClusterAt) {
        self.above.remove(&cluster);
        self.tombstones.retain(|cube, _| cube.cluster(cluster.pos.tier()) != cluster);
    }

    /// Counts what lies above the cold cluster around a cube, and closes the count of the one before.
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
    /// Visits the next cube and offers what is due at a moment; `false` at the end of a round.
    ///
    /// Costs a seek, two for a cube with hot rows and heat, and a scan of the cube's hot rows; of a cube that is due to
    /// leave its warm cluster, the read of that too.
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
            // What was put meanwhile may lie after the sweep.
            work.cube_index.note(self.activity.tiering.take_written());
            work.cube_index.end_round();
            return Ok(false);
        };
        work.sweep.behind = Some(cube);
        let Some(mut known) = self.look(work, cube)? else { return Ok(true) };
        self.evict_excess(work);
        // Rows that lie there unknown are what a round is made for.
        known.warm = None;
        work.sweep.old_tombstones(
            cube,
            known.old_tombstones,
            self.shared.tombstone_horizon.load(Ordering::Relaxed),
        );
        // The warm cluster's own slots are shadowed by hot rows alone.
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

    /// Reads a cube's hot rows, and makes sure that its heat is known. `None` if the rows lie where nothing can be read:
    /// the cube is left as it is, and forgotten until something is saved in it.
    pub(super) fn look(&self, work: &mut Work, cube: CubeAt) -> Result<Option<IndexedCube>, Error> {
        // Before the rows are read: those that may be forgotten later are looked for again.
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

    /// Reads a cube's hot rows; and what of them is damaged, which stays where it is.
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
                // A cluster cannot tell a chunk without bytes from an absent one, so such a row is not moved either.
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
