#![doc = include_str!("../README.md")]
//!
//! # How it is used
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
//! A [`Decision`] has a reason; a [`MovePlan`] is performed step by step. Cubes of 4×4×4 chunks ([`CubeAt`]) are the
//! unit of heat and of moves.
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
