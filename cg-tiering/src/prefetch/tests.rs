//! Paths, the chunks wanted along them, and players that turn.

use std::collections::BTreeSet;

use super::*;
use cg_format::ChunkBox;
use proptest::prelude::*;

const AHEAD: Ahead = Ahead { chunks: 3, ticks: 60, reach_chunks: [0; 3] };

fn block([x, y, z]: [i64; 3]) -> BlockPos {
    BlockPos::new(x, y, z)
}

fn chunk([x, y, z]: [i64; 3]) -> ChunkPos {
    ChunkPos::constant(x, y, z)
}

fn coordinates(pos: ChunkPos) -> [i64; 3] {
    [pos.x(), pos.y(), pos.z()]
}

/// Checks the chunks that a path enters.
#[track_caller]
fn check(from: [i64; 3], to: [i64; 3], expected: &[[i64; 3]]) {
    let entered = AHEAD.entered(&Path { from: block(from), to: block(to) });
    assert_eq!(entered.into_iter().map(coordinates).collect::<Vec<_>>(), expected);
}

#[test]
fn a_way_enters_the_chunks_it_goes_through_in_their_order() {
    check([8, 8, 8], [8, 8, 8], &[]);
    check([0, 8, 8], [15, 8, 8], &[]);
    check([0, 8, 8], [16, 8, 8], &[[1, 0, 0]]);
    check([0, 8, 8], [-1, 8, 8], &[[-1, 0, 0]]);
    check([8, 70, 8], [8, 0, 8], &[[0, 3, 0], [0, 2, 0], [0, 1, 0]]);
    check([8, 8, 8], [999, 8, 8], &[[1, 0, 0], [2, 0, 0], [3, 0, 0]]);
    // Through edges and corners.
    check([8, 8, 8], [40, 8, 40], &[[1, 0, 1], [2, 0, 2]]);
    check([8, 8, 8], [-24, -24, -24], &[[-1, -1, -1], [-2, -2, -2]].map(|c: [i64; 3]| c)[..]);
    // Beside an edge.
    check([10, 8, 8], [26, 8, 24], &[[1, 0, 0], [1, 0, 1]]);
    // To the end of the world.
    let end = i64::MAX;
    check([end - 40, 0, 0], [end, 0, 0], &[1, 0].map(|left| [(end >> 4) - left, 0, 0])[..]);
    check(
        [0, 0, 0],
        [end, i64::MIN, 0],
        &[[0, -1, 0], [1, -1, 0], [1, -2, 0], [2, -2, 0], [2, -3, 0], [3, -3, 0]],
    );
}

#[test]
fn what_comes_into_reach_is_wanted_once_and_the_middle_first() {
    let ahead = Ahead { reach_chunks: [2, 1, 2], ..AHEAD };
    let along = [[1, 0, 0], [2, 0, 0]].map(chunk);
    let wanted = ahead.wanted(chunk([0; 3]), &along);
    assert_eq!(wanted.len(), 2 * 5 * 3);
    assert_eq!(wanted[0], chunk([3, 0, 0]));
    assert_eq!(wanted[15], chunk([4, 0, 0]));
    // The face beyond the end of the world does not exist.
    let end = ChunkPos::MAX;
    assert_eq!(ahead.wanted(chunk([end - 1, 0, 0]), &[chunk([end, 0, 0])]), []);
}

/// A player that walks: `(tick, block)`, and the chunks that it wants.
struct Walk {
    courses: Courses,
    tick: u64,
    at: [f64; 3],
    wants: Vec<ChunkPos>,
}

const WALKER: EntityId = EntityId::from_bytes([1; 16]);

impl Walk {
    fn new(at: [i64; 3]) -> Self {
        Self { courses: Courses::new(AHEAD), tick: 0, at: at.map(|c| c as f64), wants: Vec::new() }
    }

    /// Walks with a speed in blocks per tick, and counts the changes of the wanted chunks.
    fn walk(&mut self, speed: [f64; 3], ticks: u64) -> usize {
        let mut changes = 0;
        for _ in 0..ticks {
            for (at, by) in self.at.iter_mut().zip(speed) {
                *at += by;
            }
            self.tick += 1;
            let block = block(self.at.map(|c| c.floor() as i64));
            let player = PlayerAt { id: WALKER, dimension: Dimension::new(0), block };
            for course in self.courses.update(&[player], GameTick::new(self.tick)) {
                let Course::Wants(WALKER, wanted) = course else { panic!("{course:?}") };
                self.wants = wanted.into_iter().map(|at| at.pos).collect();
                changes += 1;
            }
        }
        changes
    }

    fn here(&self) -> ChunkPos {
        block(self.at.map(|c| c.floor() as i64)).chunk()
    }
}

#[test]
fn one_chunk_in_a_second_counts_in_every_direction() {
    let steps = [-1, 0, 1];
    for (x, y, z) in steps.iter().flat_map(|x| steps.iter().flat_map(move |y| steps.map(|z| (*x, *y, z)))) {
        let direction = [x, y, z];
        let mut walk = Walk::new([8; 3]);
        walk.walk(direction.map(|c| c as f64 * 0.8), 100);
        let next: Vec<_> = (1..=3).map(|n| walk.here().offset_by(direction.map(|c| c * n))).collect();
        let expected = if direction == [0; 3] { vec![] } else { next };
        assert_eq!(walk.wants, expected, "{direction:?}");
    }
}

trait OffsetBy {
    fn offset_by(self, by: [i64; 3]) -> Self;
}

impl OffsetBy for ChunkPos {
    fn offset_by(self, [x, y, z]: [i64; 3]) -> Self {
        chunk([self.x() + x, self.y() + y, self.z() + z])
    }
}

#[test]
fn who_stands_or_looks_about_wants_nothing() {
    let mut walk = Walk::new([15, 8, 8]);
    assert_eq!(walk.walk([0.0; 3], 200), 0);
    // Over the border of two blocks, near one of chunks.
    let mut walk = Walk::new([14, 8, 8]);
    for step in [-0.1, 0.1].into_iter().cycle().take(40) {
        assert_eq!(walk.walk([step, 0.0, 0.0], 1) + walk.walk([0.0; 3], 30), 0);
    }
    // Within its chunk, 4 blocks back and forth.
    let mut walk = Walk::new([4, 8, 8]);
    for _ in 0..20 {
        assert_eq!(walk.walk([0.05, 0.0, 0.0], 40) + walk.walk([-0.05, 0.0, 0.0], 40), 0);
    }
}

#[test]
fn who_turns_wants_nothing_of_the_old_way_and_soon_something_of_the_new() {
    for turned in [[-0.8, 0.0, 0.0], [0.0, 0.0, 0.8], [0.0; 3]] {
        for phase in 0..20 {
            let mut walk = Walk::new([8; 3]);
            walk.walk([0.8, 0.0, 0.0], 100 + phase);
            assert_eq!(walk.wants.len(), 3);
            let dropped = (1..=20).any(|_| walk.walk(turned, 1) > 0 && walk.wants.is_empty());
            assert!(dropped, "{turned:?}: {:?} is wanted still after a second", walk.wants);
            walk.walk(turned, 6);
            let ahead = turned.map(|speed: f64| (speed * 1.25) as i64);
            let mut expected: Vec<_> = (1..=3).map(|n| walk.here().offset_by(ahead.map(|c| c * n))).collect();
            expected.retain(|_| ahead != [0; 3]);
            assert!(expected.is_empty() == walk.wants.is_empty(), "{turned:?}");
            // The measured speed may be a quarter too low this early, so the third chunk may be missing.
            assert!(expected.starts_with(&walk.wants), "{turned:?}: {:?}", walk.wants);
        }
    }
}

#[test]
fn who_leaves_or_changes_the_dimension_wants_nothing() {
    let mut courses = Courses::new(AHEAD);
    let at =
        |dimension, x| PlayerAt { id: WALKER, dimension: Dimension::new(dimension), block: block([x, 0, 0]) };
    let mut seen = Vec::new();
    for (tick, players) in [
        (0, vec![at(0, 0)]),
        (20, vec![at(0, 16)]),
        (40, vec![at(1, 32)]),
        (60, vec![at(1, 48)]),
        (80, vec![at(1, 9000)]),
        (100, vec![]),
    ] {
        for course in courses.update(&players, GameTick::new(tick)) {
            seen.push((
                tick,
                match course {
                    Course::Wants(_, wanted) => Some(wanted.len()),
                    Course::Gone(_) => None,
                },
            ));
        }
    }
    assert_eq!(seen, [(20, Some(3)), (40, Some(0)), (60, Some(3)), (80, Some(0)), (100, None)]);
    assert!(courses.is_empty());
}

/// The old axis of each new one, whether it is mirrored, and the distance in chunks.
#[derive(Debug, Clone, Copy)]
struct Turn([(usize, bool, i64); 3]);

impl Turn {
    fn block(&self, at: BlockPos) -> BlockPos {
        let old = [at.x, at.y, at.z];
        block(
            self.0.map(|(axis, mirrored, chunks)| {
                (if mirrored { !old[axis] } else { old[axis] }) + 16 * chunks
            }),
        )
    }

    fn chunk(&self, at: ChunkPos) -> ChunkPos {
        self.block(at.min_block()).chunk()
    }

    fn ahead(&self, ahead: Ahead) -> Ahead {
        Ahead { reach_chunks: self.0.map(|(axis, ..)| ahead.reach_chunks[axis]), ..ahead }
    }
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let orders = vec![[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let (mirrors, moved) =
        (prop::array::uniform3(any::<bool>()), prop::array::uniform3(-(1_i64 << 57)..1 << 57));
    (prop::sample::select(orders), mirrors, moved)
        .prop_map(|(order, mirrors, moved)| Turn([0, 1, 2].map(|new| (order[new], mirrors[new], moved[new]))))
}

/// Small steps are as likely to be equal on two axes as not.
fn any_step() -> impl Strategy<Value = [i64; 3]> {
    prop_oneof![prop::array::uniform3(-2..=2_i64), prop::array::uniform3(-40..=40_i64)]
}

proptest! {
    #[test]
    fn no_place_and_no_direction_counts(
        steps in prop::collection::vec((any_step(), 1..30_u64), 1..30),
        reach_chunks in prop::array::uniform3(0..3_u8),
        chunks in 1..=3_u8,
        turn in any_turn(),
    ) {
        let ahead = Ahead { chunks, ticks: 60, reach_chunks };
        let (mut as_it_is, mut turned) = (Courses::new(ahead), Courses::new(turn.ahead(ahead)));
        let (mut at, mut now) = ([0; 3], 0);
        for (step, ticks) in steps {
            now += ticks;
            at = [0, 1, 2].map(|axis| at[axis] + step[axis]);
            let player = PlayerAt { id: WALKER, dimension: Dimension::new(0), block: block(at) };
            let there = PlayerAt { block: turn.block(player.block), ..player };
            let wants = |changed: Vec<Course>, turn: &dyn Fn(ChunkPos) -> ChunkPos| -> Vec<BTreeSet<ChunkPos>> {
                changed.into_iter().map(|course| match course {
                    Course::Wants(_, wanted) => wanted.into_iter().map(|at| turn(at.pos)).collect(),
                    Course::Gone(_) => panic!("nobody goes"),
                }).collect()
            };
            let here = wants(as_it_is.update(&[player], GameTick::new(now)), &|pos| turn.chunk(pos));
            let there = wants(turned.update(&[there], GameTick::new(now)), &|pos| pos);
            prop_assert_eq!(here, there);
        }
    }

    #[test]
    fn wanted_is_what_is_in_reach_of_the_way_and_not_of_its_start(
        to in prop::array::uniform3(-80..80_i64),
        from in prop::array::uniform3(0..16_i64),
        reach_chunks in prop::array::uniform3(0..4_u8),
        chunks in 1..=3_u8,
    ) {
        let ahead = Ahead { chunks, reach_chunks, ..AHEAD };
        let path = Path { from: block(from), to: block(to) };
        let entered = ahead.entered(&path);
        let reach = |center: ChunkPos| {
            let [x, y, z] = reach_chunks.map(i64::from);
            let place = ChunkBox::new(center.offset_by([-x, -y, -z]), center.offset_by([x, y, z]));
            move |pos: &ChunkPos| place.contains(*pos)
        };
        let start = path.from.chunk();
        let wanted = ahead.wanted(start, &entered);
        let all: BTreeSet<_> = wanted.iter().copied().collect();
        prop_assert_eq!(all.len(), wanted.len(), "each once");
        let side = -12..=12_i64;
        let everywhere = side.clone().flat_map(|x| side.clone().flat_map({
            let side = side.clone();
            move |y| side.clone().map(move |z| chunk([x, y, z]))
        }));
        let expected: BTreeSet<_> = everywhere
            .filter(|pos| !reach(start)(pos) && entered.iter().any(|center| reach(*center)(pos)))
            .collect();
        prop_assert_eq!(all, expected);
        // A path ends in its last chunk, unless that is too far.
        let end = coordinates(path.to.chunk());
        if end.iter().all(|c| c.unsigned_abs() <= chunks.into()) {
            prop_assert_eq!(entered.last().copied().unwrap_or(start), path.to.chunk());
        }
        for (before, next) in std::iter::once(&start).chain(&entered).zip(&entered) {
            let apart = |axis: fn(ChunkPos) -> i64| axis(*before).abs_diff(axis(*next));
            prop_assert_eq!(apart(ChunkPos::x).max(apart(ChunkPos::y)).max(apart(ChunkPos::z)), 1);
        }
    }
}
