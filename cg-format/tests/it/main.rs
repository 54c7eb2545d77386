//! Everything that a user of this crate can see, in one binary.
#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes them")]

mod agree;
mod archive;
mod archive_segments;
mod chunk;
mod cluster;
mod frame;
#[path = "../../../testdata/long.rs"]
mod long;
mod naive;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod spec;
