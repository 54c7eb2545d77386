//! Which tier a place of the world deserves, and why.
//!
//! Pure policy: it takes observations and the time as arguments and returns [`Decision`]s with their reasons. It
//! reads no clock, moves no chunk and knows no storage; the store asks it and does the moving.
//!
//! ```
//! use cg_format::Tier;
//! use cg_tiering::{GameTick, Observation, TierPolicy};
//!
//! let policy = TierPolicy::default();
//! let seen = Observation { loaded: false, last_access: GameTick::new(0), nearest_player_blocks: Some(40) };
//! let decision = policy.decide(seen, GameTick::new(7 * 60 * 20));
//! assert_eq!(decision.to, Tier::L1);
//! assert_eq!(decision.reason.to_string(), "not loaded for 8400 ticks, warm from 6000 on");
//! ```
#![forbid(unsafe_code)]

mod decision;
mod policy;
mod time;

pub use decision::{Decision, Reason};
pub use policy::{Observation, PolicyError, TierPolicy};
pub use time::{GameClock, GameTick};
