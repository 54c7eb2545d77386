//! The policy: after how long, and from how far, a chunk grows cold.
//!
//! The three rules and their order are those of CherryGrove's "Save the World": a chunk in use is hot at once; one
//! that was not loaded for x minutes is warm; one that was not loaded for y minutes, or lies z blocks from the nearest
//! player, is cold. "Loaded" outranks "far", so a chunk loader without players keeps its chunks hot.

use cg_format::Tier;

use crate::{Decision, GameTick, Reason};

/// After how long, and from how far, a chunk grows cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TierPolicy {
    /// Ticks without access from which a chunk is warm. Default 5 minutes.
    pub warm_after_ticks: u64,
    /// Ticks without access from which a chunk is cold. Default 30 minutes; not below `warm_after_ticks`.
    pub cold_after_ticks: u64,
    /// Blocks to the nearest player, on the axis where it is farthest, from which a chunk is cold. Default 512.
    pub cold_distance_blocks: u64,
}

/// What is known about a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Observation {
    /// Whether the host has it loaded now.
    pub loaded: bool,
    /// When it was last accessed.
    pub last_access: GameTick,
    /// Blocks to the nearest player at the last check, on the axis where it is farthest; `None` without players.
    pub nearest_player_blocks: Option<u64>,
}

/// A policy that cannot be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cold after {cold_after_ticks} ticks is earlier than warm after {warm_after_ticks}; raise it")]
pub struct PolicyError {
    /// Ticks from which a chunk is warm.
    pub warm_after_ticks: u64,
    /// Ticks from which a chunk is cold.
    pub cold_after_ticks: u64,
}

impl Default for TierPolicy {
    fn default() -> Self {
        Self {
            warm_after_ticks: 5 * 60 * GameTick::PER_SECOND,
            cold_after_ticks: 30 * 60 * GameTick::PER_SECOND,
            cold_distance_blocks: 512,
        }
    }
}

impl TierPolicy {
    /// Checks that a chunk is not cold before it is warm.
    ///
    /// # Errors
    /// [`PolicyError`] with the two times.
    pub const fn validate(&self) -> Result<(), PolicyError> {
        let Self { warm_after_ticks, cold_after_ticks, .. } = *self;
        if cold_after_ticks < warm_after_ticks {
            return Err(PolicyError { warm_after_ticks, cold_after_ticks });
        }
        Ok(())
    }

    /// Where a chunk belongs at a moment.
    ///
    /// Position enters only as the distance to the nearest player, so no place of the world is special.
    pub fn decide(&self, seen: Observation, now: GameTick) -> Decision {
        let idle_ticks = now.since(seen.last_access);
        let Self { warm_after_ticks, cold_after_ticks, cold_distance_blocks } = *self;
        let far = seen.nearest_player_blocks.is_none_or(|distance| distance >= cold_distance_blocks);
        let (to, reason) = if seen.loaded {
            (Tier::L0, Reason::Loaded)
        } else if idle_ticks >= cold_after_ticks {
            (Tier::L2, Reason::LongIdle { idle_ticks, cold_after_ticks })
        } else if far {
            (Tier::L2, Reason::Far { distance_blocks: seen.nearest_player_blocks, cold_distance_blocks })
        } else if idle_ticks >= warm_after_ticks {
            (Tier::L1, Reason::Idle { idle_ticks, warm_after_ticks })
        } else {
            (Tier::L0, Reason::Recent { idle_ticks, warm_after_ticks })
        };
        Decision { to, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    #[track_caller]
    fn check(loaded: bool, idle_minutes: u64, nearest_player_blocks: Option<u64>, expected: Expect) {
        let seen = Observation { loaded, last_access: GameTick::new(77), nearest_player_blocks };
        let now = GameTick::new(77 + idle_minutes * 60 * GameTick::PER_SECOND);
        let Decision { to, reason } = TierPolicy::default().decide(seen, now);
        expected.assert_eq(&format!("{to:?}: {reason}"));
    }

    #[test]
    fn the_three_rules_in_their_order() {
        check(true, 900, None, expect!["L0: loaded"]);
        check(false, 4, Some(0), expect!["L0: accessed 4800 ticks ago, warm from 6000 on"]);
        check(false, 5, Some(511), expect!["L1: not loaded for 6000 ticks, warm from 6000 on"]);
        check(false, 30, Some(0), expect!["L2: not loaded for 36000 ticks, cold from 36000 on"]);
        check(false, 0, Some(512), expect!["L2: 512 blocks from the nearest player, cold from 512 on"]);
        check(false, 0, None, expect!["L2: no player in the dimension, cold from 512 blocks on"]);
    }

    #[test]
    fn cold_before_warm_is_refused() {
        let policy = TierPolicy { cold_after_ticks: 5, ..TierPolicy::default() };
        assert_eq!(policy.validate(), Err(PolicyError { warm_after_ticks: 6000, cold_after_ticks: 5 }));
        assert_eq!(TierPolicy::default().validate(), Ok(()));
    }

    proptest! {
        #[test]
        fn a_chunk_that_nobody_touches_only_grows_colder(idle: u32, further: u32, distance: Option<u32>) {
            let seen = Observation { loaded: false, last_access: GameTick::default(), nearest_player_blocks: distance.map(u64::from) };
            let at = |ticks| TierPolicy::default().decide(seen, GameTick::new(ticks)).to;
            prop_assert!(at(u64::from(idle)) <= at(u64::from(idle) + u64::from(further)));
        }
    }
}
