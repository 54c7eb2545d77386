//! The policy: after which time, and from which distance, a chunk is demoted, and what makes it hot again.
//!
//! The rules and their order are those of CherryGrove's "Save the World". A chunk that is kept loaded is hot. One that
//! was not loaded for x minutes is warm. One that was not loaded for y minutes, or is z blocks from the nearest player,
//! is cold. "Loaded" outranks "far", so a chunk loader without players keeps its chunks hot.
//!
//! Two interpretations reduce disk writes:
//! - A chunk that was only read gets an L0 row only after a player has stayed for some time. A saved chunk gets its L0
//!   row by the save.
//! - Moves to L2 are gathered: those of one L2 cluster that become due within some time are done together.
//!
//! Position matters only as distance, the same on all axes, so no place and no direction is special.

use cg_format::Tier;

use crate::observation::Observation;
use crate::{Decision, GameTick, NextMove, Reason};

/// After which time, and from which distance, chunks are demoted, and what makes them hot again.
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
    /// Ticks without access after which chunks are warm (x). Default 5 minutes.
    pub warm_after_ticks: u64,
    /// Ticks without access after which chunks are cold (y). Default 30 minutes; not below `warm_after_ticks`.
    pub cold_after_ticks: u64,
    /// Blocks to the nearest player, on the axis with the greatest distance, from which chunks are cold (z). Default
    /// 512; above `near_distance_blocks`.
    pub cold_distance_blocks: u64,
    /// Blocks within which a player's surroundings count as loaded: the simulation distance. Default 128; at most
    /// [`MAX_NEAR_DISTANCE_BLOCKS`](Self::MAX_NEAR_DISTANCE_BLOCKS).
    pub near_distance_blocks: u64,
    /// Ticks that a player must stay without a pause before requested chunks move from a cluster to L0. Default 2
    /// minutes, so that a player that only passes through, even on foot, moves nothing. 0 moves requested chunks at
    /// once.
    pub promote_after_ticks: u64,
    /// Ticks since the last access before distance counts. Default 2 minutes, so that a player that leaves and returns
    /// moves nothing.
    pub hysteresis_ticks: u64,
    /// Moves to L2 happen at multiples of this many ticks, so that one cluster's moves become one. Chunks that move to
    /// L2 within this many ticks do not move to L1 first. Default 5 minutes; 0 for no waiting.
    pub gather_ticks: u64,
    /// The wait before a partly shadowed cluster is rewritten, in ticks since a chunk above it last came or went.
    /// Default half an hour. Most promoted chunks return sooner, and then the cluster is written anyway.
    pub rewrite_after_ticks: u64,
    /// Ticks for which a player's path is predicted. A place near the predicted path counts as near. Default 10
    /// seconds; 0 disables it.
    pub lookahead_ticks: u64,
}

/// The use of a cluster's slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ShadowedSlots {
    /// Slots that hold a chunk.
    pub present: u32,
    /// Slots whose chunk has a newer copy in a hotter tier.
    pub shadowed: u32,
}

/// A policy whose numbers contradict each other or exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A chunk would be cold before it is warm.
    #[error("cold after {cold_after_ticks} ticks is earlier than warm after {warm_after_ticks}; raise it")]
    ColdBeforeWarm {
        /// Ticks after which a chunk is warm.
        warm_after_ticks: u64,
        /// Ticks after which a chunk is cold.
        cold_after_ticks: u64,
    },
    /// A chunk would be near and far at the same time.
    #[error(
        "cold from {cold_distance_blocks} blocks on is not beyond near, {near_distance_blocks}; raise it"
    )]
    FarWithinNear {
        /// Blocks within which a player is near.
        near_distance_blocks: u64,
        /// Blocks from which a chunk is cold.
        cold_distance_blocks: u64,
    },
    /// A player's surroundings would have too many cubes.
    #[error("near within {near_distance_blocks} blocks is more than {max_blocks}; lower it")]
    NearTooFar {
        /// Blocks within which a player is near.
        near_distance_blocks: u64,
        /// The maximum.
        max_blocks: u64,
    },
}

const MINUTE: u64 = 60 * GameTick::PER_SECOND;

impl Default for TierPolicy {
    fn default() -> Self {
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
    /// The maximum of `near_distance_blocks`.
    pub const MAX_NEAR_DISTANCE_BLOCKS: u64 = 512;

    /// A policy for a world whose engine is reached over a network, where a move costs more than a hot row does.
    /// Chunks are warm after an hour and cold after a day without access, at any distance. The rest is as by default.
    ///
    /// ```
    /// use cg_tiering::TierPolicy;
    /// let network = TierPolicy::network();
    /// assert_eq!(network.warm_after_ticks, 12 * TierPolicy::default().warm_after_ticks);
    /// assert_eq!(network.validate(), Ok(()));
    /// ```
    #[must_use]
    pub fn network() -> Self {
        const DAY: u64 = 24 * 60 * MINUTE;
        Self {
            warm_after_ticks: 60 * MINUTE,
            cold_after_ticks: DAY,
            // Distance never makes a chunk cold before time does.
            hysteresis_ticks: DAY,
            ..Self::default()
        }
    }

    /// Checks that the numbers are consistent.
    ///
    /// # Errors
    /// [`PolicyError`] with the two conflicting numbers.
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

    /// The tier where chunks belong at a moment: their present tier, or the one where they will move.
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

    /// Where to move chunks now, if at all.
    ///
    /// Unlike [`decide`](Self::decide), moves to L2 wait for the next multiple of `gather_ticks`. A move because of
    /// distance also waits until the whole L2 cluster is far.
    pub fn due(&self, seen: &Observation, now: GameTick) -> Option<Decision> {
        let NextMove { to, after_ticks: 0 } = self.next_move(seen, now)? else { return None };
        let decision = self.decide(seen, now);
        if decision.to == to {
            return Some(decision);
        }
        // The chunks belong in L2, but their cluster is not far as a whole. Until then the rule for idle chunks
        // applies.
        let (idle_ticks, warm_after_ticks) = (now.since(seen.last_access), self.warm_after_ticks);
        Some(Decision { to, reason: Reason::Idle { idle_ticks, warm_after_ticks } })
    }

    /// Whether chunks with this last access may be due for a colder tier. If not, no other check is needed.
    pub fn may_demote(&self, last_access: GameTick, now: GameTick) -> bool {
        let warm_at = last_access.get().saturating_add(self.warm_after_ticks);
        let cold_from = last_access.get().saturating_add(self.cold_after_ticks.min(self.hysteresis_ticks));
        now.get() >= warm_at.min(self.gathered(cold_from))
    }

    /// The next tier of chunks, and when they move, if no player arrives or leaves and no load requests them. `None` if
    /// they never move.
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
        // Chunks that will be cold soon are not made warm first, because that would write them twice.
        let warm_until = cold_from.min(cold_at.saturating_sub(self.gather_ticks));
        if seen.tier == Tier::L0 && warm_at < warm_until && now.get() < warm_until {
            return at(Tier::L1, warm_at);
        }
        at(Tier::L2, cold_at)
    }

    /// Whether a cluster is to be rewritten without its shadowed slots: if a quarter or more of its slots are shadowed
    /// for some time. `since` is when a chunk that shadows it last came or went.
    ///
    /// A cluster whose slots are all shadowed is dropped. That costs nothing, so it needs no waiting.
    pub const fn should_rewrite(&self, slots: ShadowedSlots, since: GameTick, now: GameTick) -> bool {
        let ShadowedSlots { present, shadowed } = slots;
        let is_quarter = shadowed as u64 * 4 >= present as u64 && shadowed > 0;
        shadowed >= present || (is_quarter && now.since(since) >= self.rewrite_after_ticks)
    }

    fn is_far(&self, distance_blocks: Option<u64>) -> bool {
        distance_blocks.is_none_or(|distance| distance >= self.cold_distance_blocks)
    }

    /// The next moment, from a tick on, at which moves to L2 are done.
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
