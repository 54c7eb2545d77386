//! Decisions: where chunks belong, the reason as a sentence, and when they will move.

use std::fmt;

use cg_format::Tier;

/// Where chunks belong now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The tier in which they belong: the one where they lie, if they are to stay.
    pub to: Tier,
    /// Why.
    pub reason: Reason,
}

/// When chunks will move if no player comes or goes and no load asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextMove {
    /// The tier to which they go.
    pub to: Tier,
    /// In how many ticks; 0 for now.
    pub after_ticks: u64,
}

/// Why chunks belong where they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The host holds them as loaded, and what is loaded never is demoted, whatever else is true.
    Loaded,
    /// A player is near.
    Near {
        /// Blocks to the nearest player, if one is still there.
        distance_blocks: Option<u64>,
    },
    /// They lie in a cluster, and a player has been there for long enough that a hot place pays.
    Settled {
        /// Ticks since a player came.
        stay_ticks: u64,
        /// Ticks of a stay from which chunks are hot.
        promote_after_ticks: u64,
    },
    /// They lie in a cluster, and a player is there, but not for long.
    Arriving {
        /// Ticks since a player came.
        stay_ticks: u64,
        /// Ticks of a stay from which chunks are hot.
        promote_after_ticks: u64,
    },
    /// They lie in a cluster, and a player is near, but no load asked for them.
    Unasked,
    /// The place is pinned: it stays as it is.
    Pinned,
    /// They were accessed not long ago.
    Recent {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access from which they are warm.
        warm_after_ticks: u64,
    },
    /// They lie in a cluster and were accessed, but no player stayed.
    Passing {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks of a stay from which chunks are hot.
        promote_after_ticks: u64,
    },
    /// They were not accessed for a while.
    Idle {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access from which they are warm.
        warm_after_ticks: u64,
    },
    /// They were not accessed for long.
    LongIdle {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access from which they are cold.
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
