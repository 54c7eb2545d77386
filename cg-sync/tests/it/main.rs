//! Worlds as caches of other worlds, one module per behaviour.

mod example;
#[allow(dead_code, reason = "the tests of each crate use a part of it")]
#[path = "../../../testdata/fixture.rs"]
mod fixture;
mod format;
#[path = "../../../testdata/long.rs"]
mod long;
mod packs;
mod seeds;
mod sync;
