//! Selection of due moves: a tick decides about many cubes from memory, and reads the rows of few.
//!
//! Rows are read in three cases, once in each. A cube is due and was changed since its rows were last read. A move
//! changed it. More of its tombstones may be purged.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use cg_format::{ClusterTier, Tier};
use cg_tiering::{Candidate, ClusterAt, CubeAt, Decision, Observation};

use super::cube_index::IndexedCube;
use super::next_cube::NextCubes;
use super::sweep::{Rows, Sweep};
use super::{DamageLog, Due, Work};
use crate::engine::ErrorKind;
use crate::maintain::move_tier::row_of;
use crate::maintain::state::MaintainState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The number of cubes that one tick considers; the last cold cluster is completed. A round over a million hot chunks
/// takes 13 seconds of game time.
const CUBES_SELECTED_FROM: usize = 64;
/// The maximum number of cubes of which one tick reads the rows or the warm cluster.
const CUBES_READ: usize = 8;
/// A warm cluster of unknown content counts as this many chunks.
const WARM_CHUNKS: u32 = 64;

/// Where the chunks of a cube are to be moved, and the observation on which this depends.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueMoves {
    seen: Observation,
    from_hot: Option<Decision>,
    /// Into the cold cluster.
    from_warm: Option<Decision>,
}

impl DueMoves {
    const fn is_some(&self) -> bool {
        self.from_hot.is_some() || self.from_warm.is_some()
    }
}

impl MaintainState {
    /// Records for the ticks of a new world that nothing needs to be searched.
    ///
    /// Damage must not prevent the open. A later read of the damaged row reports it.
    pub(crate) fn know_if_empty(&self) {
        let mut damage_log = DamageLog::default();
        if let Ok(None) = self.next_cube(Bound::Unbounded, None, &mut NextCubes::default(), &mut damage_log)
            && damage_log.take().is_empty()
        {
            self.maintenance.work(|work| work.cube_index.nothing_there());
        }
    }

    /// Considers the next cubes and offers due moves to the plan. Returns `false` if more must be read.
    ///
    /// Once the world was searched after opening, this reads nothing where nothing is due and nothing has changed.
    /// Otherwise it costs a few map lookups for each cube.
    pub(crate) fn select_due(&self, work: &mut Work, due: Due) -> Result<bool, Error> {
        let written = self.activity.tiering.take_written();
        if written.is_err() {
            // The engine may have been opened again.
            work.damage_log.forget_gaps();
        }
        work.cube_index.note(written);
        // Decisions about indexed cubes are made while the rest is searched.
        let is_searched = self.search(work, due.for_part(2))?;
        let (mut first, mut considered, mut reads_left) = (None, 0, CUBES_READ);
        while considered < CUBES_SELECTED_FROM && !due.is_over() {
            let Some(cluster) = work.cube_index.next_cluster().filter(|next| first != Some(*next)) else {
                break;
            };
            first = first.or(Some(cluster));
            considered += work.cube_index.cubes_in(cluster).len();
            if !self.select_in_cluster(work, cluster, due, &mut reads_left)? {
                return Ok(false);
            }
            work.cube_index.go_on_behind(cluster);
        }
        self.evict_excess(work);
        Ok(is_searched && !due.is_over())
    }

    /// Considers the cubes of a cold cluster. All due cubes are offered at once, so that they are one move. Returns
    /// `false` if that needs more reads than are allowed.
    fn select_in_cluster(
        &self,
        work: &mut Work,
        cluster: ClusterAt,
        due: Due,
        reads_left: &mut usize,
    ) -> Result<bool, Error> {
        let now = self.activity.tiering.now();
        let tombstone_horizon = self.shared.tombstone_horizon.load(Ordering::Relaxed);
        let (mut offers, mut above_cold) = (Vec::new(), Rows::default());
        let rewrites = self.due_rewrites(due);
        if !work.cube_index.is_whole(cluster) {
            // The search finds its other cubes before any of it is due, and all of it should be one move.
            return Ok(true);
        }
        for known in work.cube_index.cubes_in(cluster).to_vec() {
            let cube = known.cube;
            let (mut known, mut due_moves) = (known, None);
            if !known.is_offered(now) {
                due_moves = Some(self.due_moves(&mut work.sweep, known, due)).filter(DueMoves::is_some);
            }
            let must_look = known.must_look(tombstone_horizon);
            let knows_heat = known.has_no_heat || self.knows_heat(cube);
            if must_look || (due_moves.is_some() && !(known.is_sure && knows_heat)) {
                if *reads_left == 0 || due.is_over() {
                    return Ok(false);
                }
                *reads_left -= 1;
                let warm = known.warm;
                let Some(looked) = self.look(work, cube)? else { continue };
                known = looked;
                if known.rows == 0 && warm.is_none() {
                    known.warm = self.find_warm(work, cube)?;
                    if known.warm == Some(false) && !self.knows_heat(cube) {
                        // Its heat row was deleted when it became cold, so nothing is left to record.
                        work.cube_index.forget(cube);
                        continue;
                    }
                }
                due_moves = Some(self.due_moves(&mut work.sweep, known, due)).filter(DueMoves::is_some);
            }
            if due_moves.is_some_and(|moves| moves.from_warm.is_some()) && known.warm.is_none() {
                if *reads_left == 0 || due.is_over() {
                    return Ok(false);
                }
                *reads_left -= 1;
                known.warm = self.find_warm(work, cube)?;
                // Nothing of a cube with an unreadable warm cluster is moved.
                due_moves = due_moves.filter(|_| known.warm.is_some());
            }
            if let Some(due_moves) = due_moves {
                offers.push((known, due_moves));
            }
            let hot = known.rows.count_ones();
            let above_warm = Rows { hot, most_shadows: hot };
            work.sweep.old_tombstones(cube, known.old_tombstones, tombstone_horizon);
            if known.warm != Some(false) {
                work.sweep.rows_above(cube.cluster(ClusterTier::L1), above_warm, rewrites);
            }
            above_cold += known.rows_above();
        }
        work.sweep.rows_above(cluster, above_cold, rewrites);
        for (known, due_moves) in offers {
            self.offer(work, known, due_moves)?;
        }
        Ok(true)
    }

    /// Reads whether a cube has a warm cluster. Returns `None` if that cannot be read; then the cube is left alone.
    fn find_warm(&self, work: &mut Work, cube: CubeAt) -> Result<Option<bool>, Error> {
        let cluster = cube.cluster(ClusterTier::L1);
        let (space, row_key) = row_of(cluster);
        Counters::add(&self.shared.counters.engine_reads, 1);
        match self.shared.engine()?.get(space, &row_key).map_err(Error::from) {
            Ok(row) => {
                let has_warm = Some(row.is_some());
                work.cube_index.learn_warm(cube, has_warm);
                Ok(has_warm)
            }
            Err(error) if error.kind() == ErrorKind::Damaged => {
                work.damage_log.report(&error);
                work.sweep.leave_cluster_alone(cluster, self.left_alone_until());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn knows_heat(&self, cube: CubeAt) -> bool {
        self.activity.tiering.observers(|seen| seen.heat().get(cube)).is_some()
    }

    /// Where the chunks of a cube are to be moved. Decided from memory.
    pub(super) fn due_moves(&self, sweep: &mut Sweep, known: IndexedCube, due: Due) -> DueMoves {
        let (cube, now) = (known.cube, self.activity.tiering.now());
        let is_left_alone = sweep.is_left_alone(cube.cluster(ClusterTier::L1), now);
        let may_be_cold = !sweep.is_left_alone(cube.cluster(ClusterTier::L2), now);
        self.activity.tiering.observers(|seen| {
            let last_access = seen.heat().last_access(cube);
            if is_left_alone || !seen.policy().may_demote(last_access, due.at()) {
                let seen = Observation::alone(Tier::L0, last_access);
                return DueMoves { seen, from_hot: None, from_warm: None };
            }
            let (observed, from_hot) = due.decide(seen, cube, Tier::L0);
            let (_, from_warm) = due.decide(seen, cube, Tier::L1);
            DueMoves {
                seen: observed,
                from_hot: from_hot
                    .filter(|decision| known.chunks != 0 && (may_be_cold || decision.to != Tier::L2)),
                // A cube with neither rows nor a warm cluster is included: its heat is deleted.
                from_warm: from_warm.filter(|decision| {
                    may_be_cold && decision.to == Tier::L2 && (known.rows == 0 || known.warm != Some(false))
                }),
            }
        })
    }

    /// Offers due moves to the plan. Returns whether the cube has a warm cluster; reads that if it is unknown and the
    /// cluster is to be emptied.
    pub(super) fn offer(
        &self,
        work: &mut Work,
        known: IndexedCube,
        due_moves: DueMoves,
    ) -> Result<Option<bool>, Error> {
        let IndexedCube { cube, mut warm, .. } = known;
        let DueMoves { seen, from_hot, from_warm } = due_moves;
        let mut offers = Vec::new();
        if let Some(decision) = from_hot {
            offers.push((Tier::L0, decision, known.chunks.count_ones(), known.bytes));
        }
        if let Some(decision) = from_warm {
            if warm.is_none() {
                warm = self.find_warm(work, cube)?;
            }
            match warm {
                None => return Ok(None),
                Some(true) => offers.push((Tier::L1, decision, WARM_CHUNKS, 0)),
                Some(false) if known.rows == 0 => {
                    work.sweep.heat_only.push((cube, seen.last_access));
                    work.cube_index.forget(cube);
                }
                Some(false) => {}
            }
        }
        if !offers.is_empty() {
            work.cube_index.offered(cube, self.activity.tiering.now());
        }
        for (from, decision, chunks, bytes) in offers {
            let Observation { last_access, nearest_player_blocks, .. } = seen;
            work.plan.offer(Candidate {
                cube,
                from,
                decision,
                chunks,
                bytes,
                last_access,
                nearest_player_blocks,
            });
        }
        Ok(warm)
    }
}
