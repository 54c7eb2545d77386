//! Decisions: the right tier for chunks, the reason as a sentence, and when they will move.

use std::fmt;

use cg_format::Tier;

/// The tier where chunks belong now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The tier where they belong. It is their present tier if they are to stay.
    pub to: Tier,
    /// Why.
    pub reason: Reason,
}

/// When chunks will move, if no player arrives or leaves and no load requests them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextMove {
    /// Their next tier.
    pub to: Tier,
    /// The number of ticks until then; 0 for now.
    pub after_ticks: u64,
}

/// Why chunks belong in their tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The host keeps them loaded. Loaded chunks are never demoted.
    Loaded,
    /// A player is near.
    Near {
        /// Blocks to the nearest player, if one is still there.
        distance_blocks: Option<u64>,
    },
    /// They are in a cluster, and a player has been there long enough that an L0 row is worth its cost.
    Settled {
        /// Ticks since a player arrived.
        stay_ticks: u64,
        /// Ticks of a stay after which chunks are hot.
        promote_after_ticks: u64,
    },
    /// They are in a cluster, and a player has been there for a short time.
    Arriving {
        /// Ticks since a player arrived.
        stay_ticks: u64,
        /// Ticks of a stay after which chunks are hot.
        promote_after_ticks: u64,
    },
    /// They are in a cluster, and a player is near, but no load requested them.
    Unasked,
    /// The place is pinned: its chunks are not demoted.
    Pinned,
    /// They were accessed recently.
    Recent {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access after which they are warm.
        warm_after_ticks: u64,
    },
    /// They are in a cluster and were accessed, but no player stayed.
    Passing {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks of a stay after which chunks are hot.
        promote_after_ticks: u64,
    },
    /// They were not accessed for some time.
    Idle {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access after which they are warm.
        warm_after_ticks: u64,
    },
    /// They were not accessed for a long time.
    LongIdle {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access after which they are cold.
        cold_after_ticks: u64,
    },
    /// No player is near.
    Far {
        /// Blocks to the nearest player; `None` if there is no player.
        distance_blocks: Option<u64>,
        /// Blocks to the nearest player from which they are cold.
        cold_distance_blocks: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loaded => f.write_str("loaded"),
            Self::Near { distance_blocks: Some(distance) } => {
                write!(f, "a player is {distance} blocks away")
            }
            Self::Near { distance_blocks: None } => f.write_str("a player was near at the last check"),
            Self::Settled { stay_ticks, promote_after_ticks }
            | Self::Arriving { stay_ticks, promote_after_ticks } => {
                write!(f, "somebody there for {stay_ticks} ticks, hot from {promote_after_ticks} on")
            }
            Self::Unasked => f.write_str("a player is near, but nobody asked for it"),
            Self::Pinned => f.write_str("pinned"),
            Self::Recent { idle_ticks, warm_after_ticks } => {
                write!(f, "accessed {idle_ticks} ticks ago, warm from {warm_after_ticks} on")
            }
            Self::Passing { idle_ticks, promote_after_ticks } => {
                write!(
                    f,
                    "accessed {idle_ticks} ticks ago, but only a stay of {promote_after_ticks} makes it hot"
                )
            }
            Self::Idle { idle_ticks, warm_after_ticks } => {
                write!(f, "not loaded for {idle_ticks} ticks, warm from {warm_after_ticks} on")
            }
            Self::LongIdle { idle_ticks, cold_after_ticks } => {
                write!(f, "not loaded for {idle_ticks} ticks, cold from {cold_after_ticks} on")
            }
            Self::Far { distance_blocks: Some(distance), cold_distance_blocks } => {
                write!(f, "{distance} blocks from the nearest player, cold from {cold_distance_blocks} on")
            }
            Self::Far { distance_blocks: None, cold_distance_blocks } => {
                write!(f, "no player in the dimension, cold from {cold_distance_blocks} blocks on")
            }
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.to, self.reason)
    }
}

impl fmt::Display for NextMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.after_ticks {
            0 => write!(f, "goes to {:?} now", self.to),
            ticks => write!(f, "goes to {:?} in {ticks} ticks, if nobody comes or goes", self.to),
        }
    }
}
