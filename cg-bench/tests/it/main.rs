//! The programs of this crate, run as a user would.

mod compare;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod tiers;
mod torture;
