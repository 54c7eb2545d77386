//! The rules in their order, what moves when, and the laws: one direction, at most once per tier.

use super::*;
use crate::Stay;
use expect_test::{Expect, expect};
use proptest::prelude::*;

const MINUTE: u64 = 60 * GameTick::PER_SECOND;

/// Seen at tick 77, a chunk of L0 in a cluster as far as itself.
fn idle(nearest_player_blocks: Option<u64>) -> Observation {
    let cluster_player_blocks = nearest_player_blocks;
    Observation {
        nearest_player_blocks,
        cluster_player_blocks,
        ..Observation::alone(Tier::L0, GameTick::new(77))
    }
}

fn stay(loaded: bool) -> Option<Stay> {
    Some(Stay { loaded, since: GameTick::new(77) })
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
    check(Observation { stay: stay(true), ..idle(None) }, 900 * MINUTE, expect!["L0: loaded; stays"]);
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
fn only_a_stay_makes_hot() {
    let cold = |seen| Observation { tier: Tier::L2, ..seen };
    check(
        cold(idle(Some(0))),
        3,
        expect!["L2: accessed 3 ticks ago, but only a stay of 600 makes it hot; stays"],
    );
    check(
        cold(Observation { stay: stay(false), ..idle(Some(0)) }),
        599,
        expect![
            "L2: somebody there for 599 ticks, hot from 600 on; goes to L0 in 1 ticks, if nobody comes or goes"
        ],
    );
    check(
        cold(Observation { stay: stay(true), ..idle(None) }),
        600,
        expect!["L0: somebody there for 600 ticks, hot from 600 on; goes to L0 now"],
    );
    check(
        Observation { stay: stay(false), ..idle(Some(90)) },
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
