//! Which tier a place of the world deserves, and why.
//!
//! Pure policy: it takes observations and the time as arguments and returns [`Decision`]s with their reasons, and
//! [`MovePlan`]s. It reads no clock, moves no chunk and knows no storage; the store asks it and does the moving.
//!
//! ```text
//! host: tick, players, loaded places          store: loads and saves
//!                \                             /
//!                 v                           v
//!   Observers { LastAccess, Presence, Motion + PlayerDistance, Pinned }
//!                            | observe(cube, tier)
//!                            v
//!   TierPolicy::due -> Decision { to, reason } -> Candidate -> MovePlan -> Step by Step, as the budget allows
//! ```
//!
//! Heat is kept, and chunks move, by cubes of 4×4×4 chunks ([`CubeAt`]).
//!
//! ```
//! use cg_format::Tier;
//! use cg_tiering::{GameTick, Observation, TierPolicy};
//!
//! let policy = TierPolicy::default();
//! let seen = Observation {
//!     nearest_player_blocks: Some(300),
//!     cluster_player_blocks: Some(260),
//!     ..Observation::alone(Tier::L0, GameTick::new(0))
//! };
//! let decision = policy.decide(&seen, GameTick::new(7 * 60 * 20));
//! assert_eq!(decision.to_string(), "L1: not loaded for 8400 ticks, warm from 6000 on");
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes them"))]

mod cube;
mod decision;
mod hash;
mod observation;
pub mod observe;
pub mod plan;
mod policy;
mod prefetch;
pub mod simulate;
pub mod synthetic;
#[cfg(test)]
mod testing;
mod time;
pub mod trace;

pub use cube::{ClusterAt, CubeAt};
pub use decision::{Decision, NextMove, Reason};
pub use observation::{Observation, Stay};
pub use observe::{
    Heat, HoldError, HoldId, LastAccess, Motion, Observers, Path, PinId, Pinned, PlayerAt, PlayerDistance,
    Presence,
};
pub use plan::{Budget, Candidate, Left, MovePlan, Step};
pub use policy::{PolicyError, ShadowedSlots, TierPolicy};
pub use prefetch::{Ahead, Course, Courses};
pub use time::{GameClock, GameTick};
