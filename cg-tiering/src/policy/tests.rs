//! The rules in their order, the moves and their times, and the laws: one direction, at most once per tier.

use super::*;
use crate::Stay;
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// An observation of a chunk in L0 with its last access at tick 77. Its cluster is as far as the chunk.
fn idle(nearest_player_blocks: Option<u64>) -> Observation {
    let cluster_player_blocks = nearest_player_blocks;
    Observation {
        nearest_player_blocks,
        cluster_player_blocks,
        ..Observation::alone(Tier::L0, GameTick::new(77))
    }
}

fn stay(loaded: bool) -> Stay {
    Stay { loaded, accessed: true, since: GameTick::new(77) }
}

#[track_caller]
fn check(seen: Observation, idle_ticks: u64, expected: Expect) {
    let now = GameTick::new(77 + idle_ticks);
    let policy = TierPolicy::default();
    let next = policy.next_move(&seen, now).map_or_else(|| "stays".to_owned(), |next| next.to_string());
    expected.assert_eq(&format!("{}; {next}", policy.decide(&seen, now)));
}

#[test]
fn the_three_rules_in_their_order() {
    check(Observation { stay: Some(stay(true)), ..idle(None) }, 900 * MINUTE, expect!["L0: loaded; stays"]);
    check(
        idle(Some(0)),
        4 * MINUTE,
        expect![
            "L0: accessed 4800 ticks ago, warm from 6000 on; goes to L1 in 1200 ticks, if nobody comes or goes"
        ],
    );
    check(
        idle(Some(511)),
        5 * MINUTE,
        expect!["L1: not loaded for 6000 ticks, warm from 6000 on; goes to L1 now"],
    );
    check(
        Observation { tier: Tier::L1, ..idle(Some(511)) },
        5 * MINUTE,
        expect![
            "L1: not loaded for 6000 ticks, warm from 6000 on; goes to L2 in 35923 ticks, if nobody comes or goes"
        ],
    );
    check(
        Observation { tier: Tier::L1, ..idle(Some(0)) },
        30 * MINUTE,
        expect![
            "L2: not loaded for 36000 ticks, cold from 36000 on; goes to L2 in 5923 ticks, if nobody comes or goes"
        ],
    );
    check(
        Observation { tier: Tier::L1, ..idle(Some(0)) },
        35 * MINUTE,
        expect!["L2: not loaded for 42000 ticks, cold from 36000 on; goes to L2 now"],
    );
}

#[test]
fn distance_counts_after_a_while_and_for_whole_clusters() {
    check(
        idle(Some(512)),
        0,
        expect![
            "L0: accessed 0 ticks ago, warm from 6000 on; goes to L2 in 5923 ticks, if nobody comes or goes"
        ],
    );
    check(
        idle(Some(512)),
        2 * MINUTE,
        expect![
            "L2: 512 blocks from the nearest player, cold from 512 on; goes to L2 in 3523 ticks, if nobody comes or goes"
        ],
    );
    check(
        idle(None),
        5 * MINUTE,
        expect!["L2: no player in the dimension, cold from 512 blocks on; goes to L2 now"],
    );
    check(
        Observation { tier: Tier::L1, cluster_player_blocks: Some(300), ..idle(Some(512)) },
        6 * MINUTE,
        expect![
            "L2: 512 blocks from the nearest player, cold from 512 on; goes to L2 in 34723 ticks, if nobody comes or goes"
        ],
    );
}

#[test]
fn over_a_network_chunks_are_warm_after_an_hour_and_cold_after_a_day_at_any_distance() {
    const HOUR: u64 = 60 * 60 * GameTick::PER_SECOND;
    let policy = TierPolicy::network();
    for far in [Some(200), Some(100_000), None] {
        let tier = |idle_ticks| policy.decide(&idle(far), GameTick::new(77 + idle_ticks)).to;
        assert_eq!([0, HOUR - 1].map(tier), [Tier::L0; 2], "{far:?}");
        assert_eq!([HOUR, 24 * HOUR - 1].map(tier), [Tier::L1; 2], "{far:?}");
        assert_eq!(tier(24 * HOUR), Tier::L2, "{far:?}");
        let first_move = policy.next_move(&idle(far), GameTick::new(77));
        assert_eq!(first_move, Some(NextMove { to: Tier::L1, after_ticks: HOUR }), "{far:?}");
    }
}

#[test]
fn only_a_stay_makes_hot() {
    let cold = |seen| Observation { tier: Tier::L2, ..seen };
    check(
        cold(idle(Some(0))),
        3,
        expect!["L2: accessed 3 ticks ago, but only a stay of 2400 makes it hot; stays"],
    );
    check(
        cold(Observation { stay: Some(stay(false)), ..idle(Some(0)) }),
        2399,
        expect![
            "L2: somebody there for 2399 ticks, hot from 2400 on; goes to L0 in 1 ticks, if nobody comes or goes"
        ],
    );
    check(
        cold(Observation { stay: Some(stay(true)), ..idle(None) }),
        2400,
        expect!["L0: somebody there for 2400 ticks, hot from 2400 on; goes to L0 now"],
    );
    let unasked = Some(Stay { accessed: false, ..stay(false) });
    check(
        cold(Observation { stay: unasked, ..idle(Some(90)) }),
        9999,
        expect!["L2: a player is near, but nobody asked for it; stays"],
    );
    check(
        Observation { stay: Some(stay(false)), ..idle(Some(90)) },
        9999,
        expect!["L0: a player is 90 blocks away; stays"],
    );
    check(Observation { pinned: true, ..idle(None) }, 99 * MINUTE, expect!["L0: pinned; stays"]);
}

#[test]
fn numbers_that_contradict_each_other_are_refused() {
    let default = TierPolicy::default();
    assert_eq!(default.validate(), Ok(()));
    assert_eq!(
        TierPolicy { cold_after_ticks: 5, ..default }.validate(),
        Err(PolicyError::ColdBeforeWarm { warm_after_ticks: 6000, cold_after_ticks: 5 })
    );
    assert_eq!(
        TierPolicy { cold_distance_blocks: 128, ..default }.validate(),
        Err(PolicyError::FarWithinNear { near_distance_blocks: 128, cold_distance_blocks: 128 })
    );
    assert_eq!(
        TierPolicy { near_distance_blocks: 513, ..default }.validate(),
        Err(PolicyError::NearTooFar { near_distance_blocks: 513, max_blocks: 512 })
    );
}

#[test]
fn a_quarter_in_shadow_is_rewritten_after_a_while_and_all_of_it_dropped_at_once() {
    let check = |present, shadowed, ticks| {
        let slots = ShadowedSlots { present, shadowed };
        TierPolicy::default().should_rewrite(slots, GameTick::new(100), GameTick::new(100 + ticks))
    };
    assert!(!check(64, 15, 99 * MINUTE) && check(64, 16, 30 * MINUTE));
    assert!(!check(64, 63, 30 * MINUTE - 1) && check(64, 64, 0));
    assert!(!check(3, 0, 99 * MINUTE) && check(0, 0, 0), "a row of nothing is dropped");
}

fn any_policy() -> impl Strategy<Value = TierPolicy> {
    let ticks = || prop_oneof![0..50_u64, 0..5000_u64];
    (ticks(), ticks(), ticks(), ticks(), 0..700_u64, 1..3000_u64).prop_map(
        |(
            warm_after_ticks,
            further,
            promote_after_ticks,
            hysteresis_ticks,
            gather_ticks,
            cold_distance_blocks,
        )| {
            TierPolicy {
                warm_after_ticks,
                cold_after_ticks: warm_after_ticks + further,
                promote_after_ticks,
                hysteresis_ticks,
                gather_ticks,
                cold_distance_blocks,
                near_distance_blocks: 0,
                ..TierPolicy::default()
            }
        },
    )
}

fn any_observation() -> impl Strategy<Value = Observation> {
    let tier = prop::sample::select(Tier::ALL.to_vec());
    let stay = prop::option::weighted(0.3, (any::<bool>(), any::<bool>(), 0..9000_u64));
    let distance = prop::option::weighted(0.8, (0..4000_u64, 0..256_u64));
    (tier, stay, prop::bool::weighted(0.1), 0..9000_u64, distance).prop_map(
        |(tier, stay, pinned, last_access, distance)| Observation {
            tier,
            stay: stay.map(|(loaded, accessed, since)| Stay {
                loaded,
                accessed,
                since: GameTick::new(since),
            }),
            pinned,
            last_access: GameTick::new(last_access),
            nearest_player_blocks: distance.map(|(blocks, _)| blocks),
            cluster_player_blocks: distance.map(|(blocks, nearer)| blocks.saturating_sub(nearer)),
        },
    )
}

proptest! {
    #[test]
    fn what_is_foretold_happens_then_and_not_before(
        policy in any_policy(), seen in any_observation(), now in 9000..20_000_u64, share in 0.0..1.0_f64,
    ) {
        let at = |ticks| policy.due(&seen, GameTick::new(now + ticks)).map(|decision| decision.to);
        let Some(NextMove { to, after_ticks }) = policy.next_move(&seen, GameTick::new(now)) else {
            prop_assert_eq!(at(20_000), None);
            return Ok(());
        };
        prop_assert_eq!(at(after_ticks), Some(to));
        let before = (after_ticks as f64 * share) as u64;
        if before < after_ticks {
            prop_assert_eq!(at(before), None);
        }
    }

    #[test]
    fn what_moves_goes_where_it_belongs_or_on_its_way(
        policy in any_policy(), seen in any_observation(), now in 9000..20_000_u64,
    ) {
        let now = GameTick::new(now);
        let belongs = policy.decide(&seen, now).to;
        if let Some(due) = policy.due(&seen, now) {
            prop_assert_ne!(due.to, seen.tier);
            if due.to < seen.tier {
                prop_assert!(seen.stay.is_some_and(|stay| stay.accessed) && due.to == belongs, "only a stay makes hotter");
            } else {
                prop_assert!(seen.stay.is_none() && !seen.pinned && due.to <= belongs);
            }
        }
        if seen.stay.is_none() {
            prop_assert!(belongs >= seen.tier);
        }
    }

    /// No ping-pong: distant players and repeated reads do not move chunks back.
    #[test]
    fn where_nobody_stays_chunks_move_once_per_tier_in_one_direction(
        policy in any_policy(),
        start in prop::sample::select(Tier::ALL.to_vec()),
        passes in prop::collection::vec((1..3000_u64, prop::option::of((0..4000_u64, 0..256_u64)), any::<bool>()), 1..60),
    ) {
        let mut seen = Observation::alone(start, GameTick::new(0));
        let (mut now, mut moves) = (0, Vec::new());
        for (ticks, distance, read) in passes {
            now += ticks;
            seen.nearest_player_blocks = distance.map(|(blocks, _)| blocks);
            seen.cluster_player_blocks = distance.map(|(blocks, nearer)| blocks.saturating_sub(nearer));
            if read {
                seen.last_access = GameTick::new(now);
            }
            if let Some(due) = policy.due(&seen, GameTick::new(now)) {
                seen.tier = due.to;
                moves.push(due.to);
            }
        }
        prop_assert!(moves.is_sorted_by(|earlier, later| earlier < later), "{:?}", moves);
    }

    #[test]
    fn the_ends_of_time_are_moments_like_others(
        policy in any_policy(), mut seen in any_observation(), last in u64::MAX - 9000..=u64::MAX, long: u64,
    ) {
        seen.last_access = GameTick::new(last);
        let policy = TierPolicy { cold_after_ticks: long.max(policy.warm_after_ticks), gather_ticks: long, ..policy };
        for now in [0, last, u64::MAX] {
            let due = policy.due(&seen, GameTick::new(now));
            prop_assert!(due.is_none_or(|due| due.to != seen.tier));
        }
    }
}
