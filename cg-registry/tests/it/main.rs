//! Promises of the registry, over real lists and stored chunks.
#![allow(clippy::needless_raw_string_hashes, reason = "expectations are written by a tool that adds them")]

mod laws;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod real_lists;
mod renames;
mod spec;
mod upgrades;
