//! The programs of this crate, run as a user would.

#[path = "../../../testdata/profile.rs"]
mod profile;
mod tiers;
mod torture;
