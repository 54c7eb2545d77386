//! The `cg` tool on worlds, on saves of real worlds and on made ones, seen from outside.

#![allow(clippy::needless_raw_string_hashes, reason = "expect_test writes them")]

mod archives;
mod atomic;
mod cmd;
mod copies;
#[cfg(feature = "postgres")]
#[allow(dead_code, unused_imports, unused_macros, reason = "the tests of each crate use a part of it")]
#[path = "../../../testdata/fixture.rs"]
mod fixture;
#[path = "../../../testdata/held.rs"]
#[expect(dead_code, reason = "the tests of cg-anvil compare more of it")]
mod held;
mod java26;
#[path = "../../../testdata/long.rs"]
mod long;
#[path = "../../../testdata/maker.rs"]
mod maker;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_segments;
#[cfg(feature = "postgres")]
mod postgres_sync;
#[path = "../../../testdata/profile.rs"]
mod profile;
#[path = "../../../testdata/saves.rs"]
mod saves;
#[path = "../../../testdata/surviving.rs"]
#[expect(dead_code, reason = "another crate's tests damage rows with it")]
mod surviving;
#[path = "../../../testdata/worlds.rs"]
mod worlds;
