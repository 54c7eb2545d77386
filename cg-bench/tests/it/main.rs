//! The programs of this crate, run as a user would, and crates that are used together.

mod compare;
mod go;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod segment_caches;
mod tiers;
mod torture;
