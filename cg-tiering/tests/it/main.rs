//! Everything that a user of this crate can see, in one binary.
#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes them")]

#[path = "../../../testdata/profile.rs"]
mod profile;
mod simulate;
mod spec;
mod symmetry;
