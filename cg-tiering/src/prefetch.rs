//! Prefetch: which chunks a moving player will need next.
//!
//! **Invariant**: positions enter only as differences. If a world is rotated, mirrored and moved, the wanted chunks are
//! the same ones, transformed in the same way.
//!
//! Speeds are fractions of blocks, so a player slower than one chunk per update still has a speed.

use std::collections::BTreeMap;

use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, EntityId};

use crate::observe::{Motion, Path, PlayerAt};
use crate::time::GameTick;

/// How far ahead of a player chunks are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ahead {
    /// The maximum number of chunks ahead along each axis. Values above [`Ahead::MAX_CHUNKS`] are reduced to it.
    pub chunks: u8,
    /// Only chunks that the player reaches within this many ticks.
    pub ticks: u64,
    /// The number of chunks around the player that are wanted on x, y and z, to either side. Values above
    /// [`Ahead::MAX_REACH_CHUNKS`] are reduced to it. Chunks this near to the player count as loaded.
    pub reach_chunks: [u8; 3],
}

impl Ahead {
    /// The maximum number of chunks ahead along an axis.
    pub const MAX_CHUNKS: u8 = 3;
    /// The maximum number of chunks around a player along an axis.
    pub const MAX_REACH_CHUNKS: u8 = 32;

    /// The chunks that a path enters after its first one, in order. A path through an edge or a corner enters only the
    /// chunk after it.
    pub fn entered(&self, path: &Path) -> Vec<ChunkPos> {
        let (from, to) = (path.from, path.to);
        let mut axes = [Axis::new(from.x, to.x), Axis::new(from.y, to.y), Axis::new(from.z, to.z)];
        let most = i64::from(self.chunks.min(Self::MAX_CHUNKS));
        let mut entered = Vec::new();
        loop {
            let next = axes.iter().filter(|axis| axis.leaves_before_end());
            let Some(first) =
                next.copied().reduce(|one, other| if other.leaves_before(&one) { other } else { one })
            else {
                return entered;
            };
            for axis in &mut axes {
                if axis.leaves_before_end() && !first.leaves_before(axis) {
                    axis.crossed += 1;
                }
            }
            let [x, y, z] = axes.map(|axis| axis.chunk());
            // The path is inside the world, so this never fails.
            let Ok(chunk) = ChunkPos::new(x, y, z) else { return entered };
            if axes.iter().any(|axis| axis.crossed > most) {
                return entered;
            }
            entered.push(chunk);
        }
    }

    /// The chunks that come into reach when a player at `from` enters these chunks in order: each once, the earliest
    /// first. The cost depends on the number of results.
    pub fn wanted(&self, from: ChunkPos, entered: &[ChunkPos]) -> Vec<ChunkPos> {
        let mut wanted = Vec::new();
        let mut before = from;
        for center in entered {
            let first = wanted.len();
            self.faces(before, *center, &mut wanted);
            // A player sees the middle of a face first.
            if let Some(new) = wanted.get_mut(first..) {
                new.sort_by_key(|pos| {
                    let off = |axis: fn(ChunkPos) -> i64| i128::from(axis(*pos).abs_diff(axis(*center)));
                    let [x, y, z] = [off(ChunkPos::x), off(ChunkPos::y), off(ChunkPos::z)];
                    x * x + y * y + z * z
                });
            }
            before = *center;
        }
        wanted
    }

    /// The chunks in reach of a chunk and not of its neighbour.
    fn faces(&self, before: ChunkPos, center: ChunkPos, out: &mut Vec<ChunkPos>) {
        let coordinates = |pos: ChunkPos| [pos.x(), pos.y(), pos.z()];
        let (from, to) = (coordinates(before), coordinates(center));
        let reach = self.reach_chunks.map(|reach| i64::from(reach.min(Self::MAX_REACH_CHUNKS)));
        // On an axis without a step every layer is old, so none is a face.
        let face = |axis: usize| to[axis] + (to[axis] - from[axis]).signum() * reach[axis];
        let is_stepped = |axis: usize| to[axis] != from[axis];
        for axis in (0..3).filter(|axis| is_stepped(*axis)) {
            let span = |other: usize| {
                if other == axis {
                    face(axis)..=face(axis)
                } else {
                    to[other] - reach[other]..=to[other] + reach[other]
                }
            };
            for x in span(0) {
                for y in span(1) {
                    for z in span(2) {
                        let at = [x, y, z];
                        // Chunks that two faces share belong to the first.
                        if (0..axis).any(|other| is_stepped(other) && at[other] == face(other)) {
                            continue;
                        }
                        // No chunk is outside the world.
                        out.extend(ChunkPos::new(x, y, z));
                    }
                }
            }
        }
    }
}

/// A path along one axis, from the middle of a block to the middle of another, in half blocks. No middle is on a border
/// of chunks, and the mirror image of a middle is a middle.
#[derive(Debug, Clone, Copy)]
struct Axis {
    from: i128,
    by: i128,
    /// Borders crossed so far.
    crossed: i64,
}

impl Axis {
    const HALVES_PER_CHUNK: i128 = 32;

    fn new(from: i64, to: i64) -> Self {
        Self { from: 2 * i128::from(from) + 1, by: 2 * (i128::from(to) - i128::from(from)), crossed: 0 }
    }

    /// Half blocks to the next border.
    fn left(&self) -> i128 {
        let into = self.from.rem_euclid(Self::HALVES_PER_CHUNK);
        let first = if self.by < 0 { into } else { Self::HALVES_PER_CHUNK - into };
        first + i128::from(self.crossed) * Self::HALVES_PER_CHUNK
    }

    fn leaves_before_end(&self) -> bool {
        self.left() < self.by.abs()
    }

    /// Whether this axis crosses its next border before the other one. Both move.
    fn leaves_before(&self, other: &Self) -> bool {
        self.left() * other.by.abs() < other.left() * self.by.abs()
    }

    fn chunk(&self) -> i64 {
        let start = self.from.div_euclid(Self::HALVES_PER_CHUNK) as i64;
        start + self.crossed * self.by.signum() as i64
    }
}

/// A change for a player between two updates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// The chunks that the player will need, the earliest first, and no others. Empty if it turned or stopped.
    Wants(EntityId, Vec<ChunkAt>),
    /// The player is not listed any more.
    Gone(EntityId),
}

/// Follows players and reports changes of the chunks that they will need.
///
/// A player leaves its predicted course when it deviates by more than half a chunk and a quarter of the distance since.
/// It has turned or stopped: its wanted chunks become void at once, and its speed is measured again. At one chunk per
/// second a turn is noticed within a second.
///
/// ```
/// use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, EntityId};
/// use cg_tiering::{Ahead, Course, Courses, GameTick, PlayerAt};
/// let (id, overworld) = (EntityId::from_bytes([1; 16]), Dimension::new(0));
/// let mut courses = Courses::new(Ahead { chunks: 1, ticks: 20, reach_chunks: [0; 3] });
/// // One chunk in a second, looked at once in a second.
/// let at = |second: i64| PlayerAt { id, dimension: overworld, block: BlockPos::new(16 * second, 70, 0) };
/// assert_eq!(courses.update(&[at(0)], GameTick::new(0)), []);
/// let next = ChunkAt::new(overworld, ChunkPos::constant(2, 4, 0));
/// assert_eq!(courses.update(&[at(1)], GameTick::new(20)), [Course::Wants(id, vec![next])]);
/// ```
#[derive(Debug, Clone)]
pub struct Courses {
    ahead: Ahead,
    motion: Motion,
    followed: BTreeMap<EntityId, Followed>,
    updates: u64,
}

#[derive(Debug, Clone)]
struct Followed {
    dimension: Dimension,
    /// The beginning of the speed measurement.
    since: GameTick,
    /// The predicted course, and the moment of the prediction.
    path: Path,
    foreseen_at: GameTick,
    entered: Vec<ChunkPos>,
    /// The update in which it was last listed.
    update: u64,
}

impl Courses {
    /// The minimum duration of a speed measurement.
    const SETTLED_TICKS: u64 = 5;
    /// The minimum distance of a moving player. A step over the border of two blocks is not a speed.
    const MOVED_BLOCKS: u64 = 2;
    /// The age at which a course is predicted again.
    const FORESEEN_TICKS: u64 = GameTick::PER_SECOND;
    /// The deviation from a course that is always allowed, at any speed.
    const BESIDE_BLOCKS: i128 = 8;

    /// Creates a follower without players.
    pub fn new(ahead: Ahead) -> Self {
        Self { ahead, motion: Motion::default(), followed: BTreeMap::new(), updates: 0 }
    }

    /// Sets the positions of all players and returns the changes. A player that does not move, or continues inside a
    /// chunk, causes none. Players that are not listed have left.
    ///
    /// Costs two map lookups for each player, and for a change the computation of its chunks.
    pub fn update(&mut self, players: &[PlayerAt], now: GameTick) -> Vec<Course> {
        self.updates += 1;
        self.motion.update(players, now);
        let mut changed: Vec<_> = players.iter().filter_map(|player| self.follow(player, now)).collect();
        self.followed.retain(|id, followed| {
            let is_listed = followed.update == self.updates;
            if !is_listed {
                changed.push(Course::Gone(*id));
            }
            is_listed
        });
        changed
    }

    /// Updates the course of a player. Returns the chunks that it will want, if they changed.
    fn follow(&mut self, player: &PlayerAt, now: GameTick) -> Option<Course> {
        let fresh = Followed::new(player, now);
        let followed = self.followed.entry(player.id).or_insert_with(|| fresh.clone());
        followed.update = self.updates;
        let (beside, most) = followed.beside_blocks(player.block, now, self.ahead.ticks);
        // A player without wanted chunks has no course to leave.
        let was_left = beside > most && !followed.entered.is_empty();
        if followed.dimension != player.dimension || was_left {
            self.motion.restart(player, now);
            let old = std::mem::replace(followed, Followed { update: self.updates, ..fresh });
            return (!old.entered.is_empty()).then(|| Course::Wants(player.id, Vec::new()));
        }
        if now.since(followed.since) < Self::SETTLED_TICKS {
            return None;
        }
        let path = if self.motion.moved_blocks(player.id) < Self::MOVED_BLOCKS {
            Path::still(player.block)
        } else {
            self.motion.path(player, self.ahead.ticks)
        };
        let entered = self.ahead.entered(&path);
        // A varying speed shortens a course for a moment. The chunks along the old course stay wanted.
        let is_kept = !entered.is_empty() && followed.entered.starts_with(&entered);
        let is_changed = entered != followed.entered && !is_kept;
        // Not at every change, and not while the player may be leaving it. A course that is updated during a turn
        // would never be left.
        let is_old = now.since(followed.foreseen_at) >= Self::FORESEEN_TICKS && beside <= most / 4;
        if followed.entered.is_empty() || is_old {
            (followed.path, followed.foreseen_at) = (path, now);
        }
        if !is_changed {
            return None;
        }
        let wanted = self.ahead.wanted(player.block.chunk(), &entered).into_iter();
        followed.entered = entered;
        Some(Course::Wants(player.id, wanted.map(|pos| ChunkAt::new(player.dimension, pos)).collect()))
    }

    /// The number of known players.
    pub fn len(&self) -> usize {
        self.followed.len()
    }

    /// Whether no player is known.
    pub fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }
}

impl Followed {
    /// A player without a course yet.
    fn new(player: &PlayerAt, now: GameTick) -> Self {
        Self {
            dimension: player.dimension,
            since: now,
            path: Path::still(player.block),
            foreseen_at: now,
            entered: Vec::new(),
            update: 0,
        }
    }

    /// The distance of a player from its predicted position, and the maximum for a player that follows its course.
    fn beside_blocks(&self, at: BlockPos, now: GameTick, horizon_ticks: u64) -> (i128, i128) {
        let elapsed_ticks = i128::from(now.since(self.foreseen_at));
        let off = |axis: fn(BlockPos) -> i64| {
            let (from, to) = (i128::from(axis(self.path.from)), i128::from(axis(self.path.to)));
            // A horizon of 0 predicts nothing, so there is no course.
            let way = ((to - from) * elapsed_ticks) / i128::from(horizon_ticks.max(1));
            ((i128::from(axis(at)) - from - way).abs(), way.abs())
        };
        let [x, y, z] = [off(|at| at.x), off(|at| at.y), off(|at| at.z)];
        let (beside, way) = (x.0.max(y.0).max(z.0), x.1.max(y.1).max(z.1));
        (beside, Courses::BESIDE_BLOCKS + way / 4)
    }
}

#[cfg(test)]
mod tests;
