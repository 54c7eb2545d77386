//! The store from outside, one module per behaviour.

mod engine;
#[cfg(feature = "rocks")]
mod readme;
// Worlds in memory are tested side by side with worlds on disk.
#[cfg(feature = "rocks")]
mod world;
