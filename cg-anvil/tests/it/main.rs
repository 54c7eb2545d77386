//! Saves of real worlds and made ones: what the library reads and writes, seen from outside.

#![allow(clippy::needless_raw_string_hashes, reason = "expect_test writes them")]

mod codec;
mod corpus;
mod corrupt;
mod export;
mod game;
#[path = "../../../testdata/held.rs"]
mod held;
mod import;
mod leftovers;
mod limits;
#[path = "../../../testdata/long.rs"]
mod long;
mod lz4;
mod made;
#[path = "../../../testdata/maker.rs"]
mod maker;
mod players;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod round;
#[path = "../../../testdata/saves.rs"]
mod saves;
mod schem;
mod series;
mod settings;
mod traps;
mod worlds;
