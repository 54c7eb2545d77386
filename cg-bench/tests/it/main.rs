//! The programs of this crate, run as a user would.

mod compare;
mod go;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod tiers;
mod torture;
