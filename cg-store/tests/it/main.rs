//! The store from outside, one module per behaviour.

#[cfg(feature = "rocks")]
#[path = "../../../testdata/fixture.rs"]
mod fixture;
#[cfg(feature = "rocks")]
#[path = "../../../testdata/long.rs"]
mod long;
#[path = "../../../testdata/profile.rs"]
mod profile;
#[cfg(feature = "rocks")]
mod readme;
mod remote;
#[cfg(feature = "rocks")]
mod server;
#[cfg(feature = "rocks")]
#[allow(dead_code, reason = "the tests of each crate use a part of it")]
#[path = "../../../testdata/surviving.rs"]
mod surviving;
// Worlds in memory are tested side by side with worlds on disk.
#[cfg(feature = "rocks")]
mod world;
