//! The order of moves, budgets, and that nothing is done twice or omitted.

use super::*;
use cg_format::{ChunkAt, ChunkPos, Dimension};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A cube by its coordinates in cubes.
fn cube(x: i64, y: i64, z: i64) -> CubeAt {
    CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::constant(x * 4, y * 4, z * 4)))
}

fn idle() -> Reason {
    Reason::Idle { idle_ticks: 7000, warm_after_ticks: 6000 }
}

fn candidate(cube: CubeAt, from: Tier, to: Tier) -> Candidate {
    Candidate {
        cube,
        from,
        decision: Decision { to, reason: idle() },
        chunks: 64,
        bytes: 1000,
        last_access: GameTick::new(5),
        nearest_player_blocks: None,
    }
}

fn steps(plan: &mut MovePlan, mut budget: Budget) -> Vec<Step> {
    std::iter::from_fn(|| plan.next_step(&mut budget)).collect()
}

#[track_caller]
fn check(offers: impl IntoIterator<Item = Candidate>, expected: Expect) {
    let mut plan = MovePlan::new();
    offers.into_iter().for_each(|offer| plan.offer(offer));
    let mut text = format!("{:?}\n", plan.left());
    for step in steps(&mut plan, Budget::UNLIMITED) {
        let Step { to, cube, chunks, bytes, remaining_steps, .. } = step;
        let _ = writeln!(text, "{to:?} {cube}: {chunks} chunks, {bytes} bytes, {remaining_steps} more");
    }
    expected.assert_eq(&text);
    assert_eq!(plan.left(), Left::default());
}

#[test]
fn promotions_come_first_and_the_nearest_of_them_before_the_others() {
    let near = |x, blocks| Candidate {
        nearest_player_blocks: blocks,
        ..candidate(cube(x, 0, 0), Tier::L2, Tier::L0)
    };
    check(
        [
            candidate(cube(9, 9, 9), Tier::L0, Tier::L1),
            near(0, None),
            near(1, Some(100)),
            near(2, Some(0)),
            near(3, Some(100)),
        ],
        expect![[r#"
            Left { moves: 5, steps: 5, chunks: 320, bytes: 5000 }
            L0 cube 2, 0, 0 of dimension 0: 64 chunks, 1000 bytes, 0 more
            L0 cube 1, 0, 0 of dimension 0: 64 chunks, 1000 bytes, 0 more
            L0 cube 3, 0, 0 of dimension 0: 64 chunks, 1000 bytes, 0 more
            L0 cube 0, 0, 0 of dimension 0: 64 chunks, 1000 bytes, 0 more
            L1 cube 9, 9, 9 of dimension 0: 64 chunks, 1000 bytes, 0 more
        "#]],
    );
}

#[test]
fn demotions_free_most_keys_first_and_of_equal_ones_the_coldest() {
    let hot = |x, chunks, last| Candidate {
        chunks,
        last_access: GameTick::new(last),
        ..candidate(cube(x, 0, 0), Tier::L0, Tier::L1)
    };
    let (warm, cold) = (candidate(cube(-8, 0, 0), Tier::L1, Tier::L2), cube(-5, 0, 0));
    check(
        [
            hot(1, 10, 9),
            hot(2, 10, 3),
            hot(3, 30, 9),
            hot(4, 10, 3),
            warm,
            candidate(cold, Tier::L0, Tier::L2),
            candidate(cold, Tier::L1, Tier::L2),
        ],
        expect![[r#"
            Left { moves: 5, steps: 6, chunks: 252, bytes: 7000 }
            L2 cube -8, 0, 0 of dimension 0: 64 chunks, 1000 bytes, 1 more
            L2 cube -5, 0, 0 of dimension 0: 128 chunks, 2000 bytes, 0 more
            L1 cube 3, 0, 0 of dimension 0: 30 chunks, 1000 bytes, 0 more
            L1 cube 2, 0, 0 of dimension 0: 10 chunks, 1000 bytes, 0 more
            L1 cube 4, 0, 0 of dimension 0: 10 chunks, 1000 bytes, 0 more
            L1 cube 1, 0, 0 of dimension 0: 10 chunks, 1000 bytes, 0 more
        "#]],
    );
}

#[test]
fn a_later_offer_replaces_an_earlier_one_and_a_stay_is_none() {
    let at = cube(1, 2, 3);
    check(
        [
            candidate(at, Tier::L0, Tier::L1),
            Candidate { chunks: 3, bytes: 7, ..candidate(at, Tier::L0, Tier::L1) },
            candidate(at, Tier::L1, Tier::L1),
        ],
        expect![[r#"
            Left { moves: 1, steps: 1, chunks: 3, bytes: 7 }
            L1 cube 1, 2, 3 of dimension 0: 3 chunks, 7 bytes, 0 more
        "#]],
    );
}

#[test]
fn a_move_that_began_is_finished_or_abandoned() {
    let mut plan = MovePlan::new();
    for x in 0..4 {
        plan.offer(candidate(cube(x, 0, 0), Tier::L0, Tier::L2));
    }
    let one = Budget { bytes: 1, chunks: 1 };
    assert_eq!(steps(&mut plan, Budget { bytes: 0, ..one }), []);
    assert_eq!(steps(&mut plan, Budget { chunks: 0, ..one }), []);
    assert_eq!(steps(&mut plan, one).len(), 1, "a budget of anything does one step");
    plan.offer(candidate(cube(0, 0, 1), Tier::L0, Tier::L2));
    plan.offer(candidate(cube(9, 9, 9), Tier::L2, Tier::L0));
    assert_eq!(
        plan.left(),
        Left { moves: 2, steps: 4, chunks: 256, bytes: 4000 },
        "the begun one is left alone"
    );
    assert_eq!(steps(&mut plan, one)[0].cube, cube(1, 0, 0), "and goes on before others");
    plan.abandon();
    let rest: Vec<_> = steps(&mut plan, Budget::UNLIMITED).iter().map(|step| step.cube).collect();
    assert_eq!(rest, [cube(9, 9, 9)]);
}

fn any_candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let moves = vec![
        (Tier::L0, Tier::L1),
        (Tier::L0, Tier::L2),
        (Tier::L1, Tier::L2),
        (Tier::L1, Tier::L0),
        (Tier::L2, Tier::L0),
    ];
    let one = (
        prop::array::uniform3(-5..5_i64),
        prop::sample::select(moves),
        1..64_u32,
        prop_oneof![0..5000_u64, Just(u64::MAX)],
        0..50_u64,
        prop::option::of(0..300_u64),
    );
    let candidate =
        one.prop_map(|([x, y, z], (from, to), chunks, bytes, last, nearest_player_blocks)| Candidate {
            chunks,
            bytes,
            last_access: GameTick::new(last),
            nearest_player_blocks,
            ..candidate(cube(x, y, z), from, to)
        });
    prop::collection::vec(candidate, 0..80)
}

proptest! {
    #[test]
    fn budgets_cut_and_change_nothing_else(
        offers in any_candidates(), budgets in prop::collection::vec((1..9000_u64, 1..200_u64), 1..20),
    ) {
        let mut plan = MovePlan::new();
        offers.iter().copied().for_each(|offer| plan.offer(offer));
        let mut whole = plan.clone();
        let mut cut = Vec::new();
        for (bytes, chunks) in budgets.into_iter().cycle() {
            let part = steps(&mut plan, Budget { bytes, chunks });
            if let Some((_, before_last)) = part.split_last() {
                prop_assert!(before_last.iter().map(|step| step.bytes).sum::<u64>() < bytes);
                prop_assert!(before_last.iter().map(|step| u64::from(step.chunks)).sum::<u64>() < chunks);
            }
            cut.extend(part);
            if plan.is_empty() {
                break;
            }
        }
        prop_assert_eq!(steps(&mut whole, Budget::UNLIMITED), cut);
    }

    #[test]
    fn each_offered_cube_is_one_step_and_the_sums_are_right(offers in any_candidates()) {
        let mut plan = MovePlan::new();
        let mut expected = BTreeSet::new();
        for offer in &offers {
            plan.offer(*offer);
            expected.insert((offer.cube, offer.decision.to == Tier::L0));
        }
        let left = plan.left();
        let steps = steps(&mut plan, Budget::UNLIMITED);
        prop_assert_eq!(left.steps, steps.len() as u64);
        prop_assert_eq!(left.chunks, steps.iter().map(|step| u64::from(step.chunks)).sum::<u64>());
        prop_assert_eq!(left.moves, steps.iter().filter(|step| step.remaining_steps == 0).count() as u64);
        prop_assert_eq!(plan.left(), Left::default());
        for (cube, is_promotion) in expected {
            let of_cube = steps.iter().filter(|step| step.cube == cube && (step.to == Tier::L0) == is_promotion);
            prop_assert!(of_cube.count() >= 1);
        }
        let distinct: BTreeSet<_> = steps.iter().map(|step| (step.cube, step.to)).collect();
        prop_assert_eq!(distinct.len(), steps.len(), "nothing is done twice");
    }
}
