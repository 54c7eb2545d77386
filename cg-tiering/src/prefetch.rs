//! Prefetch: which chunks a moving player will want next.
//!
//! **Invariant**: positions enter only as differences, so what is wanted in a world that is turned, mirrored and moved
//! is what is wanted in the world as it is, turned, mirrored and moved.
//!
//! Speeds are fractions of blocks, so a player that is slower than one chunk for each update moves all the same.

use std::collections::BTreeMap;

use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, EntityId};

use crate::observe::{Motion, Path, PlayerAt};
use crate::time::GameTick;

/// How far ahead of a player chunks are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ahead {
    /// At most this many chunks ahead along each axis; more than [`Ahead::MAX_CHUNKS`] counts as that.
    pub chunks: u8,
    /// Only where the player will be within this many ticks.
    pub ticks: u64,
    /// How many chunks around the player are wanted on x, y and z, to either side; more than [`Ahead::MAX_REACH_CHUNKS`]
    /// counts as that. What is as near to the player counts as loaded.
    pub reach_chunks: [u8; 3],
}

impl Ahead {
    /// The most chunks ahead along an axis.
    pub const MAX_CHUNKS: u8 = 3;
    /// The most chunks around a player along an axis.
    pub const MAX_REACH_CHUNKS: u8 = 32;

    /// The chunks that a way enters after the one where it begins, in the order of entering. A way through an edge or a
    /// corner enters the chunk after it and none beside.
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
            // The way is inside the world, so this never fails.
            let Ok(chunk) = ChunkPos::new(x, y, z) else { return entered };
            if axes.iter().any(|axis| axis.crossed > most) {
                return entered;
            }
            entered.push(chunk);
        }
    }

    /// The chunks that come into reach when a player at `from` enters these one after another: each once, what comes
    /// first first. Costs what there is.
    pub fn wanted(&self, from: ChunkPos, entered: &[ChunkPos]) -> Vec<ChunkPos> {
        let mut wanted = Vec::new();
        let mut before = from;
        for center in entered {
            let first = wanted.len();
            self.faces(before, *center, &mut wanted);
            // The middle of a face is what a player sees first.
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

    /// What is in reach of a chunk and not of its neighbour.
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
                        // What two faces share belongs to the first.
                        if (0..axis).any(|other| is_stepped(other) && at[other] == face(other)) {
                            continue;
                        }
                        // After the end of the world there is nothing.
                        out.extend(ChunkPos::new(x, y, z));
                    }
                }
            }
        }
    }
}

/// A way along one axis, from the middle of a block to the middle of another, in half blocks: no middle lies on a
/// border of chunks, and the mirror image of a middle is one.
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

    /// Whether this axis crosses its next border before another one does. Both move.
    fn leaves_before(&self, other: &Self) -> bool {
        self.left() * other.by.abs() < other.left() * self.by.abs()
    }

    fn chunk(&self) -> i64 {
        let start = self.from.div_euclid(Self::HALVES_PER_CHUNK) as i64;
        start + self.crossed * self.by.signum() as i64
    }
}

/// What changed for a player between two updates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// The player will want these, what comes first first, and nothing else: nothing at all if it turned or stopped.
    Wants(EntityId, Vec<ChunkAt>),
    /// The player is not listed any more.
    Gone(EntityId),
}

/// Follows players, and tells when what they will want changes.
///
/// A player that leaves the course foreseen for it, by half a chunk and a quarter of the way since, has turned or
/// stopped: what it wanted is void at once, and its speed is measured anew. At one chunk in a second that is within
/// a second of a turn.
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
    /// Since when its speed is measured.
    since: GameTick,
    /// The course foreseen, and when.
    path: Path,
    foreseen_at: GameTick,
    entered: Vec<ChunkPos>,
    /// The update in which it was last listed.
    update: u64,
}

impl Courses {
    /// A speed is believed when it was measured for so long.
    const SETTLED_TICKS: u64 = 5;
    /// A player that came less far stands: a step over the border of two blocks is no speed.
    const MOVED_BLOCKS: u64 = 2;
    /// A course is foreseen anew after so long.
    const FORESEEN_TICKS: u64 = GameTick::PER_SECOND;
    /// A player this far beside its course has not left it, whatever its speed.
    const BESIDE_BLOCKS: i128 = 8;

    /// Follows no player yet.
    pub fn new(ahead: Ahead) -> Self {
        Self { ahead, motion: Motion::default(), followed: BTreeMap::new(), updates: 0 }
    }

    /// Takes the places of all players and tells for whom something changed: nothing for those that stand, or keep
    /// going inside a chunk. Players that are not listed are gone.
    ///
    /// Costs a look into two maps for each player; a change, besides, what is wanted.
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

    /// Takes the place of a player. Returns what it will want if that changed.
    fn follow(&mut self, player: &PlayerAt, now: GameTick) -> Option<Course> {
        let fresh = Followed::new(player, now);
        let followed = self.followed.entry(player.id).or_insert_with(|| fresh.clone());
        followed.update = self.updates;
        let (beside, most) = followed.beside_blocks(player.block, now, self.ahead.ticks);
        // A player that wants nothing has no course to leave.
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
        // A speed that wavers shortens a course for a moment; what was wanted along it is wanted still.
        let is_kept = !entered.is_empty() && followed.entered.starts_with(&entered);
        let is_changed = entered != followed.entered && !is_kept;
        // Not at every change, nor when the player may be leaving it: a course that follows a turn step by step is never left.
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

    /// How many players are followed.
    pub fn len(&self) -> usize {
        self.followed.len()
    }

    /// Whether no player is followed.
    pub fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }
}

impl Followed {
    /// A player that is seen for the first time, or anew: it wants nothing yet.
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

    /// How far a player is from where its course would have brought it, and how far at most if it keeps it.
    fn beside_blocks(&self, at: BlockPos, now: GameTick, horizon_ticks: u64) -> (i128, i128) {
        let elapsed_ticks = i128::from(now.since(self.foreseen_at));
        let off = |axis: fn(BlockPos) -> i64| {
            let (from, to) = (i128::from(axis(self.path.from)), i128::from(axis(self.path.to)));
            // A horizon of nothing foresees nothing, so there is no course.
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
