//! Saves of real worlds and made ones: what the `cg` tool reads and writes, seen from outside.

#![allow(clippy::needless_raw_string_hashes, reason = "expect_test writes them")]

mod atomic;
mod cmd;
mod copies;
mod corpus;
mod corrupt;
mod export;
mod held;
mod import;
mod java26;
mod leftovers;
mod limits;
#[path = "../../../testdata/long.rs"]
mod long;
mod lz4;
mod made;
mod maker;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_segments;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod round;
mod schem;
mod series;
#[path = "../../../testdata/surviving.rs"]
#[expect(dead_code, reason = "another crate's tests damage rows with it")]
mod surviving;
mod traps;
mod worlds;
