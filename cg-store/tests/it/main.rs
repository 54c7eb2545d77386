//! The store from outside, one module per behaviour.

#[cfg(feature = "rocks")]
mod overlay;
#[path = "../../../testdata/profile.rs"]
mod profile;
#[cfg(feature = "rocks")]
mod readme;
#[cfg(feature = "rocks")]
mod segment;
#[cfg(feature = "rocks")]
mod server;
#[cfg(feature = "rocks")]
mod surviving;
// Worlds in memory are tested side by side with worlds on disk.
#[cfg(feature = "rocks")]
mod world;
