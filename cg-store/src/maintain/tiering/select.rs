//! Selection of due moves: a tick decides about many cubes from memory, and reads the rows of few.
//!
//! Rows are read in three cases, once in each. A cube is due and was changed since its rows were last read. A move
//! changed it. More of its tombstones may be purged.

use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cg_format::{ClusterTier, Tier};
use cg_tiering::{Candidate, ClusterAt, CubeAt, Decision, GameTick, Observation, Observers, Step};

use super::cleanup::{DueRewrites, Rows};
use super::cube_index::IndexedCube;
use super::search::NextCubes;
use super::{DamageLog, Work};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The number of cubes that one tick considers; the last cold cluster is completed. A round over a million hot chunks
/// takes 13 seconds of game time.
const CUBES_SELECTED_FROM: usize = 64;
/// The maximum number of cubes of which one tick reads the rows or the warm cluster.
const CUBES_READ: usize = 8;
/// The number of cubes that one tick considers over a network.
const CUBES_SELECTED_FROM_TOGETHER: usize = 1024;
/// The maximum number of cold clusters that one tick reads there. Their cubes are read together, and do not count as
/// [`CUBES_READ`].
const CLUSTERS_READ: usize = 64;
/// A warm cluster of unknown content counts as this many chunks.
const WARM_CHUNKS: u32 = 64;

/// Where the chunks of a cube are to be moved, if anywhere, and the observation on which this depends.
#[derive(Debug, Clone, Copy)]
struct DueMoves {
    seen: Observation,
    from_hot: Option<Decision>,
    /// Into the cold cluster.
    from_warm: Option<Decision>,
}

/// The known state of a cube when it was decided about, and where its chunks are to be moved.
type Selected = (IndexedCube, Option<DueMoves>);

/// Why nothing was decided about a cube.
enum NotSelected {
    /// It has nothing that could move, or cannot be read.
    Gone,
    /// It must be read first, and no more reads are allowed.
    Unread,
}

/// The reads that are still allowed.
struct Reads {
    left: usize,
    due: Due,
}

impl Reads {
    /// Takes one of them.
    fn take(&mut self) -> bool {
        let takes = self.left > 0 && !self.due.is_over();
        self.left -= usize::from(takes);
        takes
    }
}

impl MaintainState {
    /// Records for the ticks of a new world that nothing needs to be searched.
    ///
    /// Damage must not prevent the open. A later read of the damaged row reports it. A world over a network that may have
    /// chunks is searched by its first tick, in the background.
    pub(crate) fn know_if_empty(&self, is_new: bool) {
        let mut damage_log = DamageLog::default();
        let mut is_empty = || {
            let first = self.next_cube(Bound::Unbounded, &mut NextCubes::default(), &mut damage_log);
            matches!(first, Ok(None)) && damage_log.take().is_empty()
        };
        if is_new || !self.is_over_network && is_empty() {
            self.maintenance.work(|work| work.cube_index.nothing_there());
        }
    }

    /// Considers the next cubes and offers due moves to the plan. Returns `false` if more must be read.
    ///
    /// Once the world was searched after opening, this reads nothing where nothing is due and nothing has changed.
    /// Otherwise it costs a few map lookups for each cube.
    pub(crate) fn select_due(&self, work: &mut Work, due: Due) -> Result<bool, Error> {
        work.note_written(&self.activity.tiering);
        // Decisions about indexed cubes are made while the rest is searched.
        let is_searched = self.search(work, due.for_part(2))?;
        let mut most = CUBES_SELECTED_FROM;
        if self.is_over_network {
            self.gather_unsure(work, due)?;
            most = CUBES_SELECTED_FROM_TOGETHER;
        }
        let (mut first, mut considered, mut reads) = (None, 0, Reads { left: CUBES_READ, due });
        // Over a network the rows are here now, and are gone with the job: a budget that is shorter than these calls would
        // never decide anything.
        while considered < most && (self.is_over_network || !due.is_over()) {
            let Some(cluster) = work.cube_index.next_cluster().filter(|next| first != Some(*next)) else {
                break;
            };
            first = first.or(Some(cluster));
            considered += work.cube_index.cubes_in(cluster).len();
            if !self.select_in_cluster(work, cluster, due, &mut reads)? {
                return Ok(false);
            }
            work.cube_index.advance_past(cluster);
        }
        self.evict_excess(work);
        Ok(is_searched && !due.is_over())
    }

    /// Gathers the rows of the next cold clusters about which something cannot be decided without them.
    fn gather_unsure(&self, work: &mut Work, due: Due) -> Result<(), Error> {
        let now = self.activity.tiering.now();
        let mut considered = 0;
        let mut unsure = Vec::new();
        for (cluster, cubes) in work.cube_index.clusters_in_turn() {
            considered += cubes.len();
            let is_unsure = |known: &IndexedCube| {
                let due_moves =
                    || if known.is_offered(now) { None } else { self.due_moves(work, *known, due) };
                self.must_look(known) || due_moves().is_some_and(|moves| !self.is_sure(known, moves))
            };
            if work.cube_index.is_whole(cluster) && cubes.iter().any(is_unsure) {
                unsure.push(cluster);
            }
            if considered >= CUBES_SELECTED_FROM_TOGETHER || unsure.len() >= CLUSTERS_READ {
                break;
            }
        }
        self.gather(work, &unsure)
    }

    /// Whether the rows of a cube must be read, due or not.
    fn must_look(&self, known: &IndexedCube) -> bool {
        known.must_look(self.shared.tombstone_horizon.load(Ordering::Relaxed))
    }

    /// Whether all is known on which the moves of a cube depend.
    fn is_sure(&self, known: &IndexedCube, due_moves: DueMoves) -> bool {
        let knows_rows = known.is_sure && (known.has_no_heat || self.knows_heat(known.cube));
        knows_rows && (due_moves.from_warm.is_none() || known.warm.is_some())
    }

    /// Offers the due moves of the next cold cluster with rows to the plan. Returns the cluster; `None` if all were
    /// considered since the index began again.
    ///
    /// Each cluster is read, whatever is due in it. So rows that no commit reported are found, too.
    pub(crate) fn select_next_cluster(
        &self,
        work: &mut Work,
        next_cubes: &mut NextCubes,
        due: Due,
    ) -> Result<Option<ClusterAt>, Error> {
        let cluster = self.read_next_cluster(work, next_cubes)?;
        if let Some(cluster) = cluster {
            self.select_in_cluster(work, cluster, due, &mut Reads { left: usize::MAX, due })?;
            self.evict_excess(work);
        }
        Ok(cluster)
    }

    /// Considers the cubes of a cold cluster. All due cubes are offered at once, so that they are one move. Returns
    /// `false` if that needs more reads than are allowed.
    fn select_in_cluster(
        &self,
        work: &mut Work,
        cluster: ClusterAt,
        due: Due,
        reads: &mut Reads,
    ) -> Result<bool, Error> {
        if !work.cube_index.is_whole(cluster) {
            // The search finds its other cubes before any of it is due, and all of it should be one move.
            return Ok(true);
        }
        let rewrites = self.due_rewrites(due);
        let (mut offers, mut above_cold) = (Vec::new(), Rows::default());
        for known in work.cube_index.cubes_in(cluster).to_vec() {
            let (known, due_moves) = match self.select_cube(work, known, due, reads)? {
                Ok(selected) => selected,
                Err(NotSelected::Gone) => continue,
                Err(NotSelected::Unread) => return Ok(false),
            };
            offers.extend(due_moves.map(|due_moves| (known, due_moves)));
            let hot = known.hot.rows.count_ones();
            let horizon = self.shared.tombstone_horizon.load(Ordering::Relaxed);
            work.cleanup.old_tombstones(known.cube, known.hot.old_tombstones, horizon);
            if known.warm != Some(false) {
                // Only hot rows shadow the slots of the warm cluster.
                let above_warm = Rows { hot, most_shadows: hot };
                work.cleanup.rows_above(known.cube.cluster(ClusterTier::L1), above_warm, rewrites);
            }
            above_cold += known.rows_above();
        }
        work.cleanup.rows_above(cluster, above_cold, rewrites);
        for (known, due_moves) in offers {
            self.offer(work, known, due_moves);
        }
        Ok(true)
    }

    /// Decides about a cube. Reads of it what the decision depends on and is not known.
    fn select_cube(
        &self,
        work: &mut Work,
        mut known: IndexedCube,
        due: Due,
        reads: &mut Reads,
    ) -> Result<Result<Selected, NotSelected>, Error> {
        let (cube, now) = (known.cube, self.activity.tiering.now());
        let is_offered = known.is_offered(now);
        let mut due_moves = if is_offered { None } else { self.due_moves(work, known, due) };
        let is_sure = || known.is_sure && (known.has_no_heat || self.knows_heat(cube));
        if self.must_look(&known) || (due_moves.is_some() && !is_sure()) {
            if !work.gathered.has_hot(cube.cluster(ClusterTier::L2)) && !reads.take() {
                return Ok(Err(NotSelected::Unread));
            }
            let Some(read) = self.read_cube(work, cube)? else { return Ok(Err(NotSelected::Gone)) };
            known = read;
            if known.hot.rows == 0 && known.warm.is_none() {
                known.warm = self.find_warm(work, cube)?;
                if known.warm == Some(false) && !self.knows_heat(cube) {
                    // Its heat row was deleted when it became cold, so nothing is left to record.
                    work.cube_index.forget(cube);
                    return Ok(Err(NotSelected::Gone));
                }
            }
            due_moves = self.due_moves(work, known, due);
        }
        if due_moves.is_some_and(|moves| moves.from_warm.is_some()) && known.warm.is_none() {
            if work.gathered.has_warm(cube).is_none() && !reads.take() {
                return Ok(Err(NotSelected::Unread));
            }
            known.warm = self.find_warm(work, cube)?;
            // Nothing of a cube with an unreadable warm cluster is moved.
            due_moves = due_moves.filter(|_| known.warm.is_some());
        }
        Ok(Ok((known, due_moves)))
    }

    fn due_rewrites(&self, due: Due) -> DueRewrites {
        let after_ticks = self.activity.tiering.observers(|seen| seen.policy().rewrite_after_ticks);
        DueRewrites { now: self.activity.tiering.now(), at: due.at(), after_ticks }
    }

    fn knows_heat(&self, cube: CubeAt) -> bool {
        self.activity.tiering.observers(|seen| seen.heat().get(cube)).is_some()
    }

    /// Where the chunks of a cube are to be moved; `None` if nowhere. Decided from memory.
    fn due_moves(&self, work: &Work, known: IndexedCube, due: Due) -> Option<DueMoves> {
        let (cube, now) = (known.cube, self.activity.tiering.now());
        let is_left_alone = |tier| work.cube_index.is_left_alone(cube.cluster(tier), now);
        if is_left_alone(ClusterTier::L1) {
            return None;
        }
        let may_be_cold = !is_left_alone(ClusterTier::L2);
        self.activity.tiering.observers(|seen| {
            let last_access = seen.heat().last_access(cube);
            if !seen.policy().may_demote(last_access, due.at()) {
                return None;
            }
            let (observed, from_hot) = due.decide(seen, cube, Tier::L0);
            let (_, from_warm) = due.decide(seen, cube, Tier::L1);
            let from_hot =
                from_hot.filter(|decision| known.hot.chunks != 0 && (may_be_cold || decision.to != Tier::L2));
            // A cube with neither rows nor a warm cluster is included: its heat is deleted.
            let from_warm = from_warm.filter(|decision| {
                may_be_cold && decision.to == Tier::L2 && (known.hot.rows == 0 || known.warm != Some(false))
            });
            let is_due = from_hot.is_some() || from_warm.is_some();
            is_due.then_some(DueMoves { seen: observed, from_hot, from_warm })
        })
    }

    /// Offers due moves to the plan. Whether the cube has a warm cluster is known if that is to be emptied.
    fn offer(&self, work: &mut Work, known: IndexedCube, due_moves: DueMoves) {
        let (cube, DueMoves { seen, from_hot, from_warm }) = (known.cube, due_moves);
        let has_warm = known.warm == Some(true);
        if from_warm.is_some() && !has_warm && known.hot.rows == 0 {
            work.cleanup.heat_only.push((cube, seen.last_access));
            work.cube_index.forget(cube);
        }
        let from_hot =
            from_hot.map(|decision| (Tier::L0, decision, known.hot.chunks.count_ones(), known.hot.bytes));
        let from_warm = from_warm.filter(|_| has_warm).map(|decision| (Tier::L1, decision, WARM_CHUNKS, 0));
        for (from, decision, chunks, bytes) in from_hot.into_iter().chain(from_warm) {
            work.cube_index.offered(cube, self.activity.tiering.now());
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
    }
}

/// With less time than this a tick does not wait for another thread: a busy system may wake it milliseconds too late.
const WORTH_WAITING: Duration = Duration::from_millis(20);

/// Which decisions are applied, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    at: GameTick,
    who: Who,
    /// When to stop; `None`: when all is done.
    deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Players, holds and pins as they are.
    AsSeen,
    /// As if there were no players and no holds. Pins apply.
    Nobody,
}

impl Due {
    /// Decisions that are due at a tick with the current players, until a deadline.
    pub(crate) const fn until(at: GameTick, deadline: Option<Instant>) -> Self {
        Self { at, who: Who::AsSeen, deadline }
    }

    /// The same, with a part of the remaining time.
    pub(crate) fn for_part(self, one_of: u32) -> Self {
        let now = Instant::now();
        let deadline = self.deadline.map(|deadline| now + deadline.saturating_duration_since(now) / one_of);
        Self { deadline, ..self }
    }

    /// Decisions that will be due at a tick if no player comes until then.
    pub(crate) const fn when_nobody_comes(at: GameTick) -> Self {
        Self { at, who: Who::Nobody, deadline: None }
    }

    /// The tick whose decisions are applied.
    pub(crate) const fn at(&self) -> GameTick {
        self.at
    }

    /// Whether this makes the world smaller: without players, chunks are only demoted.
    pub(super) fn shrinks(&self) -> bool {
        self.who == Who::Nobody
    }

    /// Whether there is a deadline.
    pub(super) const fn has_end(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// How long to wait for another thread: not at all if little time is left. `None`: until it is done.
    pub(crate) fn time_to_wait(&self) -> Option<Duration> {
        let left = self.deadline?.saturating_duration_since(Instant::now());
        Some(if left >= WORTH_WAITING { left } else { Duration::ZERO })
    }

    /// Whether there is enough time to wait for another thread.
    pub(super) fn waits(&self) -> bool {
        self.time_to_wait() != Some(Duration::ZERO)
    }

    /// Where the chunks of a cube that are in a tier are to be moved, if they are.
    pub(super) fn decide(
        &self,
        seen: &Observers,
        cube: CubeAt,
        tier: Tier,
    ) -> (Observation, Option<Decision>) {
        let here = seen.observe(cube, tier);
        let here = match self.who {
            Who::AsSeen => here,
            Who::Nobody => Observation { pinned: here.pinned, ..Observation::alone(tier, here.last_access) },
        };
        (here, seen.policy().due(&here, self.at))
    }

    /// Whether a step that was planned some time ago is still right.
    pub(super) fn confirms(&self, seen: &Observers, step: &Step) -> bool {
        self.who == Who::Nobody || seen.confirms(step, self.at)
    }
}
