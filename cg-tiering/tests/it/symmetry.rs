//! No place and no direction is special: what happens in a world that is turned, mirrored and moved, up to the ends of
//! `i64`, is what happens in the world as it is, turned, mirrored and moved.

use cg_format::{BlockPos, ChunkAt, ChunkBox, Dimension, EntityId, Tier};
use cg_tiering::{
    Budget, Candidate, CubeAt, Decision, GameTick, MovePlan, NextMove, Observers, PlayerAt, Step, TierPolicy,
};
use proptest::prelude::*;

/// The scene's blocks run from −SIDE to SIDE − 1 on each axis. Players keep so far inside that neither their
/// surroundings nor the ways foreseen for them (8 blocks in a tick at most) reach its ends.
const SIDE: i64 = 2048;
const REACH: i64 = 900;
const LOOKAHEAD_TICKS: u64 = 140;

/// Which old axis becomes each new one, whether it is mirrored, and how far it is moved.
#[derive(Debug, Clone, Copy)]
struct Turn {
    axes: [(usize, bool, i128); 3],
}

impl Turn {
    fn block(&self, at: BlockPos) -> BlockPos {
        let old = [at.x, at.y, at.z];
        let new = self.axes.map(|(axis, mirrored, shift)| {
            // The mirror image of block 0 is block −1.
            let at = if mirrored { !old[axis] } else { old[axis] };
            i64::try_from(i128::from(at) + shift).expect("the scene stays in the world")
        });
        BlockPos::new(new[0], new[1], new[2])
    }

    fn chunk(&self, at: ChunkAt) -> ChunkAt {
        ChunkAt::new(at.dimension, self.block(at.pos.min_block()).chunk())
    }

    fn cube(&self, cube: CubeAt) -> CubeAt {
        CubeAt::of(self.chunk(ChunkAt::new(cube.dimension(), cube.chunks().min())))
    }

    fn place(&self, place: ChunkBox) -> ChunkBox {
        ChunkBox::new(
            self.block(place.min().min_block()).chunk(),
            self.block(place.max().min_block()).chunk(),
        )
    }

    fn player(&self, player: PlayerAt) -> PlayerAt {
        PlayerAt { block: self.block(player.block), ..player }
    }
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let orders = vec![[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let (top, bottom) = ((1_i128 << 63) - i128::from(SIDE), i128::from(SIDE) - (1_i128 << 63));
    let shift = || {
        let somewhere = (-(1_i64 << 50)..1 << 50).prop_map(|clusters| i128::from(clusters) * 256);
        prop_oneof![Just(0), Just(top), Just(bottom), somewhere]
    };
    let mirrors = prop::array::uniform3(any::<bool>());
    (prop::sample::select(orders), mirrors, [shift(), shift(), shift()]).prop_map(
        |(order, mirrors, shifts)| Turn {
            axes: [0, 1, 2].map(|new| (order[new], mirrors[new], shifts[new])),
        },
    )
}

#[derive(Debug, Clone)]
enum Event {
    Check { ticks: u64, steps: Vec<[i64; 3]> },
    Teleport { player: usize, to: [i64; 3] },
    Touch([i64; 3]),
    Hold([i64; 3], u32),
    Pin([i64; 3], u32),
}

fn any_place() -> impl Strategy<Value = [i64; 3]> {
    prop::array::uniform3(-REACH..REACH)
}

fn any_event() -> impl Strategy<Value = Event> {
    let steps = prop::collection::vec(prop::array::uniform3(-40..=40_i64), 3);
    prop_oneof![
        6 => (0..900_u64, steps).prop_map(|(ticks, steps)| Event::Check { ticks, steps }),
        1 => (0..3_usize, any_place()).prop_map(|(player, to)| Event::Teleport { player, to }),
        6 => any_place().prop_map(Event::Touch),
        1 => (any_place(), 0..5_u32).prop_map(|(at, radius)| Event::Hold(at, radius)),
        1 => (any_place(), 0..20_u32).prop_map(|(at, radius)| Event::Pin(at, radius)),
    ]
}

/// A world's answers about cubes at the end: decisions, what comes next, and the plan.
#[derive(Debug, PartialEq)]
struct Outcome {
    decisions: Vec<(CubeAt, Decision, Option<NextMove>)>,
    settled: Vec<CubeAt>,
    steps: Vec<Step>,
}

/// Plays events in a world turned by `turn`; what is said of it is about the turned cubes.
fn play(events: &[Event], cubes: &[CubeAt], turn: &Turn) -> Outcome {
    let policy = TierPolicy {
        warm_after_ticks: 3000,
        cold_after_ticks: 9000,
        promote_after_ticks: 600,
        gather_ticks: 300,
        lookahead_ticks: LOOKAHEAD_TICKS,
        ..TierPolicy::default()
    };
    let mut world = Observers::new(policy, GameTick::new(0));
    let (mut now, overworld) = (GameTick::new(0), Dimension::new(0));
    let mut players = [0_u8, 1, 2].map(|id| PlayerAt {
        id: EntityId::from_bytes([id; 16]),
        dimension: overworld,
        block: BlockPos::new(i64::from(id) * 200, 0, 0),
    });
    let block = |[x, y, z]: [i64; 3]| BlockPos::new(x, y, z);
    let around = |at, radius| ChunkBox::around(block(at).chunk(), radius).unwrap();
    for event in events {
        match event {
            Event::Check { ticks, steps } => {
                now = GameTick::new(now.get() + ticks);
                for (player, [dx, dy, dz]) in players.iter_mut().zip(steps) {
                    let step = |from: i64, by: &i64| (from + by).clamp(-REACH, REACH - 1);
                    let BlockPos { x, y, z } = player.block;
                    player.block = BlockPos::new(step(x, dx), step(y, dy), step(z, dz));
                }
                world.check_players(&players.map(|player| turn.player(player)), now);
            }
            Event::Teleport { player, to } => players[*player].block = block(*to),
            Event::Touch(at) => world.touch(turn.chunk(ChunkAt::new(overworld, block(*at).chunk())), now),
            Event::Hold(at, radius) => {
                world.hold(overworld, &turn.place(around(*at, *radius)), now).unwrap();
            }
            Event::Pin(at, radius) => {
                world.pin(overworld, turn.place(around(*at, *radius)));
            }
        }
    }
    let (mut decisions, mut plan) = (Vec::new(), MovePlan::new());
    for cube in cubes.iter().map(|cube| turn.cube(*cube)) {
        for tier in Tier::ALL {
            let seen = world.observe(cube, tier);
            decisions.push((cube, world.decide(cube, tier, now), world.next_move(cube, tier, now)));
            if let Some(decision) = world.due(cube, tier, now) {
                plan.offer(Candidate {
                    cube,
                    from: tier,
                    decision,
                    chunks: 5,
                    bytes: 5000,
                    last_access: seen.last_access,
                    nearest_player_blocks: seen.nearest_player_blocks,
                });
            }
        }
    }
    let mut budget = Budget { bytes: 5000 * 200, chunks: u64::MAX };
    let steps = std::iter::from_fn(|| plan.next_step(&mut budget)).collect();
    let mut settled = world.take_settled(now, usize::MAX);
    settled.sort_unstable();
    Outcome { decisions, settled, steps }
}

impl Outcome {
    fn turned(self, turn: &Turn) -> Self {
        let decisions =
            self.decisions.into_iter().map(|(cube, decision, next)| (turn.cube(cube), decision, next));
        let steps = self.steps.into_iter().map(|step| Step {
            cube: turn.cube(step.cube),
            cluster: turn.cube(step.cube).cluster(step.cluster.pos.tier()),
            ..step
        });
        let mut settled: Vec<_> = self.settled.into_iter().map(|cube| turn.cube(cube)).collect();
        settled.sort_unstable();
        Self { decisions: decisions.collect(), settled, steps: steps.collect() }
    }
}

proptest! {
    #[test]
    fn no_place_and_no_direction_counts(
        events in prop::collection::vec(any_event(), 1..50),
        elsewhere in prop::collection::vec(prop::array::uniform3(-SIDE..SIDE), 0..40),
        turn in any_turn(),
    ) {
        // Places where something happened, and others.
        let touched = events.iter().filter_map(|event| match event {
            Event::Touch(at) | Event::Hold(at, _) | Event::Pin(at, _) => Some(*at),
            _ => None,
        });
        let at = |[x, y, z]: [i64; 3]| CubeAt::of(ChunkAt::new(Dimension::new(0), BlockPos::new(x, y, z).chunk()));
        let cubes: Vec<_> = touched.chain(elsewhere).map(at).collect();
        let as_it_is = Turn { axes: [(0, false, 0), (1, false, 0), (2, false, 0)] };
        prop_assert_eq!(play(&events, &cubes, &as_it_is).turned(&turn), play(&events, &cubes, &turn));
    }
}
