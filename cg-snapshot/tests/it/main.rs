//! Everything that a user of this crate can see, in one binary: schematics that are made, real and broken, and snapshots.

#![allow(clippy::needless_raw_string_hashes, reason = "expect_test writes them")]

mod broken;
mod laws;
mod made;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod real;
mod snapshot;
