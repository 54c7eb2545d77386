//! Motion: predicts the position of a player from its past positions.

use std::collections::BTreeMap;

use cg_format::{BlockBox, BlockPos, Dimension, EntityId};

use crate::GameTick;

/// The position of a player. Hosts pass all players of all dimensions at each check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlayerAt {
    /// The player's entity id.
    pub id: EntityId,
    /// The player's dimension.
    pub dimension: Dimension,
    /// The block of the player's position.
    pub block: BlockPos,
}

/// The path from a player's position to its predicted position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// Where the player is.
    pub from: BlockPos,
    /// The position that the player reaches at the same speed.
    pub to: BlockPos,
}

/// Predicts positions from successive positions.
///
/// The speed is measured over the last one to two seconds, so a single jump or late tick has little effect. A player
/// that changes the dimension, or is faster than [`Motion::TELEPORT_BLOCKS_PER_TICK`], was teleported. Its predicted
/// speed is zero.
///
/// ```
/// use cg_format::{BlockPos, Dimension, EntityId};
/// use cg_tiering::{GameTick, Motion, PlayerAt};
/// let mut motion = Motion::default();
/// let at = |x| PlayerAt { id: EntityId::from_bytes([1; 16]), dimension: Dimension::new(0), block: BlockPos::new(x, 70, 0) };
/// motion.update(&[at(0)], GameTick::new(0));
/// motion.update(&[at(15)], GameTick::new(10));
/// assert_eq!(motion.path(&at(15), 100).to, BlockPos::new(165, 70, 0));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Motion {
    tracks: BTreeMap<EntityId, Track>,
    updates: u64,
}

#[derive(Debug, Clone, Copy)]
struct Track {
    dimension: Dimension,
    /// The start of the speed measurement.
    anchor: Seen,
    /// The next anchor.
    recent: Seen,
    last: Seen,
    /// The update in which the player was last listed.
    update: u64,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    block: BlockPos,
    tick: GameTick,
}

impl Motion {
    /// Above this speed along one axis, a player was teleported: 160 blocks in a second.
    pub const TELEPORT_BLOCKS_PER_TICK: u64 = 8;
    /// The minimum age of the position from which a steady player's speed is measured.
    const ANCHOR_TICKS: u64 = GameTick::PER_SECOND;

    /// Records the positions of all players. Players that are not listed are dropped. If one is listed twice, the last
    /// position counts.
    pub fn update(&mut self, players: &[PlayerAt], now: GameTick) {
        self.updates += 1;
        for player in players {
            let here = Seen { block: player.block, tick: now };
            let fresh = Track {
                dimension: player.dimension,
                anchor: here,
                recent: here,
                last: here,
                update: self.updates,
            };
            let track = self.tracks.entry(player.id).or_insert(fresh);
            if track.dimension != player.dimension || track.last.is_jump_to(here) {
                *track = fresh;
                continue;
            }
            track.update = self.updates;
            track.last = here;
            if now.since(track.recent.tick) >= Self::ANCHOR_TICKS {
                track.anchor = track.recent;
                track.recent = here;
            }
        }
        self.tracks.retain(|_, track| track.update == self.updates);
    }

    /// A player's path for some ticks after its last update. For an unknown player it ends at the present position.
    pub fn path(&self, player: &PlayerAt, horizon_ticks: u64) -> Path {
        let still = Path { from: player.block, to: player.block };
        let Some(track) = self.tracks.get(&player.id) else { return still };
        let elapsed_ticks = track.last.tick.since(track.anchor.tick);
        if track.dimension != player.dimension || elapsed_ticks == 0 {
            return still;
        }
        let ahead = |from: i64, anchor: i64, last: i64| {
            let moved = (i128::from(last) - i128::from(anchor)).saturating_mul(horizon_ticks.into());
            saturating(i128::from(from).saturating_add(moved / i128::from(elapsed_ticks)))
        };
        let (from, anchor, last) = (player.block, track.anchor.block, track.last.block);
        let to = BlockPos::new(
            ahead(from.x, anchor.x, last.x),
            ahead(from.y, anchor.y, last.y),
            ahead(from.z, anchor.z, last.z),
        );
        Path { from, to }
    }

    /// Restarts the measurement of a player's speed at its present position.
    pub fn restart(&mut self, player: &PlayerAt, now: GameTick) {
        let here = Seen { block: player.block, tick: now };
        let (dimension, update) = (player.dimension, self.updates);
        self.tracks.insert(player.id, Track { dimension, anchor: here, recent: here, last: here, update });
    }

    /// The distance that a player moved while its speed was measured, on the axis with the greatest distance. A
    /// distance of one block may be a very small movement.
    pub fn moved_blocks(&self, id: EntityId) -> u64 {
        self.tracks.get(&id).map_or(0, |track| chebyshev(track.anchor.block, track.last.block))
    }

    /// The number of known players.
    pub fn len(&self) -> usize {
        self.tracks.len()
    }

    /// Whether no player is known.
    pub fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }
}

impl Seen {
    fn is_jump_to(self, later: Self) -> bool {
        let limit = later.tick.since(self.tick).max(1).saturating_mul(Motion::TELEPORT_BLOCKS_PER_TICK);
        chebyshev(self.block, later.block) > limit
    }
}

impl Path {
    /// The maximum distance of two points, so that no place beside a long path is missed.
    const STEP_BLOCKS: u64 = 32;
    /// The maximum number of points of a path.
    const MAX_POINTS: u64 = 32;

    /// The path of a player that does not move.
    pub const fn still(at: BlockPos) -> Self {
        Self { from: at, to: at }
    }

    /// The smallest distance between a box and the points of the path, on the axis with the greatest distance.
    ///
    /// Points are at most 32 blocks apart, unless the path is longer than 1,024 blocks.
    pub fn distance_blocks(&self, to: &BlockBox) -> u64 {
        self.points().map(|point| distance_to_box(point, to)).min().unwrap_or(u64::MAX)
    }

    /// The points of the path that are used for distances.
    pub(super) fn points(self) -> impl Iterator<Item = BlockPos> {
        let steps = chebyshev(self.from, self.to).div_ceil(Self::STEP_BLOCKS).min(Self::MAX_POINTS);
        (0..=steps).map(move |step| self.point(step, steps.max(1)))
    }

    /// The box around the path.
    pub fn bounds(&self) -> BlockBox {
        BlockBox::new(self.from, self.to)
    }

    fn point(&self, step: u64, steps: u64) -> BlockPos {
        let between = |from: i64, to: i64| {
            let part = (i128::from(to) - i128::from(from)) * i128::from(step) / i128::from(steps);
            saturating(i128::from(from) + part)
        };
        let (from, to) = (self.from, self.to);
        BlockPos::new(between(from.x, to.x), between(from.y, to.y), between(from.z, to.z))
    }
}

fn saturating(coordinate: i128) -> i64 {
    coordinate.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn chebyshev(a: BlockPos, b: BlockPos) -> u64 {
    a.x.abs_diff(b.x).max(a.y.abs_diff(b.y)).max(a.z.abs_diff(b.z))
}

/// Blocks from a block to a box, on the axis with the greatest distance; 0 inside.
pub(super) fn distance_to_box(block: BlockPos, to: &BlockBox) -> u64 {
    distance_between(&BlockBox::new(block, block), to)
}

/// Blocks between two boxes, on the axis with the greatest distance; 0 if they touch on all axes.
pub(super) fn distance_between(one: &BlockBox, other: &BlockBox) -> u64 {
    let gap = |axis: fn(BlockPos) -> i64| {
        let (below, above) = (axis(one.min()), axis(one.max()));
        let (other_below, other_above) = (axis(other.min()), axis(other.max()));
        if below > other_above {
            below.abs_diff(other_above)
        } else if other_below > above {
            other_below.abs_diff(above)
        } else {
            0
        }
    };
    gap(|at| at.x).max(gap(|at| at.y)).max(gap(|at| at.z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(x: i64, y: i64, z: i64) -> PlayerAt {
        let id = EntityId::from_bytes([1; 16]);
        PlayerAt { id, dimension: Dimension::new(0), block: BlockPos::new(x, y, z) }
    }

    /// The position of a player in 100 ticks, after a path of (tick, x) along x.
    #[track_caller]
    fn check(way: &[(u64, i64)], expected_x: i64) {
        let mut motion = Motion::default();
        for (tick, x) in way {
            motion.update(&[at(*x, 64, 0)], GameTick::new(*tick));
        }
        let (_, last) = way.last().unwrap();
        assert_eq!(motion.path(&at(*last, 64, 0), 100).to, BlockPos::new(expected_x, 64, 0));
    }

    #[test]
    fn a_steady_way_goes_on_and_a_jump_does_not() {
        check(&[(0, 0)], 0);
        check(&[(0, 0), (0, 5)], 5);
        check(&[(0, 0), (10, -10)], -110);
        check(&[(0, 0), (1, 8)], 808);
        check(&[(0, 0), (1, 9)], 9);
        check(&[(0, 0), (10, 10), (11, 9000), (21, 9010)], 9110);
    }

    #[test]
    fn who_stops_is_not_expected_further_on_after_two_seconds() {
        let walk: Vec<_> = (0..=40).map(|tick| (tick, tick as i64)).collect();
        check(&walk, 140);
        let stopped: Vec<_> = walk.into_iter().chain((41..=81).map(|tick| (tick, 40))).collect();
        check(&stopped[..51], 40 + 100 * 20 / 30);
        check(&stopped, 40);
    }

    #[test]
    fn who_left_or_changed_the_dimension_stands_still() {
        let mut motion = Motion::default();
        motion.update(&[at(0, 0, 0)], GameTick::new(0));
        motion.update(&[at(9, 0, 0)], GameTick::new(10));
        let below = PlayerAt { dimension: Dimension::new(1), ..at(9, 0, 0) };
        assert_eq!(motion.path(&below, 10), Path::still(below.block), "the way was in another dimension");
        motion.update(&[below], GameTick::new(20));
        assert_eq!(motion.path(&below, 10), Path::still(below.block));
        let on = PlayerAt { block: BlockPos::new(19, 0, 0), ..below };
        motion.update(&[on], GameTick::new(30));
        assert_eq!(motion.path(&on, 10).to, BlockPos::new(29, 0, 0), "and counts from there");
        motion.update(&[], GameTick::new(40));
        assert!(motion.is_empty());
    }

    #[test]
    fn places_beside_a_long_way_are_near() {
        let path = Path { from: BlockPos::new(0, 0, 0), to: BlockPos::new(0, -900, 0) };
        let beside = |y| BlockBox::new(BlockPos::new(50, y, 0), BlockPos::new(60, y + 10, 10));
        assert_eq!(path.distance_blocks(&beside(-450)), 50);
        assert_eq!(path.distance_blocks(&beside(-1000)), 90);
        assert_eq!(path.distance_blocks(&beside(100)), 100);
    }

    #[test]
    fn the_whole_world_is_a_distance() {
        let corner = |end: i64| BlockPos::new(end, end, end);
        let far = BlockBox::new(corner(i64::MAX), corner(i64::MAX));
        assert_eq!(Path::still(corner(i64::MIN)).distance_blocks(&far), u64::MAX);
        let mut motion = Motion::default();
        motion.update(&[at(i64::MAX - 8, 0, 0)], GameTick::new(0));
        motion.update(&[at(i64::MAX, 0, 0)], GameTick::new(1));
        assert_eq!(motion.path(&at(i64::MAX, 0, 0), u64::MAX).to.x, i64::MAX);
    }

    proptest! {
        #[test]
        fn a_way_is_nowhere_farther_than_its_start_and_nowhere_nearer_than_its_bounds(
            from in prop::array::uniform3(any::<i64>()), to in prop::array::uniform3(any::<i64>()),
            a in prop::array::uniform3(any::<i64>()), b in prop::array::uniform3(any::<i64>()),
        ) {
            let pos = |[x, y, z]: [i64; 3]| BlockPos::new(x, y, z);
            let (path, place) = (Path { from: pos(from), to: pos(to) }, BlockBox::new(pos(a), pos(b)));
            let distance = path.distance_blocks(&place);
            prop_assert!(distance <= Path::still(path.from).distance_blocks(&place));
            prop_assert!(distance <= Path::still(path.to).distance_blocks(&place));
            prop_assert!(distance >= distance_between(&path.bounds(), &place));
        }
    }
}
