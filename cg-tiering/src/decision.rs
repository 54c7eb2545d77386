//! Decisions: where a chunk belongs, and the reason as a sentence.

use std::fmt;

use cg_format::Tier;

/// Where a chunk belongs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The tier it deserves.
    pub to: Tier,
    /// Why.
    pub reason: Reason,
}

/// Why a chunk belongs where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It is loaded, and a loaded chunk is hot whatever else is true.
    Loaded,
    /// It was accessed not long ago.
    Recent {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access from which it is warm.
        warm_after_ticks: u64,
    },
    /// It was not accessed for a while.
    Idle {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access from which it is warm.
        warm_after_ticks: u64,
    },
    /// It was not accessed for long.
    LongIdle {
        /// Ticks since the last access.
        idle_ticks: u64,
        /// Ticks without access from which it is cold.
        cold_after_ticks: u64,
    },
    /// No player is near.
    Far {
        /// Blocks to the nearest player; `None` if there is no player.
        distance_blocks: Option<u64>,
        /// Blocks to the nearest player from which it is cold.
        cold_distance_blocks: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loaded => f.write_str("loaded"),
            Self::Recent { idle_ticks, warm_after_ticks } => {
                write!(f, "accessed {idle_ticks} ticks ago, warm from {warm_after_ticks} on")
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
