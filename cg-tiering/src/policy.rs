//! The policy: after how long, and from how far, a chunk is demoted, and what makes it hot again.
//!
//! The rules and their order are those of CherryGrove's "Save the World": a chunk that is kept loaded is hot; one
//! that was not loaded for x minutes is warm; one that was not loaded for y minutes, or lies z blocks from the nearest
//! player, is cold. "Loaded" outranks "far", so a chunk loader without players keeps its chunks hot.
//!
//! Two readings keep the rules from wearing the disk out:
//! - a chunk that was only read is not written to a hot place at once, but when a player has stayed for a while; one that
//!   is saved has its hot place by that;
//! - moves to L2 wait for each other: those of one L2 cluster that fall due within a while are done at once.
//!
//! Position enters only as distance, the same on all axes, so no place and no direction is special.

use cg_format::Tier;

use crate::observation::Observation;
use crate::{Decision, GameTick, NextMove, Reason};

/// After how long, and from how far, chunks are demoted, and what makes them hot again.
///
/// ```
/// use cg_tiering::TierPolicy;
/// let patient = TierPolicy { warm_after_ticks: 20 * 60 * 20, ..TierPolicy::default() };
/// assert_eq!(patient.validate(), Ok(()));
/// let confused = TierPolicy { cold_after_ticks: 100, ..TierPolicy::default() };
/// assert_eq!(
///     confused.validate().unwrap_err().to_string(),
///     "cold after 100 ticks is earlier than warm after 6000; raise it"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TierPolicy {
    /// Ticks without access from which chunks are warm (x). Default 5 minutes.
    pub warm_after_ticks: u64,
    /// Ticks without access from which chunks are cold (y). Default 30 minutes; not below `warm_after_ticks`.
    pub cold_after_ticks: u64,
    /// Blocks to the nearest player, on the farthest axis, from which chunks are cold (z). Default 512;
    /// above `near_distance_blocks`.
    pub cold_distance_blocks: u64,
    /// Blocks within which a player's surroundings count as loaded: the simulation distance. Default 128; at most
    /// [`MAX_NEAR_DISTANCE_BLOCKS`](Self::MAX_NEAR_DISTANCE_BLOCKS).
    pub near_distance_blocks: u64,
    /// Ticks that a player must be there without a pause before chunks that were asked for are moved from a cluster to
    /// L0. Default 2 minutes, so that a player that only passes through, even on foot, moves nothing; 0 moves what is asked
    /// for at once.
    pub promote_after_ticks: u64,
    /// Ticks since the last access before distance counts. Default 2 minutes, so that a player that goes and comes back moves
    /// nothing.
    pub hysteresis_ticks: u64,
    /// Moves to L2 happen at multiples of this many ticks, so that one cluster's moves are one; what will go to L2 within this
    /// many ticks does not go to L1 first. Default 5 minutes; 0 for no waiting.
    pub gather_ticks: u64,
    /// Ticks since something last came or went above it before a cluster that is shadowed in part is rewritten. Default
    /// half an hour: most of what was promoted comes back sooner, and its cluster is written then in any case.
    pub rewrite_after_ticks: u64,
    /// How far ahead a player's way is foreseen; what the player will be near is near. Default 10 seconds; 0 for not at all.
    pub lookahead_ticks: u64,
}

/// How many slots of a cluster are of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ShadowedSlots {
    /// Slots that hold a chunk.
    pub present: u32,
    /// Those of them whose chunk has a newer copy in a hotter tier.
    pub shadowed: u32,
}

/// A policy that cannot be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A chunk would be cold before it is warm.
    #[error("cold after {cold_after_ticks} ticks is earlier than warm after {warm_after_ticks}; raise it")]
    ColdBeforeWarm {
        /// Ticks from which a chunk is warm.
        warm_after_ticks: u64,
        /// Ticks from which a chunk is cold.
        cold_after_ticks: u64,
    },
    /// A chunk would be near and far at once.
    #[error(
        "cold from {cold_distance_blocks} blocks on is not beyond near, {near_distance_blocks}; raise it"
    )]
    FarWithinNear {
        /// Blocks within which a player is near.
        near_distance_blocks: u64,
        /// Blocks from which a chunk is cold.
        cold_distance_blocks: u64,
    },
    /// A player's surroundings would be too many cubes to follow.
    #[error("near within {near_distance_blocks} blocks is more than {max_blocks}; lower it")]
    NearTooFar {
        /// Blocks within which a player is near.
        near_distance_blocks: u64,
        /// The most that can be followed.
        max_blocks: u64,
    },
}

impl Default for TierPolicy {
    fn default() -> Self {
        const MINUTE: u64 = 60 * GameTick::PER_SECOND;
        Self {
            warm_after_ticks: 5 * MINUTE,
            cold_after_ticks: 30 * MINUTE,
            cold_distance_blocks: 512,
            near_distance_blocks: 128,
            promote_after_ticks: 2 * MINUTE,
            hysteresis_ticks: 2 * MINUTE,
            gather_ticks: 5 * MINUTE,
            rewrite_after_ticks: 30 * MINUTE,
            lookahead_ticks: 10 * GameTick::PER_SECOND,
        }
    }
}

impl TierPolicy {
    /// The largest distance within which a player can be near.
    pub const MAX_NEAR_DISTANCE_BLOCKS: u64 = 512;

    /// Checks that the numbers can be meant together.
    ///
    /// # Errors
    /// [`PolicyError`] with the two numbers that cannot.
    pub const fn validate(&self) -> Result<(), PolicyError> {
        let Self { warm_after_ticks, cold_after_ticks, near_distance_blocks, cold_distance_blocks, .. } =
            *self;
        if cold_after_ticks < warm_after_ticks {
            return Err(PolicyError::ColdBeforeWarm { warm_after_ticks, cold_after_ticks });
        }
        if near_distance_blocks > Self::MAX_NEAR_DISTANCE_BLOCKS {
            let max_blocks = Self::MAX_NEAR_DISTANCE_BLOCKS;
            return Err(PolicyError::NearTooFar { near_distance_blocks, max_blocks });
        }
        if cold_distance_blocks <= near_distance_blocks {
            return Err(PolicyError::FarWithinNear { near_distance_blocks, cold_distance_blocks });
        }
        Ok(())
    }

    /// Where chunks belong at a moment: where they lie, or where they are to go sooner or later.
    ///
    /// Only a stay makes chunks hotter; only time and distance make them colder.
    pub fn decide(&self, seen: &Observation, now: GameTick) -> Decision {
        let idle_ticks = now.since(seen.last_access);
        let Self { warm_after_ticks, cold_after_ticks, cold_distance_blocks, promote_after_ticks, .. } =
            *self;
        let distance_blocks = seen.nearest_player_blocks;
        if let Some(stay) = seen.stay {
            let stay_ticks = now.since(stay.since);
            return match seen.tier {
                Tier::L0 if stay.loaded => Decision { to: Tier::L0, reason: Reason::Loaded },
                Tier::L0 => Decision { to: Tier::L0, reason: Reason::Near { distance_blocks } },
                tier if !stay.accessed => Decision { to: tier, reason: Reason::Unasked },
                _ if stay_ticks >= promote_after_ticks => {
                    Decision { to: Tier::L0, reason: Reason::Settled { stay_ticks, promote_after_ticks } }
                }
                tier => Decision { to: tier, reason: Reason::Arriving { stay_ticks, promote_after_ticks } },
            };
        }
        if seen.pinned {
            return Decision { to: seen.tier, reason: Reason::Pinned };
        }
        let (to, reason) = if idle_ticks >= cold_after_ticks {
            (Tier::L2, Reason::LongIdle { idle_ticks, cold_after_ticks })
        } else if self.is_far(distance_blocks) && idle_ticks >= self.hysteresis_ticks {
            (Tier::L2, Reason::Far { distance_blocks, cold_distance_blocks })
        } else if idle_ticks >= warm_after_ticks {
            (Tier::L1, Reason::Idle { idle_ticks, warm_after_ticks })
        } else {
            (Tier::L0, Reason::Recent { idle_ticks, warm_after_ticks })
        };
        if to < seen.tier {
            return Decision { to: seen.tier, reason: Reason::Passing { idle_ticks, promote_after_ticks } };
        }
        Decision { to, reason }
    }

    /// Where to move chunks now, if they are to be moved.
    ///
    /// Differs from [`decide`](Self::decide) in that moves to L2 wait: for the next multiple of `gather_ticks`, and for
    /// distance until the whole L2 cluster is far.
    pub fn due(&self, seen: &Observation, now: GameTick) -> Option<Decision> {
        let NextMove { to, after_ticks: 0 } = self.next_move(seen, now)? else { return None };
        let decision = self.decide(seen, now);
        if decision.to == to {
            return Some(decision);
        }
        // The chunks belong in L2 but their cluster is not far as a whole; till then they are idle like others.
        let (idle_ticks, warm_after_ticks) = (now.since(seen.last_access), self.warm_after_ticks);
        Some(Decision { to, reason: Reason::Idle { idle_ticks, warm_after_ticks } })
    }

    /// Whether chunks last accessed at a moment may be due for a colder tier. Where it says no nothing else need be asked.
    pub fn may_demote(&self, last_access: GameTick, now: GameTick) -> bool {
        let warm_at = last_access.get().saturating_add(self.warm_after_ticks);
        let cold_from = last_access.get().saturating_add(self.cold_after_ticks.min(self.hysteresis_ticks));
        now.get() >= warm_at.min(self.gathered(cold_from))
    }

    /// To which tier chunks will move, and when, if no player comes or goes and no load asks for them. `None` if they stay for ever.
    pub fn next_move(&self, seen: &Observation, now: GameTick) -> Option<NextMove> {
        let at = |to, tick: u64| Some(NextMove { to, after_ticks: tick.saturating_sub(now.get()) });
        if let Some(stay) = seen.stay {
            let settled = stay.since.get().saturating_add(self.promote_after_ticks);
            let stays = seen.tier == Tier::L0 || !stay.accessed;
            return if stays { None } else { at(Tier::L0, settled) };
        }
        if seen.pinned || seen.tier == Tier::L2 {
            return None;
        }
        let last = seen.last_access.get();
        let cold_from = last.saturating_add(self.cold_after_ticks);
        let mut cold_at = self.gathered(cold_from);
        if self.is_far(seen.cluster_player_blocks) {
            cold_at = cold_at.min(self.gathered(last.saturating_add(self.hysteresis_ticks)));
        }
        let warm_at = last.saturating_add(self.warm_after_ticks);
        // What will be cold before long is not made warm first: that would write it twice.
        let warm_until = cold_from.min(cold_at.saturating_sub(self.gather_ticks));
        if seen.tier == Tier::L0 && warm_at < warm_until && now.get() < warm_until {
            return at(Tier::L1, warm_at);
        }
        at(Tier::L2, cold_at)
    }

    /// Whether a cluster is to be rewritten without its shadowed slots: a quarter of its slots or more, for a while.
    /// `since` is when a chunk that shadows it last came or went.
    ///
    /// A cluster of which every slot is shadowed is dropped, which costs nothing, so that needs no waiting.
    pub const fn should_rewrite(&self, slots: ShadowedSlots, since: GameTick, now: GameTick) -> bool {
        let ShadowedSlots { present, shadowed } = slots;
        let is_quarter = shadowed as u64 * 4 >= present as u64 && shadowed > 0;
        shadowed >= present || (is_quarter && now.since(since) >= self.rewrite_after_ticks)
    }

    fn is_far(&self, distance_blocks: Option<u64>) -> bool {
        distance_blocks.is_none_or(|distance| distance >= self.cold_distance_blocks)
    }

    /// The moment at or after a tick at which moves to L2 are done.
    const fn gathered(&self, tick: u64) -> u64 {
        if self.gather_ticks <= 1 {
            return tick;
        }
        match tick.checked_next_multiple_of(self.gather_ticks) {
            Some(at) => at,
            None => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests;
