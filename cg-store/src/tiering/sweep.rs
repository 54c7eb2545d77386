//! The sweep: goes round the cubes that could move, a few at each tick, and offers what is due to the plan.
//!
//! Only cubes with hot rows or heat rows are met, in the order of their keys. What a tick costs does not depend on how
//! many there are: a larger world is only gone round less often.

use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use cg_format::cluster::StoredCluster;
use cg_format::frame::{self, FrameKind};
use cg_format::key::Family;
use cg_format::{ClusterTier, Space, Tier, key};
use cg_tiering::{Candidate, ClusterAt, CubeAt, GameTick};

use super::heat::{decode_heat_key, heat_key};
use super::{Due, Work};
use crate::engine::Engine;
use crate::error::Error;
use crate::move_tier::{hot_keys, row_of};
use crate::stats::Counters;
use crate::world::Inner;

/// Clusters whose shadows were counted are remembered up to so many.
const REMEMBERED_CLUSTERS: usize = 1 << 16;

/// Where the sweep stands.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// The cube that was visited last in this round.
    behind: Option<CubeAt>,
    /// The cold cluster that is being gone through, and the hot and warm rows met in it so far.
    inside: Option<(ClusterAt, u32)>,
    /// What lies above clusters.
    above: HashMap<ClusterAt, Above>,
    /// Clusters whose shadows are to be counted, and since when nothing has come or gone above them.
    pub(super) shadowed: Vec<(ClusterAt, GameTick)>,
    /// How many marks that may be forgotten each cube had when they were last looked at, and up to which commit.
    marks: HashMap<CubeAt, (u32, u64)>,
    /// Cubes of which marks are to be forgotten.
    pub(super) marked: Vec<CubeAt>,
    /// Cubes with heat rows and nothing that could move.
    pub(super) heat_only: Vec<CubeAt>,
    /// Cubes that could not be moved, and until when they are left alone.
    unmovable: HashMap<CubeAt, GameTick>,
}

/// Which clusters have waited long enough to be written anew.
#[derive(Debug, Clone, Copy)]
struct DueRewrites {
    now: GameTick,
    /// The moment for which it is asked: now, or later when a world is settled.
    at: GameTick,
    after_ticks: u64,
}

/// What was met above a cluster.
#[derive(Debug, Clone, Copy)]
struct Above {
    rows: u32,
    /// Since when there are so many.
    since: GameTick,
    /// Whether its shadows are to be counted again when it has waited long enough to be written anew.
    waits: bool,
}

/// What a cube has in the hottest tier.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Hot {
    /// Rows, marks of deleted chunks and damaged rows among them.
    pub(super) rows: u32,
    /// Sound chunks.
    chunks: u32,
    /// Marks of deletions that the host allowed to forget.
    old_marks: u32,
    bytes: u64,
}

impl Sweep {
    /// Begins a new round.
    pub(super) fn restart(&mut self) {
        self.behind = None;
        self.inside = None;
    }

    /// Leaves a cube alone until a tick.
    pub(super) fn leave_alone(&mut self, cube: CubeAt, until: GameTick) {
        if self.unmovable.len() >= REMEMBERED_CLUSTERS {
            self.unmovable.clear();
        }
        self.unmovable.insert(cube, until);
    }

    fn is_left_alone(&mut self, cube: CubeAt, now: GameTick) -> bool {
        match self.unmovable.get(&cube) {
            Some(until) if *until > now => true,
            Some(_) => {
                self.unmovable.remove(&cube);
                false
            }
            None => false,
        }
    }

    /// Notes how many rows lie above a cluster. Its shadows are counted when that is another number than last time, as
    /// all of it may be shadowed, and once more when it has stayed the same for as long as the policy waits.
    fn rows_above(&mut self, cluster: ClusterAt, rows: u32, due: DueRewrites) {
        if self.above.len() >= REMEMBERED_CLUSTERS {
            self.above.clear();
        }
        if rows == 0 {
            self.above.remove(&cluster);
            return;
        }
        let new = Above { rows, since: due.now, waits: true };
        let above = self.above.entry(cluster).or_insert(Above { rows: 0, ..new });
        let has_changed = above.rows != rows;
        if has_changed {
            *above = new;
        }
        let has_waited = due.at.since(above.since) >= due.after_ticks;
        if has_changed || (has_waited && above.waits) {
            above.waits = !has_waited;
            self.shadowed.push((cluster, above.since));
        }
    }

    /// Notes how many marks of a cube may be forgotten. They are looked at when that is another number than last time,
    /// as clusters may hide below them.
    fn old_marks(&mut self, cube: CubeAt, count: u32, before: u64) {
        if self.marks.len() >= REMEMBERED_CLUSTERS {
            self.marks.clear();
        }
        if count == 0 {
            self.marks.remove(&cube);
        } else if self.marks.insert(cube, (count, before)) != Some((count, before)) {
            self.marked.push(cube);
        }
    }

    /// Forgets what was known of what lies above a cluster: it was written anew, so as many rows above it may hide
    /// other slots now, and marks may hide nothing any more.
    pub(super) fn written_anew(&mut self, cluster: ClusterAt) {
        self.above.remove(&cluster);
        self.marks.retain(|cube, _| cube.cluster(cluster.pos.tier()) != cluster);
    }

    /// Counts what lies above the cold cluster around a cube, and closes the count of the one before.
    fn enter(&mut self, cube: Option<CubeAt>, rows: u32, due: DueRewrites) {
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

impl<E: Engine> Inner<E> {
    /// Visits the next cube and offers what is due at a moment; `false` at the end of a round.
    ///
    /// Costs two seeks and a scan of the cube's hot rows; of a cube that is due to leave its warm cluster, the read of
    /// that too.
    pub(crate) fn sweep_one(&self, work: &mut Work, due: Due) -> Result<bool, Error> {
        let Work { plan, sweep, .. } = work;
        let rewrites = DueRewrites {
            now: self.tiering.now(),
            at: due.at(),
            after_ticks: self.tiering.observers(|seen| seen.policy().rewrite_after_ticks),
        };
        let Some(cube) = self.next_cube(sweep.behind)? else {
            sweep.enter(None, 0, rewrites);
            sweep.behind = None;
            return Ok(false);
        };
        sweep.behind = Some(cube);
        let hot = self.hot_rows(cube)?;
        self.learn_heat(cube)?;
        sweep.old_marks(cube, hot.old_marks, self.forgotten_before.load(Ordering::Relaxed));
        sweep.rows_above(cube.cluster(ClusterTier::L1), hot.rows, rewrites);
        let mut rows_above_cold = hot.rows;
        if !sweep.is_left_alone(cube, self.tiering.now()) {
            let [(here, from_hot), (_, from_warm)] =
                self.tiering.observers(|seen| [Tier::L0, Tier::L1].map(|tier| due.decide(seen, cube, tier)));
            let mut offer = |from, decision, chunks, bytes| {
                let (last_access, nearest_player_blocks) = (here.last_access, here.nearest_player_blocks);
                plan.offer(Candidate {
                    cube,
                    from,
                    decision,
                    chunks,
                    bytes,
                    last_access,
                    nearest_player_blocks,
                });
            };
            if let Some(decision) = from_hot.filter(|_| hot.chunks > 0) {
                offer(Tier::L0, decision, hot.chunks, hot.bytes);
            }
            if let Some(decision) = from_warm.filter(|decision| decision.to == Tier::L2) {
                let (space, row_key) = row_of(cube.cluster(ClusterTier::L1));
                Counters::add(&self.counters.engine_reads, 1);
                if let Some(row) = self.engine()?.get(space, &row_key)? {
                    rows_above_cold += 1;
                    let chunks = StoredCluster::open(ClusterTier::L1, &row_key, &row);
                    let chunks = chunks.map_or(0, |cluster| cluster.present_count() as u32);
                    offer(Tier::L1, decision, chunks, row.len() as u64);
                } else if hot.rows == 0 {
                    sweep.heat_only.push(cube);
                }
            }
        }
        sweep.enter(Some(cube), rows_above_cold, rewrites);
        Ok(true)
    }

    /// The first cube behind another that has a hot row or a heat row.
    fn next_cube(&self, behind: Option<CubeAt>) -> Result<Option<CubeAt>, Error> {
        let last_hot = behind.map(|cube| hot_keys(cube.cluster(ClusterTier::L1))[1]);
        let last_heat = behind.map(heat_key);
        let hot_lower = last_hot.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(&key[..]));
        let first_hot = self.engine()?.scan(Family::ChunkL0, (hot_lower, Bound::Unbounded), |key, _| {
            Counters::add(&self.counters.keys_scanned, 1);
            match key::decode_chunk(key) {
                Ok(at) => ControlFlow::Break(CubeAt::of(at)),
                Err(_) => ControlFlow::Continue(()),
            }
        })?;
        let tag = Space::Heat.index_tag().expect("it is in the index family");
        let (first, end) = ([tag], [tag + 1]);
        let heat_lower =
            last_heat.as_ref().map_or(Bound::Included(&first[..]), |key| Bound::Excluded(&key[..]));
        let first_heat =
            self.engine()?.scan(Family::Index, (heat_lower, Bound::Excluded(&end[..])), |key, _| {
                Counters::add(&self.counters.keys_scanned, 1);
                decode_heat_key(key).map_or(ControlFlow::Continue(()), ControlFlow::Break)
            })?;
        // Cubes sort by the keys of their warm clusters as by those of their chunks.
        let sort_key = |cube: &CubeAt| row_of(cube.cluster(ClusterTier::L1)).1;
        Ok(first_hot.into_iter().chain(first_heat).min_by_key(sort_key))
    }

    pub(super) fn hot_rows(&self, cube: CubeAt) -> Result<Hot, Error> {
        let mut found = Hot::default();
        let [first, last] = hot_keys(cube.cluster(ClusterTier::L1));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let forgotten_before = self.forgotten_before.load(Ordering::Relaxed);
        self.engine()?.scan(Family::ChunkL0, range, |key, row| {
            Counters::add(&self.counters.keys_scanned, 1);
            found.rows += 1;
            // The sum is not computed here: who moves the row does that.
            match frame::kind_of(row) {
                Some(FrameKind::Plain) if key::decode_chunk(key).is_ok() => {
                    found.chunks += 1;
                    found.bytes += row.len() as u64;
                }
                Some(FrameKind::Tombstone) => {
                    let is_old = frame::version_of(row).is_some_and(|version| version < forgotten_before);
                    found.old_marks += u32::from(is_old);
                }
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }
}
